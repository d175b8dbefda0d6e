// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/tensor.h"

#include <cstring>
#include <functional>
#include <utility>

#include "flashinfer/core/context.h"
#include "flashinfer/core/cuda/memory.h"
#include "flashinfer/core/emu_memory.h"
#include "flashinfer/core/transfer.h"

namespace flashinfer {
namespace {

void set_compact_strides(std::span<const int64_t> shape, std::array<int64_t, TensorView::kMaxRank>& stride) {
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    stride[i] = step;
    step *= shape[i] > 0 ? shape[i] : 1;
  }
}

/// Bytes of a compact tensor; ValueError when an extent is negative or the product overflows.
int64_t compact_bytes(std::span<const int64_t> shape, DType dtype) {
  int64_t n = size_of(dtype);
  bool empty = false, overflow = false;
  for (const int64_t extent : shape) {
    FI_CHECK(extent >= 0, ValueError, "a tensor extent is ", extent, ", but must not be negative");
    empty |= extent == 0;
    overflow |= extent > 0 && __builtin_mul_overflow(n, extent, &n);
  }
  if (empty) return 0;
  FI_CHECK(!overflow, ValueError, "a tensor of this shape has more than 2^63 bytes");
  return n;
}

DType dtype_of_dl(const DLTensor& t) {
  const auto type = from_dlpack(t.dtype);
  FI_CHECK(type.has_value(), ValueError, "DLPack element type (code ", int{t.dtype.code}, ", bits ", int{t.dtype.bits},
           ", lanes ", t.dtype.lanes, ") is not one this library knows");
  return *type;
}

std::span<const int64_t> dl_extents(const int64_t* p, const DLTensor& t) {
  FI_CHECK(t.ndim >= 0 && t.ndim <= TensorView::kMaxRank, ValueError, "DLPack tensor has rank ", t.ndim,
           ", but at most ", TensorView::kMaxRank, " is supported");
  return {p, p ? static_cast<size_t>(t.ndim) : 0};
}

int normalize(const TensorView& t, int dim) {
  const int d = dim < 0 ? dim + t.rank() : dim;
  FI_CHECK(d >= 0 && d < t.rank(), ValueError, "dimension ", dim, " is outside a tensor of rank ", t.rank());
  return d;
}

}  // namespace

TensorView::TensorView(const void* data, DType dtype, std::span<const int64_t> shape, std::span<const int64_t> strides,
                       Device device)
    : data_(const_cast<void*>(data)), dtype_(dtype), device_(device) {
  FI_CHECK(shape.size() <= kMaxRank, ValueError, "a tensor has rank ", shape.size(), ", but at most ", kMaxRank,
           " is supported");
  FI_CHECK(strides.empty() || strides.size() == shape.size(), ValueError, "a tensor has ", strides.size(),
           " strides, but ", shape.size(), " extents");
  rank_ = static_cast<int8_t>(shape.size());
  int64_t elements = 1;  // bounded, so that no product of extents and item size overflows
  bool overflow = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    FI_CHECK(shape[i] >= 0, ValueError, "a tensor extent is ", shape[i], ", but must not be negative");
    overflow |= shape[i] > 1 && __builtin_mul_overflow(elements, shape[i], &elements);
    shape_[i] = shape[i];
  }
  FI_CHECK(!overflow && elements < (int64_t{1} << 59), ValueError,
           "a tensor of this shape has more than 2^59 elements");
  if (strides.empty()) set_compact_strides(shape, stride_);
  for (size_t i = 0; i < strides.size(); ++i) stride_[i] = strides[i];
}

TensorView::TensorView(const DLTensor& t)
    : TensorView(t.data ? static_cast<const char*>(t.data) + t.byte_offset : nullptr, dtype_of_dl(t),
                 dl_extents(t.shape, t), dl_extents(t.strides, t), from_dlpack(t.device)) {}

int64_t TensorView::numel() const {
  int64_t n = 1;
  for (int i = 0; i < rank_; ++i) n *= shape_[static_cast<size_t>(i)];
  return n;
}

bool TensorView::is_contiguous() const {
  int64_t step = 1;
  if (numel() == 0) return true;
  for (int i = rank_ - 1; i >= 0; --i) {
    if (size(i) == 1) continue;
    if (stride(i) != step) return false;
    step *= size(i);
  }
  return true;
}

int64_t TensorView::span_bytes() const {
  if (numel() == 0) return 0;
  int64_t last = 0;
  for (int i = 0; i < rank_; ++i)
    if (stride(i) > 0) last += (size(i) - 1) * stride(i);
  return (last + 1) * item_size();
}

