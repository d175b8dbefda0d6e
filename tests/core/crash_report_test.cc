// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <csignal>

#include "flashinfer/core/version.h"

namespace flashinfer {
namespace {

/// tests/crash_report.cc
TEST(CrashReport, SaysTheAddressAndTheFunctions) {
  if (*build::sanitizer_flags() != '\0') GTEST_SKIP() << "sanitizers have their own";
  EXPECT_EXIT(*reinterpret_cast<volatile int*>(16) = 1, testing::KilledBySignal(SIGSEGV),
              "died of signal 11 at address 0x10:\n.*core_tests");
  EXPECT_EXIT(std::raise(SIGSEGV), testing::KilledBySignal(SIGSEGV), "died of signal 11");
}

}  // namespace
}  // namespace flashinfer
