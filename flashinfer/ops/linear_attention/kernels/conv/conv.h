// SPDX-License-Identifier: Apache-2.0
// The causal convolution of each channel with a filter of 2 to 4 taps, on the CPU.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/kernels/cpu/silu16.h"
#include "flashinfer/ops/linear_attention/kernels/conv/interleave.h"
#include "flashinfer/ops/linear_attention/kernels/conv/params.h"

namespace flashinfer::cpu {

template <ConvConfig C>
class Conv {
  using T = scalar_of_t<C.dtype>;
  using W = scalar_of_t<C.weight>;
  static constexpr int kTaps = C.width, kBefore = kTaps - 1;  // inputs before the first that count
  static constexpr int64_t kLanes = Vec::kLanes;
  static constexpr int kTokens = 4;  // at a time: their inputs overlap

 public:
  /// Channels [first, first + count).
  Conv(const ConvParams& params, int64_t first, int64_t count)
      : p(params),
        begin(first),
        n(count),
        line(count + 16),
        filter(p.scratch),
        bias(filter + kTaps * line),
        before(reinterpret_cast<T*>(bias + line)) {
    load_filters();
    const W* const from = static_cast<const W*>(p.bias) + begin * p.bias_channel;
    if (p.bias && p.bias_channel == 1)
      widen(from, n, bias);
    else
      for (int64_t c = 0; c < n; ++c) bias[c] = p.bias ? to_f32(from[c * p.bias_channel]) : 0.0f;
  }

  /// Tokens [from, to) of a row.
  void run(const ConvRow& row, int64_t from, int64_t to) {
    r = row;
    if (r.skip) return clear(from, to);
    load_before();
    if constexpr (C.channels_last)
      for (int64_t t = from; t < to; t += kTokens) {
        if (to - t >= kTokens)
          tokens<kTokens>(t);
        else
          for (int64_t i = t; i < to; ++i) tokens<1>(i);
      }
    else
      for (int64_t c = 0; c < n; ++c) channel(c, from, to);
  }
  void store_state(const ConvRow& row) {
    if (row.skip || row.slot < 0 || !p.state) return;
    r = row;
    if (p.mode == ConvParams::kCircular) {
      for (int64_t t = r.tokens > p.state_len ? r.tokens - p.state_len : 0; t < r.tokens; ++t)
        for (int64_t c = 0; c < n; ++c) state(c)[(r.at + t) % p.state_len * p.state_token] = input(c, t);
    } else if (p.mode == ConvParams::kAccepted) {
      for (int64_t c = 0; c < n; ++c) {
        T* const s = state(c);
        for (int64_t j = 0; j + 1 < kBefore; ++j) s[j * p.state_token] = s[(r.at + j + 1) * p.state_token];
        for (int64_t t = 0; t < r.tokens; ++t) s[(kBefore - 1 + t) * p.state_token] = input(c, t);
      }
    } else if (p.state_channel == 1 && p.x_channel == 1) {
      for (int64_t k = 0; k < p.state_len; ++k) {
        const int64_t from = k + r.tokens;
        void* const to = state(0) + k * p.state_token;
        const size_t bytes = static_cast<size_t>(n) * sizeof(T);
        if (from >= p.state_len)
          memcpy(to, x(0, from - p.state_len), bytes);
        else if (r.initial)
          memcpy(to, state(0) + from * p.state_token, bytes);
        else
          memset(to, 0, bytes);
      }
    } else if (p.store_states && r.tokens == 1 && p.x_channel == 1 && rows_of_before()) {
      Word* had[kBefore];  // of run()
      parts_of_before(had);
      const Word* part[kBefore];
      for (int k = 1; k < kBefore; ++k) part[k - 1] = had[k];
      part[kBefore - 1] = reinterpret_cast<const Word*>(x(0, 0));
      join_rows(part, n, reinterpret_cast<Word*>(state(0)));
    } else {
      for (int64_t c = 0; c < n; ++c) {
        T* const s = state(c);
        for (int64_t k = 0; k < p.state_len; ++k) {
          const int64_t from = k + r.tokens;
          s[k * p.state_token] = from >= p.state_len ? input(c, from - p.state_len)
                                 : r.initial         ? s[from * p.state_token]
                                                     : T(0.0f);
        }
      }
    }
  }

