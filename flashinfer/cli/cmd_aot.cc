// SPDX-License-Identifier: Apache-2.0
// `flashinfer aot`: compiles the kernels of the case tables ahead, for machines without a compiler.
#include <string>
#include <vector>

#include "flashinfer/cases/warmup.h"
#include "flashinfer/cli/cli.h"
#include "flashinfer/core/check.h"
#include "flashinfer/jit/aot.h"
#include "flashinfer/op/registry.h"

namespace flashinfer::cli {
namespace {

struct Options {
  std::string out_dir;
  std::vector<std::string> targets{"x86-64-v3", "x86-64-v4"}, ops;
  bool all = false, list = false, quiet = false;
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

/// One line that is rewritten on a terminal, one line each ten percent elsewhere.
void show(const jit::Progress& p) {
  const bool terminal = is_terminal();
  const int64_t step = std::max<int64_t>(1, p.total / 10);
  if (terminal)
    print_error("\r\033[K[%lld/%lld] %s%s", static_cast<long long>(p.done), static_cast<long long>(p.total),
                 p.request->text().c_str(), p.done == p.total ? "\n" : "");
  else if (p.done % step == 0 || p.done == p.total)
    print_error("[%lld/%lld] %s\n", static_cast<long long>(p.done), static_cast<long long>(p.total), p.request->text().c_str());
}

int run(const Options& o) {
  std::vector<std::string> problems;
  const auto requests = cases::kernels(chosen(o.ops), o.all ? 0u : unsigned{op::kAot}, &problems);
  if (o.list) {
    for (const auto& r : requests) print("%s\n", r.text().c_str());
    return problems.empty() ? 0 : 1;
  }
  FI_CHECK(!o.out_dir.empty(), ValueError, "aot: --out-dir is missing");
  std::vector<jit::Target> targets;
  for (const std::string& t : o.targets) targets.push_back(jit::parse_target(t));
  jit::AotResult r = jit::aot(o.out_dir, targets, requests, o.jobs, o.quiet ? nullptr : show);
  problems.insert(problems.end(), r.errors.begin(), r.errors.end());
  for (const std::string& p : problems) print("❌ %s\n", p.c_str());
  print("%lld compiled, %lld up to date, %zu failed in %.1f s; %.1f MB in %s\n", static_cast<long long>(r.compiled),
              static_cast<long long>(r.kept), problems.size(), r.seconds, static_cast<double>(r.bytes) / 1e6, o.out_dir.c_str());
  return problems.empty() ? 0 : 1;
}

}  // namespace

void add_aot(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("aot", "Compile kernels ahead, for machines without a compiler");
  c->add_option("--out-dir", o->out_dir, "folder to fill; programs find it by FLASHINFER_AOT_DIR, or as flashinfer/aot beside the library");
  c->add_option("--target", o->targets, "CPU targets: x86-64-v3, x86-64-v4, native, portable")->delimiter(',')->allow_extra_args(false)->capture_default_str();
  c->add_option("--op", o->ops, "only kernels of these ops")->delimiter(',')->allow_extra_args(false);
  c->add_flag("--all", o->all, "kernels of all cases, not only of those marked for this");
  c->add_flag("--list", o->list, "print the kernels, compile nothing");
  c->add_flag("--quiet", o->quiet, "no progress");
  c->add_option("--jobs,-j", o->jobs, "compilers at once (default MAX_JOBS, else one per core)");
  c->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace flashinfer::cli
