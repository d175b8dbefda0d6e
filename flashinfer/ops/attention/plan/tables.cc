// SPDX-License-Identifier: Apache-2.0
// The arrays of a plan: page tables, rows, masks, items. Everything that a kernel will follow is checked here.
#include <algorithm>
#include <cstring>
#include <limits>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/layout_error.h"
#include "flashinfer/ops/attention/plan/plan.h"

namespace flashinfer::attention {
namespace {

constexpr int64_t kMaxInt = std::numeric_limits<int32_t>::max();

/// Bits of bools, little-endian in a byte.
void pack_bits(const uint8_t* bools, int64_t n, uint8_t* out) {
  for (int64_t i = 0; i < n; i += 8) {
    uint8_t byte = 0;
    for (int64_t j = 0; j < 8 && i + j < n; ++j) byte = static_cast<uint8_t>(byte | (bools[i + j] ? 1 : 0) << j);
    out[i / 8] = byte;
  }
}

struct Extremes {
  int32_t lo = 0, hi = -1;
};
#if defined(__x86_64__)
/// Of whole vectors of x[n], merged into `e`; returns how many elements that was. With 16-byte vectors of the baseline
/// x86-64, which has no minimum of integers, an id took 0.25 ns.
__attribute__((target("avx2"))) int64_t extremes_avx2(const int32_t* x, int64_t n, int32_t* to, Extremes& e) {
  __m256i lo[2] = {_mm256_set1_epi32(e.lo), _mm256_set1_epi32(e.lo)},
          hi[2] = {_mm256_set1_epi32(e.hi), _mm256_set1_epi32(e.hi)};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int j = 0; j < 2; ++j) {
      const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i) + j);
      if (to) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i) + j, v);
      lo[j] = _mm256_min_epi32(lo[j], v), hi[j] = _mm256_max_epi32(hi[j], v);
    }
  alignas(32) int32_t least[8], most[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(least), _mm256_min_epi32(lo[0], lo[1]));
  _mm256_store_si256(reinterpret_cast<__m256i*>(most), _mm256_max_epi32(hi[0], hi[1]));
  for (int j = 0; j < 8; ++j) e.lo = std::min(e.lo, least[j]), e.hi = std::max(e.hi, most[j]);
  return i;
}
#endif
/// Of x[n], copied to `to` (null: not copied) in the same pass: a plan may have millions of page ids.
Extremes extremes(const int32_t* x, int64_t n, int32_t* to = nullptr) {
  Extremes e;
  int64_t i = 0;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) i = extremes_avx2(x, n, to, e);
#endif
  for (; i < n; ++i) {
    if (to) to[i] = x[i];
    e.lo = std::min(e.lo, x[i]), e.hi = std::max(e.hi, x[i]);
  }
  return e;
}
[[noreturn]] void throw_negative_page(const std::string& where, int64_t page) {
  throw ValueError(str(where, " is ", page, ", but a page id must be at least 0"));
}

/// kv_indptr, kv_indices and max_page; batch_size.
void set_pages(Plan& p, const PageTableNames& names, const TensorView& indptr, const TensorView& indices) {
  FI_CHECK(p.page_size >= 1, ValueError, "page_size is ", p.page_size, ", but must be at least 1");
  const int64_t used = op::check_indptr(names.indptr, indptr);
  p.batch_size = indptr.size(0) - 1;
  FI_CHECK(used <= indices.size(0), ValueError, names.indptr, "[", p.batch_size, "] is ", used, ", but ", names.indices,
           " has only ", indices.size(0), " entries");
  p.kv_indptr = to_int32(names.indptr, indptr, p.batch_size + 1);
  const bool plain = indices.dtype() == DType::kI32 && (used <= 1 || indices.stride(0) == 1);
  p.kv_indices = plain ? Tensor::empty({used}, DType::kI32) : to_int32(names.indices, indices, used);
  int32_t* page = p.kv_indices.data_as<int32_t>();
  const Extremes e = plain ? extremes(indices.data_as<int32_t>(), used, page) : extremes(page, used);
  p.max_page = e.hi;
  if (e.lo >= 0) return;
  const int64_t i = std::find_if(page, page + used, [](int32_t x) { return x < 0; }) - page;
  throw_negative_page(str(names.indices, "[", i, "]"), page[i]);
}

}  // namespace

