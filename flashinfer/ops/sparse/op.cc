// SPDX-License-Identifier: Apache-2.0
// The mask's order, and the list of the family's ops.
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/sparse/ops.h"

namespace flashinfer {
namespace sparse {

void convert_mask(const TensorView& mask, const TensorView& indptr, bool* out) {
  const int64_t rows = mask.size(1), cols = mask.size(2);
  for (int64_t b = 0; b + 1 < indptr.size(0); ++b) {
    const int64_t first = op::index_at(indptr, b), end = op::index_at(indptr, b + 1);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t block = first; block < end; ++block)
        for (int64_t c = 0; c < cols; ++c)
          *out++ = mask.data_as<uint8_t>()[block * mask.stride(0) + i * mask.stride(1) + c * mask.stride(2)] != 0;
  }
}

namespace {
constexpr const char* kConvert = "convert_bsr_mask_layout";
void validate(const ConvertBsrMask& a) {
  const int64_t blocks = op::check_indptr("indptr", a.indptr);
  FI_CHECK(blocks == a.mask.size(0), ValueError, "indptr[-1] is ", blocks, ", but mask.shape[0] is ", a.mask.size(0));
}
void launch(const ConvertBsrMask& a) { convert_mask(a.mask, a.indptr, a.out->data_as<bool>()); }
/// Where each element goes, from its place.
void reference(const ConvertBsrMask& a) {
  const int64_t rows = a.mask.size(1), cols = a.mask.size(2);
  for (int64_t b = 0; b + 1 < a.indptr.size(0); ++b) {
    const int64_t first = op::index_at(a.indptr, b), width = (op::index_at(a.indptr, b + 1) - first) * cols;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < width; ++j)
        ref::put(*a.out, {first * rows * cols + i * width + j}, ref::at(a.mask, {first + j / cols, i, j % cols}));
  }
}
op::Shape out_shape(const ConvertBsrMask& a) { return {1, {a.mask.numel()}}; }
constexpr op::Field fields[] = {
    op::in<&ConvertBsrMask::mask>("mask", "x r c", attention::kMaskTypes, op::any_layout),
    op::in<&ConvertBsrMask::indptr>("indptr", "b+1", op::indices, op::any_layout),
    op::result<&ConvertBsrMask::out>("out", nullptr, DType::kBool, op::contiguous, op::shape<out_shape>),
};
extern const op::Op convert_op;
constexpr op::Candidate candidates[] = {op::cpu<launch>(), op::reference<reference>()};
constinit const op::Op convert_op = op::define<ConvertBsrMask, validate>(
    kConvert, kModule, "Elements of masked blocks in the order of attention's rows.", fields, candidates,
    ops::sparse::convert_cases);

constexpr const op::Op* kOps[] = {&block_init_op,       &block_plan_op,     &block_run_op,     &block_forward_op,
                                  &block_reset_op,      &variable_init_op,  &variable_plan_op, &variable_run_op,
                                  &variable_forward_op, &variable_reset_op, &convert_op};
}  // namespace
}  // namespace sparse

Tensor convert_bsr_mask_layout(const ConvertBsrMask& a) { return op::call(sparse::convert_op, a); }

namespace ops::sparse {
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = flashinfer::sparse::kOps;
}  // namespace ops::sparse

}  // namespace flashinfer
