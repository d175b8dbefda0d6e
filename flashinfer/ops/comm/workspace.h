// SPDX-License-Identifier: Apache-2.0
// The state of an all-reduce workspace and its ops.
#pragma once
#include <memory>
#include <string>

#include "flashinfer/comm/window.h"
#include "flashinfer/op/object.h"
#include "flashinfer/op/op.h"

namespace flashinfer::ops::comm {

/// The memory of each rank: two halves, used in turn, so that a call needs to wait once (comm/window.h). A half holds
/// an input and the sums of this rank's rows.
struct AllReduceMemory {
  std::shared_ptr<flashinfer::comm::Window> window;
  int64_t input_bytes, sum_bytes;
  uint64_t calls = 0;
  int64_t half() const { return input_bytes + sum_bytes; }
  int64_t input_offset() const { return static_cast<int64_t>(calls % 2) * half(); }
  int64_t sum_offset() const { return input_offset() + input_bytes; }
};

struct AllReduceState {
  std::string backend;
  int64_t world_size = 0, rank = 0, max_token_num = 0, hidden_dim = 0;
  DType dtype = DType::kF16;
  std::shared_ptr<AllReduceMemory> memory{};  // null after destroy(), and in a replay
};

extern const op::StateType all_reduce_state;
extern const op::Op workspace_init_op, workspace_destroy_op;

}  // namespace flashinfer::ops::comm
