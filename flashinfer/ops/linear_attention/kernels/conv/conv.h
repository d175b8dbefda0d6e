// SPDX-License-Identifier: Apache-2.0
// The causal convolution of each channel with a filter of 2 to 4 taps, on the CPU.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/kernels/cpu/silu16.h"
#include "flashinfer/ops/linear_attention/kernels/common/word_lanes.h"
#include "flashinfer/ops/linear_attention/kernels/conv/interleave.h"
#include "flashinfer/ops/linear_attention/kernels/conv/params.h"
#include "flashinfer/ops/linear_attention/kernels/conv/tap_rows.h"

namespace flashinfer::cpu {

template <ConvConfig C>
class Conv {
  using T = scalar_of_t<C.dtype>;
  using W = scalar_of_t<C.weight>;
  static constexpr int kTaps = C.width, kBefore = kTaps - 1;  // inputs before the first that count
  static constexpr int64_t kLanes = Vec::kLanes;
  static constexpr int kTokens = 4;    // at a time: their inputs overlap
  static constexpr int kAhead = 4096;  // bytes: a channel's tokens are prefetched across pages, where hardware stops

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
  /// The one token of a row and its state, in one pass over both; false where that has no form for it. `next` is the
  /// row after it, which is prefetched: hardware does not foresee where its state is.
  bool step(const ConvRow& row, const ConvRow& next) {
#if FI_CONV_TAP_ROWS
    if (row.tokens != 1 || row.slot < 0 || !row.initial || p.x_channel != 1 || p.out_channel != 1) return false;
    if (n < Rows::kChannels || p.mode != ConvParams::kShift || p.state_len != kBefore) return false;
    if (p.state_channel == 1) return steps<false>(row, next), true;
    if (rows_of_before()) return steps<true>(row, next), true;
#endif
    return false;
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
#if FI_CONV_TAP_ROWS
  using Rows = TapRows<T, kBefore>;
  using One = TapRows<T, 1>;
  /// InRows: a channel's state is side by side, else the channels are.
  template <bool InRows>
  void steps(const ConvRow& row, const ConvRow& next) {
    r = next;
    const T *after = state(0), *x_after = x(0, 0);
    r = row;
    T* s = state(0);
    const int64_t step = InRows ? kBefore * Rows::kChannels : Rows::kChannels;
    for (int64_t c = 0; c < n; c += Rows::kChannels, s += step, after += step, x_after += Rows::kChannels) {
#pragma GCC unroll 3
      for (int k = 0; k < kBefore; ++k)
        __builtin_prefetch(after + k * (InRows ? Rows::kChannels : p.state_token), 1, 3);
      __builtin_prefetch(x_after, 0, 3);
      if (c + Rows::kChannels <= n)
        step_block<InRows>(s, c, Rows::kChannels);
      else
        step_block<InRows>(s, c, n - c);
    }
  }
  template <bool InRows>
  FI_VEC_INLINE void step_block(T* s, int64_t c, int64_t count) const {
    const T* const in = x(c, 0);
    T* const to = out(c, 0);
    Vec tap[kBefore][Rows::kVecs], last[1][Rows::kVecs], sum[Rows::kVecs];
    if constexpr (InRows)
      Rows::split(s, count, tap);
    else
#pragma GCC unroll 3
      for (int k = 0; k < kBefore; ++k) One::widen(One::Lanes::load(s + k * p.state_token, count), tap[k]);
    One::split(in, count, last);
#pragma GCC unroll 2
    for (int i = 0; i < Rows::kVecs; ++i) {
      const int64_t at = c + i * kLanes;
      sum[i] = load(bias + at);
#pragma GCC unroll 3
      for (int k = 0; k < kBefore; ++k) sum[i] = fma(load(filter + k * line + at), tap[k][i], sum[i]);
      sum[i] = finish(fma(load(filter + kBefore * line + at), last[0][i], sum[i]));
    }
    if constexpr (InRows) {
      Rows::push(in, count, s);
    } else {
#pragma GCC unroll 3
      for (int k = 0; k + 1 < kBefore; ++k)
        One::Lanes::store(s + k * p.state_token, One::Lanes::load(s + (k + 1) * p.state_token, count), count);
      One::push(in, count, s + (kBefore - 1) * p.state_token);
    }
    if (Rows::kVecs == 2 && count == Rows::kChannels) return write_pair(to, sum[0], sum[1]);
#pragma GCC unroll 2
    for (int i = 0; i < Rows::kVecs; ++i)
      if (const int64_t left = count - i * kLanes; left > 0)
        write_tail(to + i * kLanes, sum[i], left < kLanes ? left : kLanes);
  }
#endif
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
#if FI_CONV_TAP_ROWS
    using Filters = TapRows<W, kTaps>;
    for (int64_t c = 0; c < n; c += Filters::kChannels) {
      Vec tap[kTaps][Filters::kVecs];
      Filters::split(from + c * kTaps, n - c, tap);
#pragma GCC unroll 2
      for (int i = 0; i < Filters::kVecs; ++i)
        if (c + i * kLanes < n)
#pragma GCC unroll 4
          for (int k = 0; k < kTaps; ++k) store(filter + k * line + c + i * kLanes, tap[k][i]);
    }
#else
    constexpr int64_t kBlock = 128;
    using Word = typename WordOf<sizeof(W)>::type;
    Word taps[kTaps][kBlock], *part[kTaps];
    for (int k = 0; k < kTaps; ++k) part[k] = taps[k];
    for (int64_t c = 0; c < n; c += kBlock) {
      const int64_t count = n - c < kBlock ? n - c : kBlock;
      split_rows(reinterpret_cast<const Word*>(from) + c * kTaps, count, part);
      for (int k = 0; k < kTaps; ++k) widen(reinterpret_cast<const W*>(taps[k]), count, filter + k * line + c);
    }
#endif
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
    Vec w[kTaps];
#pragma GCC unroll 4
    for (int k = 0; k < kTaps; ++k) w[k] = splat(filter[k * line + c]);
    const Vec add = splat(bias[c]);
    for (int64_t t = from; t < to; t += kLanes) {
#if defined(__AVX512BF16__) && FI_CONV_TAP_ROWS
      if constexpr (__is_same(T, bf16_t)) {
        // Not from the second vector of a line on: results begin lines where the channel's do.
        while (t >= kBefore && t % (2 * kLanes) == 0 && to - t >= 2 * kLanes && p.out_token == 1) {
          token_pairs(x(c, t), out(c, t), w, add);
          t += 2 * kLanes;
        }
        if (t >= to) return;
      }
#endif
      const int64_t left = to - t < kLanes ? to - t : kLanes;
      __builtin_prefetch(reinterpret_cast<const char*>(x(c, t)) + kAhead, 0, 3);
      T near[kBefore + kLanes];  // the first tokens, behind those before them
      const T* in = t < kBefore ? near + kBefore : x(c, t);
      if (t < kBefore) {
        for (int64_t i = -kBefore; i < left; ++i)
          near[kBefore + i] = t + i < 0 ? before[(kBefore + t + i) * line + c] : input(c, t + i);
      }
      Vec sum = add;
#pragma GCC unroll 4
      for (int k = 0; k < kTaps; ++k) {
        const T* const q = in + k - kBefore;
        sum = fma(w[k], left == kLanes ? load(q) : load_n(q, left), sum);
      }
      put(out(c, t), p.out_token, finish(sum), left);
    }
  }
#if defined(__AVX512BF16__) && FI_CONV_TAP_ROWS
  /// 32 tokens of a channel in bf16, even and odd ones apart: pairs of them are words of 32 bits, of which a shift or a
  /// mask makes an f32, and the words 0, 2 and 4 tokens before hold all that the results need. That is 5 operations for
  /// 4 taps, where widening what each tap reads takes 16.
  FI_VEC_INLINE void token_pairs(const T* in, T* to, const Vec (&w)[kTaps], Vec add) const {
    __builtin_prefetch(reinterpret_cast<const char*>(in) + kAhead, 0, 3);
    constexpr int kWords = kTaps / 2 + 1;
    Vec even[kWords], odd[kWords];  // [j]: tokens 2 i - 2 j and 2 i + 1 - 2 j
#pragma GCC unroll 3
    for (int j = 0; j < kWords; ++j) TapRows<T, 2>::pair(_mm512_loadu_si512(in - 2 * j), even[j], odd[j]);
    Vec of_even = add, of_odd = add;
#pragma GCC unroll 4
    for (int k = 0; k < kTaps; ++k) {
      const int back = kBefore - k;
      of_even = fma(w[k], back % 2 == 0 ? even[back / 2] : odd[back / 2 + 1], of_even);
      of_odd = fma(w[k], back % 2 == 0 ? odd[back / 2] : even[back / 2], of_odd);
    }
    const __m512i all =
        interleave_halves(reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(finish(of_odd).r, finish(of_even).r)));
    if (p.past_caches && reinterpret_cast<uintptr_t>(to) % 64 == 0)
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to), all);
    else
      _mm512_storeu_si512(to, all);
  }
#endif

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
    if (p.store_states && conv.step(r, u + 1 < end && p.rows[row + 1].slot >= 0 ? p.rows[row + 1] : r)) continue;
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
