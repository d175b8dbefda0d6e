// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/cases/warmup.h"

#include <nlohmann/json.hpp>

#include "flashinfer/core/check.h"
#include "flashinfer/core/process.h"
#include "flashinfer/flashinfer.h"
#include "test_paths.h"
#include "tests/jit/sandbox.h"

namespace t {
namespace {

/// The library's own kernels in a cache of this test's.
class Warmup : public Sandbox {
 protected:
  void SetUp() override {
    Sandbox::SetUp();
    unset("FLASHINFER_JIT_INCLUDE");
    fresh();
  }
  flashinfer::process::Result cli(std::vector<std::string> args) {
    args.insert(args.begin(), std::string(FI_TEST_BUILD_ROOT) + "/bin/flashinfer");
    return flashinfer::process::run(args, {.cwd = root_});
  }
  static constexpr const char* kArgs = "input=f32:2x64 weight=f32:64";
};

TEST_F(Warmup, CompilesBeforeTheFirstCall) {
  int64_t steps = 0;
  const auto report = flashinfer::warmup({{"rmsnorm", kArgs}, {"rmsnorm", "input=f32:7x512 weight=f32:512"}},
                                         [&](const jit::Progress& p) { steps += p.total; });
  EXPECT_EQ(report.kernels, 1) << "both shapes use one kernel";
  EXPECT_EQ(report.compiled, 1);
  EXPECT_EQ(steps, 1);
  EXPECT_TRUE(report.problems.empty());
  const int64_t runs = compiler_runs();
  const auto x = flashinfer::Tensor::zeros({2, 64}, flashinfer::DType::kF32),
             w = flashinfer::Tensor::zeros({64}, flashinfer::DType::kF32);
  flashinfer::rmsnorm({.input = x, .weight = w});
  EXPECT_EQ(compiler_runs(), runs);
  EXPECT_EQ(flashinfer::warmup({{"rmsnorm", kArgs}}).loaded, 1);
  EXPECT_THROW(flashinfer::warmup({{"no_such_op", ""}}), flashinfer::ValueError);
}

TEST_F(Warmup, AvailabilityGivesTheReason) {
  auto a = flashinfer::is_available("rmsnorm", kArgs);
  EXPECT_TRUE(a.available);
  EXPECT_EQ(a.candidate, "cpu");
  set("FLASHINFER_CXX", root_ + "/none");
  fresh();
  a = flashinfer::is_available("rmsnorm", "input=f16:2x64 weight=f16:64");
  EXPECT_FALSE(a.available);
  EXPECT_EQ(a.candidate, "reference");
  EXPECT_NE(a.why().find("cpu: no C++ compiler: FLASHINFER_CXX is"), std::string::npos) << a.why();
  EXPECT_EQ(flashinfer::warmup({{"rmsnorm", "input=f16:2x64 weight=f16:64"}}).problems.size(), 1u);
}

TEST_F(Warmup, CommandsShowAndClearTheCache) {
  EXPECT_EQ(cli({"export-compile-commands"}).output, "No modules found to export.\n");
  flashinfer::warmup({{"rmsnorm", kArgs}});
  const std::string module = "norm.rmsnorm{dtype=float32,weight=float32,gemma=0,fused_add=0}";

  auto r = cli({"list-modules"});
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_TRUE(r.output.starts_with("Available compilation modules:\n")) << r.output;
  EXPECT_NE(r.output.find("  " + module + " - Compiled\n"), std::string::npos) << r.output;
  EXPECT_NE(r.output.find(" - Not Compiled\n"), std::string::npos) << r.output;
  r = cli({"list-modules", module});
  EXPECT_NE(r.output.find("Module: " + module + "\nStatus: Compiled\nLibrary Path: " + folder() + "/norm.rmsnorm-"),
            std::string::npos)
      << r.output;
  EXPECT_NE(r.output.find("Device Linking: False\nSource Files:\n"), std::string::npos);
  r = cli({"list-modules", "norm.nothing"});
  EXPECT_EQ(r.output, "Module 'norm.nothing' not found.\n");
  EXPECT_EQ(r.exit_code, 2);

  r = cli({"module-status", "--filter", "compiled"});
  EXPECT_NE(r.output.find("=== Summary ===\nTotal modules: 1\nCompiled: 1\nNot compiled: 0\n"), std::string::npos)
      << r.output;
  r = cli({"module-status", "--filter", "not-compiled", "--detailed"});
  EXPECT_NE(r.output.find("\nCompiled: 0\n"), std::string::npos);
  EXPECT_NE(r.output.find("  Status: Not Compiled\n"), std::string::npos);
  EXPECT_NE(cli({"module-status", "--filter", "jit"}).output.find("Total modules: 1\n"), std::string::npos);
  EXPECT_NE(cli({"module-status", "--filter", "aot"}).output.find("Compiled: 0\n"), std::string::npos);
  EXPECT_EQ(cli({"module-status", "--filter", "x"}).exit_code, 2);

  EXPECT_EQ(cli({"export-compile-commands", "-o", "cc.json"}).output,
            "✅ Successfully exported 1 compile commands to cc.json\n");
  const auto commands = nlohmann::json::parse(*fs::read_file(root_ + "/cc.json"));
  ASSERT_EQ(commands.size(), 1u);
  const auto again = flashinfer::process::run(commands[0]["arguments"].get<std::vector<std::string>>(),
                                              {.cwd = commands[0]["directory"].get<std::string>()});
  EXPECT_TRUE(again.ok()) << again.output;
  EXPECT_TRUE(fs::is_file(commands[0]["file"].get<std::string>()));

  EXPECT_TRUE(cli({"clear-cache"}).output.starts_with("✅ Cache cleared successfully.\n"));
  EXPECT_TRUE(artifacts().empty());
  unset("FLASHINFER_WORKSPACE_BASE");
  unset("HOME");
  r = cli({"clear-cache"});
  EXPECT_TRUE(r.output.starts_with("❌ Cache clear failed: there is no cache folder")) << r.output;
  EXPECT_EQ(r.exit_code, 1);
}

TEST_F(Warmup, TheAotCommandIsEnoughForAMachineWithoutACompiler) {
  auto r = cli({"aot", "--list", "--op", "rmsnorm"});
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_NE(r.output.find("norm.rmsnorm{dtype=float32,weight=float32,gemma=0,fused_add=0}\n"), std::string::npos)
      << r.output;
  const auto kernels = std::count(r.output.begin(), r.output.end(), '\n');
  r = cli({"aot", "--op", "rmsnorm", "--target", "portable", "--out-dir", "ahead", "--quiet"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_NE(r.output.find("\n" + std::to_string(kernels) + " compiled, 0 up to date, 0 failed in "), std::string::npos)
      << r.output;
  set("FLASHINFER_AOT_DIR", root_ + "/ahead");
  set("FLASHINFER_CXX", root_ + "/none");
  fresh();
  const auto a = flashinfer::is_available("rmsnorm", kArgs);
  EXPECT_EQ(a.candidate, "cpu") << a.why();
  EXPECT_EQ(jit::modules().at(0).origin, "aot");
  EXPECT_EQ(cli({"aot", "--op", "nothing", "--out-dir", "x"}).exit_code, 2);
  EXPECT_EQ(cli({"aot"}).exit_code, 2);
  EXPECT_EQ(cli({"aot", "--out-dir", "x", "--target", "x86-64-v9"}).exit_code, 2);
}

}  // namespace
}  // namespace t
