// SPDX-License-Identifier: Apache-2.0
// The chunked scan of Mamba-2 on the CPU: what its kernel is compiled for and launched with.
#pragma once
#include <stdint.h>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct SsdConfig {
  DType state;  // f32, f16, bf16; x, B, C, z, out are bf16

  static constexpr const char* kName = "flashinfer::SsdConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("state", state);
  }
  friend constexpr bool operator==(const SsdConfig&, const SsdConfig&) = default;
};

struct SsdRow {
  int64_t row, first, tokens;  // [row, first .. first + tokens) of x
  int64_t read, write;         // rows of the initial and of the final states; -1: zeros, none
  int64_t checkpoint, slot;    // tokens after which the state is stored in a slot; slot -1: none
};
struct SsdOperand {
  const void* data;
  int64_t row, token, head;  // strides in elements; of B and C, `head` is between groups
  DType dtype;
};
struct SsdStates {
  void* data;
  int64_t slot, head, dim;
};

inline constexpr int64_t kSsdChunk = 64;  // tokens
inline constexpr int64_t kSsdTile = 6;    // rows of the register tile

struct SsdParams {
  const SsdRow* rows;
  int64_t sequences, heads, dim, dstate, heads_per_group, heads_per_task;
  SsdOperand x, dt, z, out, b, c;
  SsdStates source, pool, checkpoints;
  const float* a;
  const void *d, *dt_bias;  // null: absent
  DType d_dtype, dt_bias_dtype;
  int64_t a_head, d_head, d_dim, dt_bias_head;
  bool softplus;
  float dt_min, dt_max;
  float* scratch;
};

/// Places in SsdParams::scratch, in floats. A cell is a pair of bf16.
struct SsdScratch {
  int64_t columns;                                     // dim, rounded up to the tile's 64
  int64_t rows;                                        // dstate, rounded up to the tile's rows
  int64_t pairs;                                       // of dstate, rounded up to 16
  int64_t c, lines, bt, b, g, w, x, xd, s, y, states;  // offsets; states of heads_per_task heads follow one another
  int64_t size;
};
constexpr SsdScratch ssd_scratch(int64_t dim, int64_t dstate, int64_t heads) {
  constexpr int64_t chunk = round_up(kSsdChunk, kSsdTile), pairs = kSsdChunk / 2;
  SsdScratch s{};
  s.columns = round_up(dim, int64_t{64}), s.rows = round_up(dstate, kSsdTile);
  s.pairs = round_up(dstate / 2, int64_t{16});
  int64_t at = 0;
  const auto place = [&](int64_t& part, int64_t floats) { part = at, at += round_up(floats, int64_t{16}); };
  place(s.c, chunk * dstate / 2);               // C, [tokens][dstate] bf16
  place(s.bt, s.rows * pairs);                  // B^T, [dstate][tokens] bf16
  place(s.lines, kSsdChunk * s.pairs);          // B, cells [tokens][dstate / 2]
  place(s.b, s.pairs * kSsdChunk);              // B, cells [dstate / 2][tokens]
  place(s.g, chunk * kSsdChunk);                // C B^T
  place(s.w, chunk * pairs);                    // the part of it that counts, [tokens][tokens] bf16
  place(s.x, pairs * s.columns);                // x, cells [tokens / 2][dim]
  place(s.xd, pairs * s.columns);               // the same as the state takes it
  place(s.s, dstate / 2 * s.columns);           // the state, cells [dstate / 2][dim]
  place(s.y, chunk * s.columns);                // result
  place(s.states, heads * s.rows * s.columns);  // [dstate][dim]
  s.size = at + 16;
  return s;
}

}  // namespace flashinfer
