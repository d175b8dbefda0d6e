// SPDX-License-Identifier: Apache-2.0
// Parses case text into a block with its tensors. The same text always gives the same bytes.
//
//   input=bf16:4x5120 weight=bf16:5120 eps=1e-5 out=@input kv_layout='NHD' indptr=i32:[0,3,3,9] probs=f32:2x100:probs
//
//  value   := None | True | False | 12 | 1e-5 | 'text' | bfloat16 | @argument | gen(seed,offset) |
//             (value, value) | tensor
//  tensor  := dtype ':' extents [':' fill] ['^' layout]
//  dtype   := f32 f16 bf16 e4m3 e5m2 f64 u8 i8 u16 i16 u32 i32 u64 i64 bool fp4x2
//  extents := 4x5120 | [1,2,3] (a vector with these values) | nothing (a scalar tensor)
//  fill    := normal(mean,std) | uniform(a,b) | randint(a,b) (b excluded) | const(v) | range(first) |
//             range(first,step) | perm | probs | softmax(std) | nan | a fill of a family (its fills.cc)
//             default: normal(0,1) for floats, randint(0,100) for integers, fair coins for bool
//  layout  := pad8 (8 unused elements after each row) | t (last two axes swapped in memory) |
//             perm(1,0,2) (order of the axes in memory, outermost first)
// `init.name=value` and `plan.name=value` are arguments of the receiver's __init__ and plan when the op is a method.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer::cases {

/// A tensor of a case has guards on both sides, and gaps of strided layouts hold a pattern: bytes that no op may touch.
struct GuardedTensor {
  std::string argument;
  Tensor tensor;
  Tensor allocation;  // u8[...], with the guards; without them on the emulator, which detects accesses outside a tensor
  std::vector<uint8_t> before;  // its bytes before the call
};

struct BuildOptions {
  Device device = kCpu;       // of the block's tensors; those of __init__ and plan stay in host memory
  bool pad_inputs = false;    // rows get 8 elements more: rank >= 2, no explicit layout, no schema that says contiguous
  bool keep_bytes = true;     // fill GuardedTensor::before
  bool random_floats = true;  // false: large tensors of random floats are left as they are, to ask for kernels alone
  // On the emulator, whose large blocks are sparse: the same tensors, spread over 2^33 elements along their first axis
  // of more than one, so that offsets need 64 bits.
  bool spread_inputs = false;
  // Random values of large tensors repeat after this many elements, which fills them sooner; 0: they do not.
  int64_t repeat_after = 0;
};

struct Built {
  explicit Built(const op::Op& op) : block(op) {}
  op::Block block;
  std::unique_ptr<op::Object> object;
  std::vector<std::unique_ptr<GuardedTensor>> tensors;
};

/// ValueError with the position for text that does not parse; runs __init__ and plan for methods.
Built build(const op::Op& op, std::string_view args, const BuildOptions& options = {});
/// A guarded, patterned tensor (for absent outputs).
std::unique_ptr<GuardedTensor> guarded(std::string argument, std::span<const int64_t> shape, DType dtype,
                                       Device device = kCpu);
/// Empty, or which bytes outside the elements (of inputs: any bytes) changed.
std::string check_guards(const Built& b, const op::Op& op);
std::string check_guards(const GuardedTensor& t, bool written);

}  // namespace flashinfer::cases

#pragma GCC visibility pop
