// SPDX-License-Identifier: Apache-2.0
// The state of an all-reduce workspace and its ops.
#pragma once
#include <algorithm>
#include <memory>
#include <string>

#include "flashinfer/comm/window.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/op/object.h"
#include "flashinfer/op/op.h"
#include "flashinfer/ops/comm/gpu.h"

namespace flashinfer::ops::comm {

/// The memory of each rank, which carries tensors in pieces (shared_sum.cc): four slots for the rank's input, used in
/// turn by the phases of the window, and two for sums.
struct AllReduceMemory {
  static constexpr int kInputs = 4, kSums = 2;
  std::shared_ptr<flashinfer::comm::Window> window;  // null: `gpu`
  std::shared_ptr<AllReduceGpu> gpu{};
  int64_t slot = 0;         // bytes, the same on all ranks
  int64_t calls_alone = 0;  // of one rank, which publishes no phases
  /// Where an input of so many bytes lies in that phase. Small ones move through 64 KB of their slot: what a rank wrote
  /// long ago has left its L1, from where the others would read it at half the speed.
  int64_t input_offset(uint64_t phase, int64_t bytes) const {
    constexpr int64_t kMoves = 64 * 1024;
    const int64_t part = round_up(std::max<int64_t>(bytes, 1), 64),
                  places = std::max<int64_t>(1, std::min(kMoves, slot) / part);
    return static_cast<int64_t>(phase % kInputs) * slot + static_cast<int64_t>(phase / kInputs) % places * part;
  }
  int64_t sum_offset(uint64_t phase) const { return (kInputs + static_cast<int64_t>(phase % kSums)) * slot; }
};

struct AllReduceState {
  std::string backend;
  int64_t world_size = 0, rank = 0, max_token_num = 0, hidden_dim = 0;
  DType dtype = DType::kF16;
  std::shared_ptr<AllReduceMemory> memory{};  // null after destroy(), and in a replay
  std::string group{}, id{};                  // the group's name; the same on all ranks, and of no other workspace
};

/// The state of a call's `workspace`. TypeError: it is another object; RuntimeError: it has no memory; ValueError: it
/// was made for another device than that of `input`, the argument `name`.
const AllReduceState& all_reduce_state_for(const op::Object* workspace, const TensorView& input, const char* name);
/// The workspace's part on GPUs; null when it was made for the CPU.
const std::shared_ptr<AllReduceGpu>& all_reduce_gpu_of(const op::Object* workspace);
/// What tells the calls with `workspace` apart, the same on all ranks, for a recording: the phase of its window. -1:
/// nothing is recorded, or `workspace` has no memory.
int64_t number_of_call(const op::Object* workspace);

extern const op::StateType all_reduce_state;
extern const op::Op workspace_init_op, workspace_destroy_op, all_gather_op, reduce_scatter_op, mixed_comm_op,
    ulysses_scatter_op, ulysses_gather_op, quantized_all_reduce_op;

}  // namespace flashinfer::ops::comm
