// SPDX-License-Identifier: Apache-2.0
// Products through the fake cuBLASLt: matrices of small numbers, a stream of their own, and the reasons against it.
#pragma once
#include <cstring>
#include <memory>
#include <random>

#include "flashinfer/core/context.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/op/call.h"
#include "flashinfer/op/registry.h"
#include "lt_machine.h"

namespace flashinfer {

inline constexpr Device kGpu{DeviceType::kCUDA, 0};

class CublasLt : public LtMachine {
 protected:
  void SetUp() override {
    LtMachine::SetUp();
    stream_ = std::make_unique<cuda::Stream>(0);
    context_.stream = stream_->get();
    scope_ = std::make_unique<ContextScope>(context_);
  }
  void TearDown() override {
    scope_.reset();
    stream_.reset();
    LtMachine::TearDown();
  }
  /// Another GPU, whose products nothing is known of.
  void on(int major, int minor) {
    gpu().major = major, gpu().minor = minor;
    again();
    cublaslt::detail::forget();
  }
  /// Small whole numbers, so that every sum is exact in every type.
  template <class T>
  Tensor numbers(const std::vector<int64_t>& shape, DType dtype) {
    Tensor t = Tensor::empty(shape, dtype);
    for (int64_t i = 0; i < t.numel(); ++i)
      static_cast<T*>(t.data())[i] = T(static_cast<float>(static_cast<int>(random_() % 5) - 2));
    return t;
  }
  static TensorView transposed(const Tensor& t) {
    std::vector<int64_t> shape(t.shape().begin(), t.shape().end()),
        strides(t.view().strides().begin(), t.view().strides().end());
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]),
        std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
    return TensorView(t.data(), t.dtype(), shape, strides, t.device());
  }
  void expect_same(const Tensor& got, const Tensor& want) {
    EXPECT_EQ(got.device(), kGpu);
    const Tensor here = to_device(got.view(), kCpu);
    ASSERT_EQ(here.nbytes(), want.nbytes());
    EXPECT_EQ(std::memcmp(here.data(), want.data(), static_cast<size_t>(want.nbytes())), 0);
  }

  std::mt19937 random_{1};
  std::unique_ptr<cuda::Stream> stream_;
  Context context_ = Context::current();
  std::unique_ptr<ContextScope> scope_;
};

/// Why cuBLASLt does not run the call, for which there is another kernel.
template <class Block>
std::string why_not(const char* op, const Block& block) {
  for (const auto& [candidate, why] : op::explain(*op::find_op(op), &block).rejections)
    if (candidate->backend == op::Backend::kCublasLt) return why;
  return {};
}

}  // namespace flashinfer
