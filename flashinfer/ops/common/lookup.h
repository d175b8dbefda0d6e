// SPDX-License-Identifier: Apache-2.0
// The CPU kernels of a launch that runs several.
#pragma once
#include <string>
#include <utility>

#include "flashinfer/jit/jit.h"
#include "flashinfer/op/prepared.h"

namespace flashinfer::ops {

/// Looks all kernels up before it says whether one is missing, so that one pass lists them for AOT:
///   ops::Lookup lookup;
///   const jit::CpuFn cast = lookup.kernel<kCast>(config), sum = lookup.kernel<kSum>(config);
///   return lookup.prepared([&a, cast, sum] { ... });
class Lookup {
 public:
  template <const jit::Kernel& K, class Config>
  const jit::Loaded& loaded(const Config& config) {
    const jit::Loaded& loaded = jit::cpu_kernel<K>(config);
    if (why_.empty()) why_ = loaded.why_not;
    return loaded;
  }
  template <const jit::Kernel& K, class Config>
  jit::CpuFn kernel(const Config& config) {
    return loaded<K>(config).fn;
  }
  void unsupported(std::string why) {
    if (why_.empty()) why_ = std::move(why);
  }
  /// `launch`, or the first reason against it.
  template <class F>
  op::Prepared prepared(F&& launch) {
    if (!why_.empty()) return op::Unsupported{std::move(why_)};
    return std::forward<F>(launch);
  }

 private:
  std::string why_;
};

}  // namespace flashinfer::ops
