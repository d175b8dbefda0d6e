// SPDX-License-Identifier: Apache-2.0
// MlaParams::scratch: the layout, which also gives its size to the launch. Freestanding.
#pragma once
#include "flashinfer/ops/attention/kernels/cpu/scratch.h"
#include "flashinfer/ops/mla/kernels/params.h"

namespace flashinfer::cpu::mla {

struct Scratch {
  uint32_t *q, *k, *v, *p;
  float *s, *o, *total, *l, *m;
  attention::State* total_state;
  void *staged, *zeros;
  int64_t bytes;
  Scratch(void* base, int64_t dim_ckv, int64_t dim_kpe) {
    using namespace flashinfer::mla;
    const int64_t width = padded(dim_ckv), key = width + padded(dim_kpe);
    ScratchParts parts(base);
    parts.take(q, kTileRows * key);
    parts.take(k, kBlockKeys * key);
    parts.take(v, kBlockKeys * width);
    parts.take(p, kTileRows * kBlockKeys);
    parts.take(s, 8 * kBlockKeys);
    parts.take(o, kTileRows * width);
    parts.take(total, kTileRows * width);
    parts.take(l, kTileRows * 32);
    parts.take(m, kTileRows);
    parts.take(total_state, kTileRows);
    parts.take(staged, kBlockKeys * key * 4);
    parts.take(zeros, key * 4);
    bytes = parts.bytes();
  }
};

}  // namespace flashinfer::cpu::mla
