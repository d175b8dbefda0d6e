// SPDX-License-Identifier: Apache-2.0
// The scan of Mamba-2 in chunks of 64 tokens on the CPU, as products of bf16 matrices with f32 sums:
//   Y = diag(e^L) C S + (e^(L_i - L_j) dt_j [j <= i] C B^T) X;  S <- e^L_end S + (e^(L_end - L) dt B)^T X
// with L the sum of A dt since the chunk's begin and S [dstate][dim] in f32. A task is some heads of one group of one
// sequence: C B^T is computed once for them.
#pragma once
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/ops/linear_attention/kernels/common/transpose.h"
#include "flashinfer/ops/linear_attention/kernels/mamba/cells.h"
#include "flashinfer/ops/linear_attention/kernels/mamba/math.h"
#include "flashinfer/ops/linear_attention/kernels/mamba/ssd_params.h"

namespace flashinfer::cpu {

template <SsdConfig C>
class Ssd {
  using State = scalar_of_t<C.state>;
  static constexpr int64_t kChunk = kSsdChunk, kRows = round_up(kSsdChunk, kSsdTile), kPairs = kSsdChunk / 2;
  static constexpr int64_t kLanes = Vec::kLanes;

 public:
  Ssd(const SsdParams& params, const SsdRow& row)
      : p(params), r(row), at(ssd_scratch(params.dim, params.dstate, params.heads_per_task)) {
    memset(p.scratch, 0, static_cast<size_t>(at.size) * 4);
  }
  void run(int64_t head, int64_t heads) {
    for (int64_t i = 0; i < heads; ++i) {
      load_state(head + i, states(i));
      if (r.slot >= 0 && r.checkpoint == 0) store_state(p.checkpoints, r.slot, head + i, states(i));
    }
    for (int64_t t = 0; t < r.tokens; t += count) {
      count = r.tokens - t < kChunk ? r.tokens - t : kChunk;
      if (r.slot >= 0 && r.checkpoint > t && r.checkpoint - t < count) count = r.checkpoint - t;
      begin = r.first + t;
      load_group(head / p.heads_per_group);
      for (int64_t i = 0; i < heads; ++i) chunk(head + i, states(i));
      if (r.slot >= 0 && t + count == r.checkpoint)
        for (int64_t i = 0; i < heads; ++i) store_state(p.checkpoints, r.slot, head + i, states(i));
    }
    if (r.write >= 0)
      for (int64_t i = 0; i < heads; ++i) store_state(p.pool, r.write, head + i, states(i));
  }

 private:
  float* part(int64_t offset) const { return p.scratch + offset; }
  uint32_t* cells(int64_t offset) const { return reinterpret_cast<uint32_t*>(p.scratch + offset); }
  bf16_t* halves(int64_t offset) const { return reinterpret_cast<bf16_t*>(p.scratch + offset); }
  float* states(int64_t i) const { return part(at.states) + i * at.rows * at.columns; }
  const bf16_t* token(const SsdOperand& o, int64_t i, int64_t head) const {
    return static_cast<const bf16_t*>(o.data) + o.row * r.row + o.token * (begin + i) + o.head * head;
  }

  void load_state(int64_t head, float* s) const {
    if (r.read < 0) {
      memset(s, 0, static_cast<size_t>(at.rows * at.columns) * 4);
      return;
    }
    for (int64_t d = 0; d < p.dim; ++d) {
      const State* from =
          static_cast<const State*>(p.source.data) + p.source.slot * r.read + p.source.head * head + p.source.dim * d;
      for (int64_t n = 0; n < p.dstate; ++n) s[n * at.columns + d] = to_f32(from[n]);
    }
  }
  void store_state(const SsdStates& pool, int64_t slot, int64_t head, const float* s) const {
    for (int64_t d = 0; d < p.dim; ++d) {
      State* to = static_cast<State*>(pool.data) + pool.slot * slot + pool.head * head + pool.dim * d;
      for (int64_t n = 0; n < p.dstate; ++n) to[n] = State(s[n * at.columns + d]);
    }
  }

