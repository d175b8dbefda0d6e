// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/tensor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "flashinfer/core/context.h"

namespace flashinfer {
namespace {

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

static_assert(!std::is_constructible_v<TensorView, Tensor&&>, "a view of a temporary would dangle");
static_assert(std::is_constructible_v<TensorView, Tensor&>);

TEST(TensorView, CompactByDefaultAndSlices) {
  std::vector<int32_t> v(24);
  std::iota(v.begin(), v.end(), 0);
  const TensorView t(v.data(), {2, 3, 4});
  EXPECT_EQ(to_string(t), "int32[2, 3, 4]");
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_EQ(t.stride(0), 12);
  EXPECT_EQ(t.size(-1), 4);
  EXPECT_EQ(t.nbytes(), 96);
  const TensorView row = t.select(0, 1).select(0, 2);
  EXPECT_EQ(row.rank(), 1);
  EXPECT_EQ(*row.data_as<int32_t>(), 20);
  const TensorView part = t.slice(2, 1, 3);
  EXPECT_FALSE(part.is_contiguous());
  EXPECT_EQ(to_string(part), "int32[2, 3, 2] with strides (12, 4, 1)");
  EXPECT_EQ(part.span_bytes(), (12 + 2 * 4 + 1 + 1) * 4);
  EXPECT_EQ(t.transpose(0, 2).stride(0), 1);
  EXPECT_EQ(t.view({6, 4}).stride(0), 4);
  EXPECT_EQ(t.unsqueeze(1).size(1), 1);
  EXPECT_TRUE(t.unsqueeze(-1).is_contiguous());
  EXPECT_EQ(to_string(TensorView(std::span<int32_t>(v))), "int32[24]");
}

TEST(TensorView, RejectsWhatDoesNotFit) {
  float x[4] = {};
  const TensorView t(x, {2, 2});
  EXPECT_EQ(error_of([&] { TensorView(x, {-1}); }), "ValueError: a tensor extent is -1, but must not be negative");
  const int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(error_of([&] { TensorView(x, DType::kF32, nine); }),
            "ValueError: a tensor has rank 9, but at most 8 is supported");
  const int64_t one[1] = {4}, two[2] = {2, 2};
  EXPECT_EQ(error_of([&] { TensorView(x, DType::kF32, two, one); }),
            "ValueError: a tensor has 1 strides, but 2 extents");
  EXPECT_EQ(error_of([&] { TensorView(x, {int64_t{1} << 40, int64_t{1} << 40}); }),
            "ValueError: a tensor of this shape has more than 2^59 elements");
  EXPECT_EQ(error_of([&] { t.slice(0, 1, 3); }), "ValueError: slice [1, 3) is outside dimension 0 of extent 2");
  EXPECT_EQ(error_of([&] { t.select(2, 0); }), "ValueError: dimension 2 is outside a tensor of rank 2");
  EXPECT_EQ(error_of([&] { t.transpose(0, 1).view({4}); }),
            "ValueError: view: float32[2, 2] with strides (1, 2) is not contiguous");
  EXPECT_EQ(error_of([&] { t.view({3}); }), "ValueError: view: float32[3] has 3 elements, but float32[2, 2] has 4");
  EXPECT_EQ(error_of([&] { Tensor::empty({int64_t{1} << 40, int64_t{1} << 40}, DType::kF32); }),
            "ValueError: a tensor of this shape has more than 2^63 bytes");
}

TEST(TensorView, OverlapIsOfBytes) {
  float x[8] = {};
  const TensorView all(x, {8}), low(x, {4}), high(x + 4, {4});
  EXPECT_TRUE(all.may_overlap(low));
  EXPECT_FALSE(low.may_overlap(high));
  EXPECT_FALSE(all.may_overlap(TensorView(x, {0})));
  const int64_t extent[1] = {4}, backwards[1] = {-1};
  EXPECT_TRUE(TensorView(x + 4, DType::kF32, extent, backwards).may_overlap(low));
}

TEST(TensorView, SameElementsAreOfOneMemoryShapeTypeAndOrder) {
  float x[8] = {};
  const int64_t shape[] = {1, 4}, strides[] = {77, 1}, wide[] = {4, 2};
  const TensorView a(x, {1, 4});
  EXPECT_TRUE(a.same_elements(TensorView(x, DType::kF32, shape, strides)));  // of an extent of 1
  EXPECT_FALSE(a.same_elements(TensorView(x, DType::kF32, shape, wide)));
  EXPECT_FALSE(a.same_elements(TensorView(x, DType::kI32, shape)));
  EXPECT_FALSE(a.same_elements(TensorView(x, {4})));
  EXPECT_FALSE(a.same_elements(TensorView(x, {1, 3})));
  EXPECT_FALSE(a.same_elements(TensorView(x + 1, {1, 4})));
}

TEST(TensorView, ContiguityFollowsTorch) {
  float x[8] = {};
  const int64_t shape[2] = {1, 4}, strides[2] = {99, 1};
  EXPECT_TRUE(TensorView(x, DType::kF32, shape, strides).is_contiguous());
  const int64_t none[2] = {0, 4}, odd[2] = {7, 3};
  EXPECT_TRUE(TensorView(x, DType::kF32, none, odd).is_contiguous());
}

TEST(Tensor, OwnsSharesAndClones) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const Tensor t = Tensor::copy_of<float>(values, {2, 3});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
  const Tensor shared = t;
  EXPECT_EQ(shared.data(), t.data());
  const Tensor c = Tensor::clone(t.view().transpose(0, 1));
  EXPECT_EQ(to_string(c.view()), "float32[3, 2]");
  const std::vector<float> expected{1, 4, 2, 5, 3, 6};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), c.data_as<float>()));
  const Tensor columns = Tensor::clone(t.view().slice(1, 1, 3));
  EXPECT_EQ(columns.data_as<float>()[2], 5);
  EXPECT_EQ(Tensor::clone(TensorView(values.data(), {0, 3})).numel(), 0);
  const Tensor scalar = Tensor::clone(TensorView(values.data(), std::initializer_list<int64_t>{}));
  EXPECT_EQ(*scalar.data_as<float>(), 1);
  EXPECT_EQ(Tensor::zeros({3}, DType::kBF16).data_as<bf16_t>()[2].bits, 0);
  EXPECT_EQ(error_of([] { Tensor::copy_of<int32_t>(std::vector<int32_t>{1, 2}, {3}); }),
            "ValueError: copy_of: 2 values do not fill int32[3]");
}

