// SPDX-License-Identifier: Apache-2.0
// Runs a launch once: gangs of blocks one after another, their threads as fibers from one queue.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "flashinfer/core/check.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/emu/machine.h"
#include "flashinfer/kernels/emu/system.h"

namespace flashinfer::emu {

Machine* machine = nullptr;
namespace {
constexpr size_t kRed = 1024;  // red zone between the shared memories of two blocks

void fiber_main() { machine->thread_main(); }

Api make_table() {
  Api a{};
  a.access = [](const void* p, uint32_t n, uint32_t flags, const void* pc) { machine->access(p, n, flags, pc); };
  a.barrier = [](uint32_t id, uint32_t n, uint32_t wait, const void* pc) { machine->barrier(id, n, wait != 0, pc); };
  a.meet = [](Meeting k, uint32_t mask, void* operand, void (*f)(void* const*, uint32_t), const void* pc) {
    machine->meet(k, mask, operand, f, pc);
  };
  a.async_copy = [](void* to, const void* from, uint32_t n, uint32_t have, const void* pc) {
    machine->async_copy(to, from, n, have, pc);
  };
  a.async_commit = [](const void*) { machine->async_commit(); };
  a.async_wait = [](uint32_t pending, const void* pc) { machine->async_wait(pending, pc); };
  a.atomic = [](void* p, uint32_t n, void (*f)(void*, void*), void* x, uint32_t order, const void* pc) {
    machine->atomic(p, n, f, x, order, pc);
  };
  a.fence = [](uint32_t which, const void* pc) {
    machine->fence(which == kSystemFence ? kScopeOfSystem : which == 0 ? kScopeOfGpu : kScopeOfBlock, pc);
  };
  a.cluster_barrier = [](uint32_t arrive, uint32_t wait, const void* pc) {
    machine->cluster_barrier(arrive != 0, wait != 0, pc);
  };
  a.grid_barrier = [](uint32_t* counter, const void* pc) { machine->grid_barrier(counter, pc); };
  a.map_shared = [](const void* p, uint32_t rank, const void* pc) { return machine->map_shared(p, rank, pc); };
  a.space = [](const void* p, uint32_t shared, const void* pc) { machine->space(p, shared != 0, pc); };
  a.depend_wait = [] { machine->depend_wait(); };
  a.lanes_apart = [](const void* pc) { machine->lanes_apart(pc); };
  a.count = [](Count what, uint32_t n) { machine->count(what, n); };
  a.array_bounds = [](int64_t index, const char* type, const void* pc) { machine->array_bounds(index, type, pc); };
  a.object_bounds = [](const char* type, const void* pc) { machine->object_bounds(type, pc); };
  a.local_bounds = [](const void* p, uint32_t n, uint32_t flags, uint32_t returned, const void* pc) {
    machine->local_bounds(p, n, flags, returned != 0, pc);
  };
  a.print = [](const char* format, va_list values) { return machine->print(format, values); };
  a.fail = [](const char* sentence, const void* pc) { machine->fail(sentence, pc); };
  return a;
}

uint64_t product(const unsigned (&x)[3]) { return uint64_t{x[0]} * x[1] * x[2]; }
uint32_t warps_of(const cuda::Launch& l) { return static_cast<uint32_t>(ceil_div(product(l.block), 32)); }
std::vector<const void*> code_of(std::span<const std::vector<Work>> gpus) {
  std::vector<const void*> code;
  for (const auto& launches : gpus)
    for (const Work& w : launches) code.push_back(reinterpret_cast<const void*>(w.kernel));
  return code;
}
}  // namespace

Api api_table = make_table();
Stacks& stacks() {
  static Stacks& s = *new Stacks;
  return s;
}
void* hooks() { return &api_table; }

void Machine::check_launch(const cuda::Launch& l) const {
  const uint64_t threads = product(l.block), in_cluster = product(l.cluster);
  FI_CHECK(threads >= 1 && threads <= 1024, ValueError, "emulator: ", threads,
           " threads a block, but 1 to 1024 are possible");
  FI_CHECK(l.shared_bytes <= options_.shared_limit, ValueError, "emulator: ", l.shared_bytes,
           " bytes of shared memory, but at most ", options_.shared_limit, " are possible");
  FI_CHECK(in_cluster == 1 || options_.clusters, ValueError, "emulator: a cluster of ", in_cluster,
           " blocks, but this GPU has no clusters (sm_90 and newer have)");
  FI_CHECK(in_cluster <= 16, ValueError, "emulator: a cluster of ", in_cluster, " blocks, but at most 16 are possible");
  for (int i = 0; i < 3; ++i)
    FI_CHECK(l.cluster[i] >= 1 && l.grid[i] % l.cluster[i] == 0, ValueError, "emulator: grid[", i, "] is ", l.grid[i],
             ", no multiple of cluster[", i, "], which is ", l.cluster[i]);
  FI_CHECK(!l.cooperative || in_cluster == 1, NotImplementedError, "emulator: a cooperative launch of clusters");
  if (gpus_.size() == 1 && gpus_[0].launches.size() == 1) return;
  FI_CHECK(
      l.cooperative, ValueError,
      "emulator: a launch of one of several GPUs is not cooperative: a kernel that waits for another GPU needs all "
      "its blocks on its own");
  FI_CHECK(!l.pdl, NotImplementedError, "emulator: a dependent launch of one of several GPUs");
}

Machine::Machine(std::span<const std::vector<Work>> gpus, const Options& options, Mode mode)
    : gpus_(gpus.size()),
      launch_(gpus[0][0].launch),
      options_(options),
      mode_(mode),
      keeps_(options.races || mode.undone),
      lines_(code_of(gpus)),
      random_(options.seed * 0x9E3779B97F4A7C15u + 1) {
  for (size_t g = 0; g < gpus.size(); ++g) gpus_[g].id = static_cast<uint32_t>(g), gpus_[g].launches = gpus[g];
  for (const Gpu& g : gpus_)
    for (const Work& w : g.launches) check_launch(w.launch);
  gang_blocks_ = 0;
  uint32_t n = 0, warps = 0, shared_bytes = 0;
  for (Gpu& g : gpus_) {
    for (const Work& w : g.launches) {
      const cuda::Launch& l = w.launch;
      const uint64_t blocks = l.cooperative ? product(l.grid) : product(l.cluster), threads = blocks * product(l.block);
      FI_CHECK(threads <= kMostThreads, ValueError, "emulator: ", threads,
               " threads must run at the same time, but at most ", kMostThreads, " can");
      g.most_threads = std::max(g.most_threads, static_cast<uint32_t>(threads));
      g.most_blocks = std::max(g.most_blocks, static_cast<uint32_t>(blocks));
      g.most_warps = std::max(g.most_warps, static_cast<uint32_t>(blocks) * warps_of(l));
      shared_bytes = std::max(shared_bytes, l.shared_bytes);
    }
    g.first_thread = n, g.first_block = gang_blocks_, g.first_warp = warps;
    n += g.most_threads, gang_blocks_ += g.most_blocks, warps += g.most_warps;
    FI_CHECK(n <= kMostThreads, ValueError, "emulator: ", n,
             " threads of several GPUs must run at the same time, but at "
             "most ",
             kMostThreads, " can");
  }
  if (n == 0) return;
  stacks().reserve(n);
  shared_stride_ = round_up(kRed + shared_bytes, 128);
  shared_bytes_ = gang_blocks_ * shared_stride_;
  shared_memory_.make(shared_bytes_ + 2 * kRed, !launch_.cooperative && gang_blocks_ > 1);
  shared_state_.resize(shared_memory_.size());
  shared_begin_ = round_up(reinterpret_cast<uintptr_t>(shared_memory_.data()) + kRed, 128);
  if (options.races) clocks_.resize(n);
  if (options.count) counter_ = std::make_unique<Counter>();
  blocks_.resize(gang_blocks_);
  warps_.resize(warps);
  for (Gpu& g : gpus_)
    for (uint32_t i = 0; i < g.most_threads; ++i) {
      threads_.push_back(std::make_unique<Thread>());
      threads_.back()->index = g.first_thread + i, threads_.back()->gpu = &g;
    }
  for (Gpu& g : gpus_) place(g);
}

/// The GPU's threads and blocks become those of its running launch.
void Machine::place(Gpu& g) {
  const cuda::Launch& l = g.launch();
  const uint32_t threads = static_cast<uint32_t>(product(l.block)), warps = warps_of(l),
                 blocks = static_cast<uint32_t>(l.cooperative ? product(l.grid) : product(l.cluster));
  const char* const params = static_cast<const char*>(g.work().params);
  g.params.assign(params, params + g.work().bytes);
  g.entry = {g.params.data()};
  g.grid = {}, g.grid_counter = nullptr, g.threads = blocks * threads;
  for (uint32_t b = 0; b < g.most_blocks; ++b) {
    Block& block = blocks_[g.first_block + b];
    block.linear = g.first_block + b, block.threads.clear(), block.live = 0;
    block.shared = reinterpret_cast<char*>(shared_begin_ + block.linear * shared_stride_);
    block.state = shared_state_.data() + (block.shared - shared_memory_.data());
  }
  for (uint32_t w = 0; w < g.most_warps; ++w) warps_[g.first_warp + w] = {};
  for (uint32_t i = 0; i < g.most_threads; ++i) {
    Thread& t = *threads_[g.first_thread + i];
    t.done = true;
    if (i >= g.threads) continue;
    t.linear = i % threads, t.of = &blocks_[g.first_block + i / threads];
    t.thread[0] = t.linear % l.block[0], t.thread[1] = t.linear / l.block[0] % l.block[1];
    t.thread[2] = t.linear / l.block[0] / l.block[1];
    t.warp = &warps_[g.first_warp + i / threads * warps + t.linear / 32];
    t.warp->lane[t.linear % 32] = &t;
    t.of->threads.push_back(&t);
    std::copy_n(l.block, 3, t.block_dim), std::copy_n(l.grid, 3, t.grid_dim), std::copy_n(l.cluster, 3, t.cluster_dim);
    t.cluster_rank = l.cooperative ? 0 : i / threads;
    t.shared_bytes = l.shared_bytes;
  }
}

uint64_t Machine::next_random() {
  random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
  return random_;
}

void Machine::reset(Block& b) {
  b.live = static_cast<uint32_t>(b.threads.size());
  for (Barrier& x : b.barrier) x = {};
  b.remote.clear();
  std::memset(b.state, kUninitialised, shared_stride_ - kRed);
  std::memset(b.shared, 0xff, shared_stride_ - kRed);  // NaN in every type
}
void Machine::reset(Thread& t) {
  t.done = false, t.depended = !t.gpu->launch().pdl, t.waits_for = nullptr, t.shared = t.of->shared;
  t.groups.clear(), t.open.clear(), t.past.clear();
  for (uint32_t s = 0; s < kScopes; ++s) t.released[s] = {}, t.seen[s] = {};
  t.cluster_arrived = false, t.repeats = 0, t.stale_at = nullptr, t.apart_at = nullptr;
  std::fill(std::begin(t.barrier_phase), std::end(t.barrier_phase), 0u);
  std::copy_n(t.of->id, 3, t.ThreadInfo::block);
  t.warp->live |= 1u << (t.linear % 32);
  prepare_context(t.context, stacks().bottom(t.index), stacks().top(t.index), fiber_main);
  if (options_.races) clocks_.tick(t.index), t.started = clocks_.of(t.index)[t.index];
  ready_.push_back(&t);
  ++live_, ++t.gpu->live;
}

void Machine::start_gang(uint64_t first) {
  ++gang_;
  steps_ = all_steps_ = quiet_ = meetings_ = 0;
  ready_.clear();
  live_ = 0;
  for (Barrier& b : cluster_) b = {};
  for (Gpu& gpu : gpus_) {
    const auto* c = gpu.launch().cluster;
    const auto* g = gpu.launch().grid;
    gpu.grid = {}, gpu.live = 0;
    for (uint32_t b = 0; b < gpu.most_blocks; ++b) {
      Block& block = blocks_[gpu.first_block + b];
      if (gpu.launch().cooperative) {
        block.id[0] = b % g[0], block.id[1] = b / g[0] % g[1], block.id[2] = b / g[0] / g[1];
      } else {  // `first` is in clusters
        const unsigned across[2] = {g[0] / c[0], g[1] / c[1]};
        const uint64_t at[3] = {first % across[0], first / across[0] % across[1], first / across[0] / across[1]};
        const uint32_t in[3] = {b % c[0], b / c[0] % c[1], b / c[0] / c[1]};
        for (int i = 0; i < 3; ++i) block.id[i] = static_cast<uint32_t>(at[i]) * c[i] + in[i];
      }
      reset(block);
    }
    for (uint32_t w = 0; w < gpu.most_warps; ++w) {
      Warp& warp = warps_[gpu.first_warp + w];
      warp.open.clear(), warp.live = 0, warp.arrived = 0;
    }
    for (uint32_t i = 0; i < gpu.most_threads; ++i)
      if (i < gpu.threads) reset(*threads_[gpu.first_thread + i]);
  }
}

/// The next launch of a GPU, whose last one has ended: all that one did comes before.
void Machine::start_launch(Gpu& g) {
  if (options_.races) {
    joined_.assign(clocks_.size(), 0);
    for (uint32_t i = 0; i < g.most_threads; ++i) clocks_.join(joined_, g.first_thread + i);
    for (uint32_t i = 0; i < g.most_threads; ++i) clocks_.take(g.first_thread + i, joined_);
  }
  ++g.running;
  place(g);
  const auto* const grid = g.launch().grid;
  for (uint32_t b = 0; b < g.most_blocks; ++b) {
    Block& block = blocks_[g.first_block + b];
    block.id[0] = b % grid[0], block.id[1] = b / grid[0] % grid[1], block.id[2] = b / grid[0] / grid[1];
    reset(block);
    for (Thread* t : block.threads) reset(*t);
  }
  progress();
}

Thread* Machine::next() {
  if (ready_.empty()) return nullptr;
  if (mode_.by_number()) {
    const auto better = [&](const Thread* a, const Thread* b) {
      return mode_.order == Mode::Order::kAscending ? a->index < b->index : a->index > b->index;
    };
    size_t best = 0;
    for (size_t i = 1; i < ready_.size(); ++i)
      if (!ready_[i]->gives_way && (ready_[best]->gives_way || better(ready_[i], ready_[best]))) best = i;
    Thread* const t = ready_[best];
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(best));
    woke_ = t->gives_way = false;
    return t;
  }
  if (options_.seed) std::swap(ready_.front(), ready_[next_random() % ready_.size()]);
  Thread* t = ready_.front();
  ready_.pop_front();
  return t;
}

