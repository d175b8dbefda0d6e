// SPDX-License-Identifier: Apache-2.0
// Multi-head latent attention with absorbed weights: all query heads share one latent KV head, key j is (ckv[j],
// kpe[j]) and its value is ckv[j].
//   x = sm_scale * (<q_nope, ckv> + <q_pe, kpe>);  out = softmax(x) ckv
//   lse = log2 sum_j exp(x_j) (base 2), or natural on request
// `causal` makes the keys up to i + kv_len - qo_len visible to query row i of a request; a row without visible keys
// gives zeros and -inf. Unused and masked slots are never multiplied, whatever their content. Any head count, dims
// (head_dim_kpe may be 0), page size and strides (last dimension contiguous): ckv and kpe may be views of one tensor.
// Sums are in f32.
//
// An 8-bit query is converted exactly to bf16 (or to the cache's wider type) and gives bf16 unless output_dtype says
// otherwise. Results do not depend on the batch, the page size, how a prompt is split into prefills, or threads.
// Errors: ValueError for shapes, lengths beyond the page table, page ids outside the pool, and arguments of run() that
// differ from those of plan(); RuntimeError for run() before plan(); NotImplementedError, naming the argument, for
// unsupported values. For un-absorbed prefill (192 and 128 wide heads) see BatchPrefillWithRaggedKVCacheWrapper.
#pragma once
#include <optional>
#include <string>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/mla/dense.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct BatchMlaInit {
  op::Object* self = nullptr;
  TensorView float_workspace_buffer{nullptr, DType::kU8, {0}};  // u8; the library allocates what it needs itself
  bool use_cuda_graph = false;
  // With use_cuda_graph plan() also writes its arrays here, and the batch size is that of kv_len_arr.
  std::optional<TensorView> qo_indptr{}, kv_indptr{}, kv_indices{}, kv_len_arr{};
  // Or fa2, fa3; the others belong to GPUs, but for "cutlass": then run() needs no plan() and takes kv_len and
  // page_table.
  std::string backend = "auto";
};

/// The page table either as CSR (qo_indptr, kv_indptr, kv_indices, kv_len_arr) or dense (cum_seq_lens_q, block_tables,
/// seq_lens); both must describe the same batch. All int32 or int64, any stride.
struct BatchMlaPlan {
  op::Object* self = nullptr;
  std::optional<TensorView> qo_indptr{};   // [B+1], in query tokens
  std::optional<TensorView> kv_indptr{};   // [B+1], in pages
  std::optional<TensorView> kv_indices{};  // page ids; only those that kv_len_arr needs are read
  std::optional<TensorView> kv_len_arr{};  // [B], in tokens
  std::optional<int64_t> num_heads{}, head_dim_ckv{}, head_dim_kpe{}, page_size{};  // required
  std::optional<bool> causal{};                                                     // required
  std::optional<double> sm_scale{};  // required: that of the un-absorbed head, 1 / sqrt(128 + 64) for DeepSeek
  std::optional<DType> q_data_type{}, kv_data_type{};  // required
  bool use_profiler = false;
  op::Value metadata{};                        // MLAPlanMetadata: a dict of the page table's arguments by name
  std::optional<TensorView> cum_seq_lens_q{};  // [B+1]
  std::optional<TensorView> block_tables{};    // [B, max pages]
  std::optional<TensorView> seq_lens{};        // [B]
  std::optional<int64_t> max_q_len{};          // at least the longest request's
  std::optional<std::string> query_layout{}, kv_cache_layout{};  // split, packed; run() accepts either
  std::string lse_mode = "none";                                 // none, base2, basee
  std::optional<DType> output_dtype{};                           // q_data_type
  std::string output_scale = "none";
  std::string scale_mode =
      "default";  // default (kv-per-tensor for 8-bit caches), kv-per-tensor, bmm-scalar, bmm-tensor
  bool skip_softmax = false;
  std::optional<bool> enable_pdl{};
  bool use_sinks = false;
};

