// SPDX-License-Identifier: Apache-2.0
// State of the emulated machine during a launch. A gang is a set of blocks that must run concurrently: a block, the
// blocks of a cluster, or a cooperative grid; gangs run one after another.
#pragma once
#include <cstdarg>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flashinfer/kernels/emu/api.h"
#include "flashinfer/kernels/emu/count.h"
#include "flashinfer/kernels/emu/emu.h"
#include "flashinfer/kernels/emu/fiber.h"
#include "flashinfer/kernels/emu/race.h"
#include "flashinfer/kernels/emu/report.h"
#include "flashinfer/kernels/emu/shared_memory.h"
#include "flashinfer/kernels/emu/undo.h"

namespace flashinfer::emu {

struct Block;
struct Warp;

struct AsyncCopy {
  char* target;
  const char* source;
  uint32_t bytes, from;
  const void* pc;
};

constexpr uint32_t kMostThreads = 16384;  // at the same time
constexpr uint64_t kSteps = uint64_t{1} << 25;

/// The last different accesses of a thread, by a hash of the addresses in memory and in the code. Any of them may
/// follow any other: what repeats them all is found, whether one instruction reads several words or several read one.
class LastAccesses {
 public:
  static uint32_t hash(uintptr_t at, const void* pc) {
    return static_cast<uint32_t>((at * 0x9E3779B97F4A7C15u ^ reinterpret_cast<uintptr_t>(pc) * 0xC2B2AE3D27D4EB4Fu) >>
                                 32);
  }
  bool hold(uint32_t hash) const {
    uint32_t found = 0;
    for (const uint32_t h : last_) found |= h == hash ? 1u : 0u;
    return found != 0;
  }
  /// In place of the oldest.
  void add(uint32_t hash) { last_[oldest_++ % kMost] = hash; }

