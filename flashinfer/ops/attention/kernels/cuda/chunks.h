// SPDX-License-Identifier: Apache-2.0
// Where keys are cut, for the host's plan and for the one made on a GPU. Freestanding.
#pragma once
#include <stdint.h>

namespace flashinfer::cuda {

/// Packed rows of a request that are few (attention/cuda/launch.h).
inline constexpr int kFewRows = 16;

/// Keys of a chunk, a function of the request's shape. With few rows a short request is cut into more pieces, so that
/// one request alone fills a GPU: 4096 keys and 8 heads make 128 blocks, each of which reads 128 KB at D 128, beside
/// which a piece's partial result is 3 % (4 rows). From 64k keys on 1024 make blocks enough. Requests with more rows
/// have them.
constexpr int64_t attention_chunk(int64_t rows, int64_t keys) {
  if (rows > 64) return INT32_MAX / 64 * 64;
  return rows > kFewRows ? 4096 : keys <= 8192 ? 256 : keys <= 65536 ? 512 : 1024;
}

}  // namespace flashinfer::cuda
