// SPDX-License-Identifier: Apache-2.0
// Runs a launch: gangs of blocks one after another, their threads as fibers from one queue.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>

#include "flashinfer/core/check.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/emu/machine.h"

namespace flashinfer::emu {

Machine* machine = nullptr;
namespace {
std::mutex one_run;
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
  a.async_wait = [](uint32_t pending, const void*) { machine->async_wait(pending); };
  a.atomic = [](void* p, uint32_t n, void (*f)(void*, void*), void* x, uint32_t order, const void* pc) {
    machine->atomic(p, n, f, x, order, pc);
  };
  a.fence = [](uint32_t of_block, const void* pc) { machine->fence(of_block != 0, pc); };
  a.cluster_barrier = [](uint32_t arrive, uint32_t wait, const void* pc) {
    machine->cluster_barrier(arrive != 0, wait != 0, pc);
  };
  a.grid_barrier = [](const void* pc) { machine->grid_barrier(pc); };
  a.map_shared = [](const void* p, uint32_t rank, const void* pc) { return machine->map_shared(p, rank, pc); };
  a.depend_wait = [] { machine->depend_wait(); };
  a.count = [](Count what, uint32_t n) { machine->count(what, n); };
  a.array_bounds = [](int64_t index, const char* type, const void* pc) { machine->array_bounds(index, type, pc); };
  a.fail = [](const char* sentence, const void* pc) { machine->fail(sentence, pc); };
  return a;
}

uint64_t product(const unsigned (&x)[3]) { return uint64_t{x[0]} * x[1] * x[2]; }
}  // namespace

Api api_table = make_table();
Stacks& stacks() {
  static Stacks& s = *new Stacks;
  return s;
}
void* hooks() { return &api_table; }

Machine::Machine(void (*kernel)(const void*), const void* params, size_t bytes, const cuda::Launch& launch,
                 const Options& options)
    : kernel_(kernel),
      params_(static_cast<const char*>(params), static_cast<const char*>(params) + bytes),
      entry_{params_.data()},
      launch_(launch),
      options_(options),
      lines_(reinterpret_cast<const void*>(kernel)),
      random_(options.seed * 0x9E3779B97F4A7C15u + 1) {
  const uint64_t threads = product(launch.block), blocks = product(launch.grid), in_cluster = product(launch.cluster);
  FI_CHECK(threads >= 1 && threads <= 1024, ValueError, "emulator: ", threads,
           " threads a block, but 1 to 1024 are possible");
  FI_CHECK(launch.shared_bytes <= options.shared_limit, ValueError, "emulator: ", launch.shared_bytes,
           " bytes of shared memory, but at most ", options.shared_limit, " are possible");
  FI_CHECK(in_cluster == 1 || options.clusters, ValueError, "emulator: a cluster of ", in_cluster,
           " blocks, but this GPU has no clusters (sm_90 and newer have)");
  FI_CHECK(in_cluster <= 16, ValueError, "emulator: a cluster of ", in_cluster, " blocks, but at most 16 are possible");
  for (int i = 0; i < 3; ++i)
    FI_CHECK(launch.cluster[i] >= 1 && launch.grid[i] % launch.cluster[i] == 0, ValueError, "emulator: grid[", i,
             "] is ", launch.grid[i], ", no multiple of cluster[", i, "], which is ", launch.cluster[i]);
  FI_CHECK(!launch.cooperative || in_cluster == 1, NotImplementedError, "emulator: a cooperative launch of clusters");
  gang_blocks_ = static_cast<uint32_t>(launch.cooperative ? blocks : in_cluster);
  const size_t n = gang_blocks_ * threads;
  threads_of_block_ = static_cast<uint32_t>(threads);
  FI_CHECK(n <= 16384, ValueError, "emulator: ", n, " threads must run at the same time, but at most 16384 can");
  if (blocks == 0) return;
  stacks().reserve(n);
  shared_stride_ = round_up(kRed + launch.shared_bytes, 128);
  shared_memory_.resize(gang_blocks_ * shared_stride_ + 2 * kRed);
  shared_state_.resize(shared_memory_.size());
  shared_begin_ = round_up(reinterpret_cast<uintptr_t>(shared_memory_.data()) + kRed, 128);
  if (options.races) clocks_.resize(n);
  if (options.count) counter_ = std::make_unique<Counter>();
  blocks_.resize(gang_blocks_);
  const size_t warps = ceil_div(threads, 32);
  warps_.resize(gang_blocks_ * warps);
  for (size_t i = 0; i < n; ++i) {
    threads_.push_back(std::make_unique<Thread>());
    Thread& t = *threads_.back();
    const uint32_t linear = static_cast<uint32_t>(i % threads);
    t.index = static_cast<uint32_t>(i), t.linear = linear, t.of = &blocks_[i / threads];
    t.thread[0] = linear % launch.block[0], t.thread[1] = linear / launch.block[0] % launch.block[1];
    t.thread[2] = linear / launch.block[0] / launch.block[1];
    t.warp = &warps_[i / threads * warps + linear / 32];
    t.warp->lane[linear % 32] = &t;
    t.of->threads.push_back(&t);
    std::copy_n(launch.block, 3, t.block_dim), std::copy_n(launch.grid, 3, t.grid_dim),
        std::copy_n(launch.cluster, 3, t.cluster_dim);
    t.cluster_rank = launch.cooperative ? 0 : static_cast<uint32_t>(i / threads);
    t.shared_bytes = launch.shared_bytes;
  }
}