  /// B and C of the chunk, zeros behind its end, and C B^T.
  void load_group(int64_t group) {
    bf16_t* const c = halves(at.c);
    uint32_t *const b = cells(at.b), *const lines = cells(at.lines);
    const size_t line = static_cast<size_t>(p.dstate) * 2;
    for (int64_t i = 0; i < kChunk; ++i) {
      void *const to_c = c + i * p.dstate, *const to_b = lines + i * at.pairs;
      if (i < count)
        memcpy(to_c, token(p.c, i, group), line), memcpy(to_b, token(p.b, i, group), line);
      else
        memset(to_c, 0, line), memset(to_b, 0, line);
    }
    linear::transpose(part(at.lines), at.pairs, kChunk, at.pairs, part(at.b), kChunk);
    uint16_t* const bt = reinterpret_cast<uint16_t*>(halves(at.bt));
    for (int64_t k = 0; k < p.dstate / 2; ++k)
      for (int64_t i = 0; i < kChunk; ++i) {
        bt[2 * k * kChunk + i] = static_cast<uint16_t>(b[k * kChunk + i]);
        bt[(2 * k + 1) * kChunk + i] = static_cast<uint16_t>(b[k * kChunk + i] >> 16);
      }
    multiply_blocks(cells(at.c), p.dstate / 2, b, part(at.g), kRows, kChunk, p.dstate / 2, false);
  }

  /// dt, the sums of A dt, D.
  void load_steps(int64_t head) {
    const float bias = p.dt_bias ? element(p.dt_bias, p.dt_bias_dtype, p.dt_bias_head * head) : 0.0f;
    for (int64_t i = 0; i < kChunk; ++i)
      dt[i] =
          i >= count
              ? 0.0f
              : element(p.dt.data, p.dt.dtype, p.dt.row * r.row + p.dt.token * (begin + i) + p.dt.head * head) + bias;
    if (p.softplus)
      for (int64_t i = 0; i < kChunk; i += kLanes) store(dt + i, softplus(load(dt + i)));
    double sum = 0;
    const double a = static_cast<double>(p.a[p.a_head * head]);
    for (int64_t i = 0; i < kChunk; ++i) {
      const float x = dt[i];
      dt[i] = i >= count ? 0.0f : (x < p.dt_min ? p.dt_min : (x > p.dt_max ? p.dt_max : x));
      if (i < count) sum += a * static_cast<double>(dt[i]);
      log_decay[i] = static_cast<float>(sum);
    }
    if (p.d)
      for (int64_t c = 0; c < p.dim; ++c) skip[c] = element(p.d, p.d_dtype, p.d_head * head + p.d_dim * c);
    for (int64_t i = 0; i < kChunk; i += kLanes) {
      const Vec l = load(log_decay + i);
      store(decay + i, exp(l));
      store(share + i, exp(splat(static_cast<float>(sum)) - l) * load(dt + i));
    }
    all = decay[kChunk - 1];
  }
  bool is_finite(const bf16_t* x) const {
    uint32_t largest = 0;
    for (int64_t c = 0; c < p.dim; ++c) {
      const uint32_t exponent = x[c].bits & 0x7f80u;
      largest = largest < exponent ? exponent : largest;
    }
    return largest != 0x7f80u;
  }
  /// x and x e^(L_end - L) dt, in cells. From the first token on whose x is not finite, x is 0 in the cells: the
  /// products multiply later tokens by 0, which is NaN for these. add_rest() adds them.
  void load_inputs(int64_t head) {
    float line[2][kMaxDim];
    finite = count;
    for (int64_t i = count - 1; i >= 0; --i)
      if (!is_finite(token(p.x, i, head))) finite = i;
    for (int64_t k = 0; k < kPairs; ++k) {
      const int64_t i = 2 * k;
      uint32_t *const x = cells(at.x) + k * at.columns, *const xd = cells(at.xd) + k * at.columns;
      if (i >= count) {
        memset(x, 0, static_cast<size_t>(at.columns) * 4);
        memset(xd, 0, static_cast<size_t>(at.columns) * 4);
        continue;
      }
      const bf16_t* const even = token(p.x, i, head);
      const bf16_t* const odd = i + 1 < count ? token(p.x, i + 1, head) : zeros;
      if (i < finite)
        join_cells(even, i + 1 < finite ? odd : zeros, p.dim, x);
      else
        memset(x, 0, static_cast<size_t>(at.columns) * 4);
      const Vec e = splat(share[i]), o = splat(share[i + 1]);
      for (int64_t c = 0; c < p.dim; c += kLanes) {
        const int64_t n = p.dim - c < kLanes ? p.dim - c : kLanes;
        store(line[0] + c, load_n(even + c, n) * e);
        store(line[1] + c, load_n(odd + c, n) * o);
      }
      join_cells(line[0], line[1], p.dim, xd);
    }
  }
  /// w[i][j] = g[i][j] e^(L_i - L_j) dt_j for j <= i, else 0.
  void weigh() {
    const float* const g = part(at.g);
    bf16_t* const w = halves(at.w);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j <= i; j += kLanes) {
        const Vec gamma = exp(splat(log_decay[i]) - load(log_decay + j)) * load(dt + j);
        const Vec v =
            select(first_n(i + 1 - j < kLanes ? i + 1 - j : kLanes), load(g + i * kChunk + j) * gamma, zero());
        write_tail(w + i * kChunk + j, v, kLanes);
      }
  }

