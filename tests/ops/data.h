// SPDX-License-Identifier: Apache-2.0
// Tensors that tests of ops are made of.
#pragma once
#include <cstring>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "flashinfer/core/tensor.h"

namespace flashinfer {

/// Normal values with a standard deviation of `size`.
template <class T>
Tensor random_tensor(const std::vector<int64_t>& shape, unsigned seed, float size = 1) {
  Tensor t = Tensor::empty(shape, dtype_of<T>::value);
  std::mt19937 g(seed);
  std::normal_distribution<float> normal;
  for (T& x : t.span<T>()) x = T(normal(g) * size);
  return t;
}

/// Bytes from `from` to below `to`, as `type`.
inline Tensor random_bytes(const std::vector<int64_t>& shape, unsigned seed, int from, int to,
                           DType type = DType::kU8) {
  std::mt19937 g(seed);
  const Tensor t = Tensor::empty(shape, type);
  auto* p = static_cast<uint8_t*>(t.data());
  for (int64_t i = 0; i < t.nbytes(); ++i)
    p[i] = static_cast<uint8_t>(from + static_cast<int>(g() % static_cast<unsigned>(to - from)));
  return t;
}

/// f32 in [0.5, 2), as scales are.
inline Tensor random_scales(const std::vector<int64_t>& shape, unsigned seed) {
  std::mt19937 g(seed);
  std::uniform_real_distribution<float> uniform(0.5f, 2.0f);
  const Tensor t = Tensor::empty(shape, DType::kF32);
  for (float& x : t.span<float>()) x = uniform(g);
  return t;
}

/// A vector of integers: ints({1, 2}) has 32 bits each.
template <class T = int32_t>
Tensor ints(const std::vector<T>& v) {
  return Tensor::copy_of(std::span<const T>(v), {static_cast<int64_t>(v.size())});
}

/// A view of what lives as long as the program: arguments are views.
inline TensorView held(Tensor t) {
  static std::deque<Tensor> all;
  all.push_back(std::move(t));
  return all.back().view();
}

/// The same at every run, without a period a product could hide: in [-1, 1].
inline double noise(int64_t i, uint32_t salt = 0) {
  return static_cast<double>((static_cast<uint32_t>(i) + salt) * 2654435761u % 1999) / 999.5 - 1;
}
/// scale * noise(i) at element i.
template <class T>
TensorView pattern(std::initializer_list<int64_t> shape, double scale, uint32_t salt = 0) {
  Tensor t = Tensor::empty(shape, dtype_of<T>::value);
  int64_t i = 0;
  for (T& x : t.span<T>()) x = static_cast<T>(static_cast<float>(scale * noise(i++, salt)));
  return held(std::move(t));
}

struct AnyTensor {  // temporaries too: they live until the comparison is done
  AnyTensor(const Tensor& t) : view(t.view()) {}
  AnyTensor(const TensorView& t) : view(t) {}
  TensorView view;
};
inline bool same_bytes(const AnyTensor& a, const AnyTensor& b) {
  const Tensor x = Tensor::clone(a.view), y = Tensor::clone(b.view);
  return x.nbytes() == y.nbytes() && std::memcmp(x.data(), y.data(), static_cast<size_t>(x.nbytes())) == 0;
}

}  // namespace flashinfer
