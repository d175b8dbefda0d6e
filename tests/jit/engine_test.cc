// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/engine.h"

#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "flashinfer/core/check.h"
#include "flashinfer/core/process.h"
#include "tests/jit/sandbox.h"

namespace t {
namespace {

class Engine : public Sandbox {};

TEST_F(Engine, CompilesOncePerProcessAndFindsInMemory) {
  EXPECT_EQ(sum(3, 4), 1043);
  EXPECT_EQ(sum(3, 4), 1043);
  EXPECT_EQ(sum(5, 4), 1045);
  EXPECT_EQ(compiler_runs(), 2);
  const jit::Stats s = jit::stats();
  EXPECT_EQ(s.compiled, 2);
  EXPECT_EQ(s.memory_hits, 1);
  EXPECT_EQ(s.disk_hits, 0);
  EXPECT_GT(s.compile_seconds, 0);
  ASSERT_EQ(jit::modules().size(), 2u);
  EXPECT_EQ(jit::modules()[0].text, "t.sum{a=3,b=4}");
  EXPECT_EQ(jit::modules()[0].origin, "compiled");
}

TEST_F(Engine, AWarmStartRunsNoSubprocess) {
  sum(3, 4);
  fresh();
  EXPECT_EQ(sum(3, 4), 1043);
  EXPECT_EQ(compiler_runs(), 1);
  EXPECT_EQ(jit::stats().disk_hits, 1);
  EXPECT_EQ(jit::stats().compiled, 0);
}

TEST_F(Engine, NegativeAndLargeMembers) {
  EXPECT_EQ(sum(-7, 1 << 20), 1000 - 7 + 10 * (1 << 20));
  EXPECT_EQ(jit::kernel_text<kSum>(Config{-7, 1}), "t.sum{a=-7,b=1}");
  EXPECT_EQ(jit::config_text(Config{-7, 1}), "Config{a=-7,b=1}");
}

TEST_F(Engine, ThreadsThatMissTogetherCompileOnce) {
  std::atomic<int64_t> total{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { total += sum(1, 2); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(total, 8 * 1021);
  EXPECT_EQ(compiler_runs(), 1);
}

TEST_F(Engine, AKernelThatDoesNotCompileSaysWhyWithACommandThatReproducesIt) {
  std::string message;
  try {
    jit::cpu_kernel<kSum>(Config{100, 0});
  } catch (const flashinfer::RuntimeError& e) {
    message = e.what();
  }
  EXPECT_NE(message.find("RuntimeError: jit: compiling t.sum{a=100,b=0} failed (exit code 1)"), std::string::npos)
      << message;
  EXPECT_NE(message.find("a must be below 100"), std::string::npos) << message;
  const size_t command = message.find("\ncommand: ");
  ASSERT_NE(command, std::string::npos) << message;
  const auto again = flashinfer::process::run({"sh", "-c", message.substr(command + 10)});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.output.find("a must be below 100"), std::string::npos) << again.output;
  // Requested again, it fails at once: no second run of the compiler (the pasted command was the second).
  EXPECT_THROW(jit::cpu_kernel<kSum>(Config{100, 0}), flashinfer::RuntimeError);
  EXPECT_EQ(compiler_runs(), 2);
  EXPECT_EQ(jit::stats().failed, 1);
  EXPECT_TRUE(artifacts().empty());
}

TEST_F(Engine, WithoutACompilerTheErrorSaysWhereItLooked) {
  fs::make_dirs(root_ + "/empty");
  unset("FLASHINFER_CXX");
  set("PATH", root_ + "/empty");
  fresh();
  const jit::Loaded& k = jit::cpu_kernel<kSum>(Config{3, 4});
  EXPECT_EQ(k.fn, nullptr);
  EXPECT_TRUE(k.why_not.starts_with("no C++ compiler: looked for ")) << k.why_not;
  EXPECT_TRUE(k.why_not.ends_with("and t.sum{a=3,b=4} is not among the 0 precompiled artifacts")) << k.why_not;
  EXPECT_EQ(jit::stats().unavailable, 1);

  set("FLASHINFER_CXX", root_ + "/none");
  fresh();
  EXPECT_NE(jit::cpu_kernel<kSum>(Config{3, 4})
                .why_not.find("FLASHINFER_CXX is \"" + root_ + "/none\", which is not an executable"),
            std::string::npos);
}

TEST_F(Engine, DisabledJitRejects) {
  set("FLASHINFER_DISABLE_JIT", "1");
  fresh();
  EXPECT_TRUE(jit::cpu_kernel<kSum>(Config{3, 4})
                  .why_not.starts_with("FLASHINFER_DISABLE_JIT is 1, and t.sum{a=3,b=4} is not"));
  EXPECT_EQ(compiler_runs(), 0);
}

TEST_F(Engine, WhatIsOnDiskRunsWithoutACompiler) {
  sum(3, 4);
  for (const bool disabled : {true, false}) {
    if (disabled)
      set("FLASHINFER_DISABLE_JIT", "1");
    else
      set("FLASHINFER_CXX", root_ + "/gone");
    fresh();
    EXPECT_EQ(sum(3, 4), 1043);
    EXPECT_EQ(jit::stats().disk_hits, 1);
    EXPECT_NE(jit::cpu_kernel<kSum>(Config{4, 4}).why_not, "");
    unset("FLASHINFER_DISABLE_JIT");
  }
  EXPECT_EQ(compiler_runs(), 1);
}

TEST_F(Engine, CompilersArePickedInOrder) {
  set("CXX", "g++");
  fresh();
  EXPECT_EQ(jit::host_toolchain().compiler, root_ + "/cxx");
  unset("FLASHINFER_CXX");
  set("CXX", "\"" + root_ + "/cxx\" -DEXTRA=7");
  fresh();
  EXPECT_EQ(jit::host_toolchain().compiler, root_ + "/cxx");
  EXPECT_EQ(sum(0, 0), 1007);
  unset("CXX");
  fs::make_dirs(root_ + "/bin");
  write("bin/ccache", "");
  ::chmod((root_ + "/bin/ccache").c_str(), 0700);
  ASSERT_EQ(::symlink("ccache", (root_ + "/bin/c++").c_str()), 0);
  ASSERT_EQ(::symlink("../cxx", (root_ + "/bin/g++").c_str()), 0);
  set("PATH", "relative:" + root_ + "/bin");
  fresh();
  if (!std::string(flashinfer::build::sanitizer_flags()).empty())
    GTEST_SKIP() << "a sanitized build looks for the compiler it was built with";
  EXPECT_EQ(jit::host_toolchain().compiler, root_ + "/bin/g++");  // c++ is a compiler cache: passed over
}

class EngineTarget : public Sandbox, public ::testing::WithParamInterface<jit::Target> {};
TEST_P(EngineTarget, HasAFolderOfItsOwn) {
  if (const std::string why = jit::why_not_runnable(GetParam()); !why.empty()) GTEST_SKIP() << why;
  const char* const target = jit::name(GetParam());
  set("FLASHINFER_CPU_ISA", target);
  fresh();
  EXPECT_EQ(sum(3, 4), 1043);
  ASSERT_EQ(jit::modules().size(), 1u);
  EXPECT_NE(jit::modules()[0].path.find(std::string("/") + target + "/t.sum-"), std::string::npos);
}
INSTANTIATE_TEST_SUITE_P(All, EngineTarget, ::testing::ValuesIn(jit::kTargets), [](const auto& info) {
  std::string name = jit::name(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});
TEST_F(Engine, AnUnknownTargetIsAnError) { EXPECT_THROW(jit::parse_target("x86-64-v5"), flashinfer::ValueError); }

TEST_F(Engine, SlowCompilesAreAnnouncedAndFastOnesAreSilent) {
  ::testing::internal::CaptureStderr();
  compiler("sleep 1.1");
  fresh();
  sum(3, 4);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "flashinfer: compiling t.sum{a=3,b=4} for native ...\n");
  ::testing::internal::CaptureStderr();
  fresh();
  sum(3, 4);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(Engine, VerboseShowsCommandAndTime) {
  set("FLASHINFER_JIT_VERBOSE", "1");
  fresh();
  ::testing::internal::CaptureStderr();
  sum(3, 4);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("t.sum{a=3,b=4}: cd "), std::string::npos) << text;
  EXPECT_NE(text.find(": compiled in "), std::string::npos) << text;
}

TEST_F(Engine, DebugAndExtraFlagsAreInTheCommand) {
  set("FLASHINFER_JIT_DEBUG", "1");
  set("FLASHINFER_EXTRA_CFLAGS", "-DEXTRA=5 '-DTEXT=\"a b\"'");
  fresh();
  EXPECT_EQ(sum(3, 4), 1048);
  const auto command = fs::read_file(artifacts().at(0) + "/compile_command.txt");
  EXPECT_NE(command->find(" -O0 -g "), std::string::npos) << *command;
  EXPECT_NE(command->find(" -DEXTRA=5 '-DTEXT=\"a b\"' "), std::string::npos) << *command;
}

TEST_F(Engine, RecordingListsWithoutCompiling) {
  sum(1, 1);  // in memory already: must be listed all the same
  jit::KernelCollector recording;
  for (const int a : {1, 2, 1})
    EXPECT_EQ(jit::cpu_kernel<kSum>(Config{a, 1}).why_not, "t.sum is being listed, not run");
  const auto list = recording.take();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].text(), "t.sum{a=1,b=1}");
  EXPECT_EQ(list[1].text(), "t.sum{a=2,b=1}");
  EXPECT_EQ(compiler_runs(), 1);
  std::thread([] { EXPECT_EQ(sum(1, 1), 1011); }).join();  // other threads go on
}

TEST_F(Engine, PrefetchCompilesAListWithProgress) {
  std::vector<jit::Request> list;
  {
    jit::KernelCollector recording;
    for (const int a : {1, 2, 3, 100}) jit::cpu_kernel<kSum>(Config{a, 0});
    list = recording.take();
  }
  int64_t last = 0;
  const auto results = jit::prefetch(list, 2, [&](const jit::Progress& p) {
    EXPECT_EQ(p.done, ++last);
    EXPECT_EQ(p.total, 4);
  });
  EXPECT_EQ(last, 4);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(results[static_cast<size_t>(i)].outcome, jit::Outcome::kCompiled);
  EXPECT_EQ(results[3].outcome, jit::Outcome::kFailed);
  EXPECT_NE(results[3].message.find("a must be below 100"), std::string::npos);
  EXPECT_EQ(sum(2, 0), 1002);
  EXPECT_EQ(compiler_runs(), 4);
  EXPECT_EQ(jit::prefetch(list)[0].outcome, jit::Outcome::kMemory);
}

TEST_F(Engine, AChildForkedDuringACompileIsNotLeftWaiting) {
  compiler("sleep 0.5");
  fresh();
  std::thread compiling([] { EXPECT_EQ(sum(3, 4), 1043); });
  while (compiler_runs() == 0) ::usleep(1000);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(sum(3, 4) == 1043 ? 0 : 1);
  }
  compiling.join();
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace t
