// SPDX-License-Identifier: Apache-2.0
// Local arrays that are left through pointers, and variables that are gone: found by the guarded form of a kernel,
// whose run changes nothing.
#include <string>

#include "planted.h"
#include "test_paths.h"

namespace flashinfer::emu {
namespace {

const Bug kBugs[] = {
    {"walking_pointer", launch(1, 32, 0),
     "read of 4 bytes of local memory out of bounds, 4 bytes past the end of 'x' (32 bytes)"},
    {"walking_by_number", launch(1, 32, 0), "4 bytes past the end of 'x' (32 bytes)"},
    {"walking_store", launch(1, 32, 0),
     "write of 4 bytes of local memory out of bounds, 4 bytes past the end of 'x' (32 bytes)"},
    {"walking_back", launch(1, 32, 0), "4 bytes before 'x' (32 bytes)"},
    {"into_the_next", launch(1, 32, 0), "4 bytes past the end of 'x' (32 bytes)"},
    {"given_to_function", launch(1, 32, 0), "4 bytes past the end of 'x' (32 bytes)"},
    {"filled_by_function", launch(1, 32, 0), "4 bytes past the end of 'x' (32 bytes)"},
    {"index_in_function", launch(1, 32, 0), "4 bytes past the end of 'x' (16 bytes)"},
    {"struct_in_function", launch(1, 32, 0), "4 bytes past the end of 's' (24 bytes)"},
    {"wide_in_function", launch(1, 32, 0), "4 bytes past the end of 'x' (32 bytes)"},
    {"bytes_in_function", launch(1, 32, 0), "1 bytes past the end of 'x' (13 bytes)"},
    {"copied_to", launch(1, 32, 0),
     "write of 36 bytes of local memory out of bounds, 4 bytes past the end of 'x' (32 bytes)"},
    {"block_has_ended", launch(1, 32, 0), "of 'x' (16 bytes), whose block has ended"},
    {"function_has_returned", launch(1, 32, 0), "of a function that has returned"},
    {"added_in_place", launch(1, 32, 0), "4 bytes past the end of 'x' (32 bytes)"},
};

struct Local : Planted {
  Local() { module_file = FI_TEST_LIBRARY("libemu_locals"), forget_output(); }
};

TEST(Locals, EachBugIsFoundUnderEverySchedule) { expect_found<Local>(kBugs, "locals.cc:"); }

TEST(Locals, NothingIsSaidOfTheSameKernelsWithoutTheBug) {
  for (const Bug& b : kBugs)
    for (const uint64_t seed : kSeeds)
      EXPECT_EQ(Local().run((std::string("right_") + b.name).c_str(), b.launch, seed).error, "")
          << b.name << ", seed " << seed;
}

TEST(Locals, WhatTheGuardedRunWritesIsTakenBack) {
  Local l;
  std::vector<float> wanted(8);
  const float* const in = l.first(l.in);
  for (size_t i = 0; i < 8; ++i) wanted[i] = in[i];
  for (size_t i = 0; i < 8; ++i) wanted[0] += in[i];
  EXPECT_EQ(l.run("right_added_in_place", launch(1, 32, 0), 1).error, "");
  EXPECT_EQ(std::vector<float>(in, in + 8), wanted);
  EXPECT_EQ(l.counter[0], 32u);
  // Of a run that ends at a bug nothing stays either.
  Local bad;
  const std::vector<float> before = bad.in;
  EXPECT_NE(bad.run("bug_added_in_place", launch(1, 32, 0), 1).error, "");
  EXPECT_EQ(bad.in, before);
  EXPECT_EQ(bad.counter[0], 0u);
}

TEST(Locals, WhatAKernelPrintsAppearsOnce) {
  for (const uint64_t seed : kSeeds) {
    ::testing::internal::CaptureStdout();
    const Report right = Local().run("right_printing", launch(2, 32, 0), seed);
    const std::string text = ::testing::internal::GetCapturedStdout();
    EXPECT_EQ(right.error, "");
    EXPECT_TRUE(text == "block 0: 1000.0\nblock 1: 1000.0\n" || text == "block 1: 1000.0\nblock 0: 1000.0\n") << text;
    // What is printed before a bug helps to find it.
    ::testing::internal::CaptureStdout();
    const Report wrong = Local().run("bug_printing", launch(1, 32, 0), seed);
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "block 0: 1000.0\n");
    EXPECT_NE(wrong.error, "");
  }
}

}  // namespace
}  // namespace flashinfer::emu