uint64_t Machine::next_random() {
  random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
  return random_;
}

void Machine::start_gang(uint64_t first) {
  ++gang_;
  steps_ = all_steps_ = quiet_ = 0;
  ready_.clear();
  live_ = static_cast<uint32_t>(threads_.size());
  for (Barrier& b : cluster_) b = {};
  grid_ = {};
  std::fill(shared_state_.begin(), shared_state_.end(), uint8_t{kUninitialised});
  std::memset(shared_memory_.data(), 0xff, shared_memory_.size());  // NaN in every type
  const auto* c = launch_.cluster;
  const auto* g = launch_.grid;
  for (uint32_t b = 0; b < gang_blocks_; ++b) {
    Block& block = blocks_[b];
    if (launch_.cooperative) {
      block.id[0] = b % g[0], block.id[1] = b / g[0] % g[1], block.id[2] = b / g[0] / g[1];
    } else {  // `first` is in clusters
      const unsigned across[2] = {g[0] / c[0], g[1] / c[1]};
      const uint64_t at[3] = {first % across[0], first / across[0] % across[1], first / across[0] / across[1]};
      const uint32_t in[3] = {b % c[0], b / c[0] % c[1], b / c[0] / c[1]};
      for (int i = 0; i < 3; ++i) block.id[i] = static_cast<uint32_t>(at[i]) * c[i] + in[i];
    }
    block.linear = b, block.live = static_cast<uint32_t>(block.threads.size());
    block.shared = reinterpret_cast<char*>(shared_begin_ + b * shared_stride_);
    block.state = shared_state_.data() + (block.shared - shared_memory_.data());
    for (Barrier& x : block.barrier) x = {};
    block.remote.clear();
  }
  for (Warp& w : warps_) w.open.clear(), w.live = 0, w.arrived = 0;
  for (auto& p : threads_) {
    Thread& t = *p;
    t.done = false, t.depended = !launch_.pdl, t.waits_for = nullptr, t.shared = t.of->shared;
    t.groups.clear(), t.open.clear(), t.past.clear();
    for (Knowledge* k : {&t.released[0], &t.released[1], &t.seen[0], &t.seen[1]}) *k = {};
    t.cluster_arrived = false, t.repeats = 0;
    std::fill(std::begin(t.barrier_phase), std::end(t.barrier_phase), 0u);
    std::copy_n(t.of->id, 3, t.ThreadInfo::block);
    t.warp->live |= 1u << (t.linear % 32);
    prepare_context(t.context, stacks().bottom(t.index), stacks().top(t.index), fiber_main);
    if (options_.races) clocks_.tick(t.index), t.started = clocks_.of(t.index)[t.index];
    ready_.push_back(&t);
  }
}

