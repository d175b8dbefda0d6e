// SPDX-License-Identifier: Apache-2.0
// Masks among the query rows of a request, which are its last tokens: one bit for each pair, u16 words of 16 bits, low
// bit first, ceil(rows / 32) * 2 words a row. Internal to the family.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/attention/api/checks.h"

namespace flashinfer::attention {

constexpr DTypeSet kMaskWords = DTypeSet(DType::kU16);

inline int64_t words_of(int64_t rows) { return ceil_div(rows, int64_t{32}) * 2; }

struct DraftMask {
  const uint16_t* words;
  int64_t width;
  bool sees(int64_t row, int64_t j) const { return words[row * width + j / 16] >> (j % 16) & 1; }
};
inline void set_ones(uint8_t* bits, int64_t begin, int64_t end) {
  for (; begin < end && begin % 8; ++begin) bits[begin / 8] = static_cast<uint8_t>(bits[begin / 8] | 1 << begin % 8);
  for (; begin + 8 <= end; begin += 8) bits[begin / 8] = 0xff;
  for (; begin < end; ++begin) bits[begin / 8] = static_cast<uint8_t>(bits[begin / 8] | 1 << begin % 8);
}
/// Whether each row sees itself and the rows before it, or all rows of its request: masks that the kernels know.
inline bool is_known(const Plan& p, const DraftMask& m, bool causal) {
  const int32_t* qo = p.qo_indptr.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b)
    for (int64_t i = 0, n = qo[b + 1] - qo[b]; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        if (m.sees(qo[b] + i, j) != (!causal || j <= i)) return false;
  return true;
}
/// With several rows, all of them must be tokens of the cache.
inline void check_rows_in_cache(const Plan& p, int64_t max_rows) {
  const int32_t *qo = p.qo_indptr.data_as<int32_t>(), *kv = p.kv_len.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b)
    FI_CHECK(max_rows == 1 || qo[b + 1] - qo[b] <= kv[b], ValueError, "seq_lens[", b, "] is ", kv[b], ", but the ",
             qo[b + 1] - qo[b], " query rows of request ", b, " are in the cache too");
}
inline void check_draft_mask(const Plan& p, const TensorView& mask, int64_t max_rows) {
  const int64_t width = words_of(max_rows);
  FI_CHECK_LAYOUT(mask.numel() == p.nnz_qo * width, mask.is_contiguous(), "mask is ", to_string(mask),
                  ", but must be uint16[..., ", width, "] with ", p.nnz_qo, " rows of ", width,
                  " words (32 query rows take two), contiguous");
}
/// The words of a mask as [rows, words of a row].
inline TensorView draft_words(const TensorView& mask, int64_t max_rows) {
  const int64_t width = words_of(max_rows);
  return mask.view({width ? mask.numel() / width : 0, width});
}
/// Rows [B, max_rows] or packed [total rows], of words_of(max_rows) words each.
inline void set_draft_mask(Plan& p, const TensorView& mask, int64_t max_rows) {
  check_draft_mask(p, mask, max_rows);
  const DraftMask m{mask.data_as<uint16_t>(), words_of(max_rows)};
  p.causal = true;
  if (is_known(p, m, true)) return;
  p.causal = false;
  if (is_known(p, m, false)) return;
  const int32_t *qo = p.qo_indptr.data_as<int32_t>(), *kv = p.kv_len.data_as<int32_t>();
  set_mask_indptr(p);
  const int64_t* at = p.mask_indptr.data_as<int64_t>();
  p.mask = Tensor::zeros({at[p.batch_size]}, DType::kU8);
  for (int64_t b = 0; b < p.batch_size; ++b) {
    uint8_t* bits = p.mask.data_as<uint8_t>() + at[b];
    const int64_t rows = qo[b + 1] - qo[b], keys = kv[b], before = keys - rows;
    for (int64_t i = 0; i < rows; ++i) {
      set_ones(bits, i * keys, i * keys + before);
      for (int64_t j = 0; j < rows; ++j)
        if (m.sees(qo[b] + i, j)) set_ones(bits, i * keys + before + j, i * keys + before + j + 1);
    }
  }
}

}  // namespace flashinfer::attention
