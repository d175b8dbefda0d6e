// SPDX-License-Identifier: Apache-2.0
// `flashinfer cases [OP]`: runs case tables, or one case given as text (the command that a failing test prints).
#include <string>

#include "flashinfer/cases/run.h"
#include "flashinfer/cli/cli.h"
#include "flashinfer/cli/progress.h"
#include "flashinfer/op/registry.h"

namespace flashinfer::cli {
namespace {

struct Options {
  std::string op, args, name, candidate = "cpu", device = "cpu";
  int seeds = 3;
  bool list = false, precompiled = false;
};

const op::Op& find(const std::string& name) {
  const op::Op* op = op::find_op(name);
  FI_CHECK(op, ValueError, "there is no op named '", name, "'; `flashinfer list-ops` prints them");
  return *op;
}

int run(const Options& o) {
  std::vector<const op::Op*> ops = o.op.empty() ? op::all_ops() : std::vector<const op::Op*>{&find(o.op)};
  int passed = 0, failed = 0, unsupported = 0;
  size_t begun = 0;
  Progress progress("cases");
  const auto device = parse_device(o.device);
  FI_CHECK(device, ValueError, "--device ", o.device, " is none of cpu, cuda, cuda:N, emu");
  auto one = [&](const op::Op& op, const op::Case& c) {
    if (!o.name.empty() && o.name != c.name) return;
    if (o.op.empty() && !cases::supports(op, *device)) return;
    if (o.precompiled && (c.tags & op::kAot) == 0) return;
    if (o.list) {
      print("%s %s: %s\n", op.name, c.name, c.args);
      return;
    }
    if (c.tags == op::kBench && o.name.empty()) return;  // large: `flashinfer bench`
    progress.show(begun++, 0, str(op.name, " ", c.name));
    const cases::CaseResult r = cases::run_case(op, c, {*device, o.seeds});
    const std::string why = r.passed ? r.unsupported : r.failure;
    ++(!r.passed ? failed : r.unsupported.empty() ? passed : unsupported);
    print("%s %s %s%s%s\n",
          !r.passed               ? "FAIL"
          : r.unsupported.empty() ? "ok  "
                                  : "no  ",
          op.name, c.name, why.empty() ? "" : ": ", why.c_str());
    if (!r.passed) print("     %s\n", r.repro.c_str());
  };
  if (!o.args.empty()) {
    FI_CHECK(!o.op.empty(), ValueError, "--args needs the op's name");
    one(*ops.front(), op::Case{.name = "given", .args = o.args.c_str(), .candidate = o.candidate.c_str()});
  } else {
    for (const op::Op* op : ops)
      for (const op::Case& c : op->cases()) one(*op, c);
  }
  if (!o.list)
    print("%d passed, %d failed%s\n", passed, failed,
          unsupported ? str(", ", unsupported, " unsupported there").c_str() : "");
  return failed ? 1 : 0;
}

}  // namespace

void add_cases(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* c =
      app.add_subcommand("cases", "Run the case tables: every candidate against the double-precision reference");
  c->add_option("op", o->op, "only this op");
  c->add_option("--case", o->name, "only the case of this name");
  c->add_option("--args", o->args, "one case as text, e.g. \"input=bf16:4x5120 weight=bf16:5120\"");
  c->add_option("--candidate", o->candidate, "the implementation that must run --args (default cpu)");
  c->add_option("--device", o->device, "where the tensors are: cpu (default), cuda, cuda:N, emu (the CUDA emulator)");
  c->add_option("--seeds", o->seeds, "schedules a case runs under on the emulator (default 3)");
  c->add_flag("--precompiled", o->precompiled, "only cases whose kernels `flashinfer aot` precompiles");
  c->add_flag("--list", o->list, "print the cases, run nothing");
  c->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace flashinfer::cli
