// SPDX-License-Identifier: Apache-2.0
// A CUDA candidate of several kernels: their launches, in order, with the memory between them.
#pragma once
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "flashinfer/core/tensor.h"
#include "flashinfer/op/call.h"

namespace flashinfer::ops {

/// Made by prepare(): all kernels are looked up, and scratch is allocated, before the first launch.
class CudaSteps {
 public:
  explicit CudaSteps(Device device) : device_(device) {}
  CudaSteps(const CudaSteps&) = delete;
  CudaSteps& operator=(const CudaSteps&) = delete;

  TensorView scratch(std::initializer_list<int64_t> shape, DType t) {
    return keep_.emplace_back(Tensor::empty(shape, t, device_)).view();
  }
  void hold(Tensor t) { keep_.push_back(std::move(t)); }
  /// The launch of what make() gives, an op::Prepared; if that is unsupported, so is the whole.
  template <class F>
  void add(F make) {
    if (!why_.empty()) return;
    std::unique_ptr<op::Prepared> p(new op::Prepared(make()));  // a Prepared never moves
    if (p->supported())
      steps_.push_back(std::move(p));
    else
      why_ = std::move(p->why_not());
  }
  /// `steps` as one launch.
  static op::Prepared prepared(std::shared_ptr<CudaSteps> steps) {
    if (!steps->why_.empty()) return op::Unsupported{steps->why_};
    return [steps = std::move(steps)] {
      for (const auto& s : steps->steps_) s->run();
    };
  }
  Device device() const { return device_; }

 private:
  Device device_;
  std::vector<Tensor> keep_;
  std::vector<std::unique_ptr<op::Prepared>> steps_;
  std::string why_;
};

}  // namespace flashinfer::ops