Tensor to_int32(std::string_view name, const TensorView& v, int64_t n) {
  Tensor t = Tensor::empty({n}, DType::kI32);
  int32_t* out = t.data_as<int32_t>();
  if (v.dtype() == DType::kI32 && (n <= 1 || v.stride(0) == 1)) {
    if (n) std::memcpy(out, v.data(), static_cast<size_t>(n) * 4);
    return t;
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t x = op::index_at(v, i);
    FI_CHECK(x >= std::numeric_limits<int32_t>::min() && x <= kMaxInt, ValueError, name, "[", i, "] is ", x,
             ", which is more than 32 bits hold");
    out[i] = static_cast<int32_t>(x);
  }
  return t;
}

void set_page_table(Plan& p, const PageTableNames& names, const TensorView& indptr, const TensorView& indices,
                    const TensorView& last_page_len) {
  set_pages(p, names, indptr, indices);
  FI_CHECK(last_page_len.size(0) == p.batch_size, ValueError, names.last_page_len, ".shape[0] is ",
           last_page_len.size(0), ", but ", names.indptr, " describes ", p.batch_size, " requests");
  p.kv_len = Tensor::empty({p.batch_size}, DType::kI32);
  const int32_t* first = p.kv_indptr.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b) {
    const int64_t pages = first[b + 1] - first[b], last = op::index_at(last_page_len, b);
    FI_CHECK(pages == 0 || (last >= 1 && last <= p.page_size), ValueError, names.last_page_len, "[", b, "] is ", last,
             ", but must be in 1..", p.page_size, " (page_size)");
    const int64_t len = pages ? (pages - 1) * p.page_size + last : 0;
    FI_CHECK(len <= kMaxInt, ValueError, "request ", b, " has ", len, " tokens, more than 32 bits hold");
    p.kv_len.data_as<int32_t>()[b] = static_cast<int32_t>(len);
  }
}

void set_page_table_of_lengths(Plan& p, const PageTableNames& names, const TensorView& indptr,
                               const TensorView& indices, const TensorView& kv_len) {
  set_pages(p, names, indptr, indices);
  FI_CHECK(kv_len.size(0) == p.batch_size, ValueError, names.last_page_len, ".shape[0] is ", kv_len.size(0), ", but ",
           names.indptr, " describes ", p.batch_size, " requests");
  p.kv_len = to_int32(names.last_page_len, kv_len, p.batch_size);
  const int32_t *first = p.kv_indptr.data_as<int32_t>(), *len = p.kv_len.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b) {
    const int64_t room = static_cast<int64_t>(first[b + 1] - first[b]) * p.page_size;
    FI_CHECK(len[b] >= 0 && len[b] <= room, ValueError, names.last_page_len, "[", b, "] is ", len[b], ", but the ",
             first[b + 1] - first[b], " pages of request ", b, " hold ", room, " tokens");
  }
}