TEST(Tensor, DlpackGoesOutAndBackWithoutACopy) {
  DLManagedTensorVersioned* capsule = nullptr;
  const void* memory = nullptr;
  {
    const Tensor t = Tensor::copy_of<int64_t>(std::vector<int64_t>{1, 2, 3, 4}, {2, 2});
    memory = t.data();
    capsule = t.to_dlpack();
  }  // the capsule keeps it alive
  EXPECT_EQ(capsule->version.major, 1u);
  EXPECT_EQ(capsule->dl_tensor.shape[1], 2);
  EXPECT_EQ(capsule->dl_tensor.strides[0], 2);
  const Tensor back = Tensor::from_dlpack(capsule);
  EXPECT_EQ(back.data(), memory);
  EXPECT_EQ(back.data_as<int64_t>()[3], 4);
}

struct Foreign {
  DLManagedTensorVersioned managed{};
  float data[6] = {0, 1, 2, 3, 4, 5};
  int64_t shape[1] = {3}, strides[1] = {2};
  int deleted = 0;
  Foreign() {
    managed.version = {1, 0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* m) { ++static_cast<Foreign*>(m->manager_ctx)->deleted; };
    managed.dl_tensor = {data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, strides, 4};
  }
};

TEST(Tensor, ForeignCapsuleIsDeletedOnce) {
  Foreign f;
  {
    const Tensor t = Tensor::from_dlpack(&f.managed);
    EXPECT_EQ(t.data(), f.data + 1);  // byte_offset 4
    EXPECT_EQ(t.view().stride(0), 2);
    EXPECT_EQ(f.deleted, 0);
  }
  EXPECT_EQ(f.deleted, 1);
}

TEST(Tensor, ForeignCapsuleOfAnUnknownKindIsDeletedAndRejected) {
  Foreign f;
  f.managed.dl_tensor.dtype = {kDLComplex, 64, 1};
  EXPECT_EQ(error_of([&] { Tensor::from_dlpack(&f.managed); }),
            "ValueError: DLPack element type (code 5, bits 64, lanes 1) is not one this library knows");
  EXPECT_EQ(f.deleted, 1);
  Foreign rank;
  rank.managed.dl_tensor.ndim = 9;
  EXPECT_EQ(error_of([&] { Tensor::from_dlpack(&rank.managed); }),
            "ValueError: DLPack tensor has rank 9, but at most 8 is supported");
  Foreign rocm;
  rocm.managed.dl_tensor.device = {kDLROCM, 0};
  EXPECT_EQ(error_of([&] { Tensor::from_dlpack(&rocm.managed); }),
            "ValueError: DLPack device type 10 is not one of cpu (1), cuda (2, 3, 13), emu (12)");
  Foreign version;
  version.managed.version.major = 2;
  EXPECT_EQ(error_of([&] { Tensor::from_dlpack(&version.managed); }),
            "ValueError: from_dlpack: the capsule has DLPack version 2.0, but 1.x is supported");
}

TEST(Allocator, ReusesBlocksOfAClass) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer keeps released memory poisoned";
#endif
  const Allocator a = default_allocator();
  void* p = a.allocate(a.self, 3 << 20, 64, kCpu);
  a.release(a.self, p, 3 << 20, kCpu);
  void* again = a.allocate(a.self, (3 << 20) - 100, 64, kCpu);
  EXPECT_EQ(again, p);
  a.release(a.self, again, (3 << 20) - 100, kCpu);
}
TEST(Allocator, AlignsLargeBlocksAndPages) {
  const Allocator a = default_allocator();
  void* p = a.allocate(a.self, 3 << 20, 64, kCpu);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % (2 << 20), 0u);
  std::memset(p, 1, 3 << 20);
  a.release(a.self, p, 3 << 20, kCpu);
  void* page = a.allocate(a.self, 100, 4096, kCpu);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(page) % 4096, 0u);
  a.release(a.self, page, 100, kCpu);
}

TEST(Allocator, EverySizeHasRoomForItsBytes) {
  const Allocator a = default_allocator();
  for (size_t bytes = 1; bytes < 40000; bytes = bytes + 1 + bytes / 7) {
    void* p = a.allocate(a.self, bytes, 64, kCpu);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
    std::memset(p, 0xab, bytes);  // an overrun shows in ASan or in the next block's contents
    void* q = a.allocate(a.self, bytes, 64, kCpu);
    std::memset(q, 0xcd, bytes);
    ASSERT_EQ(static_cast<unsigned char*>(p)[bytes - 1], 0xab) << bytes;
    a.release(a.self, p, bytes, kCpu);
    a.release(a.self, q, bytes, kCpu);
  }
}

TEST(Allocator, ImpossibleSizesAreErrors) {
  const Allocator a = default_allocator();
  EXPECT_EQ(error_of([&] { a.allocate(a.self, size_t{1} << 63, 64, kCpu); }),
            "RuntimeError: out of memory: 9223372036854775808 bytes were requested");
}

}  // namespace
}  // namespace flashinfer
