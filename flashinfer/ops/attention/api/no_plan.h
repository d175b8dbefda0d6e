// SPDX-License-Identifier: Apache-2.0
// What the operators without plan() share: each call makes a plan for itself. Internal to the families of attention.
#pragma once
#include <memory>

#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/attention/api/checks.h"

namespace flashinfer::attention {

/// The value of a scale: a number, or one float32.
inline double number_of(const char* name, const op::ScalarOrTensor& s) {
  const TensorView* t = s.tensor();
  if (!t) return s.number();
  FI_CHECK(t->numel() == 1 && t->dtype() == DType::kF32, ValueError, name, " is ", to_string(*t),
           ", but must be a number or one float32");
  return static_cast<double>(*t->data_as<float>());
}
/// A scale of a call: a number, or one float32. That of a GPU stays there.
struct Scale {
  double number = 1;
  const float* on_device = nullptr;  // a further factor
};
inline Scale scale_of(const char* name, const op::ScalarOrTensor& s) {
  const TensorView* t = s.tensor();
  if (!t || t->device().type == DeviceType::kCPU) return {number_of(name, s)};
  FI_CHECK(t->numel() == 1 && t->dtype() == DType::kF32, ValueError, name, " is ", to_string(*t),
           ", but must be a number or one float32");
  return {.on_device = t->data_as<float>()};
}
/// Whether the host reads a call's index arrays: not those of a GPU, whose contents are not checked.
inline bool host_reads(const TensorView& table, const TensorView& lengths,
                       const std::optional<TensorView>& first_rows = {}) {
  return host_can_read(table.device()) && host_can_read(lengths.device()) &&
         (!first_rows || host_can_read(first_rows->device()));
}
/// Index arrays of a call as the host can read them; copying those of a GPU waits for the stream. For costs.
class HostCopies {
 public:
  void read(TensorView& v) {
    if (host_can_read(v.device())) return;
    kept_.push_back(host_readable(v));
    v = kept_.back().view();
  }
  void read(std::optional<TensorView>& v) {
    if (v) read(*v);
  }