struct BatchMlaRun {
  op::Object* self = nullptr;
  std::optional<TensorView> q_nope{}, q_pe{};          // [n, H, head_dim_ckv], [n, H, head_dim_kpe]
  std::optional<TensorView> ckv_cache{}, kpe_cache{};  // [P, ps, head_dim_ckv], [P, ps, head_dim_kpe]
  std::optional<TensorView> out{};  // [n, H, head_dim_ckv], the plan's output_dtype; e4m3 with o_scale
  std::optional<TensorView> lse{};  // [n, H] f32
  bool return_lse = false;
  std::optional<TensorView> profiler_buffer{};  // of GPU back ends
  // With backend="cutlass" [n] and [n, pages]: one query row a request, of 512 + 64 elements, sm_scale 1 / sqrt(128 +
  // 64).
  std::optional<TensorView> kv_len{}, page_table{};
  bool return_lse_base_on_e = false;
  std::optional<double> o_scale{};        // with backend="cutlass": value of one unit of an e4m3 out, saturating
  std::optional<op::PagedKv> query{};     // instead of q_nope and q_pe: one [n, H, ckv + kpe], or the pair
  std::optional<op::PagedKv> kv_cache{};  // instead of the caches: one [P, ps, ckv + kpe], or the pair
  std::optional<double> ckv_scale{};      // value of one unit of ckv_cache
  std::optional<TensorView>
      ckv_scale_arr{};  // instead: f32 [P, ps, ceil(head_dim_ckv / 128)], one per token and 128 channels
  std::optional<double> kpe_scale{};
  std::optional<TensorView> sinks{};  // f32 [H]: logits added to the denominator (and the lse) only
  std::optional<double> skip_softmax_threshold_scale_factor{};
  std::optional<op::ScalarOrTensor> bmm1_scale{};  // instead of sm_scale, and
  std::optional<op::ScalarOrTensor>
      bmm2_scale{};  // factor of the output: with scale_mode bmm-scalar or bmm-tensor (f32 [1])
};

/// plan() once a step with the page table, run() once a layer. The cache already holds the new tokens.
class BatchMLAPagedAttentionWrapper {
 public:
  explicit BatchMLAPagedAttentionWrapper(const TensorView& float_workspace_buffer, const std::string& backend = "auto");
  explicit BatchMLAPagedAttentionWrapper(BatchMlaInit args = {});
  void plan(BatchMlaPlan args);
  op::Results run(BatchMlaRun args);

 private:
  op::Object self_;
};

/// Copies the latent rows of token t to slot positions[t] of request batch_indices[t]: entry positions[t] % page_size
/// of page kv_indices[kv_indptr[b] + positions[t] / page_size]. A negative batch index (padding) is skipped. Elements
/// are copied as they are: the cache must have the dtype of what is appended. A cache that is absent is not written.
/// ValueError: as append_paged_kv_cache. Nothing is written then.
struct AppendPagedMlaKvCache {
  TensorView append_ckv;                  // [nnz, dim_ckv]
  TensorView append_kpe;                  // [nnz, dim_kpe]
  TensorView batch_indices;               // [nnz]
  TensorView positions;                   // [nnz]
  std::optional<TensorView> ckv_cache{};  // [P, ps, dim_ckv], written
  std::optional<TensorView> kpe_cache{};  // [P, ps, dim_kpe], written
  TensorView kv_indices;                  // page ids
  TensorView kv_indptr;                   // [B+1], in pages
  TensorView kv_last_page_len;            // [B], after appending
};
void append_paged_mla_kv_cache(const AppendPagedMlaKvCache& args);

/// k[t, h] = (k_nope[t, h], k_rope[t, 0]) for every head h. Written in place.
struct ConcatMlaK {
  TensorView k;       // [n, H, nope + rope]
  TensorView k_nope;  // [n, H, nope], as k
  TensorView k_rope;  // [n, 1, rope], as k
  std::string backend = "default";
};
void concat_mla_k(const ConcatMlaK& args);

/// key[t, h] = (kv_nope[t, h, :nope_dim], k_pe[t]) for every head h, value[t, h] = kv_nope[t, h, nope_dim:], cast to
/// e4m3: saturated (infinities become +-448), any NaN as byte 0x7f. Returns (key, value). ValueError for ranks and
/// extents that are inconsistent.
struct ConcatMlaKvQuantFp8 {
  TensorView kv_nope;                 // [n, H, nope + v] f32|f16|bf16
  TensorView k_pe;                    // [n, rope] or [n, 1, rope]
  std::optional<TensorView> key{};    // [n, H, nope + rope] e4m3
  std::optional<TensorView> value{};  // [n, H, v] e4m3
  int64_t nope_dim = 128;
  std::string backend = "auto";
};
op::Results concat_mla_kv_quant_fp8(const ConcatMlaKvQuantFp8& args);

}  // namespace flashinfer

#pragma GCC visibility pop
