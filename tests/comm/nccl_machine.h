// SPDX-License-Identifier: Apache-2.0
// A test with a fresh NCCL and driver, both without a GPU.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "flashinfer/core/cuda/driver.h"
#include "flashinfer/core/env.h"
#include "test_paths.h"
#include "tests/comm/fake_nccl.h"

namespace flashinfer {

class NcclMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    use(FI_TEST_LIBRARY("fake_nccl"));
    setenv("FLASHINFER_LIBCUDA", FI_TEST_LIBRARY("fake_libcuda"), 1);
    again();
    fake_ = fake::fake_nccl_of(FI_TEST_LIBRARY("fake_nccl"));
    ASSERT_NE(fake_, nullptr) << ::dlerror();
    fake_->version = 22707, fake_->aborted = fake_->finalised = 0, fake_->fail_rank_0 = comm::nccl::kSuccess;
    fake_->calls.clear();
  }
  void TearDown() override {
    for (const char* name : {"FLASHINFER_NCCL", "FLASHINFER_LIBCUDA", "FLASHINFER_COMM_TIMEOUT_S"}) unsetenv(name);
    again();
  }
  static void use(const char* library) {
    setenv("FLASHINFER_NCCL", library, 1);
    again();
  }
  static void again() {
    env::reload();
    comm::nccl::detail::forget();
    cuda::detail::forget_driver();
  }
  static void patience(const char* seconds) {
    setenv("FLASHINFER_COMM_TIMEOUT_S", seconds, 1);
    env::reload();
  }
  fake::Nccl* fake_ = nullptr;
};

}  // namespace flashinfer
