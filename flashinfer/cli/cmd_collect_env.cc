// SPDX-License-Identifier: Apache-2.0
// `flashinfer collect-env`: a report for bug reports. It always succeeds: facts that cannot be determined are reported
// as missing.
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "flashinfer/cli/cli.h"
#include "flashinfer/cli/machine.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/process.h"
#include "flashinfer/core/thread_pool.h"
#include "flashinfer/core/version.h"
#include "flashinfer/jit/cache.h"
#include "flashinfer/jit/source.h"
#include "flashinfer/jit/toolchain.h"
#include "flashinfer/op/registry.h"

namespace flashinfer::cli {
namespace {

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

/// The text after `name` and a separator in a file of such lines; empty when there is none.
std::string value_in(const std::string& path, const std::string& name) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name)) {
      const size_t start = line.find_first_not_of(" \t:=\"", name.size());
      line = trimmed(line.substr(std::min(start, line.size())));
      return line.ends_with('"') ? line.substr(0, line.size() - 1) : line;
    }
  return {};
}

std::string or_else(const std::string& text, const char* otherwise) { return text.empty() ? otherwise : text; }

Section this_library() {
  Section s{"FlashInfer",
            {{"flashinfer", build::version()},
             {"flashinfer commit", build::commit()},
             {"compiler", build::compiler()},
             {"build type", build::build_type()},
             {"ops", std::to_string(op::all_ops().size())},
             {"library", fs::object_of(reinterpret_cast<const void*>(&build::version))},
             {"kernel headers", or_else(jit::include_root(), "not found")},
             {"kernel compiler", kernel_compiler()},
             {"kernels compiled for", jit::name(jit::selected_target())},
             {"kernel cache", or_else(jit::cache_path(), "none")}}};
  std::string aot;
  for (const std::string& folder : jit::aot_folders()) aot += (aot.empty() ? "" : ", ") + folder;
  s.lines.emplace_back("precompiled kernels", or_else(aot, "none"));
  return s;
}

Section platform() {
  utsname u{};
  ::uname(&u);
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  char gib[32];
  std::snprintf(gib, sizeof(gib), "%.1f GiB", memory / (1 << 30));
  return {"Python / Platform",
          {{"OS", or_else(value_in("/etc/os-release", "PRETTY_NAME"), u.sysname)},
           {"kernel", u.release},
           {"architecture", u.machine},
           {"glibc", ::gnu_get_libc_version()},
           {"CPU", cpu_model()},
           {"kernels run for", runnable_targets()},
           {"CPUs this process may use", std::to_string(usable_cpus())},
           {"memory", gib}}};
}

Section gpus() {
  Section s{"GPU / Driver",
            {{"driver", or_else(value_in("/proc/driver/nvidia/version", "NVRM version"), "no NVIDIA driver")}}};
  const std::string folder = "/proc/driver/nvidia/gpus";
  for (const std::string& bus : fs::list_dir(folder))
    s.lines.emplace_back(bus, value_in(folder + "/" + bus + "/information", "Model"));
  return s;
}

std::string on_path(const std::string& program) { return process::find_executable(program, env::text("PATH")); }

Section cuda_toolkit() {
  const std::string nvcc = on_path("nvcc");
  if (nvcc.empty()) return {"CUDA Toolkit", {{"nvcc", "not on PATH"}}};
  std::istringstream lines(process::run({nvcc, "--version"}, {.timeout_seconds = 10}).output);
  std::string release;
  for (std::string line; std::getline(lines, line);)
    if (line.find("release") != std::string::npos) release = line;
  return {"CUDA Toolkit", {{"nvcc", nvcc}, {"version", or_else(release, "nvcc --version failed")}}};
}

