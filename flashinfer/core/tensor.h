// SPDX-License-Identifier: Apache-2.0
// TensorView: a non-owning strided view, passed by value. Tensor: owns its memory, reference counted; returned by
// calls.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "flashinfer/core/check.h"
#include "flashinfer/core/dlpack.h"
#include "flashinfer/core/dtype.h"
#include "flashinfer/core/scalar.h"

#pragma GCC visibility push(default)

namespace flashinfer {

class Tensor;

template <class T>
struct dtype_of;
template <>
struct dtype_of<float> : std::integral_constant<DType, DType::kF32> {};
template <>
struct dtype_of<double> : std::integral_constant<DType, DType::kF64> {};
template <>
struct dtype_of<f16_t> : std::integral_constant<DType, DType::kF16> {};
template <>
struct dtype_of<bf16_t> : std::integral_constant<DType, DType::kBF16> {};
template <>
struct dtype_of<e4m3_t> : std::integral_constant<DType, DType::kF8E4M3> {};
template <>
struct dtype_of<e5m2_t> : std::integral_constant<DType, DType::kF8E5M2> {};
template <>
struct dtype_of<uint8_t> : std::integral_constant<DType, DType::kU8> {};
template <>
struct dtype_of<int8_t> : std::integral_constant<DType, DType::kI8> {};
template <>
struct dtype_of<uint16_t> : std::integral_constant<DType, DType::kU16> {};
template <>
struct dtype_of<int16_t> : std::integral_constant<DType, DType::kI16> {};
template <>
struct dtype_of<uint32_t> : std::integral_constant<DType, DType::kU32> {};
template <>
struct dtype_of<int32_t> : std::integral_constant<DType, DType::kI32> {};
template <>
struct dtype_of<uint64_t> : std::integral_constant<DType, DType::kU64> {};
template <>
struct dtype_of<int64_t> : std::integral_constant<DType, DType::kI64> {};
template <>
struct dtype_of<bool> : std::integral_constant<DType, DType::kBool> {};

/// A strided view of memory owned elsewhere. Extents and strides (in elements) are stored in the view, so a view stays
/// valid as long as the memory does, whatever happens to the object it was made from. Views of read-only memory use the
/// same constructors: arguments with role `in` are never written through.
class TensorView {
 public:
  static constexpr int kMaxRank = 8;

  TensorView() = default;  // undefined: rank() == 0, data() == nullptr
  /// Compact row-major when `strides` is empty. ValueError: rank above 8, a negative extent, strides of another length.
  TensorView(const void* data, DType dtype, std::span<const int64_t> shape, std::span<const int64_t> strides = {},
             Device device = kCpu);
  TensorView(const void* data, DType dtype, std::initializer_list<int64_t> shape, Device device = kCpu)
      : TensorView(data, dtype, std::span<const int64_t>(shape.begin(), shape.size()), {}, device) {}
  template <class T>
  TensorView(const T* data, std::initializer_list<int64_t> shape) : TensorView(data, dtype_of<T>::value, shape) {}
  /// One-dimensional view of a contiguous range.
  template <class T, size_t N>
  TensorView(std::span<T, N> s)
      : TensorView(s.data(), dtype_of<std::remove_cv_t<T>>::value, {static_cast<int64_t>(s.size())}) {}
  TensorView(const Tensor& t);
  TensorView(Tensor&&) = delete;  // the memory would be gone
  TensorView(const Tensor&&) = delete;
  /// Zero-copy. ValueError: an element type or device this library does not know.
  explicit TensorView(const DLTensor& t);

  void* data() const { return data_; }
  template <class T>
  T* data_as() const {
    return static_cast<T*>(data_);
  }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  int rank() const { return rank_; }
  int64_t size(int i) const { return shape_[i < 0 ? i + rank_ : i]; }
  int64_t stride(int i) const { return stride_[i < 0 ? i + rank_ : i]; }
  std::span<const int64_t> shape() const { return {shape_.data(), static_cast<size_t>(rank_)}; }
  std::span<const int64_t> strides() const { return {stride_.data(), static_cast<size_t>(rank_)}; }
  int64_t numel() const;
  int64_t item_size() const { return size_of(dtype_); }
  int64_t nbytes() const { return numel() * item_size(); }  // of the elements, not of the memory they span
  bool defined() const { return data_ != nullptr || rank_ != 0; }
  bool is_contiguous() const;  // row-major, no gaps; extents of 1 have any stride (torch's rule)
  bool last_dim_contiguous() const { return rank_ == 0 || size(-1) <= 1 || stride(-1) == 1; }
  /// Bytes from data() to one past the last element; 0 for an empty view.
  int64_t span_bytes() const;
  /// True when some byte may belong to both views (spans intersect).
  bool may_overlap(const TensorView& other) const;
  /// The same memory, shape, element type and strides; the strides of extents of 1 do not matter.
  bool same_elements(const TensorView& other) const;

