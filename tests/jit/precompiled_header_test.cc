// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/precompiled_header.h"

#include "flashinfer/core/process.h"
#include "tests/jit/sandbox.h"

namespace t {
namespace {

class PrecompiledHeader : public Sandbox {
 protected:
  void SetUp() override {
    Sandbox::SetUp();
    if (flashinfer::build::sanitizer_flags()[0] != '\0') GTEST_SKIP() << "not used under sanitizers";
    jit::forget_precompiled_headers();
  }
  int64_t header_runs() const {
    const auto text = fs::read_file(root_ + "/headers");
    return text ? static_cast<int64_t>(text->size()) : 0;
  }
  /// The folders that hold one, complete.
  std::vector<std::string> headers() const {
    std::vector<std::string> list;
    for (const std::string& entry : fs::list_dir(folder()))
      if (entry.starts_with(jit::kPrecompiledHeaderPrefix) && fs::is_file(folder() + "/" + entry + "/prelude.h.gch"))
        list.push_back(folder() + "/" + entry);
    return list;
  }
};

TEST_F(PrecompiledHeader, IsMadeForTheSecondKernelAndChangesNoCode) {
  compiler("case \"$*\" in *-include*) echo >> \"" + root_ + "/uses\" ;; esac");
  EXPECT_EQ(sum(1, 0), 1001);
  EXPECT_EQ(header_runs(), 0) << "a single kernel does not wait for it";
  EXPECT_EQ(sum(2, 0), 1002);
  EXPECT_EQ(sum(3, 0), 1003);
  EXPECT_EQ(header_runs(), 1);
  EXPECT_EQ(compiler_runs(), 3);
  EXPECT_EQ(fs::read_file(root_ + "/uses"), "\n\n");
  ASSERT_EQ(headers().size(), 1u);
  ASSERT_EQ(artifacts().size(), 3u);
  for (const std::string& dir : artifacts()) {
    const auto with = fs::read_file(dir + "/kernel.so");
    EXPECT_EQ(fs::read_file(dir + "/compile_command.txt")->find("prelude.h"), std::string::npos);
    ASSERT_EQ(flashinfer::process::run({"sh", dir + "/compile_command.sh"}).exit_code, 0);
    EXPECT_EQ(fs::read_file(dir + "/kernel.so"), with);
  }
  jit::clear_cache();
  EXPECT_TRUE(fs::list_dir(folder()).empty());
}

TEST_F(PrecompiledHeader, ANewProcessFindsItAndAnotherCompilerMakesItsOwn) {
  sum(1, 0), sum(2, 0);
  fresh();
  jit::forget_precompiled_headers();
  sum(3, 0), sum(4, 0);
  EXPECT_EQ(header_runs(), 1);
  compiler("# another file");
  fresh();
  jit::forget_precompiled_headers();
  sum(5, 0), sum(6, 0);
  EXPECT_EQ(header_runs(), 2);
  EXPECT_EQ(headers().size(), 2u);
}

TEST_F(PrecompiledHeader, ACompilerThatCannotMakeItCompilesKernels) {
  compiler("case \"$*\" in *c++-header*) exit 1 ;; esac");
  for (int a = 1; a < 5; ++a) EXPECT_EQ(sum(a, 0), 1000 + a);
  EXPECT_EQ(header_runs(), 1) << "asked once";
  EXPECT_EQ(compiler_runs(), 4);
  EXPECT_TRUE(headers().empty());
}

TEST_F(PrecompiledHeader, ADamagedOneIsPassedOver) {
  sum(1, 0), sum(2, 0);
  ASSERT_EQ(headers().size(), 1u);
  for (const char* bytes : {"", "gpch", "no precompiled header"}) {
    fs::write_plain(headers()[0] + "/prelude.h.gch", bytes);
    EXPECT_EQ(sum(3, bytes[0]), 1003 + 10 * bytes[0]) << bytes;
  }
}

TEST_F(PrecompiledHeader, ACompilerThatRejectsItIsRunWithout) {
  compiler("case \"$*\" in *-include*) echo fatal error; exit 1 ;; esac");
  for (int a = 1; a < 4; ++a) EXPECT_EQ(sum(a, 0), 1000 + a);
  EXPECT_EQ(headers().size(), 1u);
  EXPECT_EQ(compiler_runs(), 5);
}

TEST_F(PrecompiledHeader, AnErrorIsThatOfTheCommandWithoutIt) {
  sum(1, 0), sum(2, 0);
  try {
    jit::cpu_kernel<kSum>(Config{100, 0});
    FAIL();
  } catch (const flashinfer::RuntimeError& e) {
    EXPECT_EQ(std::string(e.what()).find("prelude.h"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("a must be below 100"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace t
