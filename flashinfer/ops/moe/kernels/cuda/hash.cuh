// SPDX-License-Identifier: Apache-2.0
// Routing by a table of tokens on a GPU: neighbouring lanes take the columns of a token.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/page_table.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/moe/kernels/hash_params.h"

namespace flashinfer::cu {

template <HashTopkConfig C>
FI_GLOBAL_FN void hash_topk(const HashTopkParams& p) {
  depend_wait();
  const uint32_t token = block_x() * (C.threads / C.lanes) + thread_x() / C.lanes;
  const auto column = static_cast<int32_t>(thread_x() % C.lanes);
  const bool routed = token < p.tokens && column < p.k;
  int32_t id = -1;
  float score = 0.0f;
  if (routed) {
    const int64_t row = strided_index(p.tokens_ids, token);
    if (row >= 0 && row < p.vocabulary) id = p.table[row * p.k + column];
    if (id < 0 || id >= p.experts) id = -1;
    if (id >= 0) {
      const float x = p.logits[static_cast<int64_t>(token) * p.experts + id];
      score = sqrtf(fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))));
    }
  }
  const float sum = warp_reduce<C.lanes>(score, Sum{});
  if (routed) {
    p.weights[token * p.weight_row + column] = score / sum;
    p.ids[token * p.id_row + column] = id;
  } else if (token < p.tokens && p.shared && column == p.k) {
    p.weights[token * p.weight_row + column] = p.shared_weight;
    p.ids[token * p.id_row + column] = p.experts;
  }
  depend_launch();
}

}  // namespace flashinfer::cu