 private:
  static constexpr uint32_t kMost = 16;
  alignas(16) uint32_t last_[kMost] = {};
  uint32_t oldest_ = 0;
};

struct Gpu;

/// A thread's last load of an atomic, and what it knew before, if it learned from it.
struct Poll {
  const void *at = nullptr, *pc = nullptr;
  uint64_t acts = 0;
  bool learned = false;
  Knowledge known, seen[3];
};

struct Thread : ThreadInfo {
  Context context;
  uint32_t index = 0;  // in the gang
  Gpu* gpu = nullptr;
  Block* of = nullptr;
  Warp* warp = nullptr;
  bool done = false;
  bool gives_way = false;           // until others have run: it only repeats its last accesses
  bool depended = true;             // the previous kernel has ended, as far as this thread knows
  const char* waits_for = nullptr;  // null: can run
  const void* waits_at = nullptr;
  std::vector<std::vector<AsyncCopy>> groups;  // committed, oldest first
  std::vector<AsyncCopy> open;                 // not committed yet
  PastGangs past;                              // accesses of earlier gangs that are ordered before this thread
  // By fences of each scope (kScopes): what the last one released, and what relaxed atomics saw since then.
  Knowledge released[3], seen[3];
  int32_t started = 0;           // its own clock when the gang began
  bool cluster_arrived = false;  // at the cluster's barrier, without having waited
  uint32_t cluster_phase = 0;    // of that barrier, when it arrived
  const void* cluster_at = nullptr;
  uint32_t barrier_phase[16] = {};  // of each barrier of the block, when it last waited there
  const void* apart_at = nullptr;   // code that may have left it apart from the other lanes; null: they are together
  LastAccesses last;
  uint32_t repeats = 0;  // of these, one after another
  // Its last load of an atomic's earlier value, without a write since then (order.cc).
  const void *stale_at = nullptr, *stale_pc = nullptr;
  uint64_t acts = 0;  // accesses and meetings
  Poll poll;
};

/// Lanes that have arrived at a shuffle, vote, mma or sync_warp.
struct Met {
  Meeting kind;
  uint32_t mask, arrived;
  void* operand[32];
  const void* pc[32];
};
struct Warp {
  Thread* lane[32] = {};
  uint32_t live = 0;     // lanes
  uint32_t arrived = 0;  // lanes at a barrier of the block, for the log
  std::vector<Met> open;
  WarpLog log;
};

struct Barrier {
  std::vector<Thread*> waiting, came;
  uint32_t threads = 0;      // 0: all live ones
  const void* pc = nullptr;  // of the first to arrive
  Knowledge known;
  bool depended = false;  // one of those that came has waited for the previous kernel
  uint32_t phase = 1;
  std::vector<std::pair<uint32_t, int32_t>> last_came;  // threads of the phase before, and their clocks when they came
  const void* last_pc = nullptr;
};

/// The last access of a thread to the shared memory of another block.
struct RemoteTouch {
  int32_t clock = 0;
  uint32_t flags = 0;
  const void* pc = nullptr;
};

struct Block {
  uint32_t id[3], linear, live = 0;
  char* shared = nullptr;
  uint8_t* state = nullptr;  // of each byte of shared memory
  Barrier barrier[16];
  std::vector<Thread*> threads;
  std::map<uint32_t, RemoteTouch> remote;  // by thread of the gang
};
enum : uint8_t { kUninitialised = 0, kInitialised = 1, kInFlight = 2 };

/// One GPU: its stream of launches, of which one runs, and the threads, blocks and warps of the gang that it has.
struct Gpu {
  uint32_t id = 0;
  std::span<const Work> launches;
  size_t running = 0;  // of `launches`
  std::vector<char> params;
  Entry entry{};
  uint32_t first_thread = 0, most_threads = 0;  // of the largest launch
  uint32_t first_block = 0, most_blocks = 0, first_warp = 0, most_warps = 0;
  uint32_t threads = 0, live = 0;  // of the running launch
  Barrier grid;
  uint32_t* grid_counter = nullptr;  // of the running launch's grid barrier
  const Work& work() const { return launches[running]; }
  const cuda::Launch& launch() const { return launches[running].launch; }
};
/// Scopes of atomics and fences, each with those before it.
enum Scope : uint32_t { kScopeOfBlock, kScopeOfGpu, kScopeOfSystem, kScopes };

/// How a machine runs a launch.
struct Mode {
  /// By number: always the first (last) thread that can run, blocks likewise. Of two threads that do something between
  /// the same barriers, kAscending has one first and kDescending the other.
  enum class Order { kBySeed, kAscending, kDescending };
  Order order = Order::kBySeed;
  bool guarded = false;  // the kernels are guarded forms: only accesses that leave a local variable are reported
  bool undone = false;   // what it writes is taken back: it ends where not all of that could be kept
  bool by_number() const { return order != Order::kBySeed; }
};

class Machine {
 public:
  Machine(std::span<const std::vector<Work>> gpus, const Options& options, Mode mode = {});
  Report run();
  Undo& undo() { return undo_; }
  /// An atomic operation took over what another had released, and could as well have come before it.
  bool chose_an_order() const { return chose_an_order_; }
  bool stopped() const { return stopped_; }  // fibers were left in the middle of a function

  // Called by the artifact (bound in machine.cc).
  void access(const void* p, uint32_t bytes, uint32_t flags, const void* pc);
  void barrier(uint32_t id, uint32_t threads, bool wait, const void* pc);
  void meet(Meeting kind, uint32_t mask, void* operand, void (*compute)(void* const*, uint32_t), const void* pc);
  void async_copy(void* target, const void* source, uint32_t bytes, uint32_t from, const void* pc);
  void async_commit();
  void async_wait(uint32_t pending, const void* pc);
  void atomic(void* p, uint32_t bytes, void (*apply)(void*, void*), void* operand, uint32_t order, const void* pc);
  void fence(Scope scope, const void* pc);
  void cluster_barrier(bool arrive, bool wait, const void* pc);
  void grid_barrier(uint32_t* counter, const void* pc);
  void* map_shared(const void* p, uint32_t rank, const void* pc);
  void space(const void* p, bool shared, const void* pc);
  void depend_wait() { now_->depended = waited_ = true; }
  void lanes_apart(const void* pc) { now_->apart_at = pc; }
  void count(Count what, uint32_t n) {
    if (counter_) counter_->instruction(what, n);
  }
  /// To stdout, once: what a run prints whose writes are taken back is kept.
  int print(const char* format, va_list values);
  const std::string& printed() const { return printed_; }
  void fail(const char* sentence, const void* pc);
  void array_bounds(int64_t index, const char* type, const void* pc);
  void object_bounds(const char* type, const void* pc);
  void local_bounds(const void* p, uint32_t bytes, uint32_t flags, bool returned, const void* pc);