void check_dense_shape(const Plan& p, const TensorView& tables, const TensorView& seq_lens,
                       const DenseTableNames& names) {
  FI_CHECK(p.page_size >= 1, ValueError, "the cache has pages of ", p.page_size, " tokens");
  FI_CHECK(tables.size(0) * tables.size(1) <= kMaxInt, ValueError, names.table, " has ",
           tables.size(0) * tables.size(1), " entries, more than 32 bits hold");
  FI_CHECK(seq_lens.size(0) == tables.size(0), ValueError, names.lengths, ".shape[0] is ", seq_lens.size(0), ", but ",
           names.table, ".shape[0] is ", tables.size(0));
}
Tensor compact_table(std::string_view name, const TensorView& tables) {
  const Tensor compact = Tensor::clone(tables);
  return to_int32(name, compact.view().view({tables.numel()}), tables.numel());
}
void set_dense_table(Plan& p, const TensorView& tables, const TensorView& seq_lens, const DenseTableNames& names) {
  check_dense_shape(p, tables, seq_lens, names);
  p.batch_size = tables.size(0);
  const int64_t width = tables.size(1);
  if (tables.dtype() == DType::kI32 && tables.is_contiguous()) {
    p.kv_indices = Tensor(tables.view({p.batch_size * width}), nullptr);  // for this call only
  } else {
    p.kv_indices = compact_table(names.table, tables);
  }
  p.kv_indptr = Tensor::empty({p.batch_size + 1}, DType::kI32);
  p.kv_len = to_int32(names.lengths, seq_lens, p.batch_size);
  p.max_page = -1;
  for (int64_t b = 0; b <= p.batch_size; ++b) p.kv_indptr.data_as<int32_t>()[b] = static_cast<int32_t>(b * width);
  for (int64_t b = 0; b < p.batch_size; ++b) {
    const int64_t len = p.kv_len.data_as<int32_t>()[b], pages = ceil_div(len, p.page_size);
    FI_CHECK(len >= 0 && pages <= width, ValueError, names.lengths, "[", b, "] is ", len, ", but ", names.table,
             " has room for ", width, " pages of ", p.page_size, " tokens a request");
    const int32_t* page = p.kv_indices.data_as<int32_t>() + b * width;
    const Extremes e = extremes(page, pages);
    p.max_page = std::max<int64_t>(p.max_page, e.hi);
    if (e.lo >= 0) continue;
    const int64_t i = std::find_if(page, page + pages, [](int32_t x) { return x < 0; }) - page;
    throw_negative_page(str(names.table, "[", b, "][", i, "]"), page[i]);
  }
}

void check_block_tables(const std::optional<TensorView>& given, const Plan& p) {
  if (!given) return;
  const TensorView& t = *given;
  FI_CHECK(t.rank() == 2 && t.size(0) == p.batch_size && op::indices.has(t.dtype()), ValueError, "block_tables is ",
           to_string(t), ", but must be int32 or int64 [", p.batch_size, ", pages]");
  const int32_t *first = p.kv_indptr.data_as<int32_t>(), *page = p.kv_indices.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b) {
    const int64_t pages = first[b + 1] - first[b];
    FI_CHECK(pages <= t.size(1), ValueError, "block_tables has room for ", t.size(1), " pages a request, but request ",
             b, " has ", pages);
    for (int64_t i = 0; i < pages; ++i) {
      const int64_t x = op::index_at(t.select(0, b), i);
      FI_CHECK(x == page[first[b] + i], ValueError, "block_tables[", b, "][", i, "] is ", x,
               ", but the index arrays say page ", page[first[b] + i]);
    }
  }
}

void check_rows_shape(const Plan& p, std::string_view name, const TensorView& qo_indptr) {
  FI_CHECK(qo_indptr.size(0) == p.batch_size + 1, ValueError, name, ".shape[0] is ", qo_indptr.size(0),
           ", but there are ", p.batch_size, " requests");
}
void set_rows(Plan& p, std::string_view name, const TensorView& qo_indptr) {
  check_rows_shape(p, name, qo_indptr);
  p.nnz_qo = op::check_indptr(name, qo_indptr);
  p.qo_indptr = to_int32(name, qo_indptr, p.batch_size + 1);
}

int64_t set_mask_indptr(Plan& p) {
  const int32_t *qo = p.qo_indptr.data_as<int32_t>(), *kv = p.kv_len.data_as<int32_t>();
  p.mask_indptr = Tensor::empty({p.batch_size + 1}, DType::kI64);
  int64_t *at = p.mask_indptr.data_as<int64_t>(), bits = 0;
  at[0] = 0;
  for (int64_t b = 0; b < p.batch_size; ++b) {
    const int64_t n = static_cast<int64_t>(qo[b + 1] - qo[b]) * kv[b];
    bits += n;
    at[b + 1] = at[b] + ceil_div(n, 8);
  }
  return bits;
}

