// SPDX-License-Identifier: Apache-2.0
// Methods that all wrappers over a Plan share, and tables made from another's. Internal to the families of attention.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "flashinfer/ops/attention/plan/plan.h"

namespace flashinfer::attention {

struct ResetWorkspace {
  op::Object* self = nullptr;
  TensorView float_workspace_buffer;  // aligned to 16 bytes; the CPU needs neither
  op::Value int_workspace_buffer{};   // of cascades: a list, int_workspace_buffers
};
struct PrewarmStrides {
  op::Object* self = nullptr;
  std::string variant = "independent";
};
namespace methods_detail {
template <class Block>
void nothing(const Block&) {}
inline void check_reset(const ResetWorkspace& a) {
  check_workspace(a.float_workspace_buffer);
  if (const TensorView* t = a.int_workspace_buffer.tensor()) check_workspace(*t, "int_workspace_buffer");
}
inline void check_prewarm(const PrewarmStrides& a) {
  FI_CHECK(a.self->planned, RuntimeError, "prewarm_paged_kv_stride_variant: plan() has not been called");
}
inline constexpr op::Field reset_fields[] = {
    op::self<&ResetWorkspace::self>(),
    op::scratch<&ResetWorkspace::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::attr<&ResetWorkspace::int_workspace_buffer>("int_workspace_buffer", op::required),
};
inline constexpr op::Field reset_list_fields[] = {
    op::self<&ResetWorkspace::self>(),
    op::scratch<&ResetWorkspace::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::attr<&ResetWorkspace::int_workspace_buffer>("int_workspace_buffers", op::required),
};
inline constexpr op::Field prewarm_fields[] = {
    op::self<&PrewarmStrides::self>(),
    op::attr<&PrewarmStrides::variant>("variant", op::choices("independent")),
};
inline constexpr op::Candidate reset_candidates[] = {op::host<nothing<ResetWorkspace>>()};
inline constexpr op::Candidate prewarm_candidates[] = {op::host<nothing<PrewarmStrides>>()};
}  // namespace methods_detail

/// The CPU keeps nothing in the workspaces: only checks.
constexpr op::Op reset_op(const char* name, const char* module, const op::StateType* state,
                          std::span<const op::Field> fields = methods_detail::reset_fields) {
  return op::define<ResetWorkspace, methods_detail::check_reset>(name, module, "Another workspace; the CPU needs none.",
                                                                 fields, methods_detail::reset_candidates, nullptr, {},
                                                                 state);
}
/// Strides of K and V are run-time values: there is nothing to build beforehand.
constexpr op::Op prewarm_op(const char* name, const char* module, const op::StateType* state) {
  return op::define<PrewarmStrides, methods_detail::check_prewarm>(
      name, module, "Builds the kernel for different strides of K and V; on the CPU it is the same.",
      methods_detail::prewarm_fields, methods_detail::prewarm_candidates, nullptr, {}, state);
}

/// `fields` without the names in `drop`, then `last`; every argument may be positional.
template <size_t N, size_t M>
constexpr std::array<op::Field, N - M + 1> without(const op::Field (&fields)[N], const char* const (&drop)[M],
                                                   op::Field last) {
  std::array<op::Field, N - M + 1> out;
  size_t n = 0;
  for (const op::Field& f : fields) {
    bool dropped = false;
    for (const char* d : drop) dropped |= std::string_view(d) == f.name;
    if (dropped) continue;
    out[n] = f;
    out[n].was_positional = false;
    out[n++].keyword_only = false;
  }
  out[n] = last;
  return out;
}

/// Bytes of partial results that run() takes, at least 16 (a buffer of that size has an address), and of the arrays of
/// the plan.
inline void put_sizes(const Plan& p, const TensorView& sizes) {
  int64_t arrays = 0;
  for (const Tensor* t :
       {&p.qo_indptr, &p.kv_indptr, &p.kv_indices, &p.kv_len, &p.mask, &p.mask_indptr, &p.prefix_len, &p.token_pos})
    arrays += t->defined() ? t->nbytes() : 0;
  sizes.data_as<int64_t>()[0] = std::max<int64_t>(p.work.partial_rows * (padded(p.head_dim_vo) + 3) * 4, 16);
  sizes.data_as<int64_t>()[sizes.stride(0)] = arrays +
                                              static_cast<int64_t>(p.work.works.size() * sizeof(AttentionWorkItem)) +
                                              static_cast<int64_t>(p.work.merges.size() * sizeof(SplitKvReduction));
}
/// workspace_size(): make(block) is the plan of `Args`, with a receiver of its own, so that nothing is planned and no
/// buffer filled.
template <class Args, class Sizes, class Make>
void launch_sizes(const Sizes& a, const Make& make) {
  op::Object scratch(a.self->class_name, a.self->module, *a.self->type);
  Plan p;
  p.kv_layout = a.self->template as<Plan>().kv_layout;
  scratch.set(std::move(p));
  Args b = a;
  b.self = &scratch;
  put_sizes(make(b), *a.sizes);
}

}  // namespace flashinfer::attention