  void thread_main();  // body of a fiber
  /// Called between two instructions of the running fiber (watchdog.h): code of a kernel that has done nothing that the
  /// emulator sees for `ticks` calls never ends.
  void tick(const void* pc, int ticks);

 private:
  // machine.cc: gangs and the queue of runnable threads
  void check_launch(const cuda::Launch& launch) const;
  void make_threads();
  void place(Gpu& gpu);
  void reset(Block& b);
  void reset(Thread& t);
  void start_gang(uint64_t first_block);
  void start_launch(Gpu& gpu);
  void run_gang();
  Thread* next();
  void start(Thread* t);
  void to_scheduler();
  void leave();
  void block_on(const char* what, const void* pc);
  void wake(Thread* t);
  void preempt();
  void thread_ends(Thread& t);
  void block_ends(Block& b);
  /// Before each access.
  void step(uintptr_t at, const void* pc) {
    const uint32_t hash = LastAccesses::hash(at, pc);
    if (now_->last.hold(hash)) {
      repeated(pc);
    } else {
      now_->last.add(hash);
      now_->repeats = 0, quiet_ = 0;
    }
    meetings_ = 0;
    if (++steps_ > (mode_.guarded ? kSteps / 8 : kSteps))  // the run that follows a guarded one finds it
      too_long("made no progress: 2^25 accesses of its blocks without a barrier or a thread's end", pc);
  }
  void repeated(const void* pc);
  void met(const void* pc);
  void read_parameter(const void* pc);
  void progress();
  [[noreturn]] void too_long(const char* why, const void* pc);
  void report_deadlock();
  [[noreturn]] void stop();
  std::string who(const Thread& t) const;
  void report(const char* kind, std::string text, const void* pc1, const void* pc2 = nullptr);

  // sync.cc
  void check_together(const char* what, const void* pc);
  void gather(Barrier& b, Thread& t, const void* pc);
  void release(Barrier& b);
  void check_phase(Barrier& b, uint32_t id, const void* pc);
  void check_warps(const Barrier& b, uint32_t id, const void* pc);
  void check_counter(uint32_t* counter, const void* pc);
  void check_places(const char* what, const void* a, const void* b, const Thread& t);
  void close_log(Warp& w);

  // memory.cc
  void shared_access(uintptr_t at, uint32_t bytes, uint32_t flags, const void* pc);
  void global_access(uintptr_t at, uint32_t bytes, uint32_t flags, const void* pc);
  void out_of_bounds(uintptr_t at, uint32_t bytes, uint32_t flags, const Range* before, const Range* after,
                     const void* pc);
  bool read_only(uintptr_t at) const {
    const Gpu& gpu = *now_->gpu;
    return at - reinterpret_cast<uintptr_t>(gpu.params.data()) < gpu.params.size() ||
           at - reinterpret_cast<uintptr_t>(&gpu.entry) < sizeof(gpu.entry) || lines_.inside(at);
  }
  Block* block_of(uintptr_t at, uint32_t bytes, uint32_t flags);
  /// Whether an address is one of map_shared(); then it becomes that of the memory itself.
  [[noreturn]] void wrong_space(bool shared, const void* pc);
  bool unmap(uintptr_t& at) const {
    const size_t distance = shared_memory_.distance();
    if (distance == 0 || at - shared_begin_ - distance >= shared_bytes_) return false;
    at -= distance;
    return true;
  }
  void remote_access(Block& b, uint32_t flags, const void* pc);
  void check_written(const Range& r, uintptr_t at, uint32_t bytes, uint32_t flags, const void* pc);
  void land(Thread& t, const AsyncCopy& c);

