// SPDX-License-Identifier: Apache-2.0
// `flashinfer aot`: precompiles the kernels of the case tables, for machines without a compiler.
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "flashinfer/cases/warmup.h"
#include "flashinfer/cli/cli.h"
#include "flashinfer/cli/progress.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/device.h"
#include "flashinfer/jit/aot.h"
#include "flashinfer/jit/cuda_load.h"
#include "flashinfer/jit/targets.h"
#include "flashinfer/op/registry.h"

namespace flashinfer::cli {
namespace {

struct Options {
  std::string out_dir;
  std::vector<std::string> targets, ops;
  bool cuda_arch_list = false, all = false, list = false, quiet = false;
  int jobs = 0;
};

std::vector<const op::Op*> chosen(const std::vector<std::string>& names) {
  if (names.empty()) return op::all_ops();
  std::vector<const op::Op*> ops;
  for (const std::string& n : names) {
    ops.push_back(op::find_op(n));
    FI_CHECK(ops.back() != nullptr, ValueError, "there is no op named '", n, "'; `flashinfer list-ops` prints them");
  }
  return ops;
}

/// A bar on a terminal, elsewhere one line each ten percent.
void show(Progress& bar, const jit::Progress& p) {
  bar.show(static_cast<size_t>(p.done), static_cast<size_t>(p.total), p.request->text());
  const int64_t step = std::max<int64_t>(1, p.total / 10);
  if (!errors_to_terminal() && (p.done % step == 0 || p.done == p.total))
    print_error("[%lld/%lld] %s\n", static_cast<long long>(p.done), static_cast<long long>(p.total),
                p.request->text().c_str());
}

using Listed = std::vector<std::pair<jit::Target, std::vector<jit::Request>>>;

/// FLASHINFER_CUDA_ARCH_LIST, else what this machine's GPUs run best.
std::vector<jit::Target> cuda_targets() {
  std::vector<jit::Target> targets = jit::arch_list();
  if (targets.empty()) targets = jit::visible_gpu_targets();
  FI_CHECK(!targets.empty(), ValueError,
           "aot --cuda: FLASHINFER_CUDA_ARCH_LIST is not set, and there is no GPU to compile for: ",
           cuda::why_no_device(0), ". Name architectures with it (\"8.0 9.0a\"), or with --targets sm_80,sm_90a");
  return targets;
}

/// The kernels by target: heuristics may choose different kernels for different GPUs.
Listed list_kernels(const Options& o, std::vector<std::string>& problems) {
  const auto ops = chosen(o.ops);
  const unsigned tags = o.all ? 0u : unsigned{op::kAot};
  std::vector<jit::Target> targets;
  for (const std::string& t : o.targets) targets.push_back(jit::parse_target(t));
  if (o.cuda_arch_list)
    for (const jit::Target t : cuda_targets()) targets.push_back(t);
  Listed list;
  std::optional<std::vector<jit::Request>> cpu;  // the same for all of them
  for (const jit::Target t : targets) {
    if (!jit::is_cpu(t)) {
      const int arch = jit::is_gpu(t) ? jit::arch_of(t).number : 90;
      auto& requests = list.emplace_back(t, cases::cuda_kernels(ops, tags, arch, &problems)).second;
      if (!o.ops.empty()) continue;
      for (jit::Request& r : cases::cuda_kernels_beside_cases(arch)) requests.push_back(std::move(r));
      continue;
    }
    if (!cpu) cpu = cases::kernels(ops, tags, &problems);
    list.emplace_back(t, *cpu);
  }
  return list;
}

int run(const Options& o) {
  std::vector<std::string> problems;
  const Listed list = list_kernels(o, problems);
  if (o.list) {
    std::set<std::string> seen;
    for (const auto& [target, requests] : list)
      for (const auto& r : requests)
        if (seen.insert(r.text()).second) print("%s\n", r.text().c_str());
    return problems.empty() ? 0 : 1;
  }
  FI_CHECK(!o.out_dir.empty(), ValueError, "aot: --out-dir is missing");
  jit::AotResult all;
  for (const auto& [target, requests] : list) {
    const jit::Target one[] = {target};
    std::optional<Progress> bar;
    std::function<void(const jit::Progress&)> on_kernel;
    if (!o.quiet) on_kernel = [&, b = &bar.emplace(str("aot ", jit::name(target)))](const auto& p) { show(*b, p); };
    const jit::AotResult r = jit::aot(o.out_dir, one, requests, o.jobs, on_kernel);
    bar.reset();
    all.compiled += r.compiled, all.kept += r.kept, all.seconds += r.seconds, all.bytes += r.bytes;
    problems.insert(problems.end(), r.errors.begin(), r.errors.end());
    print("%-17s %5lld kernels %10.1f KB", jit::name(target), static_cast<long long>(r.compiled + r.kept),
          static_cast<double>(r.bytes) / 1e3);
    print(r.shared == 0 ? "\n" : ", %lld of them shared with another level\n", static_cast<long long>(r.shared));
  }
  for (const std::string& p : problems) print("❌ %s\n", p.c_str());
  print("%lld compiled, %lld up to date, %zu failed in %.1f s; %.1f MB in %s\n", static_cast<long long>(all.compiled),
        static_cast<long long>(all.kept), problems.size(), all.seconds, static_cast<double>(all.bytes) / 1e6,
        o.out_dir.c_str());
  return problems.empty() ? 0 : 1;
}

}  // namespace

void add_aot(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<Options>();
  for (const jit::CpuLevel& level : jit::cpu_levels()) o->targets.push_back(level.name);
  CLI::App* c = app.add_subcommand("aot", "Precompile kernels, for machines without a compiler");
  c->add_option("--out-dir,--out", o->out_dir,
                "folder to fill; programs find it by FLASHINFER_AOT_DIR, or as flashinfer/aot beside the library");
  c->add_option("--target,--targets", o->targets,
                "x86-64-v3, x86-64-v3-avxvnni, x86-64-v4, x86-64-v4-vnni, x86-64-v4-bf16, x86-64-v4-amx, native, "
                "portable; GPUs: sm_80, "
                "sm_90a, ...; emu (the emulator)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  c->add_option("--op", o->ops, "only kernels of these ops")->delimiter(',')->allow_extra_args(false);
  c->add_flag("--cuda", o->cuda_arch_list,
              "also the architectures of FLASHINFER_CUDA_ARCH_LIST, else those of this machine's GPUs");
  c->add_flag("--all", o->all, "kernels of all cases, not only of those marked for this");
  c->add_flag("--list", o->list, "print the kernels, compile nothing");
  c->add_flag("--quiet", o->quiet, "no progress");
  c->add_option("--jobs,-j", o->jobs, "compilers at once (default MAX_JOBS, else one per core)");
  c->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace flashinfer::cli