bool TensorView::may_overlap(const TensorView& other) const {
  if (device_.type != other.device_.type || numel() == 0 || other.numel() == 0) return false;
  const auto range = [](const TensorView& t) {  // negative strides reach below data()
    int64_t low = 0;
    for (int i = 0; i < t.rank(); ++i)
      if (t.stride(i) < 0) low += (t.size(i) - 1) * t.stride(i);
    const char* p = static_cast<const char*>(t.data());
    return std::pair(p + low * t.item_size(), p + t.span_bytes());
  };
  const auto [a0, a1] = range(*this);
  const auto [b0, b1] = range(other);
  return std::less<>()(a0, b1) && std::less<>()(b0, a1);
}

bool TensorView::same_elements(const TensorView& other) const {
  if (data_ != other.data_ || rank_ != other.rank_ || dtype_ != other.dtype_) return false;
  for (int i = 0; i < rank_; ++i)
    if (size(i) != other.size(i) || (size(i) > 1 && stride(i) != other.stride(i))) return false;
  return true;
}

TensorView TensorView::select(int dim, int64_t index) const {
  const int d = normalize(*this, dim);
  FI_CHECK(index >= 0 && index < size(d), ValueError, "index ", index, " is outside dimension ", dim, " of extent ",
           size(d));
  TensorView v = *this;
  v.data_ = static_cast<char*>(data_) + index * stride(d) * item_size();
  for (int i = d; i + 1 < rank_; ++i) {
    v.shape_[static_cast<size_t>(i)] = size(i + 1);
    v.stride_[static_cast<size_t>(i)] = stride(i + 1);
  }
  --v.rank_;
  return v;
}

TensorView TensorView::slice(int dim, int64_t begin, int64_t end) const {
  const int d = normalize(*this, dim);
  FI_CHECK(begin >= 0 && begin <= end && end <= size(d), ValueError, "slice [", begin, ", ", end,
           ") is outside dimension ", dim, " of extent ", size(d));
  TensorView v = *this;
  v.data_ = static_cast<char*>(data_) + begin * stride(d) * item_size();
  v.shape_[static_cast<size_t>(d)] = end - begin;
  return v;
}

TensorView TensorView::view(std::span<const int64_t> shape) const {
  TensorView v(data_, dtype_, shape, {}, device_);
  FI_CHECK(is_contiguous(), ValueError, "view: ", to_string(*this), " is not contiguous");
  FI_CHECK(v.numel() == numel(), ValueError, "view: ", to_string(v), " has ", v.numel(), " elements, but ",
           to_string(*this), " has ", numel());
  return v;
}

TensorView TensorView::unsqueeze(int dim) const {
  const int d = dim < 0 ? dim + rank_ + 1 : dim;
  FI_CHECK(d >= 0 && d <= rank_ && rank_ < kMaxRank, ValueError, "unsqueeze: dimension ", dim,
           " does not fit a tensor of rank ", int{rank_});
  TensorView v = *this;
  for (int i = rank_; i > d; --i) {
    v.shape_[static_cast<size_t>(i)] = size(i - 1);
    v.stride_[static_cast<size_t>(i)] = stride(i - 1);
  }
  v.shape_[static_cast<size_t>(d)] = 1;
  v.stride_[static_cast<size_t>(d)] = d < rank_ ? size(d) * stride(d) : 1;
  ++v.rank_;
  return v;
}

TensorView TensorView::transpose(int a, int b) const {
  const auto i = static_cast<size_t>(normalize(*this, a)), j = static_cast<size_t>(normalize(*this, b));
  TensorView v = *this;
  std::swap(v.shape_[i], v.shape_[j]);
  std::swap(v.stride_[i], v.stride_[j]);
  return v;
}

std::string to_string(const TensorView& t) {
  const auto list = [](std::span<const int64_t> values) {
    std::string s;
    for (const int64_t v : values) s += (s.empty() ? "" : ", ") + std::to_string(v);
    return s;
  };
  std::string out = std::string(name(t.dtype())) + "[" + list(t.shape()) + "]";
  if (!t.is_contiguous()) out += " with strides (" + list(t.strides()) + ")";
  if (t.device().type != DeviceType::kCPU) out += " on " + to_string(t.device());
  return out;
}

// ---- Tensor ----