 private:
  using Word = typename WordOf<sizeof(T)>::type;
  static void widen(const W* from, int64_t count, float* to) {
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) store(to + i, load(from + i));
    for (; i < count; ++i) to[i] = to_f32(from[i]);
  }
  /// filter[k][c], from rows of taps.
  void load_filters() {
    const W* const from = static_cast<const W*>(p.weight) + begin * p.weight_channel;
    if (p.weight_tap != 1 || p.weight_channel != kTaps) {
      for (int k = 0; k < kTaps; ++k)
        for (int64_t c = 0; c < n; ++c) filter[k * line + c] = to_f32(from[c * p.weight_channel + k * p.weight_tap]);
      return;
    }
    constexpr int64_t kBlock = 128;
    using Word = typename WordOf<sizeof(W)>::type;
    Word taps[kTaps][kBlock], *part[kTaps];
    for (int k = 0; k < kTaps; ++k) part[k] = taps[k];
    for (int64_t c = 0; c < n; c += kBlock) {
      const int64_t count = n - c < kBlock ? n - c : kBlock;
      split_rows(reinterpret_cast<const Word*>(from) + c * kTaps, count, part);
      for (int k = 0; k < kTaps; ++k) widen(reinterpret_cast<const W*>(taps[k]), count, filter + k * line + c);
    }
  }
  /// The states are rows of the kBefore inputs, one after the other.
  bool rows_of_before() const {
    return p.mode == ConvParams::kShift && p.state_len == kBefore && p.state_channel == kBefore && p.state_token == 1;
  }
  /// before[k], as words.
  void parts_of_before(Word* (&part)[kBefore]) const {
    for (int k = 0; k < kBefore; ++k) part[k] = reinterpret_cast<Word*>(before) + k * line;
  }
  const T* x(int64_t c, int64_t t) const {
    return static_cast<const T*>(p.x) + r.x + (begin + c) * p.x_channel + t * p.x_token;
  }
  T input(int64_t c, int64_t t) const { return *x(c, t); }
  T* out(int64_t c, int64_t t) const {
    return static_cast<T*>(p.out) + r.out + (begin + c) * p.out_channel + t * p.out_token;
  }
  T* state(int64_t c) const { return static_cast<T*>(p.state) + r.slot * p.state_slot + (begin + c) * p.state_channel; }
  /// before[j] = the inputs kBefore - j tokens before the first one.
  void load_before() {
    if (!r.initial || r.slot < 0) {
      memset(static_cast<void*>(before), 0, static_cast<size_t>(kBefore * line) * sizeof(T));
      return;
    }
    if (rows_of_before()) {
      Word* part[kBefore];
      parts_of_before(part);
      return split_rows(reinterpret_cast<const Word*>(state(0)), n, part);
    }
    for (int j = 0; j < kBefore; ++j) {
      int64_t at = r.at + j;
      if (p.mode == ConvParams::kShift) at = p.state_len - kBefore + j;
      if (p.mode == ConvParams::kCircular) at = (r.at - kBefore + j + 2 * p.state_len) % p.state_len;
      const T* const from = state(0) + at * p.state_token;
      T* const to = before + j * line;
      if (p.state_channel == 1)
        memcpy(static_cast<void*>(to), from, static_cast<size_t>(n) * sizeof(T));
      else
        for (int64_t c = 0; c < n; ++c) to[c] = from[c * p.state_channel];
    }
  }
  void clear(int64_t from, int64_t to) {
    for (int64_t t = from; t < to; ++t)
      for (int64_t c = 0; c < n; ++c) *out(c, t) = T(0.0f);
  }
  FI_VEC_INLINE Vec finish(Vec v) const { return C.silu ? silu_to<T>(v) : v; }

  FI_VEC_INLINE static void put(T* to, int64_t step, Vec v, int64_t count) {
    if (step == 1) return write_tail(to, v, count);
    T one[kLanes];
    write_tail(one, v, kLanes);
    for (int64_t i = 0; i < count; ++i) to[i * step] = one[i];
  }

