// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/msa/inputs.h"

#include <algorithm>
#include <cmath>

#include "flashinfer/core/transfer.h"
#include "flashinfer/kernels/common/scale_layout.h"

namespace flashinfer::msa {

bool Batch::readable() const {
  const TensorView* const offsets = q_offset ? q_offset->tensor() : nullptr;
  for (const TensorView* t : {cu_seqlens_q, cu_seqlens_k, page_table, seqused_k, offsets})
    if (t && t->device().type == DeviceType::kCUDA) return false;
  return true;
}
int64_t Batch::most_blocks() const {
  const TensorView* const lengths = page_table ? seqused_k : cu_seqlens_k;
  if (lengths && lengths->device().type == DeviceType::kCUDA) {
    const Tensor there = to_device(*lengths, kCpu);
    const TensorView host = there.view();
    Batch copy = *this;
    (page_table ? copy.seqused_k : copy.cu_seqlens_k) = &host;
    return copy.most_blocks();
  }
  int64_t most = 0;
  for (int64_t b = 0; b < requests(); ++b) most = std::max(most, blocks(b));
  return most;
}
int64_t Batch::visible(int64_t b, int64_t i) const {
  const int64_t all = keys(b);
  if (!causal) return all;
  int64_t offset = all - (first_row(b + 1) - first_row(b));
  if (q_offset) {
    const TensorView* each = q_offset->tensor();
    offset = each ? op::index_at(*each, b) : static_cast<int64_t>(q_offset->number());
  }
  return std::clamp<int64_t>(offset + i + 1, 0, all);
}

namespace {
void check_paged(const Batch& b, const char* k_name, const TensorView& k) {
  FI_CHECK(b.seqused_k, ValueError, "seqused_k is missing: page_table needs the keys of each request");
  FI_CHECK(k.rank() == 4 && k.size(2) == kMsaBlock, ValueError, k_name, " is ", to_string(k),
           ", but with page_table it must be [pages, KV heads, 128, ..]");
  FI_CHECK(b.seqused_k->size(0) == b.requests(), ValueError, "seqused_k.shape[0] is ", b.seqused_k->size(0),
           ", but page_table.shape[0] is ", b.requests());
  const int64_t room = b.page_table->size(1) * kMsaBlock;
  for (int64_t i = 0; b.readable() && i < b.requests(); ++i) {
    const int64_t n = op::index_at(*b.seqused_k, i);
    FI_CHECK(n >= 0 && n <= room, ValueError, "seqused_k[", i, "] is ", n, ", but must be in [0, ", room,
             "] (page_table has ", b.page_table->size(1), " pages of 128)");
    if (!b.cu_seqlens_k) continue;
    const int64_t same = op::index_at(*b.cu_seqlens_k, i + 1) - op::index_at(*b.cu_seqlens_k, i);
    FI_CHECK(same == n, ValueError, "cu_seqlens_k gives request ", i, " ", same, " keys, but seqused_k[", i, "] is ",
             n);
  }
}
void check_flat(const Batch& b, const char* k_name, const TensorView& k) {
  FI_CHECK(!b.seqused_k, ValueError, "seqused_k is given, but page_table is not: flat keys have cu_seqlens_k");
  FI_CHECK(b.cu_seqlens_k, ValueError, "cu_seqlens_k is missing: it says where the keys of each request begin");
  FI_CHECK(k.rank() == 3, ValueError, k_name, " is ", to_string(k),
           ", but without page_table it must be [keys, KV heads, ..]");
  FI_CHECK(b.cu_seqlens_k->size(0) >= 1, ValueError,
           "cu_seqlens_k is empty, but must have one entry more than there are requests");
  if (!b.readable()) return;
  const int64_t last = op::check_indptr("cu_seqlens_k", *b.cu_seqlens_k);
  FI_CHECK(last <= k.size(0), ValueError, "cu_seqlens_k ends with ", last, ", but ", k_name, " has ", k.size(0),
           " keys");
}
}  // namespace

void check_batch(const Batch& b, int64_t n, const char* k_name, const TensorView& k) {
  if (b.page_table)
    check_paged(b, k_name, k);
  else
    check_flat(b, k_name, k);
  const int64_t requests = b.requests();
  if (b.cu_seqlens_q) {
    FI_CHECK(b.cu_seqlens_q->size(0) == requests + 1, ValueError, "cu_seqlens_q.shape[0] is ", b.cu_seqlens_q->size(0),
             ", but must be ", requests + 1, " for ", requests, " requests");
    const int64_t last = b.readable() ? op::check_indptr("cu_seqlens_q", *b.cu_seqlens_q) : n;
    FI_CHECK(last == n, ValueError, "cu_seqlens_q ends with ", last, ", but q has ", n, " rows");
  } else {
    FI_CHECK(b.seqlen_q >= 1, ValueError, "seqlen_q is ", b.seqlen_q, ", but must be at least 1");
    FI_CHECK(b.seqlen_q * requests == n, ValueError, "q has ", n, " rows, but ", requests,
             " requests of seqlen_q = ", b.seqlen_q, " have ", b.seqlen_q * requests);
  }
  if (!b.q_offset) return;
  const TensorView* offsets = b.q_offset->tensor();
  if (!offsets) {
    const double x = b.q_offset->number();
    FI_CHECK(x == std::floor(x), ValueError, "q_offset is ", x, ", but must be a whole number of keys");
    return;
  }
  FI_CHECK(op::indices.has(offsets->dtype()) && offsets->rank() == 1 && offsets->size(0) == requests, ValueError,
           "q_offset is ", to_string(*offsets), ", but must be a number or int32 [", requests, "]");
}

void check_page(const Batch& b, int64_t request, int64_t block, int64_t pages, const char* k_name) {
  const int64_t page = b.page_table->data_as<int32_t>()[request * b.page_table->stride(0) + block];
  FI_CHECK(page >= 0 && page < pages, ValueError, "page_table[", request, ", ", block, "] is ", page, ", but ", k_name,
           " has ", pages, " pages");
}

void check_heads(int64_t heads, const TensorView& k, const char* k_name) {
  const int64_t g = heads_of(k);
  FI_CHECK(g >= 1 && heads % g == 0, ValueError, "q has ", heads, " heads, but must have a multiple of the ", g, " of ",
           k_name);
}

void check_nvfp4(const char* name, const TensorView& t, const char* scale_name,
                 const std::optional<TensorView>& scale) {
  FI_CHECK(scale, ValueError, scale_name, " is missing: ", name, " is NVFP4");
  const int64_t rows = t.numel() / std::max<int64_t>(t.size(-1), 1);
  const int64_t bytes = sf_bytes(SfLayout::k128x4, rows, kMsaScales);
  FI_CHECK(scale->numel() == bytes, ValueError, scale_name, " has ", scale->numel(),
           " bytes, but the swizzled scale factors of ", rows, " rows of ", name, " have ", bytes, " (128x4 layout)");
}

Tensor rows_of(const Batch& b, int64_t n) {
  static_assert(sizeof(MsaRow) == 3 * sizeof(int64_t));
  Tensor rows = Tensor::empty({n, 3}, DType::kI64);
  auto* to = reinterpret_cast<MsaRow*>(rows.data_as<int64_t>());
  for (int64_t r = 0; r < b.requests(); ++r)
    for (int64_t i = 0; i < b.first_row(r + 1) - b.first_row(r); ++i)
      *to++ = {.first = b.page_table ? r : b.first_key(r), .visible = b.visible(r, i), .blocks = b.blocks(r)};
  return rows;
}

}  // namespace flashinfer::msa