Tensor Tensor::empty(std::span<const int64_t> shape, DType dtype, Device device) {
  const int64_t bytes = compact_bytes(shape, dtype);
  const Allocator allocator = Context::current().allocator;
  void* p = allocator.allocate(allocator.self, static_cast<size_t>(bytes > 0 ? bytes : 1), 64, device);
  const auto size = static_cast<size_t>(bytes > 0 ? bytes : 1);
  std::shared_ptr<void> owner(
      p, [allocator, size, device](void* q) { allocator.release(allocator.self, q, size, device); });
  return Tensor(TensorView(p, dtype, shape, {}, device), std::move(owner));
}

Tensor Tensor::zeros(std::span<const int64_t> shape, DType dtype, Device device) {
  Tensor t = empty(shape, dtype, device);
  if (device.type == DeviceType::kCUDA)
    cuda::fill(t.data(), 0, static_cast<size_t>(t.nbytes()), device.index, Context::current().stream);
  else
    std::memset(t.data(), 0, static_cast<size_t>(t.nbytes()));
  if (device.type == DeviceType::kEmu) emu_memory::wrote(t.data(), static_cast<size_t>(t.nbytes()));
  return t;
}

namespace {

/// Copies the elements of `v` from `from` to compact memory at `to`; a contiguous last dimension is copied at once.
char* copy_elements(const TensorView& v, int dim, const char* from, char* to) {
  const int64_t item = v.item_size();
  const bool rest_compact = v.rank() - dim == 1 && (v.stride(dim) == 1 || v.size(dim) <= 1);
  if (dim == v.rank() || rest_compact) {
    const int64_t bytes = item * (dim == v.rank() ? 1 : v.size(dim));
    copy_bytes(to, v.device(), from, v.device(), static_cast<size_t>(bytes));
    return to + bytes;
  }
  for (int64_t i = 0; i < v.size(dim); ++i) to = copy_elements(v, dim + 1, from + i * v.stride(dim) * item, to);
  return to;
}

}  // namespace

Tensor Tensor::clone(const TensorView& v) {
  FI_CHECK(v.device().type != DeviceType::kCUDA || v.is_contiguous(), NotImplementedError,
           "Tensor::clone: ", to_string(v), " has gaps, which are not copied on a GPU");
  Tensor t = empty(v.shape(), v.dtype(), v.device());
  if (v.numel() == 0) return t;
  if (v.device().type == DeviceType::kCUDA) {
    cuda::copy(t.data(), v.data(), static_cast<size_t>(v.nbytes()), v.device().index, Context::current().stream);
    return t;
  }
  if (v.is_contiguous())
    copy_bytes(t.data(), v.device(), v.data(), v.device(), static_cast<size_t>(v.nbytes()));
  else
    copy_elements(v, 0, static_cast<const char*>(v.data()), static_cast<char*>(t.data()));
  return t;
}

Tensor Tensor::from_dlpack(DLManagedTensorVersioned* managed) {
  FI_CHECK(managed != nullptr, ValueError, "from_dlpack: the capsule is null");
  std::shared_ptr<void> owner(managed, [](void* p) {
    auto* m = static_cast<DLManagedTensorVersioned*>(p);
    if (m->deleter) m->deleter(m);
  });
  FI_CHECK(managed->version.major == DLPACK_MAJOR_VERSION, ValueError, "from_dlpack: the capsule has DLPack version ",
           managed->version.major, ".", managed->version.minor, ", but ", DLPACK_MAJOR_VERSION, ".x is supported");
  const TensorView view(managed->dl_tensor);
  return Tensor(view, std::move(owner));
}

DLManagedTensorVersioned* Tensor::to_dlpack() const {
  struct Capsule {
    DLManagedTensorVersioned managed{};
    Tensor tensor;
    std::array<int64_t, TensorView::kMaxRank> shape{}, strides{};
  };
  auto capsule = std::make_unique<Capsule>();
  capsule->tensor = *this;
  std::copy(view_.shape().begin(), view_.shape().end(), capsule->shape.begin());
  std::copy(view_.strides().begin(), view_.strides().end(), capsule->strides.begin());
  DLManagedTensorVersioned& m = capsule->managed;
  m.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  m.manager_ctx = capsule.get();
  m.deleter = [](DLManagedTensorVersioned* self) { delete static_cast<Capsule*>(self->manager_ctx); };
  m.dl_tensor.data = data();
  m.dl_tensor.device = flashinfer::to_dlpack(device());
  m.dl_tensor.ndim = rank();
  m.dl_tensor.dtype = flashinfer::to_dlpack(dtype());
  m.dl_tensor.shape = capsule->shape.data();
  m.dl_tensor.strides = capsule->strides.data();
  return &capsule.release()->managed;
}

}  // namespace flashinfer
