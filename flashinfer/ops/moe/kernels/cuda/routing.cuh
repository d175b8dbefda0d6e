// SPDX-License-Identifier: Apache-2.0
// Routing on a GPU: a warp takes a token, whose keys are in shared memory. The largest key is chosen k times, ties to
// the smaller id, as on the CPU.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/moe/kernels/cuda/numbers.cuh"

namespace flashinfer::cu {

/// Elements of an array in shared memory that may be chosen: element i is lane i % 32's bit i / 32.
struct MoeChooser {
  const float* keys;
  int32_t n;
  uint32_t taken = 0;

  FI_GLOBAL_FN MoeChooser(const float* from, int32_t count) : keys(from), n(count) {}
  /// Index of the largest key, which is taken then. All lanes get it.
  FI_GLOBAL_FN int32_t next() {
    float best = 0.0f;
    int32_t at = -1;
    for (int32_t s = 0, i = static_cast<int32_t>(lane()); i < n; ++s, i += 32) {
      if ((taken >> s & 1u) != 0) continue;
      const float key = keys[i];
      if (at < 0 || key > best) best = key, at = i;
    }
#pragma unroll
    for (uint32_t d = 16; d > 0; d /= 2) {
      const float key = shuffle_xor(best, d);
      const int32_t other = shuffle_xor(at, d);
      if (other >= 0 && (at < 0 || key > best || (key == best && other < at))) best = key, at = other;
    }
    if (at >= 0 && static_cast<uint32_t>(at) % 32 == lane()) taken |= 1u << (at / 32);
    return at;
  }
};

FI_GLOBAL_FN float moe_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
FI_GLOBAL_FN bool moe_by_bias(int32_t method) { return method == 2 || method == 7; }

/// Takes the experts of all groups but the best, whose score is the sum of their two largest keys.
FI_GLOBAL_FN void moe_drop_groups(const MoeRouteParams& p, const float* keys, float* scores, MoeChooser& experts) {
  const int32_t size = p.experts / p.groups;
  for (int32_t g = static_cast<int32_t>(lane()); g < p.groups; g += 32) {
    float first = -kInf, second = -kInf;
    for (int32_t i = 0; i < size; ++i) {
      // Lanes begin at different experts: their groups are a multiple of 32 words apart.
      const float key = keys[g * size + (i + static_cast<int32_t>(lane())) % size];
      if (key > first)
        second = first, first = key;
      else if (key > second)
        second = key;
    }
    scores[g] = size > 1 ? first + second : first;
  }
  sync_warp();
  MoeChooser groups(scores, p.groups);
  for (int32_t j = 0; j < p.keep; ++j) groups.next();
  sync_warp();  // scores become marks
  for (int32_t s = 0, g = static_cast<int32_t>(lane()); g < p.groups; ++s, g += 32)
    scores[g] = (groups.taken >> s & 1u) != 0 ? 1.0f : 0.0f;
  sync_warp();
  for (int32_t s = 0, i = static_cast<int32_t>(lane()); i < p.experts; ++s, i += 32)
    if (scores[i / size] == 0.0f) experts.taken |= 1u << s;
}

template <MoeCudaConfig C>
FI_GLOBAL_FN void moe_route(const MoeRouteParams& p) {
  depend_wait();
  const int32_t token = static_cast<int32_t>(block_x() * (C.threads / 32) + warp());
  if (token < p.tokens) {  // whole warps
    float* const keys = reinterpret_cast<float*>(shared()) +
                        warp() * static_cast<uint32_t>(moe_route_words(p.experts, p.groups, p.top_k));
    float *const scores = keys + p.experts, *const weights = scores + p.groups;
    auto* const ids = reinterpret_cast<int32_t*>(weights + p.top_k);
    float most = -kInf, all = 0.0f, chosen = 0.0f;
    for (int32_t i = static_cast<int32_t>(lane()); i < p.experts; i += 32) {
      const float x = moe_number(p.logits, token, i, 0.0f),
                  key = moe_by_bias(p.method) ? moe_sigmoid(x) + moe_number(p.bias, 0, i, 0.0f) : x;
      keys[i] = key != key ? -kInf : key;
      most = Max{}(most, keys[i]);
    }
    most = warp_reduce(most, Max{});
    const bool softmax = p.method == 0 || p.method == 1 || p.method == 4;
    if (p.method == 0 || p.method == 4) {
      for (int32_t i = static_cast<int32_t>(lane()); i < p.experts; i += 32)
        all += expf(moe_number(p.logits, token, i, 0.0f) - most);
      all = warp_reduce(all, Sum{});
    }
    sync_warp();
    MoeChooser experts(keys, p.experts);
    if (p.keep < p.groups) moe_drop_groups(p, keys, scores, experts);
    for (int32_t j = 0; j < p.top_k; ++j) {
      const int32_t id = experts.next();
      const float x = moe_number(p.logits, token, id < 0 ? 0 : id, 0.0f);
      float w = softmax ? expf(x - most) : p.method == 5 ? x : moe_sigmoid(x);
      if (p.method == 0 || p.method == 4) w /= all;
      chosen += w;
      if (lane() == 0) ids[j] = id, weights[j] = w;
    }
    sync_warp();
    const bool scaled = moe_by_bias(p.method),
               divided = scaled || p.method == 1 || p.method == 4 || (p.method == 6 && p.renormalise != 0);
    for (int32_t j = static_cast<int32_t>(lane()); j < p.top_k; j += 32) {
      float w = weights[j];
      if (divided) w = scaled ? w / (chosen + 1e-20f) * p.factor : w / chosen;
      moe_put_id(p.ids, token, j, ids[j]);
      moe_put_id(p.replay, token, j, ids[j]);
      moe_put(p.weights, token, j, w);
    }
  }
  depend_launch();
}

}  // namespace flashinfer::cu
