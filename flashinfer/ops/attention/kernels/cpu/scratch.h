// SPDX-License-Identifier: Apache-2.0
// AttentionParams::scratch of the CPU kernels: the layouts, which also give their size to the launch. Freestanding.
#pragma once
#include <math.h>

#include "flashinfer/kernels/common/scratch_parts.h"
#include "flashinfer/ops/attention/kernels/decode_params.h"

namespace flashinfer::cpu::attention {
using namespace flashinfer::attention;

/// A row's softmax state beside its unnormalised output: maximum, denominator, denominator of the LSE.
struct State {
  float m, l, lse;
};

/// State of the rows of a pass of the decode kernel. `m`: the base of the exponents in log2 units, once a lane; it lags
/// behind the maximum by at most 8, which avoids most rescaling. `l`: partial denominators, of probabilities as rounded
/// for the product; `exact`: unrounded, for the LSE.
struct Running {
  float m[16], l[16], exact[16];
  void reset() {
    for (int i = 0; i < 16; ++i) m[i] = -INFINITY, l[i] = exact[i] = 0;
  }
};

/// Of the tile kernel (kernels/cpu/prefill.h).
struct Scratch {
  uint32_t *q, *k, *v, *v_seen, *p;
  float *s, *o, *total, *l, *m, *rotated;
  uint64_t* seen;
  State* total_state;
  void* zeros;
  int64_t bytes;
  Scratch(void* base, int64_t dqk, int64_t dvo) {
    ScratchParts parts(base);
    parts.take(q, kTileRows * padded(dqk));
    parts.take(k, kTileKeys * padded(dqk));
    parts.take(v, kTileKeys * padded(dvo));
    parts.take(v_seen, kTileKeys * padded(dvo));
    parts.take(p, kTileRows * kTileKeys);
    parts.take(s, 8 * kTileKeys);
    parts.take(o, kTileRows * padded(dvo));
    parts.take(total, kTileRows * padded(dvo));
    parts.take(l, kTileRows * 32);
    parts.take(m, kTileRows);
    parts.take(total_state, kTileRows);
    parts.take(seen, kTileRows * kTileKeys / 64);
    parts.take(zeros, padded(dqk > dvo ? dqk : dvo) * 4);
    parts.take(rotated, kBlockKeys * padded(dqk));
    bytes = parts.bytes();
  }
};

/// Of the decode kernel (kernels/cpu/decode.h).
struct DecodeScratch {
  uint32_t *q, *cell;
  float *s, *o, *total;
  Running* running;
  State* total_state;
  char *zeros, *k, *v;
  int64_t bytes;
  DecodeScratch(void* base, int64_t dqk, int64_t dvo) {
    ScratchParts parts(base);
    parts.take(q, kDecodeRows * padded(dqk));
    parts.take(o, kDecodeRows * padded(dvo));
    parts.take(total, kDecodeRows * padded(dvo));
    parts.take(running, kDecodeRows);
    parts.take(s, kDecodeRows * kDecodeKeys);
    parts.take(cell, kDecodeRows * kDecodeKeys / 2);
    parts.take(total_state, kDecodeRows);
    parts.take(zeros, padded(dqk > dvo ? dqk : dvo) * 4);
    parts.take(k, kBlockKeys * padded(dqk) * 4);
    parts.take(v, kBlockKeys * padded(dvo) * 4);
    bytes = parts.bytes();
  }
};

}  // namespace flashinfer::cpu::attention
