// SPDX-License-Identifier: Apache-2.0
// A folder with a kernel header, a cache and a compiler of its own, so that a test sees every run of the compiler and
// can damage what it likes.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/version.h"
#include "flashinfer/jit/cache.h"
#include "flashinfer/jit/engine.h"
#include "flashinfer/jit/jit.h"

namespace t {

struct Config {
  int a;
  int b;
  static constexpr const char* kName = "t::Config";
  template <class V>
  constexpr void visit(V&& v) const {
    v("a", a);
    v("b", b);
  }
  friend constexpr bool operator==(const Config&, const Config&) = default;
};
struct Params {
  int64_t* out;
};
inline constexpr flashinfer::jit::Kernel kSum{"t/sum.h", "t::sum", "t::Params"};

namespace fs = flashinfer::fs;
namespace env = flashinfer::env;
namespace jit = flashinfer::jit;

inline constexpr const char* kHeader = R"(#pragma once
#include <stdint.h>
#include "deeper/value.h"
namespace t {
struct Config { int a; int b; };
struct Params { int64_t* out; };
#ifndef EXTRA
#define EXTRA 0
#endif
/// out[task] = a + 10 b + 1000 kValue + EXTRA
template <Config C> void sum(const Params& p, int64_t task) {
  static_assert(C.a < 100, "a must be below 100");
  p.out[task] = C.a + 10 * C.b + 1000 * kValue + EXTRA;
}
}
)";

class Sandbox : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::canonical(fs::make_temp_dir(::testing::TempDir(), "jit's test-"));  // a name that wants quoting
    fs::make_dirs(root_ + "/include/t/deeper");
    fs::make_dirs(root_ + "/workspace");
    write("include/t/sum.h", kHeader);
    write("include/t/deeper/value.h", "#pragma once\n  #  include \"more.h\"\n");
    write("include/t/deeper/more.h", "constexpr int kValue = 1;\n");
    compiler("");
    for (const char* name : {"CXX", "FLASHINFER_EXTRA_CFLAGS", "FLASHINFER_EXTRA_LDFLAGS", "FLASHINFER_AOT_DIR",
                             "FLASHINFER_CPU_ISA", "FLASHINFER_CXX_LAUNCHER", "FLASHINFER_DISABLE_JIT",
                             "FLASHINFER_JIT_DEBUG", "FLASHINFER_JIT_VERBOSE", "MAX_JOBS"})
      unset(name);
    set("FLASHINFER_CXX", root_ + "/cxx");
    set("FLASHINFER_JIT_INCLUDE", root_ + "/include");
    set("FLASHINFER_WORKSPACE_BASE", root_ + "/workspace");
    fresh();
  }
  void TearDown() override {
    for (const auto& [name, value] : before_)
      if (value)
        ::setenv(name.c_str(), value->c_str(), 1);
      else
        ::unsetenv(name.c_str());
    fresh();
    fs::remove_tree(root_);
  }

  /// The compiler of this sandbox: notes each run, does `before`, then runs the real one.
  void compiler(const std::string& before) {
    const std::string real = std::string(flashinfer::build::compiler()).starts_with("Clang") ? "clang++-19" : "g++";
    fs::write_atomic(root_ + "/cxx",
                     "#!/bin/sh\ncase \"$*\" in *c++-header*) echo >> \"" + root_ + "/headers\" ;; *) echo run >> \"" +
                         root_ + "/runs\" ;; esac\n" + before + "\nexec " + real + " \"$@\"\n",
                     0700);
  }
  /// Of kernels; precompiled headers are lines of the file `headers`.
  int64_t compiler_runs() const {
    const auto text = fs::read_file(root_ + "/runs");
    return text ? static_cast<int64_t>(text->size()) / 4 : 0;
  }

  void set(const char* name, const std::string& value) {
    remember(name);
    ::setenv(name, value.c_str(), 1);
  }
  void unset(const char* name) {
    remember(name);
    ::unsetenv(name);
  }
  /// As a new process: nothing in memory, the environment read again.
  static void fresh() {
    env::reload();
    jit::reset();
    jit::reset_stats();
  }
  void write(const std::string& name, const std::string& text) { fs::write_atomic(root_ + "/" + name, text); }

  static int64_t run(const jit::Loaded& kernel) {
    if (kernel.fn == nullptr) throw std::runtime_error("no kernel: " + kernel.why_not);
    int64_t out[3] = {-1, -1, -1};
    const Params p{out};
    kernel.fn(&p, 1);
    EXPECT_EQ(out[0], -1);
    EXPECT_EQ(out[2], -1);
    return out[1];
  }
  static int64_t sum(int a, int b) { return run(jit::cpu_kernel<kSum>(Config{a, b})); }

  std::string folder() const {
    return root_ + "/workspace/.cache/flashinfer/" + flashinfer::build::version() + "/native";
  }
  /// The artifacts' folders.
  std::vector<std::string> artifacts() const {
    std::vector<std::string> list;
    for (const std::string& entry : fs::list_dir(folder()))
      if (!entry.starts_with(".") && fs::is_file(folder() + "/" + entry + "/meta.json"))
        list.push_back(folder() + "/" + entry);
    return list;
  }

  std::string root_;

 private:
  void remember(const char* name) {
    const char* old = ::getenv(name);
    before_.try_emplace(name, old ? std::optional<std::string>(old) : std::nullopt);
  }
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace t