Thread* Machine::next() {
  if (ready_.empty()) return nullptr;
  if (options_.seed) std::swap(ready_.front(), ready_[next_random() % ready_.size()]);
  Thread* t = ready_.front();
  ready_.pop_front();
  return t;
}

void Machine::run_gang() {
  while (live_ > 0 && !stopped_) {
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
  Thread* t = next();
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
}
void Machine::preempt() {
  if (options_.seed == 0 || --budget_ > 0) return;
  ready_.push_back(now_);
  leave();
}

void Machine::thread_main() {
  kernel_(&entry_);
  thread_ends(*now_);
  for (;;) leave();
}

void Machine::thread_ends(Thread& t) {
  t.done = true;
  --live_, --t.of->live;
  steps_ = quiet_ = 0;
  t.warp->live &= ~(1u << (t.linear % 32));
  if (counter_ && t.warp->live == 0) close_log(*t.warp);
  t.groups.push_back(std::move(t.open));
  for (const auto& group : t.groups) {
    if (group.empty()) continue;
    report("async", str(who(t), " returned while its cp.async of %1 was in flight: it was never waited for"),
           group.front().pc);
    break;
  }
  Barrier& b = t.of->barrier[0];
  if (!b.came.empty()) {
    report("exit", str(who(t), " returned while ", b.came.size(), " threads of its block wait at sync_threads (%1)"),
           b.pc);
    if (b.came.size() == t.of->live) release(b);
  }
  for (const Met& m : t.warp->open)
    if (m.mask >> (t.linear % 32) & 1) {
      const int other = __builtin_ctz(m.arrived);
      report("exit", str(who(t), " returned, but lanes of its warp wait for it at %1"), m.pc[other]);
      stop();
    }
  if (t.of->live == 0) block_ends(*t.of);
}

std::string Machine::who(const Thread& t) const {
  return str("thread (", t.thread[0], ",", t.thread[1], ",", t.thread[2], ") of block (", t.of->id[0], ",", t.of->id[1],
             ",", t.of->id[2], ")");
}

void Machine::report(const char* kind, std::string text, const void* pc1, const void* pc2) {
  findings_.add(kind, {std::move(text), pc1, pc2});
}
void Machine::fail(const char* sentence, const void* pc) {
  report("kernel", str(who(*now_), ": ", sentence, " (%1)"), pc);
  stop();
}

Report Machine::run() {
  const uint64_t gangs = product(launch_.grid) / gang_blocks_;
  std::vector<uint64_t> order(gangs);
  for (uint64_t i = 0; i < gangs; ++i) order[i] = i;
  if (options_.seed)
    for (uint64_t i = gangs; i > 1; --i) std::swap(order[i - 1], order[next_random() % i]);
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
           reinterpret_cast<const char*>(kernel_) + 1);
  Report r;
  r.errors = findings_.sentences(lines_);
  for (const std::string& e : r.errors) r.error += (r.error.empty() ? "" : "\n") + e;
  if (counter_) r.counts = counter_->result(lines_);
  r.switches = switches_;
  return r;
}

Report run(void (*kernel)(const void*), const void* params, size_t bytes, const cuda::Launch& launch,
           const Options& options) {
  const std::lock_guard lock(one_run);
  Machine m(kernel, params, bytes, launch, options);
  if (product(launch.grid) == 0) return {};
  machine = &m;
  Report r = m.run();
  machine = nullptr;
  return r;
}

}  // namespace flashinfer::emu