 private:
  std::vector<Tensor> kept_;
};
/// How a call's plan is made: with the list of works, without it, or with the shapes of index arrays that are not read.
enum class Planning { kWork, kArrays, kShapes };
/// A dense table that is read or not.
inline void set_tables(Plan& p, const TensorView& tables, const TensorView& lengths, const DenseTableNames& names,
                       Planning what) {
  if (what != Planning::kShapes) return set_dense_table(p, tables, lengths, names);
  check_dense_shape(p, tables, lengths, names);
  p.batch_size = tables.size(0);
}
/// Query rows by offsets that the host does not read.
inline void set_unknown_rows(Plan& p, const char* name, const TensorView& first_rows, const TensorView& query) {
  check_rows_shape(p, name, first_rows);
  p.nnz_qo = query.size(0);
}
/// Query rows by offsets that are read or not.
inline void set_rows_or_shape(Plan& p, const char* name, const TensorView& first_rows, const TensorView& query,
                              Planning what) {
  what == Planning::kShapes ? set_unknown_rows(p, name, first_rows, query) : set_rows(p, name, first_rows);
}
/// The maximum that the caller promises, over lengths or the differences of an indptr; null: not known to the host.
inline void check_max(const char* name, int64_t max, const char* what, const int32_t* from, int64_t n,
                      bool differences) {
  for (int64_t b = 0; from && b < n; ++b) {
    const int64_t x = differences ? from[b + 1] - from[b] : from[b];
    FI_CHECK(x <= max, ValueError, name, " is ", max, ", but request ", b, " has ", x, " ", what);
  }
}
/// `v` with its first two axes as one.
inline TensorView merged_rows(const char* name, const TensorView& v) {
  const int64_t n = v.size(1);
  FI_CHECK_LAYOUT(true, v.size(0) <= 1 || n <= 1 || v.stride(0) == n * v.stride(1), name, " is ", to_string(v),
                  ", but the rows of its requests must follow each other");
  std::vector<int64_t> shape(v.shape().begin() + 1, v.shape().end()),
      strides(v.strides().begin() + 1, v.strides().end());
  shape[0] = v.size(0) * n;
  if (n <= 1) strides[0] = v.stride(0);
  return TensorView(v.data(), v.dtype(), shape, strides, v.device());
}
/// A number for each request as [B], from [B] or [B, 1, ...].
inline TensorView lengths_of(const char* name, const TensorView& v) {
  FI_CHECK(v.rank() >= 1 && v.numel() == v.size(0), ValueError, name, " is ", to_string(v),
           ", but must be [requests] or [requests, 1, ...]");
  const int64_t shape[] = {v.size(0)}, strides[] = {v.stride(0)};
  return TensorView(v.data(), v.dtype(), shape, strides, v.device());
}
/// `rows` query rows for each of the plan's requests.
inline void set_equal_rows(Plan& p, const char* name, int64_t rows) {
  FI_CHECK(rows >= 1 && p.batch_size * rows <= INT32_MAX, ValueError, name, " is ", rows);
  p.nnz_qo = p.batch_size * rows;
  p.qo_indptr = Tensor::empty({p.batch_size + 1}, DType::kI32);
  for (int64_t b = 0; b <= p.batch_size; ++b) p.qo_indptr.data_as<int32_t>()[b] = static_cast<int32_t>(b * rows);
}
/// K and V of a ragged batch: request b has the rows from kv_indptr[b] to kv_indptr[b + 1].
inline void set_ragged_kv(Plan& p, const char* name, const TensorView& kv_indptr) {
  p.paged = false;
  p.batch_size = kv_indptr.size(0) - 1;
  p.nnz_kv = op::check_indptr(name, kv_indptr);
  p.kv_indptr = to_int32(name, kv_indptr, p.batch_size + 1);
  p.kv_len = Tensor::empty({p.batch_size}, DType::kI32);
  const int32_t* first = p.kv_indptr.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b) p.kv_len.data_as<int32_t>()[b] = first[b + 1] - first[b];
}
/// The same by offsets that are read or not. Those of a GPU are cut off at the tokens that there are.
inline void set_ragged_kv(Plan& p, const char* name, const TensorView& kv_indptr, const Planes& kv, Planning what) {
  if (what != Planning::kShapes) return set_ragged_kv(p, name, kv_indptr);
  FI_CHECK(kv_indptr.size(0) >= 1, ValueError, name, " is empty, but must be [requests + 1]");
  p.paged = false;
  p.batch_size = kv_indptr.size(0) - 1, p.nnz_kv = std::min(kv.k.page_size, kv.v.page_size);
}
/// K and V of `p.nnz_kv` tokens.
inline void check_ragged_kv(const Plan& p, const Planes& kv, const char* k_name, const char* v_name,
                            const char* indptr) {
  FI_CHECK(kv.v.dtype == kv.k.dtype, ValueError, v_name, ".dtype is ", name(kv.v.dtype), ", but ", k_name, ".dtype is ",
           name(kv.k.dtype));
  for (const auto& [plane, who] : {std::pair(&kv.k, k_name), std::pair(&kv.v, v_name)})
    FI_CHECK(plane->page_size >= p.nnz_kv, ValueError, who, " has ", plane->page_size, " tokens, but ", indptr,
             " ends at ", p.nnz_kv);
}
/// Heads, dims and dtypes from the tensors themselves.
inline void set_tensors(Plan& p, const TensorView& q, const Planes& kv, DType o) {
  p.num_qo_heads = q.size(1), p.num_kv_heads = kv.k.heads, p.head_dim_qk = q.size(2), p.head_dim_vo = kv.v.dim;
  p.q_data_type = q.dtype(), p.kv_data_type = kv.k.dtype, p.o_data_type = o;
}
inline Options scale_and_window(double sm_scale, int64_t window_left = -1) {
  return {.window_left = window_left, .sm_scale = sm_scale, .logits_soft_cap = {}, .rope_scale = {}, .rope_theta = {}};
}

/// The candidates of an operator. `sinks` is a place for a view that the call points to.
template <class Block, Plan (*PlanOf)(const Block&, Planning), Call (*CallOf)(const Block&, TensorView& sinks)>
struct NoPlan {
  static op::Prepared cpu(const Block& a) {
    TensorView sinks;
    return prepare_cpu(owned(PlanOf(a, Planning::kWork)), CallOf(a, sinks));
  }
  static void reference(const Block& a) {
    TensorView sinks;
    run_reference(PlanOf(a, Planning::kArrays), CallOf(a, sinks));
  }
  static constexpr op::Candidate candidates[] = {op::cpu<cpu>(), op::reference<reference>()};
};

/// The same with a kernel that plans from TablesOf(block). `TypeOf`: of the result, which the kernel rounds to itself.
template <class Block, Plan (*PlanOf)(const Block&, Planning), Call (*CallOf)(const Block&, TensorView& sinks),
          CallTables (*TablesOf)(const Block&), DType (*TypeOf)(const Block&)>
struct NoPlanOnGpu : NoPlan<Block, PlanOf, CallOf> {
  using Host = NoPlan<Block, PlanOf, CallOf>;
  static op::Prepared cuda(const Block& a) {
    TensorView sinks;
    Plan p = PlanOf(a, Planning::kShapes);
    p.o_data_type = TypeOf(a);
    return prepare_tables_cuda(owned(std::move(p)), CallOf(a, sinks), TablesOf(a));
  }
  static constexpr op::Candidate candidates[] = {op::cuda<cuda>(), op::cpu<Host::cpu>(),
                                                 op::reference<Host::reference>()};
};

// Ops of the files that use this.
extern const op::Op xqa_op, xqa_mla_op, xqa_decode_op, cudnn_decode_op, cudnn_prefill_op, ragged_deepseek_op, varlen_op,
    deepseek_v2_op, sm120_v2_op;

}  // namespace flashinfer::attention
