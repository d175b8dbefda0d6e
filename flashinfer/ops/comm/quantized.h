// SPDX-License-Identifier: Apache-2.0
// All-reduce that moves codes of 8 bits.
#pragma once
#include <optional>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct QuantizedAllReduce {
  TensorView inp;                   // bf16, a multiple of 8 elements
  op::Object* workspace = nullptr;  // AllReduceFusionWorkspace; a piece of it must hold scale_group + 4 bytes
  int64_t scale_group = 256;        // elements, one behind another, that share a scale; a multiple of 8
  std::optional<TensorView> output{};
  int64_t call = -1;  // as AllReduceFusion::call
};
/// Each rank sends its elements as q = e4m3(x / s), s = max(max|x| / 448, 1e-12 / 448) in f32 for each group. The sum
/// of q * s over the ranks, in f32 in their order, is quantised in the same way; output = round(q * s), the product in
/// f32. The same bits on every rank. An infinity or NaN makes its group NaN. Collective. ValueError: sizes as above;
/// RuntimeError as allreduce_fusion.
Tensor quantized_all_reduce(const QuantizedAllReduce& args);

}  // namespace flashinfer

#pragma GCC visibility pop