  TensorView select(int dim, int64_t index) const;  // drops `dim`
  TensorView slice(int dim, int64_t begin, int64_t end) const;
  TensorView view(std::span<const int64_t> shape) const;  // contiguous only, ValueError otherwise
  TensorView view(std::initializer_list<int64_t> s) const {
    return view(std::span<const int64_t>(s.begin(), s.size()));
  }
  TensorView unsqueeze(int dim) const;
  TensorView transpose(int a, int b) const;

 private:
  void* data_ = nullptr;
  std::array<int64_t, kMaxRank> shape_{};
  std::array<int64_t, kMaxRank> stride_{};
  int8_t rank_ = 0;
  DType dtype_ = DType::kF32;
  Device device_{};
};
/// "bfloat16[4, 5120]", with strides when they are not compact.
std::string to_string(const TensorView& t);

/// Owns memory by reference count. Copies share it.
class Tensor {
 public:
  Tensor() = default;
  /// Uninitialised, from the current context's allocator, 64-byte aligned (so are all below).
  static Tensor empty(std::span<const int64_t> shape, DType dtype, Device device = kCpu);
  static Tensor empty(std::initializer_list<int64_t> s, DType dtype, Device device = kCpu) {
    return empty(std::span<const int64_t>(s.begin(), s.size()), dtype, device);
  }
  static Tensor zeros(std::span<const int64_t> shape, DType dtype, Device device = kCpu);
  static Tensor zeros(std::initializer_list<int64_t> s, DType dtype, Device device = kCpu) {
    return zeros(std::span<const int64_t>(s.begin(), s.size()), dtype, device);
  }
  template <class T>
  static Tensor copy_of(std::span<const T> values, std::initializer_list<int64_t> shape) {
    Tensor t = empty(shape, dtype_of<T>::value);
    FI_CHECK(t.numel() == static_cast<int64_t>(values.size()), ValueError, "copy_of: ", values.size(),
             " values do not fill ", to_string(t.view()));
    std::copy(values.begin(), values.end(), t.data_as<T>());
    return t;
  }
  /// Compact copy of a CPU view.
  static Tensor clone(const TensorView& v);
  /// A view kept alive by `owner` (which may be null: then the caller guarantees the lifetime).
  Tensor(const TensorView& view, std::shared_ptr<void> owner) : view_(view), owner_(std::move(owner)) {}
  /// Takes ownership of the capsule: its deleter runs when the last copy is gone.
  static Tensor from_dlpack(DLManagedTensorVersioned* managed);
  /// A new capsule that shares this tensor's memory; the consumer calls its deleter.
  DLManagedTensorVersioned* to_dlpack() const;

  const TensorView& view() const& { return view_; }
  const std::shared_ptr<void>& owner() const { return owner_; }
  bool defined() const { return view_.defined(); }
  explicit operator bool() const { return defined(); }
  void* data() const { return view_.data(); }
  template <class T>
  T* data_as() const {
    return view_.data_as<T>();
  }
  DType dtype() const { return view_.dtype(); }
  Device device() const { return view_.device(); }
  int rank() const { return view_.rank(); }
  int64_t size(int i) const { return view_.size(i); }
  std::span<const int64_t> shape() const { return view_.shape(); }
  int64_t numel() const { return view_.numel(); }
  int64_t nbytes() const { return view_.nbytes(); }
  template <class T>
  std::span<T> span() const {
    return {data_as<T>(), static_cast<size_t>(numel())};
  }

 private:
  TensorView view_;
  std::shared_ptr<void> owner_;
};

inline TensorView::TensorView(const Tensor& t) : TensorView(t.view()) {}

}  // namespace flashinfer

#pragma GCC visibility pop
