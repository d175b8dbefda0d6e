// SPDX-License-Identifier: Apache-2.0
// A test with a fresh machine: driver, GPU, environment.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "fake_cuda.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/memory.h"
#include "flashinfer/core/cuda/module.h"
#include "flashinfer/core/env.h"
#include "flashinfer/jit/engine.h"
#include "test_paths.h"

namespace flashinfer {

class Machine : public ::testing::Test {
 protected:
  void SetUp() override {
    void* lib = ::dlopen(FI_TEST_LIBRARY("fake_libcuda"), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(lib, nullptr) << ::dlerror();
    entry_ = reinterpret_cast<fake::Gpu* (*)()>(::dlsym(lib, "fake_gpu"));
    entry_()->reset();
    set("FLASHINFER_LIBCUDA", FI_TEST_LIBRARY("fake_libcuda"));
    const std::string python = FI_TEST_PYTHON;
    set("VIRTUAL_ENV", python.substr(0, python.rfind("/bin/")));
    set("FLASHINFER_CUDA_ARCH_LIST", "");  // which may be the targets that `make test` compiles for
    again();
  }
  void TearDown() override {
    EXPECT_TRUE(gpu().faults.empty()) << gpu().faults.front();
    for (const std::string& name : set_) ::unsetenv(name.c_str());
    again();
  }
  fake::Gpu& gpu() { return *entry_(); }
  /// The library looks at the machine anew.
  void again() {
    env::reload();
    cuda::detail::forget_driver();
    jit::reset();
  }
  void set(const std::string& name, const std::string& value) {
    ::setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
    env::reload();
  }
  /// The message of what `f` throws; empty when it throws nothing.
  template <class F>
  static std::string error(F f) {
    try {
      f();
    } catch (const std::exception& e) {
      return e.what();
    }
    return {};
  }

 private:
  fake::Gpu* (*entry_)() = nullptr;
  std::vector<std::string> set_;
};

}  // namespace flashinfer