  // race_check.cc
  void check_race(PageMap& map, uintptr_t at, uint32_t bytes, uint32_t flags, const void* pc);
  void check_cell(PageMap& map, Cell& c, uintptr_t at, uint32_t bytes, uint32_t flags, const void* pc);
  void check_uses(PageMap& map, const Cell& c, uintptr_t at, uint32_t bytes, uint32_t flags, const void* pc);
  void keep_use(PageMap& map, Cell& c, UseKind kind, uint8_t size, uint32_t lane, uint32_t pc);
  uint32_t unordered(const Use& u) const;
  uint32_t unordered(const PastUse& u) const;
  bool ordered(const Touch& o) const;
  void report_race(const PageMap& map, uintptr_t at, uint32_t bytes, uint32_t flags, const void* pc,
                   const char* other_word, const Thread* other, uint32_t other_pc);
  void report_source(uintptr_t at, uint32_t bytes, uint32_t flags, const void* pc);

  // order.cc
  using Released = std::map<uint32_t, Knowledge>;  // for the threads of a block, of a GPU, of all (0)
  struct SyncVariable {
    uint32_t gang = 0;
    Released of[kScopes];
    Touch store;  // the last one for all GPUs
    // The value before the last change, what was released then, and who has seen the value since. A GPU may give a
    // thread either value, if nothing orders the change before its load.
    Touch change;
    char before[8] = {};
    Released of_before[kScopes];
    std::set<uint32_t> seen;  // threads of the gang
  };
  SyncVariable& variable(const void* p);
  static void end_gang(Released (&of)[kScopes], uint32_t gang);
  bool may_be_stale(SyncVariable& v, const void* p, const void* pc);
  void poll(const void* p, const void* pc);
  void acquire(const Released (&of)[kScopes], uint32_t scope, uint32_t order);
  void keep_before(SyncVariable& v, const char* before, uint32_t bytes, uint32_t order, const void* pc);
  static uint32_t domain(const Thread& t, uint32_t scope);
  void release_at(SyncVariable& v, uint32_t order);
  void order_by(const void* p, uint32_t order, const void* pc);
  bool learns_from(const SyncVariable& v, uint32_t scope) const;
  void check_flag(SyncVariable& v, const void* p, const void* pc);
  Knowledge known_now(const Thread& t) const;
  void learn(Thread& t, const Knowledge& k);

  std::vector<Gpu> gpus_;
  const cuda::Launch&
      launch_;  // of the first GPU: gangs one after another, clusters and dependent launches are its own
  const Options options_;
  const Mode mode_;
  const bool keeps_;  // undo_ is wanted
  Undo undo_;
  std::string printed_;  // with mode_.undone
  Lines lines_;
  Findings findings_;
  Context scheduler_;
  bool stopped_ = false;
  uint64_t random_, switches_ = 0, budget_ = 0;
  // Accesses of the gang: since a thread ended or a barrier was passed; in all; repeats of a thread's last read, one
  // after another.
  uint64_t steps_ = 0, all_steps_ = 0, quiet_ = 0;
  uint64_t meetings_ = 0;  // arrivals, fences, waits and reads of parameters since the last access
  uint64_t done_ = 0;      // at the last tick of the watchdog
  int idle_ticks_ = 0;
  uint64_t next_random();

  uint32_t gang_ = 0, gang_blocks_ = 1;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Warp> warps_;
  std::vector<Block> blocks_;
  std::deque<Thread*> ready_;
  Thread* now_ = nullptr;
  uint32_t live_ = 0;
  Barrier cluster_[2];       // arrivals of this phase and of the next
  std::vector<Gpu*> ended_;  // whose launch has ended and that have a further one

  SharedMemory shared_memory_;
  std::vector<uint8_t> shared_state_;
  uintptr_t shared_begin_ = 0;
  size_t shared_stride_ = 0, shared_bytes_ = 0;  // of a block, of all

  Clocks clocks_;
  PageMap shared_pages_{true}, global_pages_{false};
  const Range* last_range_ = nullptr;
  std::unordered_map<uintptr_t, SyncVariable> variables_;
  std::vector<int32_t> joined_;  // of sync_warp
  bool chose_an_order_ = false;
  bool woke_ = false;    // threads, since the running one was chosen
  bool exact_ = false;   // an atomic has released: later gangs may be ordered after earlier ones
  bool waited_ = false;  // a thread has waited for the previous kernel
  std::unique_ptr<Counter> counter_;
};

/// "write", "cp.async from", ... of an access.
const char* verb(uint32_t flags);

extern Machine* machine;  // of the run in progress
extern Api api_table;
Stacks& stacks();

}  // namespace flashinfer::emu