void Machine::run_gang() {
  while ((live_ > 0 || !ended_.empty()) && !stopped_) {
    for (Gpu* g : ended_) start_launch(*g);
    ended_.clear();
    Thread* t = next();
    if (t == nullptr) {
      report_deadlock();
      stopped_ = true;
      return;
    }
    start(t);
    switch_context(scheduler_, t->context);
  }
}

void Machine::start(Thread* t) {
  now_ = t, api_table.now = t;
  api_table.stack_begin = reinterpret_cast<uintptr_t>(stacks().bottom(t->index)),
  api_table.stack_bytes = Stacks::kBytes;
  if (options_.seed) budget_ = 1 + next_random() % 64;
  ++switches_;
}
void Machine::to_scheduler() { switch_context(now_->context, scheduler_); }
/// Switches directly to the next runnable thread: half the switches of going through the scheduler.
void Machine::leave() {
  Thread* from = now_;
  Thread* t = ended_.empty() ? next() : nullptr;
  if (t == nullptr) return to_scheduler();  // the gang is done, or no thread can run
  if (t == from) return;                    // preempted, but no other thread is runnable
  start(t);
  switch_context(from->context, t->context);
}
void Machine::stop() {
  stopped_ = true;
  for (;;) to_scheduler();
}
void Machine::block_on(const char* what, const void* pc) {
  now_->waits_for = what, now_->waits_at = pc;
  leave();
}
void Machine::wake(Thread* t) {
  t->waits_for = nullptr;
  ready_.push_back(t);
  woke_ = true;
}
void Machine::preempt() {
  if (mode_.by_number() ? !std::exchange(woke_, false) : options_.seed == 0 || --budget_ > 0) return;
  ready_.push_back(now_);
  leave();
}

