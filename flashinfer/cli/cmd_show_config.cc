// SPDX-License-Identifier: Apache-2.0
// `flashinfer show-config`: the library, the machine, and every environment variable with its meaning and value.
#include <algorithm>
#include <string>

#include "flashinfer/cli/cli.h"
#include "flashinfer/cli/machine.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/thread_pool.h"
#include "flashinfer/core/version.h"
#include "flashinfer/jit/cache.h"
#include "flashinfer/jit/cubins.h"
#include "flashinfer/jit/precompiled_header.h"
#include "flashinfer/jit/toolchain.h"

namespace flashinfer::cli {
namespace {

void section(const char* title) { print("=== %s ===\n", title); }
void line(const char* key, const std::string& value) {
  print("%s: %s\n", key, value.empty() ? "(none)" : value.c_str());
}

void show_versions() {
  section("Version Info");
  line("FlashInfer version", build::version());
  line("Commit", build::commit());
  line("Compiler", build::compiler());
  line("Build type", build::build_type());
  line("Sanitizers", build::sanitizer_flags());
  print("\n");
}

/// "Torch Version Info" when the host knows of one.
void show_torch() {
  for (const Section& s : host_sections()) {
    if (s.title != "PyTorch") continue;
    section("Torch Version Info");
    for (const auto& [key, value] : s.lines) line(key.c_str(), value);
    print("\n");
  }
}

void show_machine() {
  section("CPU");
  line("Model", cpu_model());
  line("Kernels run for", runnable_targets());
  line("CPUs this process may use", std::to_string(usable_cpus()));
  line("Threads of the pool", std::to_string(default_executor().threads));
  print("\n");
}

void show_variables() {
  section("Environment Variables");
  for (const env::Variable& v : env::table()) {
    const env::Current current = env::current(v.name);
    print("%s: %s%s\n    %s\n", v.name, current.value.empty() ? "(empty)" : current.value.c_str(),
          current.set ? "" : " [default]", v.meaning);
  }
  print("\n");
}

/// Of the package flashinfer-cpp-cubin, when it is installed.
void show_cubins() {
  const std::vector<jit::PackagedCubin> cubins = jit::packaged_cubins();
  section("Downloaded Cubins");
  print("Downloaded %lld/%zu cubins: %s\n\n",
        static_cast<long long>(std::ranges::count(cubins, true, &jit::PackagedCubin::present)), cubins.size(),
        cubins.empty() ? "kernels are compiled where they run, or come precompiled with the package"
                       : ("installed in " + cubins.front().folder + "; nothing is downloaded").c_str());
}

void show_jit() {
  section("Toolchain");
  line("C++ compiler", kernel_compiler());
  line("Kernels are compiled for", jit::name(jit::selected_target()));
  print("\n");
  section("Artifact Path");
  line("Cache", jit::cache_path());
  for (const std::string& folder : jit::aot_folders()) line("Precompiled", folder);
  print("\n");
  show_cubins();
  section("Module Status");
  int64_t compiled = 0, damaged = 0;
  std::vector<std::string> targets{jit::kModulesFolder};
  for (const jit::Target t : jit::all_targets()) targets.push_back(jit::name(t));
  for (const std::string& target : targets) {
    const std::string folder = jit::cache_path() + "/" + target;
    for (const std::string& name : fs::list_dir(folder)) {
      if (!fs::is_dir(folder + "/" + name) || name.starts_with(jit::kPrecompiledHeaderPrefix) ||
          (target == jit::kModulesFolder && !name.starts_with(".") && !fs::is_file(folder + "/" + name + "/meta.json")))
        continue;
      (jit::read_meta(folder + "/" + name) ? compiled : damaged) += 1;
    }
  }
  print("Total modules: %lld\ncompiled: %lld\nNot compiled: %lld\n", static_cast<long long>(compiled + damaged),
        static_cast<long long>(compiled), static_cast<long long>(damaged));
}

}  // namespace

void add_show_config(CLI::App& app, int& exit_code) {
  app.add_subcommand("show-config", "Versions, CPU, threads, toolchain, modules and every environment variable")
      ->callback([&exit_code] {
        show_versions();
        show_torch();
        show_machine();
        show_variables();
        show_jit();
        exit_code = 0;
      });
}

}  // namespace flashinfer::cli
