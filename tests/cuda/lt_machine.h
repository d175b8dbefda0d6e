// SPDX-License-Identifier: Apache-2.0
// A GPU of the fake driver with the fake cuBLASLt beside it, and a folder of its own for what is kept on disk.
#pragma once
#include <dlfcn.h>

#include <string>

#include "fake_cublaslt.h"
#include "flashinfer/core/cuda/cublaslt.h"
#include "flashinfer/core/fs.h"
#include "machine.h"
#include "test_paths.h"

namespace flashinfer {

class LtMachine : public Machine {
 protected:
  void SetUp() override {
    Machine::SetUp();
    void* lib = ::dlopen(FI_TEST_LIBRARY("fake_cublaslt"), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(lib, nullptr) << ::dlerror();
    lt_ = reinterpret_cast<fake::Lt* (*)()>(::dlsym(lib, "fake_lt"))();
    *lt_ = fake::Lt{.gpu = &gpu()};
    set("FLASHINFER_CUBLASLT", FI_TEST_LIBRARY("fake_cublaslt"));
    folder_ = fs::make_temp_dir("/tmp", "flashinfer-cublaslt-");
    set("FLASHINFER_AUTOTUNE_CACHE_DIR", folder_);
    cublaslt::detail::forget();
  }
  void TearDown() override {
    Machine::TearDown();
    cublaslt::detail::forget();
    fs::remove_tree(folder_);
  }
  fake::Lt* lt_ = nullptr;
  std::string folder_;
};

}  // namespace flashinfer
