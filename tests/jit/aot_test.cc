// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/aot.h"

#include "flashinfer/core/check.h"
#include "flashinfer/jit/build.h"
#include "tests/jit/sandbox.h"

namespace t {
namespace {

class Aot : public Sandbox {
 protected:
  std::vector<jit::Request> requests(std::initializer_list<int> values) {
    jit::KernelCollector recording;
    for (const int a : values) jit::cpu_kernel<kSum>(Config{a, 0});
    return recording.take();
  }
  jit::AotResult make(std::vector<jit::Target> targets, std::initializer_list<int> values) {
    return jit::aot(root_ + "/ahead", targets, requests(values), 2);
  }
  void without_compiler() {
    fs::make_dirs(root_ + "/empty");
    set("FLASHINFER_CXX", root_ + "/none");
    set("FLASHINFER_AOT_DIR", root_ + "/ahead");
    fresh();
  }
};

TEST_F(Aot, ArtifactsMadeAheadServeWithoutACompiler) {
  const jit::AotResult r = make({jit::Target::kPortable, jit::Target::kNative}, {1, 2});
  EXPECT_EQ(r.compiled, 4);
  EXPECT_TRUE(r.errors.empty());
  EXPECT_GT(r.bytes, 0u);
  EXPECT_EQ(fs::list_dir(root_ + "/ahead/portable").size(), 2u);
  without_compiler();
  EXPECT_EQ(sum(1, 0), 1001);
  EXPECT_EQ(jit::modules().at(0).origin, "aot");
  EXPECT_NE(jit::modules().at(0).path.find("/ahead/native/"), std::string::npos);  // the best that runs here
  EXPECT_EQ(jit::stats().aot_hits, 1);
  EXPECT_NE(jit::cpu_kernel<kSum>(Config{3, 0}).why_not.find("t.sum{a=3,b=0} is not among the 4 precompiled artifacts"),
            std::string::npos);
  EXPECT_TRUE(artifacts().empty()) << "nothing is copied to the cache";
}

TEST_F(Aot, ALesserTargetStandsInOnlyWithoutACompiler) {
  make({jit::Target::kPortable}, {1});
  set("FLASHINFER_AOT_DIR", root_ + "/ahead");
  fresh();
  EXPECT_EQ(sum(1, 0), 1001);
  EXPECT_EQ(jit::modules().at(0).origin, "compiled") << "native code is faster than the baseline's";
  set("FLASHINFER_CPU_ISA", "portable");
  fresh();
  EXPECT_EQ(sum(1, 0), 1001);
  EXPECT_EQ(jit::modules().at(0).origin, "aot");
  unset("FLASHINFER_CPU_ISA");
  set("FLASHINFER_DISABLE_JIT", "1");
  jit::clear_cache();
  fresh();
  EXPECT_EQ(sum(1, 0), 1001);
  EXPECT_EQ(jit::modules().at(0).origin, "aot");
}

TEST_F(Aot, WhatDoesNotMatchIsNotUsed) {
  make({jit::Target::kNative}, {1});
  without_compiler();
  EXPECT_EQ(jit::cpu_kernel<kSum>(Config{1, 0}).why_not, "");
  write("include/t/deeper/more.h", "constexpr int kValue = 2;\n");
  fresh();
  EXPECT_NE(jit::cpu_kernel<kSum>(Config{1, 0}).why_not, "");  // other headers
  write("include/t/deeper/more.h", "constexpr int kValue = 1;\n");
  set("FLASHINFER_EXTRA_CFLAGS", "-DEXTRA=1");
  fresh();
  EXPECT_NE(jit::cpu_kernel<kSum>(Config{1, 0}).why_not, "");  // other flags
  unset("FLASHINFER_EXTRA_CFLAGS");
  const std::string entry = root_ + "/ahead/native/" + fs::list_dir(root_ + "/ahead/native").at(0);
  fs::write_atomic(entry + "/kernel.so", "damaged", 0700);
  fresh();
  EXPECT_NE(jit::cpu_kernel<kSum>(Config{1, 0}).why_not, "");
}

TEST_F(Aot, FoldersThatOthersCanWriteAreNotUsed) {
  make({jit::Target::kNative}, {1});
  ASSERT_EQ(::chmod((root_ + "/ahead").c_str(), 0777), 0);
  ::testing::internal::CaptureStderr();
  without_compiler();
  EXPECT_NE(jit::cpu_kernel<kSum>(Config{1, 0}).why_not, "");
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("precompiled artifacts are not used: others can write to"),
            std::string::npos);
}

TEST_F(Aot, FillingAgainCompilesOnlyWhatChanged) {
  make({jit::Target::kNative}, {1, 2});
  fresh();
  jit::AotResult r = make({jit::Target::kNative}, {1, 2, 3});
  EXPECT_EQ(r.kept, 2);
  EXPECT_EQ(r.compiled, 1);
  write("include/t/deeper/more.h", "constexpr int kValue = 2;\n");
  fresh();
  r = make({jit::Target::kNative}, {1, 2});
  EXPECT_EQ(r.compiled, 2);
  EXPECT_EQ(fs::list_dir(root_ + "/ahead/native").size(), 3u);  // replaced, not added
}

#if defined(__x86_64__)
TEST_F(Aot, ALevelStoresOnlyWhatDiffersFromTheLevelThatItExtends) {
  using enum jit::Target;
  const auto folder_of = [&](jit::Target t) {
    const auto found = jit::find_aot(requests({1}).at(0), t);
    if (!found) return std::string();
    const std::string below = found->path.substr((root_ + "/ahead/").size());
    return below.substr(0, below.find('/'));
  };
  set("FLASHINFER_AOT_DIR", root_ + "/ahead");
  jit::AotResult r = make({kX86V4, kX86V4Vnni, kX86V4Bf16}, {1});  // the header asks for nothing of theirs
  EXPECT_EQ(r.compiled, 1);
  EXPECT_EQ(r.shared, 2);
  EXPECT_EQ(folder_of(kX86V4Bf16), "x86-64-v4");
  EXPECT_EQ(make({kX86V4, kX86V4Vnni, kX86V4Bf16}, {1}).kept, 3);

  write("include/t/deeper/more.h", "constexpr int kValue = 1;  // __AVX512BF16__\n");
  fresh();
  r = make({kX86V4, kX86V4Vnni, kX86V4Bf16}, {1});  // compiled, and found to be the same
  EXPECT_EQ(r.compiled, 2);
  EXPECT_EQ(r.shared, 2);
  EXPECT_EQ(folder_of(kX86V4Bf16), "x86-64-v4");

  write("include/t/deeper/more.h",
        "#ifdef __AVX512BF16__\nconstexpr int kValue = 2;\n#else\nconstexpr int kValue = 1;\n#endif\n");
  fresh();
  r = make({kX86V4, kX86V4Vnni, kX86V4Bf16}, {1});
  EXPECT_EQ(r.compiled, 2);
  EXPECT_EQ(r.shared, 1);
  EXPECT_EQ(folder_of(kX86V4Bf16), "x86-64-v4-bf16");
  EXPECT_EQ(folder_of(kX86V4Vnni), "x86-64-v4");

  // Without a compiler the best level that this CPU runs is chosen, and what it shares is found.
  without_compiler();
  if (jit::why_not_runnable(kX86V4).empty()) {
    EXPECT_EQ(sum(1, 0), jit::why_not_runnable(kX86V4Bf16).empty() ? 2001 : 1001);
    set("FLASHINFER_CPU_ISA", "x86-64-v4");
    fresh();
    EXPECT_EQ(sum(1, 0), 1001);
  }
  // The code of the extended level is replaced: what was shared is not used.
  fs::write_atomic(root_ + "/ahead/x86-64-v4/" + fs::list_dir(root_ + "/ahead/x86-64-v4").at(0) + "/kernel.so",
                   "damaged", 0700);
  EXPECT_EQ(folder_of(kX86V4Vnni), "");
}
#endif

TEST_F(Aot, AKernelThatDoesNotCompileIsReportedAndTheRestIsMade) {
  const jit::AotResult r = make({jit::Target::kNative}, {1, 100, 2});
  EXPECT_EQ(r.compiled, 2);
  ASSERT_EQ(r.errors.size(), 1u);
  EXPECT_NE(r.errors[0].find("native: RuntimeError: jit: compiling t.sum{a=100,b=0} failed"), std::string::npos)
      << r.errors[0];
  set("FLASHINFER_CXX", root_ + "/none");
  fresh();
  EXPECT_THROW(make({jit::Target::kNative}, {1}), flashinfer::RuntimeError);
}

}  // namespace
}  // namespace t