void set_mask(Plan& p, const std::optional<TensorView>& mask, const std::optional<TensorView>& packed) {
  p.mask = p.mask_indptr = Tensor();  // a plan without a mask forgets the last one
  if (!mask && !packed) return;
  const int64_t bits = set_mask_indptr(p);
  const int32_t *qo = p.qo_indptr.data_as<int32_t>(), *kv = p.kv_len.data_as<int32_t>();
  const int64_t* at = p.mask_indptr.data_as<int64_t>();
  const int64_t bytes = at[p.batch_size];
  if (mask)
    FI_CHECK(mask->numel() == bits, ValueError, "custom_mask has ", mask->numel(), " elements, but the requests have ",
             bits, " (sum of qo_len * kv_len)");
  if (packed)
    FI_CHECK(packed->numel() == bytes, ValueError, "packed_custom_mask has ", packed->numel(),
             " bytes, but the requests need ", bytes, " (sum of ceil(qo_len * kv_len / 8): each starts at a byte)");
  p.mask = Tensor::empty({bytes}, DType::kU8);
  if (packed) {
    if (bytes) std::memcpy(p.mask.data(), packed->data(), static_cast<size_t>(bytes));
    return;
  }
  const uint8_t* from = mask->data_as<uint8_t>();
  for (int64_t b = 0; b < p.batch_size; ++b) {
    const int64_t n = static_cast<int64_t>(qo[b + 1] - qo[b]) * kv[b];
    pack_bits(from, n, p.mask.data_as<uint8_t>() + at[b]);
    from += n;
  }
}

void set_items(Plan& p, const Items& items) {
  p.prefix_len = p.token_pos = Tensor();
  if (!items.prefix_len) {
    FI_CHECK(!items.token_pos && !items.max_item_len && items.token_pos_len == 0, ValueError,
             "token_pos_in_items_ptr, token_pos_in_items_len and max_item_len_ptr belong to prefix_len_ptr, which is "
             "None");
    return;
  }
  FI_CHECK(items.token_pos.has_value() && items.token_pos_len >= 0, ValueError,
           "prefix_len_ptr needs token_pos_in_items_ptr and "
           "token_pos_in_items_len, which is ",
           items.token_pos_len);
  FI_CHECK(!p.mask.defined(), ValueError,
           "prefix_len_ptr and a custom mask exclude each other: items have a mask of their own");
  const TensorView &prefix = *items.prefix_len, &pos = *items.token_pos;
  FI_CHECK(prefix.rank() <= 1 && prefix.numel() == p.batch_size, ValueError, "prefix_len_ptr is ", to_string(prefix),
           ", but there are ", p.batch_size, " requests");  // of one request perhaps without a dimension
  // Programs leave out what the last request's row has beyond its tokens.
  const int64_t last = p.batch_size - 1, whole = p.batch_size * items.token_pos_len,
                unused = last < 0
                             ? 0
                             : items.token_pos_len -
                                   std::max<int64_t>(p.kv_len.data_as<int32_t>()[last] - op::index_at(prefix, last), 0);
  FI_CHECK_LAYOUT(pos.numel() <= whole && pos.numel() >= whole - std::max<int64_t>(unused, 0), pos.is_contiguous(),
                  "token_pos_in_items_ptr is ", to_string(pos), ", but must be ", p.batch_size,
                  " requests of token_pos_in_items_len=", items.token_pos_len, " entries, contiguous");
  FI_CHECK(!items.max_item_len || items.max_item_len->numel() == p.batch_size, ValueError, "max_item_len_ptr has ",
           items.max_item_len ? items.max_item_len->numel() : 0, " entries, but there are ", p.batch_size, " requests");
  p.prefix_len = Tensor::empty({p.batch_size}, DType::kU32);
  for (int64_t b = 0; b < p.batch_size; ++b) {
    const int64_t len = op::index_at(prefix, b), rest = p.kv_len.data_as<int32_t>()[b] - len;
    FI_CHECK(len >= 0 && len <= kMaxInt && rest <= items.token_pos_len, ValueError, "prefix_len_ptr[", b, "] is ", len,
             ", which leaves ", rest, " tokens of request ", b, " to the items, but token_pos_in_items_len is ",
             items.token_pos_len);
    p.prefix_len.data_as<uint32_t>()[b] = static_cast<uint32_t>(len);
  }
  p.token_pos = Tensor::empty({p.batch_size, items.token_pos_len}, DType::kU16);
  std::memset(p.token_pos.data(), 0, static_cast<size_t>(p.token_pos.nbytes()));
  const TensorView flat = pos.view({pos.numel()});
  for (int64_t i = 0; i < pos.numel(); ++i) {
    const int64_t x = op::index_at(flat, i);
    FI_CHECK(x >= 0 && x <= 0xffff, ValueError, "token_pos_in_items_ptr[", i, "] is ", x, ", but must be in 0..65535");
    p.token_pos.data_as<uint16_t>()[i] = static_cast<uint16_t>(x);
  }
  p.causal = true;  // the kernels' form of "earlier tokens only"
}