  /// Count tokens from t on, all channels; x has its channels side by side.
  template <int Count>
  void tokens(int64_t t) {
    const T* rows[Count + kBefore];
    T* to[Count];
    for (int i = 0; i < Count + kBefore; ++i) {
      const int64_t at = t + i - kBefore;
      rows[i] = at < 0 ? before + (at + kBefore) * line : x(0, at);
    }
    bool lines = p.past_caches;
    for (int i = 0; i < Count; ++i)
      to[i] = out(0, t + i), lines = lines && reinterpret_cast<uintptr_t>(to[i]) % 64 == 0;
    int64_t c = 0;
    for (; c + 2 * kLanes <= n && p.out_channel == 1; c += 2 * kLanes) channel_pairs<Count>(rows, to, c, lines);
    for (; c + kLanes <= n; c += kLanes)
      channels<Count>(rows, to, c, kLanes, [](const T* q, int64_t) { return load(q); });
    if (c < n) channels<Count>(rows, to, c, n - c, [](const T* q, int64_t left) { return load_n(q, left); });
  }
  /// Channels [c, c + 2 kLanes), whose results are stored by one instruction where there is one. lines: past the
  /// caches.
  template <int Count>
  FI_VEC_INLINE void channel_pairs(const T* const* rows, T* const* to, int64_t c, bool lines) const {
    Vec sum[2][Count];
    // Of the tokens after the next ones: rows of 16 KB are in as many pages as there are tokens. 2048 tokens of 8192
    // channels in bf16 took 26 cycles for 32 elements instead of 35 (Zen 5), as many as from the caches.
#pragma GCC unroll 8
    for (int i = 0; i < Count; ++i)
#pragma GCC unroll 2
      for (int line = 0; line < 2 * kLanes * static_cast<int>(sizeof(T)); line += 64)
        __builtin_prefetch(reinterpret_cast<const char*>(rows[kBefore + i] + c + 2 * kTokens * p.x_token) + line, 0, 3);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half, c += kLanes) {
      Vec in[Count + kBefore];
#pragma GCC unroll 8
      for (int i = 0; i < Count + kBefore; ++i) in[i] = load(rows[i] + c);
#pragma GCC unroll 8
      for (int i = 0; i < Count; ++i) sum[half][i] = load(bias + c);
#pragma GCC unroll 4
      for (int k = 0; k < kTaps; ++k) {
        const Vec w = load(filter + k * line + c);
#pragma GCC unroll 8
        for (int i = 0; i < Count; ++i) sum[half][i] = fma(w, in[i + k], sum[half][i]);
      }
    }
    c -= 2 * kLanes;
#pragma GCC unroll 8
    for (int i = 0; i < Count; ++i) {
      const Vec a = finish(sum[0][i]), b = finish(sum[1][i]);
      if (lines)
        write_pair_past_caches(to[i] + c, a, b);
      else
        write_pair(to[i] + c, a, b);
    }
  }
  template <int Count, class Load>
  FI_VEC_INLINE void channels(const T* const* rows, T* const* to, int64_t c, int64_t left, Load get) const {
    Vec in[Count + kBefore];
#pragma GCC unroll 8
    for (int i = 0; i < Count + kBefore; ++i) in[i] = get(rows[i] + c, left);
#pragma GCC unroll 8
    for (int i = 0; i < Count; ++i) {
      Vec sum = load(bias + c);
#pragma GCC unroll 4
      for (int k = 0; k < kTaps; ++k) sum = fma(load(filter + k * line + c), in[i + k], sum);
      put(to[i] + c * p.out_channel, p.out_channel, finish(sum), left);
    }
  }

  /// One channel; x has its tokens side by side.
  void channel(int64_t c, int64_t from, int64_t to) {
    for (int64_t t = from; t < to; t += kLanes) {
      const int64_t left = to - t < kLanes ? to - t : kLanes;
      T near[kBefore + kLanes];  // the first tokens, behind those before them
      const T* in = t < kBefore ? near + kBefore : x(c, t);
      if (t < kBefore) {
        for (int64_t i = -kBefore; i < left; ++i)
          near[kBefore + i] = t + i < 0 ? before[(kBefore + t + i) * line + c] : input(c, t + i);
      }
      Vec sum = splat(bias[c]);
#pragma GCC unroll 4
      for (int k = 0; k < kTaps; ++k) {
        const T* const q = in + k - kBefore;
        sum = fma(splat(filter[k * line + c]), left == kLanes ? load(q) : load_n(q, left), sum);
      }
      put(out(c, t), p.out_token, finish(sum), left);
    }
  }

  const ConvParams& p;
  int64_t begin, n, line;
  float *filter, *bias;
  T* before;
  ConvRow r{};
};

template <ConvConfig C>
void causal_conv1d(const ConvParams& p, int64_t task) {
  const int64_t blocks = ceil_div(p.channels, p.channels_per_task), first = task % blocks * p.channels_per_task;
  const int64_t count = p.channels - first < p.channels_per_task ? p.channels - first : p.channels_per_task;
  const int64_t begin = task / blocks * p.units_per_task;
  const int64_t end = begin + p.units_per_task < p.units ? begin + p.units_per_task : p.units;
  Conv<C> conv(p, first, count);
  int64_t row = 0;
  for (int64_t low = 0, high = p.sequences; low < high;) {  // the last row with first_unit <= begin
    const int64_t middle = (low + high) / 2;
    if (p.rows[middle].first_unit <= begin)
      row = middle, low = middle + 1;
    else
      high = middle;
  }
  for (int64_t u = begin; u < end; ++u) {
    while (row + 1 < p.sequences && p.rows[row + 1].first_unit <= u) ++row;
    const ConvRow& r = p.rows[row];
    const int64_t from = (u - r.first_unit) * p.unit_tokens;
    const int64_t to = from + p.unit_tokens < r.tokens ? from + p.unit_tokens : r.tokens;
    conv.run(r, from, to);
    if (p.store_states) conv.store_state(r);
  }
  if (p.past_caches) end_past_caches();
}

/// The states of all sequences, in their order; a task is some channels.
template <ConvConfig C>
void causal_conv1d_states(const ConvParams& p, int64_t task) {
  const int64_t first = task * p.channels_per_task;
  const int64_t count = p.channels - first < p.channels_per_task ? p.channels - first : p.channels_per_task;
  Conv<C> conv(p, first, count);
  for (int64_t i = 0; i < p.sequences; ++i) conv.store_state(p.rows[i]);
}

}  // namespace flashinfer::cpu
