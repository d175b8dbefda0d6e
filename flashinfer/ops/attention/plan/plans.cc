// SPDX-License-Identifier: Apache-2.0
// Lists of plans as one recorded state.
#include <algorithm>
#include <array>
#include <cstring>

#include "flashinfer/ops/attention/plan/plan.h"

namespace flashinfer::attention {
namespace {

/// The arrays `member` of all plans one after another.
Tensor concatenated(const std::vector<Plan>& plans, Tensor Plan::* member) {
  int64_t n = 0;
  for (const Plan& p : plans) n += (p.*member).numel();
  Tensor all = Tensor::empty({n}, DType::kI32);
  int32_t* out = all.data_as<int32_t>();
  for (const Plan& p : plans) {
    const Tensor& t = p.*member;
    if (t.numel()) std::memcpy(out, t.data(), static_cast<size_t>(t.nbytes()));
    out += t.numel();
  }
  return all;
}

/// Takes slices of an array one after another.
class Slices {
 public:
  Slices(const char* name, const Tensor& t) : name_(name), t_(t) {
    FI_CHECK(t.defined() && t.rank() == 1 && t.dtype() == DType::kI32, ValueError, "the plan's ", name, " is ",
             to_string(t.view()), ", but must be an int32 vector");
  }
  Tensor next(int64_t n) {
    FI_CHECK(n >= 0 && at_ + n <= t_.size(0), ValueError, "the plan's ", name_, " has only ", t_.size(0), " entries");
    at_ += n;
    return Tensor(t_.view().slice(0, at_ - n, at_), t_.owner());
  }

 private:
  const char* name_;
  const Tensor& t_;
  int64_t at_ = 0;
};

}  // namespace

void join(PlanList& l) {
  l.count = static_cast<int64_t>(l.plans.size());
  l.batches = Tensor::empty({l.count, 2}, DType::kI64);
  l.qo_indptr = concatenated(l.plans, &Plan::qo_indptr), l.kv_indptr = concatenated(l.plans, &Plan::kv_indptr);
  l.kv_indices = concatenated(l.plans, &Plan::kv_indices), l.kv_len = concatenated(l.plans, &Plan::kv_len);
  l.max_page = -1;
  for (size_t i = 0; i < l.plans.size(); ++i) {
    l.batches.data_as<int64_t>()[2 * i] = l.plans[i].batch_size;
    l.batches.data_as<int64_t>()[2 * i + 1] = l.plans[i].causal;
    l.max_page = std::max(l.max_page, l.plans[i].max_page);
    l.nnz_qo = l.plans[i].nnz_qo;
  }
}

std::vector<Plan> split(const PlanList& l) {
  FI_CHECK(l.batches.defined() && l.batches.dtype() == DType::kI64 && l.batches.rank() == 2 &&
               l.batches.size(0) == l.count && l.batches.size(1) == 2 && l.batches.view().is_contiguous(),
           ValueError, "the plan's batches are ", to_string(l.batches.view()), ", but must be int64[", l.count, ", 2]");
  Slices qo("qo_indptr", l.qo_indptr), kv("kv_indptr", l.kv_indptr), indices("kv_indices", l.kv_indices),
      len("kv_len", l.kv_len);
  std::vector<Plan> plans;
  for (int64_t i = 0; i < l.count; ++i) {
    Plan p = l;
    p.batch_size = l.batches.data_as<int64_t>()[2 * i];
    p.causal = l.batches.data_as<int64_t>()[2 * i + 1] != 0;
    p.qo_indptr = qo.next(p.batch_size + 1), p.kv_indptr = kv.next(p.batch_size + 1), p.kv_len = len.next(p.batch_size);
    p.kv_indices = indices.next(p.kv_indptr.data_as<int32_t>()[p.batch_size]);
    p.nnz_qo = p.qo_indptr.data_as<int32_t>()[p.batch_size];
    restore(p);
    plans.push_back(std::move(p));
  }
  return plans;
}

Plans::Plans(const op::Object* self) {
  const PlanList& l = self->as<PlanList>();
  if (!l.qo_indptr.defined()) throw_error(ErrorKind::kAssertionError, str("plan() has not been called"));
  if (l.plans.empty() && l.count) made_ = split(l);
  plans_ = l.plans.empty() ? std::span<const Plan>(made_) : std::span<const Plan>(l.plans);
}

}  // namespace flashinfer::attention