void Machine::thread_main() {
  now_->gpu->work().kernel(&now_->gpu->entry);
  thread_ends(*now_);
  for (;;) leave();
}

std::string Machine::who(const Thread& t) const {
  std::string text = str("thread (", t.thread[0], ",", t.thread[1], ",", t.thread[2], ") of block (", t.of->id[0], ",",
                         t.of->id[1], ",", t.of->id[2], ")");
  if (gpus_.size() > 1) text += str(" of GPU ", t.gpu->id);
  return text;
}

void Machine::report(const char* kind, std::string text, const void* pc1, const void* pc2) {
  if (mode_.guarded && kind != std::string_view("local")) return;  // the run that follows finds it
  findings_.add(kind, {std::move(text), pc1, pc2});
}
void Machine::fail(const char* sentence, const void* pc) {
  report("kernel", str(who(*now_), ": ", sentence, " (%1)"), pc);
  stop();
}

int Machine::print(const char* format, va_list values) {
  va_list again;
  va_copy(again, values);
  const int n = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (n < 0) return n;
  std::string text(static_cast<size_t>(n), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, values);
  if (mode_.undone)
    printed_ += text;
  else
    std::fwrite(text.data(), 1, text.size(), stdout);
  return n;
}

Report Machine::run() {
  const uint64_t gangs = launch_.cooperative ? 1 : product(launch_.grid) / gang_blocks_;
  std::vector<uint64_t> order(gangs);
  for (uint64_t i = 0; i < gangs; ++i) order[i] = i;
  if (options_.seed)
    for (uint64_t i = gangs; i > 1; --i) std::swap(order[i - 1], order[next_random() % i]);
  if (mode_.order == Mode::Order::kDescending) std::reverse(order.begin(), order.end());
  for (const uint64_t g : order) {
    start_gang(g);
    run_gang();
    if (stopped_) break;
  }
  // The next kernel waits for the end of this one, which does not wait for the one before.
  if (launch_.pdl && !waited_ && !stopped_)
    report("depend",
           "no thread calls depend_wait(), in a launch that may start before the kernel in front has ended: it may end "
           "before that one, whose writes the next kernel then does not wait for (%1)",
           reinterpret_cast<const char*>(gpus_[0].work().kernel) + 1);
  Report r;
  r.errors = findings_.sentences(lines_);
  for (const std::string& e : r.errors) r.error += (r.error.empty() ? "" : "\n") + e;
  if (counter_) r.counts = counter_->result(lines_);
  r.switches = switches_;
  return r;
}

}  // namespace flashinfer::emu