void check_lengths(std::string_view name, const std::optional<TensorView>& given, const Tensor& lengths) {
  if (!given) return;
  FI_CHECK(given->rank() >= 1 && given->size(0) == lengths.size(0) && given->numel() == given->size(0), ValueError,
           name, " is ", to_string(*given), ", but there are ", lengths.size(0), " requests");
  for (int64_t b = 0; b < lengths.size(0); ++b)
    FI_CHECK(op::index_at(*given, b) == lengths.data_as<int32_t>()[b], ValueError, name, "[", b, "] is ",
             op::index_at(*given, b), ", but the index arrays give request ", b, " a length of ",
             lengths.data_as<int32_t>()[b]);
}

Tensor offsets_in_rows(std::string_view name, const TensorView& offsets, const std::optional<TensorView>& lengths,
                       int64_t row) {
  if (!lengths || lengths->rank() == 0 || offsets.size(0) <= lengths->size(0)) return {};
  const int64_t batch = lengths->size(0);
  int64_t rows = 0;
  for (int64_t b = 0; b < batch; ++b) rows += op::index_at(*lengths, b);
  if (row <= 1 || rows == 0 || op::index_at(offsets, batch) != rows * row) return {};
  Tensor out = Tensor::empty({batch + 1}, DType::kI32);
  for (int64_t b = 0; b <= batch; ++b) {
    const int64_t x = op::index_at(offsets, b);
    FI_CHECK(x % row == 0 && x >= 0 && x / row <= INT32_MAX, ValueError, name, "[", b, "] is ", x,
             ", but its last entry says that it is in elements, of which a row has ", row);
    out.data_as<int32_t>()[b] = static_cast<int32_t>(x / row);
  }
  return out;
}

void set_slopes(Plan& p, const std::optional<TensorView>& slopes) {
  p.alibi_slopes = Tensor();
  if (!slopes) return;
  FI_CHECK(p.pos_encoding_mode == "ALIBI", ValueError, "alibi_slopes belongs to pos_encoding_mode='ALIBI', which is '",
           p.pos_encoding_mode, "'");
  FI_CHECK(slopes->rank() == 1 && slopes->size(0) == p.num_qo_heads && slopes->dtype() == DType::kF32, ValueError,
           "alibi_slopes is ", to_string(*slopes), ", but must be float32[", p.num_qo_heads, "] (num_qo_heads)");
  p.alibi_slopes = Tensor::clone(*slopes);
}

void check_longest(std::string_view name, const std::optional<int64_t>& bound, const Tensor& lengths) {
  for (int64_t b = 0; bound && b < lengths.size(0); ++b)
    FI_CHECK(lengths.data_as<int32_t>()[b] <= *bound, ValueError, name, " is ", *bound, ", but request ", b, " has ",
             lengths.data_as<int32_t>()[b], " tokens");
}

}  // namespace flashinfer::attention
