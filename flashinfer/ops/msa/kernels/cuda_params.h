// SPDX-License-Identifier: Apache-2.0
// Configs and Params of attention over selected blocks on a GPU. Freestanding.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/common/page_table.h"
#include "flashinfer/ops/msa/kernels/params.h"

namespace flashinfer {

/// As MsaConfig. cores: without tensor cores, in f32 (f32 queries, rows that begin anywhere, GPUs before sm_80).
struct MsaCudaConfig {
  DType q, kv, out;
  unsigned char cores;
  static constexpr int threads = 128;  // of a block: each of four warps has 32 keys of a block of keys

  /// Up to 168 registers a thread; more where keys are converted, which would spill some, and where an SM has shared
  /// memory for one block only.
  constexpr int min_blocks() const {
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
    if (!cores) return 1;
#endif
    return cores || kv == DType::kBF16 || kv == DType::kF16 ? 3 : 2;
  }

  static constexpr const char* kName = "flashinfer::MsaCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("q", q);
    v("kv", kv);
    v("out", out);
    v("cores", cores);
  }
  friend constexpr bool operator==(const MsaCudaConfig&, const MsaCudaConfig&) = default;
};
inline constexpr int kMsaThreads = MsaCudaConfig::threads;

/// As MsaParams; rows, lengths and pages are read by the kernel. Their contents are not checked: a row of no request
/// sees nothing, lengths are cut to what exists, and pages outside the pool are skipped.
struct MsaCudaParams {
  MsaTensor q, k, v;
  StridedIndices cu_q, cu_k, used, offsets;  // data null: absent
  int64_t requests, seqlen_q;                // cu_q absent: rows of each request
  int64_t offset, has_offset, causal;        // offset: of all requests, where `offsets` is absent
  const int32_t* pages;                      // null: flat
  int64_t page_table_stride, columns, pool;  // pool: pages, or keys of flat tensors
  const int32_t* selected;                   // [g, n, topk]
  int64_t n, heads, kv_heads, topk;
  float scale_log2, v_scale, temperature;
  void* out;
  float *lse, *lse_t;
  int64_t tiles, reduce_heads;
  float factor;
  float* score;
  int64_t score_head, score_tile, score_row;
};
/// Rows and heads of a block of threads: at most 16 (query row, head) pairs that share a KV head (cores: 4).
struct MsaShape {
  int64_t heads, rows, head_tiles;
};
constexpr MsaShape msa_shape(int64_t group, bool cores, bool one_row) {
  const int64_t most = cores ? 4 : 16, heads = group < most ? group : most;
  return {heads, one_row ? 1 : most / heads, ceil_div(group, heads)};
}
/// Shared memory of the kernels on tensor cores: queries, then of each warp 32 rows of K and of V, and later its
/// outputs in f32 (rows of 136); largest logits and sums of 16 rows. On CUDA cores: the latter two, of 4 rows.
inline constexpr int kMsaQueryBytes = 16 * 256, kMsaWarpBytes = 2 * 32 * 256, kMsaState = 3 * 4 * 16 * 4;
inline constexpr int kMsaOutputPitch = 136;
constexpr int msa_shared(bool cores) {
  return cores ? 4 * 4 * kMsaOutputPitch * 4 + kMsaState : kMsaQueryBytes + 4 * kMsaWarpBytes + kMsaState;
}

struct MsaSelectConfig {
  int threads;  // a warp a row; rows of a block adjoin

  static constexpr const char* kName = "flashinfer::MsaSelectConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("threads", threads);
  }
  friend constexpr bool operator==(const MsaSelectConfig&, const MsaSelectConfig&) = default;
};
struct MsaSelectParams {
  const float* score;
  int64_t score_head, score_tile, score_row;  // strides
  int64_t n, blocks, topk, begin, end;        // begin, end: forced blocks
  StridedIndices valid;                       // of each row; data null: `all_valid`
  int64_t all_valid;
  int32_t* out;
  int64_t out_row, out_head;
};

}  // namespace flashinfer
