// SPDX-License-Identifier: Apache-2.0
// Latent attention without plan(): rows of the query, and page tables made of lists of tokens or of a rank's share of a
// context. Included by dense.cc alone.
#pragma once
#include <algorithm>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/attention/api/no_plan.h"
#include "flashinfer/ops/mla/dense.h"

namespace flashinfer::mla {

using T = TrtllmBatchDecodeMla;

/// A call whose index arrays the host can read: those on a GPU are copied, which waits for the stream (RuntimeError
/// while it is captured).
class OnHost {
 public:
  explicit OnHost(const T& a) : block(a) {
    const auto read = [&](TensorView& v) {
      if (host_can_read(v.device())) return;
      kept_.push_back(host_readable(v));
      v = kept_.back().view();
    };
    read(block.block_tables);
    for (std::optional<TensorView>* v :
         {&block.seq_lens, &block.cum_seq_lens_q, &block.sparse_mla_top_k_lens, &block.causal_seqlens_kv_global})
      if (*v) read(**v);
  }
  OnHost(const OnHost&) = delete;
  OnHost& operator=(const OnHost&) = delete;
  T block;

 private:
  std::vector<Tensor> kept_;
};

inline bool is_fixed(const T& a) { return !a.cum_seq_lens_q; }
inline int64_t rows_of_request(const T& a) { return a.query.size(1); }  // of a query [B, n, H, D]
/// [rows, H, D].
inline TensorView rows_of(const T& a, const char* name, const TensorView& t) {
  return is_fixed(a) && t.rank() == 4 ? attention::merged_rows(name, t) : t;
}
inline TensorView query_rows(const T& a) { return rows_of(a, "query", a.query); }
/// [P, ps, D].
inline TensorView pages_of(const T& a) { return a.kv_cache.rank() == 4 ? a.kv_cache.select(1, 0) : a.kv_cache; }
/// Rows and pages as vectors of int32; the tensors outlive the plan that is made of them.
struct Table {
  Tensor qo_indptr, kv_indptr, kv_indices, kv_len;
};
inline Tensor equal_rows(int64_t requests, int64_t rows) {
  Tensor t = Tensor::empty({requests + 1}, DType::kI32);
  for (int64_t b = 0; b <= requests; ++b) t.data_as<int32_t>()[b] = static_cast<int32_t>(b * rows);
  return t;
}
/// How many entries of each row's list may be read.
inline std::vector<int64_t> list_lengths(const T& a, int64_t rows, const Tensor& qo_indptr) {
  std::vector<int64_t> n(static_cast<size_t>(rows), a.sparse_mla_top_k);
  if (const auto& lens = a.sparse_mla_top_k_lens) {
    FI_CHECK(lens->numel() == rows && lens->rank() == 1, ValueError, "sparse_mla_top_k_lens is ", to_string(*lens),
             ", but there are ", rows, " query rows");
    for (int64_t i = 0; i < rows; ++i) {
      n[static_cast<size_t>(i)] = op::index_at(*lens, i);
      FI_CHECK(op::index_at(*lens, i) >= 0 && op::index_at(*lens, i) <= a.sparse_mla_top_k, ValueError,
               "sparse_mla_top_k_lens[", i, "] is ", op::index_at(*lens, i), ", but must be in 0..", a.sparse_mla_top_k,
               " (sparse_mla_top_k)");
    }
    return n;
  }
  if (!a.seq_lens) return n;
  const int64_t batch = qo_indptr.size(0) - 1;
  FI_CHECK(a.seq_lens->rank() == 1 && a.seq_lens->size(0) == batch, ValueError, "seq_lens is ", to_string(*a.seq_lens),
           ", but there are ", batch, " requests");
  const int32_t* qo = qo_indptr.data_as<int32_t>();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = qo[b]; i < qo[b + 1]; ++i) {
      const int64_t seen = op::index_at(*a.seq_lens, b) - (qo[b + 1] - 1 - i);
      n[static_cast<size_t>(i)] = std::max<int64_t>(0, std::min(a.sparse_mla_top_k, seen));
    }
  return n;
}
/// Every query row as a request of its own, whose keys are the tokens of its list, on pages of one token.
inline Table sparse_table(const T& a, const Tensor& requests) {
  const int64_t rows = query_rows(a).size(0), k = a.sparse_mla_top_k,
                tokens = pages_of(a).size(0) * pages_of(a).size(1);
  const TensorView lists =
      a.block_tables.rank() == 3 ? attention::merged_rows("block_tables", a.block_tables) : a.block_tables;
  FI_CHECK(lists.rank() == 2 && lists.size(0) == rows && lists.size(1) >= k, ValueError, "block_tables is ",
           to_string(a.block_tables), ", but must have ", k, " (sparse_mla_top_k) tokens for each of ", rows,
           " query rows");
  const std::vector<int64_t> lengths = list_lengths(a, rows, requests);
  FI_CHECK(rows * k <= INT32_MAX, ValueError, "block_tables has ", rows * k, " entries, more than 32 bits hold");
  Table t{equal_rows(rows, 1), Tensor::zeros({rows + 1}, DType::kI32), Tensor::empty({rows * k}, DType::kI32),
          Tensor::empty({rows}, DType::kI32)};
  int32_t used = 0, *to = t.kv_indices.data_as<int32_t>();
  for (int64_t i = 0; i < rows; ++i) {
    const TensorView list = lists.select(0, i);
    const int32_t first = used;
    for (int64_t j = 0; j < lengths[static_cast<size_t>(i)]; ++j) {
      const int64_t x = op::index_at(list, j);
      FI_CHECK(x < tokens, ValueError, "the list of query row ", i, " in block_tables has token ", x,
               ", but kv_cache has ", tokens);
      if (x >= 0) to[used++] = static_cast<int32_t>(x);
    }
    t.kv_len.data_as<int32_t>()[i] = used - first, t.kv_indptr.data_as<int32_t>()[i + 1] = used;
  }
  return t;
}
/// [B, pages].
inline TensorView table_of(const T& a) {
  return a.uses_shared_paged_kv_idx ? a.block_tables : a.block_tables.select(1, 0);
}
/// Keys of this rank that row `row` of `rows` sees, whose last row sees `tokens` of all ranks.
inline int64_t keys_of_share(const T& a, int64_t tokens, int64_t rows, int64_t row) {
  return ceil_div(std::max<int64_t>(0, tokens - (rows - 1) + row - a.cp_rank), a.cp_world);
}
/// Every query row as a request of its own, over this rank's tokens that it sees.
inline Table share_table(const T& a, const Tensor& requests) {
  const int64_t rows = query_rows(a).size(0), batch = requests.size(0) - 1, page_size = pages_of(a).size(1);
  const int32_t* qo = requests.data_as<int32_t>();
  const TensorView table = table_of(a), &all = *a.causal_seqlens_kv_global;
  FI_CHECK(all.rank() == 1 && all.size(0) == batch, ValueError, "causal_seqlens_kv_global is ", to_string(all),
           ", but must be [", batch, "] (requests)");
  FI_CHECK(a.seq_lens->rank() == 1 && a.seq_lens->size(0) == batch && table.size(0) == batch, ValueError,
           "seq_lens is ", to_string(*a.seq_lens), " and block_tables is ", to_string(a.block_tables),
           ", but there are ", batch, " requests");
  FI_CHECK(qo[batch] == rows, ValueError, "query has ", rows, " rows, but cum_seq_lens_q ends at ", qo[batch]);
  const int64_t entries = rows * table.size(1);
  FI_CHECK(entries <= INT32_MAX, ValueError, "block_tables has ", entries,
           " entries for all query rows, more than 32 bits hold");
  Table t{equal_rows(rows, 1), Tensor::zeros({rows + 1}, DType::kI32), Tensor::empty({entries}, DType::kI32),
          Tensor::empty({rows}, DType::kI32)};
  int32_t used = 0, *to = t.kv_indices.data_as<int32_t>();
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t held = op::index_at(*a.seq_lens, b);
    FI_CHECK(held >= 0 && held <= table.size(1) * page_size, ValueError, "seq_lens[", b, "] is ", held,
             ", but block_tables has ", table.size(1), " pages of ", page_size, " tokens");
    for (int64_t i = qo[b], n = qo[b + 1] - qo[b]; i < qo[b + 1]; ++i) {
      const int64_t keys = keys_of_share(a, op::index_at(all, b), n, i - qo[b]);
      FI_CHECK(keys <= held, ValueError, "seq_lens[", b, "] is ", held, ", but row ", i - qo[b],
               " of the request sees ", keys, " keys of this rank (causal_seqlens_kv_global is ", op::index_at(all, b),
               ")");
      for (int64_t j = 0; j < ceil_div(keys, page_size); ++j) {
        const int64_t page = op::index_at(table.select(0, b), j);
        FI_CHECK(page >= 0 && page <= INT32_MAX, ValueError, "block_tables[", b, "][", j, "] is ", page);
        to[used++] = static_cast<int32_t>(page);
      }
      t.kv_len.data_as<int32_t>()[i] = static_cast<int32_t>(keys), t.kv_indptr.data_as<int32_t>()[i + 1] = used;
    }
  }
  return t;
}

}  // namespace flashinfer::mla
