// SPDX-License-Identifier: Apache-2.0
// Atomics and fences, and what they order: the C++ memory model with two scopes, the block and the GPU. A release makes
// what is ordered before it known at the variable; an acquire that follows it there knows it too. A relaxed atomic
// does so only for what a fence before it releases, and for a fence after it.
#include <cstring>

#include "flashinfer/core/check.h"
#include "flashinfer/kernels/emu/machine.h"

namespace flashinfer::emu {

Knowledge Machine::known_now(const Thread& t) const {
  const int32_t* const clock = clocks_.of(t.index);
  return {std::vector<int32_t>(clock, clock + clocks_.size()), t.past};
}

void Machine::learn(Thread& t, const Knowledge& k) {
  clocks_.take(t.index, k.clock);
  join(t.past, k.past);
}

void Machine::fence(bool of_block, const void*) {
  if (!options_.races) return;
  Thread& t = *now_;
  learn(t, t.seen[0]);
  if (!of_block) learn(t, t.seen[1]);
  t.released[0] = known_now(t);
  if (!of_block) t.released[1] = t.released[0];
  clocks_.tick(t.index);
}

/// The variable at `p`; what gangs that have ended released there is kept by gang.
Machine::SyncVariable& Machine::variable(const void* p) {
  SyncVariable& v = variables_[reinterpret_cast<uintptr_t>(p)];
  if (v.gang == gang_) return v;
  if (!v.gpu.clock.empty()) {
    PastGangs ended;
    ended[v.gang] = std::make_shared<const std::vector<int32_t>>(std::move(v.gpu.clock));
    join(v.gpu.past, ended);
  }
  v.gpu.clock.clear(), v.block.clear();
  v.gang = gang_;
  return v;
}

void Machine::order_by(const void* p, uint32_t order) {
  Thread& t = *now_;
  SyncVariable& v = variable(p);
  const bool of_gpu = !(order & kOfBlock);
  Knowledge& of_block = v.block[t.index / threads_of_block_];
  if (order & kStoreOnly) {  // later loads see this value: nothing that was released before it
    v.gpu = {}, v.block.clear();
  } else {
    if (order & kAcquire) {
      learn(t, of_block);
      if (of_gpu) learn(t, v.gpu);
    } else {
      join(t.seen[0], of_block);
      if (of_gpu) join(t.seen[1], v.gpu);
    }
  }
  if (order & kLoadOnly) return;
  const Knowledge all = order & kRelease ? known_now(t) : Knowledge{};
  const Knowledge &near = order & kRelease ? all : t.released[0], &far = order & kRelease ? all : t.released[1];
  if (!near.empty()) join(v.block[t.index / threads_of_block_], near);
  if (of_gpu && !far.empty()) join(v.gpu, far), exact_ = true;
  if (order & kRelease) clocks_.tick(t.index);
}

void Machine::atomic(void* p, uint32_t bytes, void (*apply)(void*, void*), void* operand, uint32_t order,
                     const void* pc) {
  count(Count::kAtomic, 1);
  const uint32_t does = order & kLoadOnly ? kRead : order & kStoreOnly ? kWrite : kWrite | kReadToo;
  access(p, bytes, does | kAtomic | (order & kOfBlock ? kBlockScope : 0u), pc);
  if (options_.races) order_by(p, order);
  char before[16];
  std::memcpy(before, p, bytes);
  apply(p, operand);
  if (std::memcmp(before, p, bytes) != 0) quiet_ = 0;
}

}  // namespace flashinfer::emu