  /// The tokens that are 0 in the cells, to their own and later results.
  void add_rest(int64_t head, float* y) const {
    const bf16_t* const w = halves(at.w);
    for (int64_t i = finite; i < count; ++i)
      for (int64_t j = finite; j <= i; ++j)
        for (int64_t c = 0; c < p.dim; c += kLanes) {
          float* const to = y + i * at.columns + c;
          const int64_t n = p.dim - c < kLanes ? p.dim - c : kLanes;
          store(to, fma(splat(to_f32(w[i * kChunk + j])), load_n(token(p.x, j, head) + c, n), load(to)));
        }
  }

  void chunk(int64_t head, float* s) {
    load_steps(head);
    load_inputs(head);
    weigh();
    for (int64_t k = 0; k < p.dstate / 2; ++k) {
      float *const even = s + 2 * k * at.columns, *const odd = even + at.columns;
      join_cells(even, odd, at.columns, cells(at.s) + k * at.columns);
      for (int64_t c = 0; c < 2 * at.columns; c += kLanes) store(even + c, load(even + c) * splat(all));
    }
    float* const y = part(at.y);
    const int64_t rows = round_up(count, kSsdTile);
    multiply_blocks(cells(at.c), p.dstate / 2, cells(at.s), y, rows, at.columns, p.dstate / 2, false);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t c = 0; c < at.columns; c += kLanes)
        store(y + i * at.columns + c, load(y + i * at.columns + c) * splat(i < kChunk ? decay[i] : 0.0f));
    multiply_blocks<true>(cells(at.w), kPairs, cells(at.x), y, rows, at.columns, kPairs, true);
    if (finite < count) add_rest(head, y);
    finish(head, y);
    multiply_blocks(cells(at.bt), kPairs, cells(at.xd), s, at.rows, at.columns, kPairs, true);
  }
  /// out = (y + D x) silu(z).
  void finish(int64_t head, const float* y) {
    for (int64_t i = 0; i < count; ++i) {
      const bf16_t *const x = token(p.x, i, head), *const z = p.z.data ? token(p.z, i, head) : nullptr;
      bf16_t* const out = const_cast<bf16_t*>(token(p.out, i, head));
      for (int64_t c = 0; c < p.dim; c += kLanes) {
        const int64_t n = p.dim - c < kLanes ? p.dim - c : kLanes;
        Vec v = load(y + i * at.columns + c);
        if (p.d) v = fma(load_n(skip + c, n), load_n(x + c, n), v);
        if (z) v = v * silu(load_n(z + c, n));
        write_tail(out + c, v, n);
      }
    }
  }

  static constexpr int64_t kMaxDim = 256 + 16;
  const SsdParams& p;
  const SsdRow r;
  const SsdScratch at;
  int64_t begin = 0, count = 0, finite = 0;
  float dt[kSsdChunk], log_decay[kSsdChunk], decay[kSsdChunk], share[kSsdChunk], all = 1;
  float skip[kMaxDim];
  bf16_t zeros[kMaxDim] = {};
};

template <SsdConfig C>
void ssd(const SsdParams& p, int64_t task) {
  const int64_t blocks = p.heads / p.heads_per_task;
  Ssd<C> scan(p, p.rows[task / blocks]);
  scan.run(task % blocks * p.heads_per_task, p.heads_per_task);
}

}  // namespace flashinfer::cpu
