// SPDX-License-Identifier: Apache-2.0
// The types that the decode kernel reads and multiplies.
#pragma once
#include "flashinfer/ops/attention/kernels/cpu/decode/softmax.h"

namespace flashinfer::cpu::attention {

/// NVFP4: up to this many heads codes are multiplied directly; larger groups gain more from rows of bf16, whose
/// conversion costs once what codes cost for each row. Cycles a key at D 128 from L2, codes and rows: G = 1 48 and 87,
/// G = 4 96 and 114, G = 8 174 and 144.
inline constexpr int kCodesRows = 4;

/// Types that the kernel reads and types that it multiplies.
template <AttentionConfig C>
struct DecodeTypes {
  static constexpr bool kFp4 = C.kv == DType::kF4E2M1x2;
  static constexpr bool kNarrow = kFp4 || C.kv == DType::kF8E4M3 || C.kv == DType::kF8E5M2;
#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
  static constexpr bool kPairs = C.q == DType::kBF16 && (C.kv == DType::kBF16 || kNarrow);
#elif defined(__AVX512BF16__)
  static constexpr bool kPairs = C.q == DType::kBF16 && C.kv == DType::kBF16;
#else
  static constexpr bool kPairs = false;
#endif
  static constexpr bool kCodes = kFp4 && kPairs;                 // multiply codes directly, where the dims allow it
  static constexpr bool kConvert = kFp4 || (kNarrow && kPairs);  // convert a block of rows before it is multiplied
  static constexpr DType kCell = !kConvert ? C.kv == DType::kF4E2M1x2 ? DType::kF32 : C.kv
                                 : kPairs  ? DType::kBF16
                                           : DType::kF32;
  using Q = scalar_of_t<C.q>;
  using KV = scalar_of_t<kFp4 ? DType::kU8 : C.kv>;
  using Cell = scalar_of_t<kCell>;
  /// The products prefetch one of every kShare lines that they read; the conversion, which prefetches too, reads half
  /// of the lines.
  static constexpr int kShare = !kConvert ? 1 : kFp4 ? 8 : 4;
  static constexpr int64_t bytes(int64_t dim) { return kFp4 ? dim / 2 : dim * static_cast<int64_t>(sizeof(KV)); }
};

}  // namespace flashinfer::cpu::attention
