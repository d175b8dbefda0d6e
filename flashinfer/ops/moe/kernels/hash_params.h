// SPDX-License-Identifier: Apache-2.0
// Config and Params of the routing by a table of tokens on a GPU. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/kernels/common/page_table.h"

namespace flashinfer {

struct HashTopkConfig {
  int lanes, threads;  // lanes that share a token: 1, 2, 4, ... 32, at least its columns

  static constexpr const char* kName = "flashinfer::HashTopkConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("lanes", lanes);
    v("threads", threads);
  }
  friend constexpr bool operator==(const HashTopkConfig&, const HashTopkConfig&) = default;
};
/// A token or an expert outside its table has the id -1 and the weight 0.
struct HashTopkParams {
  const float* logits;  // [tokens, experts]
  StridedIndices tokens_ids;
  const int32_t* table;  // [vocabulary, k]
  float* weights;
  int32_t* ids;
  int64_t weight_row, id_row, vocabulary;  // strides in elements
  uint32_t tokens;
  int32_t experts, k, shared;  // shared: a last column with `shared_weight`
  float shared_weight;
};

}  // namespace flashinfer
