// SPDX-License-Identifier: Apache-2.0
// Included by stats_kernels.cc once per instruction set, in different namespaces, with kVectorBytes defined there.

typedef float F __attribute__((vector_size(kVectorBytes)));
typedef uint32_t U __attribute__((vector_size(kVectorBytes)));
typedef int32_t I __attribute__((vector_size(kVectorBytes)));
constexpr int kWidth = kVectorBytes / 4;
constexpr int kVectors = kLanes / kWidth;

/// Elements of `Bits` bits in a word, the one at `Position`: sign, magnitude shifted so that its exponent field is
/// where a float's is, times 2^(difference of the biases). Subnormals are exact; Inf and NaN become large finite
/// numbers, which the caller detects in min and max.
template <int Bits, int Position, int Shift, int Bias>
struct Narrow {
  static void take(const U& word, F& x) {
    const U top = word << (32 - Bits * (Position + 1));  // the sign in a float's position
    const U placed = (U)((I)top >> (32 - Bits - Shift)) & (0x80000000u | ((1u << (Bits - 1)) - 1) << Shift);
    x = (F)placed * __builtin_bit_cast(float, static_cast<uint32_t>(127 + 127 - Bias) << 23);
  }
};
template <int Position>
struct Brain {
  static void take(const U& word, F& x) { x = (F)(Position == 0 ? word << 16 : word & 0xffff0000u); }
};
struct Single {
  static void take(const U& word, F& x) { x = (F)word; }
};

template <class Part>
inline __attribute__((always_inline)) void add(const U& word, F& low, F& high, F& sum) {
  F x;
  Part::take(word, x);
  low = x < low ? x : low;
  high = x > high ? x : high;
  sum += x;
}

template <class... Parts>
void scan(const void* data, int64_t words, Lanes& out) {
  F low[kVectors], high[kVectors], sum[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    low[v] = F{} + __builtin_inff();
    high[v] = F{} - __builtin_inff();
    sum[v] = F{};
  }
  const char* p = static_cast<const char*>(data);
  for (int64_t i = 0; i < words; i += kLanes, p += 4 * kLanes)
    for (int v = 0; v < kVectors; ++v) {
      U word;
      __builtin_memcpy(&word, p + v * kVectorBytes, sizeof word);
      (add<Parts>(word, low[v], high[v], sum[v]), ...);
    }
  __builtin_memcpy(out.min, low, sizeof low);
  __builtin_memcpy(out.max, high, sizeof high);
  __builtin_memcpy(out.sum, sum, sizeof sum);
}

Kernel kernel(DType t) {
  switch (t) {
    case DType::kF32: return &scan<Single>;
    case DType::kBF16: return &scan<Brain<0>, Brain<1>>;
    case DType::kF16: return &scan<Narrow<16, 0, 13, 15>, Narrow<16, 1, 13, 15>>;
    case DType::kF8E4M3:
      return &scan<Narrow<8, 0, 20, 7>, Narrow<8, 1, 20, 7>, Narrow<8, 2, 20, 7>, Narrow<8, 3, 20, 7>>;
    case DType::kF8E5M2:
      return &scan<Narrow<8, 0, 21, 15>, Narrow<8, 1, 21, 15>, Narrow<8, 2, 21, 15>, Narrow<8, 3, 21, 15>>;
    default: return nullptr;
  }
}
