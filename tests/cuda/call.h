// SPDX-License-Identifier: Apache-2.0
// A test of rmsnorm on cuda:0, with a host function in place of the GPU's arithmetic.
#pragma once
#include <cmath>

#include "flashinfer/core/context.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/norm/kernels/params.h"
#include "flashinfer/ops/norm/op.h"
#include "flashinfer/record/record.h"
#include "machine.h"

namespace flashinfer {

inline constexpr Device kGpu{DeviceType::kCUDA, 0};

/// What the norm kernel should have done, on the memory that the launch names.
inline void norm_on_host(const fake::Launched& l) {
  if (l.bytes != sizeof(NormParams)) return;  // the statistics' kernel
  const auto& p = *reinterpret_cast<const NormParams*>(l.params);
  const auto *x = static_cast<const float*>(fake::host(p.input)), *w = static_cast<const float*>(fake::host(p.weight));
  auto* y = static_cast<float*>(fake::host(p.out));
  for (int64_t r = 0; r < p.rows; ++r) {
    double sum = 0;
    for (int64_t i = 0; i < p.d; ++i)
      sum += static_cast<double>(x[r * p.input_stride[0] + i]) * x[r * p.input_stride[0] + i];
    for (int64_t i = 0; i < p.d; ++i)
      y[r * p.out_stride[0] + i] =
          static_cast<float>(x[r * p.input_stride[0] + i] / std::sqrt(sum / static_cast<double>(p.d) + p.eps) * w[i]);
  }
}

class Call : public Machine {
 protected:
  void SetUp() override {
    Machine::SetUp();
    gpu().kernel = norm_on_host;
    folder_ = fs::make_temp_dir("/tmp", "flashinfer-cuda-test-");
    set("FLASHINFER_WORKSPACE_BASE", folder_);
    for (float& v : x_.span<float>()) v = static_cast<float>(&v - x_.data_as<float>()) - 5;
    for (float& v : w_.span<float>()) v = 2;
    stream_ = std::make_unique<cuda::Stream>(0);
    context_.stream = stream_->get();
    scope_ = std::make_unique<ContextScope>(context_);
    input_ = to_device(x_.view(), kGpu), weight_ = to_device(w_.view(), kGpu);
    before_ = record::settings();
  }
  void TearDown() override {
    record::configure(before_);
    input_ = weight_ = Tensor();
    scope_.reset();
    stream_.reset();
    fs::remove_tree(folder_);
    Machine::TearDown();
  }
  /// Logs into a file at this level.
  void observe(int level, bool sync = false) {
    record::Settings s = before_;
    s.level = level, s.sync = sync;
    s.destination = folder_ + "/log.txt";
    s.dump_dir = folder_ + "/dumps";
    record::configure(s);
    gpu().order.clear(), gpu().calls.clear();
  }
  std::string log() const { return fs::read_file(folder_ + "/log.txt").value_or(""); }
  std::string session() const { return fs::read_file(folder_ + "/dumps/session.jsonl").value_or(""); }
  int waits() { return gpu().calls["cuStreamSynchronize"] + gpu().calls["cuEventSynchronize"]; }
  void expect_right(const TensorView& y) {
    const Tensor got = to_device(y, kCpu), want = rmsnorm({.input = x_, .weight = w_});
    for (int64_t i = 0; i < want.numel(); ++i)
      EXPECT_NEAR(got.data_as<float>()[i], want.data_as<float>()[i], 1e-5) << i;
  }

  Tensor x_ = Tensor::empty({3, 8}, DType::kF32), w_ = Tensor::empty({8}, DType::kF32), input_, weight_;
  std::unique_ptr<cuda::Stream> stream_;
  Context context_ = Context::current();
  std::unique_ptr<ContextScope> scope_;
  record::Settings before_;
  std::string folder_;
};

}  // namespace flashinfer