Section gpu_libraries() {
  std::ifstream maps("/proc/self/maps");
  const std::string loaded{std::istreambuf_iterator<char>(maps), {}};
  const std::string disk = process::run({"/sbin/ldconfig", "-p"}, {.timeout_seconds = 10}).output;
  Section s{"GPU Libraries: loaded vs on disk", {}};
  for (const char* name :
       {"libcuda.so", "libcudart.so", "libnvrtc.so", "libcublasLt.so", "libcudnn.so", "libnccl.so"}) {
    const size_t in_memory = loaded.find(std::string("/") + name), entry = disk.find(std::string("\t") + name);
    const size_t arrow = entry == std::string::npos ? entry : disk.find("=> ", entry);
    const size_t line = in_memory == std::string::npos ? 0 : loaded.rfind('\n', in_memory) + 1;
    const std::string path =
        in_memory == std::string::npos
            ? "not loaded"
            : trimmed(loaded.substr(loaded.find('/', line), loaded.find('\n', in_memory) - loaded.find('/', line)));
    s.lines.emplace_back(name, path + "; " +
                                   (arrow == std::string::npos
                                        ? "not on disk"
                                        : "on disk " + disk.substr(arrow + 3, disk.find('\n', arrow) - arrow - 3)));
  }
  return s;
}

Section variables() {
  Section s{"Environment Variables", {}};
  for (char** v = ::environ; v != nullptr && *v != nullptr; ++v) {
    const std::string text = *v, name = text.substr(0, text.find('='));
    const auto begins = [&](const char* p) { return name.starts_with(p); };
    if (!std::ranges::any_of(
            std::to_array({"FLASHINFER", "CUDA", "NVIDIA", "NVCC", "NCCL", "TORCH", "PYTORCH", "OMP_", "MKL_", "KMP_",
                           "CXX", "CC", "MAX_JOBS", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH"}),
            begins))
      continue;
    std::string upper = name;
    std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    const auto has = [&](const char* word) { return upper.find(word) != std::string::npos; };
    const bool secret = std::ranges::any_of(std::to_array({"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"}), has);
    s.lines.emplace_back(name, secret ? "<redacted>" : text.substr(std::min(text.size(), name.size() + 1)));
  }
  std::ranges::sort(s.lines);
  return s;
}

Section topology() {
  const std::string smi = on_path("nvidia-smi");
  Section s{"GPU Topology", {}};
  if (smi.empty()) return s.lines.emplace_back("nvidia-smi", "not on PATH"), s;
  std::istringstream lines(process::run({smi, "topo", "-m"}, {.timeout_seconds = 20}).output);
  int n = 0;
  for (std::string line; std::getline(lines, line);)
    if (!trimmed(line).empty()) s.lines.emplace_back(str("line ", ++n), trimmed(line));
  return s;
}

std::vector<Section> report() {
  std::vector<Section> all{this_library(),  platform(),
                           gpus(),          cuda_toolkit(),
                           {"PyTorch", {}}, {"cuDNN Frontend", {}},
                           gpu_libraries(), {"Relevant Packages", {}},
                           variables(),     topology()};
  for (const Section& theirs : host_sections()) {
    const auto ours = std::ranges::find(all, theirs.title, &Section::title);
    if (ours == all.end())
      all.push_back(theirs);
    else
      ours->lines.insert(ours->lines.end(), theirs.lines.begin(), theirs.lines.end());
  }
  for (Section& s : all)
    if (s.lines.empty())
      s.lines.emplace_back("status", s.title == "Environment Variables" ? "none set" : "not in this process");
  return all;
}

void print_json(const std::vector<Section>& sections) {
  nlohmann::ordered_json all;
  for (const Section& s : sections)
    for (const auto& [key, value] : s.lines) all[s.title][key] = value;
  print("%s\n", all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

void print_text(const std::vector<Section>& sections) {
  print("### FlashInfer environment report\n<!-- paste this whole report into an issue -->\n");
  size_t width = 0;
  for (const Section& s : sections)
    for (const auto& [key, value] : s.lines) width = std::max(width, key.size());
  for (const Section& s : sections) {
    print("\n==== %s ====\n", s.title.c_str());
    for (const auto& [key, value] : s.lines) print("%-*s : %s\n", static_cast<int>(width), key.c_str(), value.c_str());
  }
}

}  // namespace

void add_collect_env(CLI::App& app, int& exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* c =
      app.add_subcommand("collect-env", "Report this library, the machine and the environment, for a bug report");
  c->add_flag("--json", *json, "print JSON: {section: {key: value}}");
  c->callback([json, &exit_code] {
    const std::vector<Section> sections = report();
    *json ? print_json(sections) : print_text(sections);
    exit_code = 0;
  });
}

}  // namespace flashinfer::cli
