// SPDX-License-Identifier: Apache-2.0
// The ops of the family's files, and what they share. Internal to the family.
#pragma once
#include "flashinfer/ops/attention/api/checks.h"
#include "flashinfer/ops/attention/api/methods.h"
#include "flashinfer/ops/sparse/cases.h"
#include "flashinfer/ops/sparse/op.h"

namespace flashinfer::sparse {

inline constexpr const char *kModule = "flashinfer.sparse", *kBackends = "auto|fa2:cuda|fa3:cuda";
template <class State>
void launch_init(const SparseInit& a) {
  attention::check_workspace(a.float_workspace_buffer);
  a.self->set(State());
}
inline constexpr op::Field init_fields[] = {
    op::self<&SparseInit::self>(),
    op::scratch<&SparseInit::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::attr<&SparseInit::backend>("backend", op::backends(kBackends)),
};
/// Rows of tokens [n, heads, dim] as pages of `page_size` of them; a rest is left out.
inline ops::KvPlane pages_of(const TensorView& t, int64_t page_size) {
  return {t.data(),    t.dtype(),  t.size(0) / page_size, page_size, t.size(1), t.size(2), t.stride(0) * page_size,
          t.stride(0), t.stride(1)};
}
/// bool [blocks, R, C] into row order (see ConvertBsrMask).
void convert_mask(const TensorView& mask, const TensorView& indptr, bool* out);

extern const op::Op block_init_op, block_plan_op, block_run_op, block_forward_op, block_reset_op;
extern const op::Op variable_init_op, variable_plan_op, variable_run_op, variable_forward_op, variable_reset_op;

}  // namespace flashinfer::sparse
