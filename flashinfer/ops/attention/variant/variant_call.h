// SPDX-License-Identifier: Apache-2.0
// From an AttentionVariant to what the JIT and the kernel take. Internal to the family.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "flashinfer/jit/jit.h"
#include "flashinfer/ops/attention/plan/plan.h"
#include "flashinfer/ops/attention/variant/custom.h"

namespace flashinfer::attention {

/// From a call's jit_args. TypeError and ValueError name the element.
AttentionVariant variant_from(const op::Value& value);
/// Further arguments of upstream's module makers: known names, numbers and bools. They choose among its precompiled
/// forms and change nothing here; TypeError for others or without jit_args.
void check_jit_kwargs(const op::Value& jit_args, const op::Value& kwargs);
/// A plan whose jit_args are set: ValueError unless heads' dims and dtypes are the variant's.
void check_variant(const Plan& p);
/// The source that the kernels are instantiated with.
jit::Extension extension_of(const AttentionVariant& variant);

/// The additional arguments of a call as the kernel takes them: tensors first, then scalars, in declared order. What
/// the library fills may be left out: all tensors of it, or those and all scalars of it. Tensors are on `device`, as
/// the pointers of `params` are.
class Extras {
 public:
  /// `plan` has jit_args.
  Extras(const Plan& plan, const op::Value& args, const AttentionParams& params, Device device);
  const void* const* tensors() const { return tensors_.data(); }
  const AttentionScalar* scalars() const { return scalars_.data(); }
  size_t num_tensors() const { return tensors_.size(); }
  size_t num_scalars() const { return scalars_.size(); }

 private:
  std::vector<const void*> tensors_;
  Tensor mask_indptr_;  // as int32, when it is declared so
  std::vector<AttentionScalar> scalars_;
};
/// Those of a run whose plan has jit_args; nothing for others. TypeError for arguments that are not declared,
/// ValueError beside sinks.
std::optional<Extras> extras_of(const Plan& p, const op::Value& args, const AttentionParams& params, Device device);

}  // namespace flashinfer::attention
