// SPDX-License-Identifier: Apache-2.0
// The sum of the ranks' tensors through a workspace's memory, and what a kernel does with each row of it.
#pragma once
#include "flashinfer/core/tensor.h"
#include "flashinfer/jit/jit.h"
#include "flashinfer/ops/comm/kernels/params.h"
#include "flashinfer/ops/comm/workspace.h"

namespace flashinfer::ops::comm {

inline constexpr jit::Kernel kAllReduceKernel{"flashinfer/ops/comm/kernels/cpu/all_reduce.h",
                                              "flashinfer::cpu::all_reduce", "flashinfer::AllReduceParams"};
/// The kernel without norm and quantisation over p's rows of items of `item` bytes, with the threads of the context.
/// Changes p.rows_per_task and p.scratch.
void run_sums(jit::CpuFn fn, AllReduceParams& p, int64_t item);

struct SharedSum {
  TensorView input;               // [rows, d], contiguous
  jit::CpuFn finish, sum;         // all_reduce for the call's Config; for the same without norm and quantisation
  bool norm = false;              // `finish` needs whole rows
  const AllReduceParams& params;  // of the outputs; padded_rows as for all rows
  flashinfer::comm::Signature signature{};
  flashinfer::comm::Describe describe = nullptr;
};
/// Whether each rank can sum a part of the rows. Rows longer than a slot are summed in one shot.
bool can_split(const TensorView& input, const AllReduceState& s);
/// One shot: every rank reads all inputs and computes all rows. Two shots: each sums its part of the rows, the others
/// read the sums; can_split() must be true. The results are the same to the bit.
void sum_one_shot(const SharedSum& call, const AllReduceState& s);
void sum_two_shots(const SharedSum& call, const AllReduceState& s);

}  // namespace flashinfer::ops::comm
