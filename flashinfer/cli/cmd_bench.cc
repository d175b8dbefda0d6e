// SPDX-License-Identifier: Apache-2.0
// `flashinfer bench --op NAME`: times rows of the case tables beside the machine's limits.
#include <nlohmann/json.hpp>
#include <string>

#include "flashinfer/bench/bench.h"
#include "flashinfer/cli/cli.h"
#include "flashinfer/kernels/emu/emu.h"
#include "flashinfer/op/registry.h"

namespace flashinfer::cli {
namespace {

struct Options {
  std::string op, name, args, device = "cpu";
  bool json = false, counts = false;
  bench::Options bench;
};

nlohmann::ordered_json to_json(const bench::Row& r) {
  const double median = r.samples.median();
  return {{"op", r.op},
          {"case", r.name},
          {"candidate", r.candidate},
          {"args", r.args},
          {"calls", r.samples.seconds.size()},
          {"median_s", median},
          {"p10_s", r.samples.quantile(0.1)},
          {"p90_s", r.samples.quantile(0.9)},
          {"bytes", r.cost.bytes},
          {"flops", r.cost.flops},
          {"gb_per_s", r.cost.bytes / median * 1e-9},
          {"gflop_per_s", r.cost.flops / median * 1e-9},
          {"copy_gb_per_s", r.copy_bandwidth * 1e-9},
          {"share_of_copy", r.cost.bytes / median / r.copy_bandwidth},
          {"peak_gflop_per_s", r.peak * 1e-9},
          {"share_of_peak", r.peak > 0 ? r.cost.flops / median / r.peak : 0.0},
          {"check", r.check}};
}

void print_row(const bench::Row& r, const std::string& where) {
  const double m = r.samples.median();
  print("%-40s %-14s %-9s %10.2f %10.2f %10.2f %8.2f %6.2f %9.1f %6.2f  %s\n", r.op.c_str(), r.name.c_str(),
        r.candidate.c_str(), m * 1e6, r.samples.quantile(0.1) * 1e6, r.samples.quantile(0.9) * 1e6,
        r.cost.bytes / m * 1e-9, r.cost.bytes / m / r.copy_bandwidth, r.cost.flops / m * 1e-9,
        r.peak > 0 ? r.cost.flops / m / r.peak : 0.0, r.check.c_str());
  print("    flashinfer bench --op %s%s --args \"%s\"\n", r.op.c_str(), where.c_str(), r.args.c_str());
}

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 1.0 : static_cast<double>(part) / static_cast<double>(whole);
}

void print_counts(const bench::CountedRow& r) {
  print("%s %s: the call needs %.0f bytes of memory traffic\n", r.op.c_str(), r.name.c_str(), r.least_bytes);
  for (const jit::EmulatedLaunch& l : r.launches) {
    const emu::Counts& n = *l.counts;
    const uint64_t bytes = n.global_load_bytes + n.global_store_bytes,
                   sectors = n.global_load_sectors + n.global_store_sectors;
    print("  %s grid %ux%ux%u block %u shared %u\n", l.kernel.c_str(), l.launch.grid[0], l.launch.grid[1],
          l.launch.grid[2], l.launch.block[0] * l.launch.block[1] * l.launch.block[2], l.launch.shared_bytes);
    print(
        "    global: %llu bytes asked (%.3f of the least), %llu sectors of 32 bytes, %.3f of them needed by their "
        "requests\n",
        static_cast<unsigned long long>(bytes), static_cast<double>(bytes) / r.least_bytes,
        static_cast<unsigned long long>(sectors), share(n.least_load_sectors + n.least_store_sectors, sectors));
    print("%s", n.text().c_str());
  }
}

nlohmann::ordered_json to_json(const bench::CountedRow& r) {
  nlohmann::ordered_json j = {{"op", r.op}, {"case", r.name}, {"args", r.args}, {"least_bytes", r.least_bytes}};
  for (const jit::EmulatedLaunch& l : r.launches) {
    const emu::Counts& n = *l.counts;
    j["launches"].push_back({{"kernel", l.kernel},
                             {"grid", l.launch.grid},
                             {"block", l.launch.block},
                             {"shared_bytes", l.launch.shared_bytes},
                             {"global_load_bytes", n.global_load_bytes},
                             {"global_store_bytes", n.global_store_bytes},
                             {"global_load_sectors", n.global_load_sectors},
                             {"global_store_sectors", n.global_store_sectors},
                             {"least_load_sectors", n.least_load_sectors},
                             {"least_store_sectors", n.least_store_sectors},
                             {"shared_requests", n.shared_requests},
                             {"bank_conflicts", n.bank_conflicts()},
                             {"mma", n.mma},
                             {"barriers", n.barriers},
                             {"shuffles", n.shuffles},
                             {"async_copies", n.async_copies}});
  }
  return j;
}

int run_counts(const op::Op& op, const std::vector<op::Case>& rows, bool json) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const op::Case& c : rows) {
    const bench::CountedRow r = bench::count(op, c);
    if (json)
      all.push_back(to_json(r));
    else
      print_counts(r);
  }
  if (json) print("%s\n", all.dump(2).c_str());
  return 0;
}

int run(Options o) {
  const op::Op* op = op::find_op(o.op);
  FI_CHECK(op, ValueError, "there is no op named '", o.op, "'; `flashinfer list-ops` prints them");
  std::vector<op::Case> rows;
  if (!o.args.empty())
    rows.push_back({.name = "given", .args = o.args.c_str(), .candidate = ""});
  else
    for (const op::Case& c : op->cases())
      if (o.name.empty() ? (c.tags & op::kBench) != 0 : o.name == c.name) rows.push_back(c);
  FI_CHECK(!rows.empty(), ValueError, "op '", o.op, "' has no ",
           o.name.empty() ? "rows for bench" : "case named '" + o.name + "'");
  const auto device = parse_device(o.device);
  FI_CHECK(device, ValueError, "--device ", o.device, " is none of cpu, cuda, cuda:N, emu");
  FI_CHECK(!o.counts || device->type == DeviceType::kEmu, ValueError, "--counts needs --device emu, but it is ",
           o.device);
  FI_CHECK(o.counts || device->type != DeviceType::kEmu, ValueError, "--device ", o.device,
           " times nothing here: the emulator's time means nothing (--counts)");
  FI_CHECK(!o.bench.cold || device->type == DeviceType::kCUDA, ValueError, "--cold needs --device cuda, but it is ",
           o.device);
  o.bench.device = *device;
  if (o.counts) return run_counts(*op, rows, o.json);
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  if (!o.json)
    print("%-40s %-14s %-9s %10s %10s %10s %8s %6s %9s %6s  %s\n", "op", "case", "by", "median us", "p10", "p90",
          "GB/s", "/copy", "GFLOP/s", "/peak", "check");
  bool failed = false;
  for (const op::Case& c : rows) {
    const bench::Row r = bench::run(*op, c, o.bench);
    failed |= !r.check.empty() && r.check != "ok";
    if (o.json)
      all.push_back(to_json(r));
    else
      print_row(r, device->type == DeviceType::kCPU
                       ? ""
                       : str(" --device ", to_string(*device), o.bench.cold ? " --cold" : ""));
  }
  if (o.json) print("%s\n", all.dump(2).c_str());
  return failed ? 1 : 0;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("bench", "Time an op beside the machine's copy bandwidth and arithmetic peak");
  c->add_option("--op", o->op, "the op")->required();
  c->add_option("--case", o->name, "the row of this name (default: the rows meant for bench)");
  c->add_option("--args", o->args, "a case as text, as for `flashinfer cases`");
  c->add_option("--seconds", o->bench.seconds, "time spent on a row (default 0.5)");
  c->add_flag("--refcheck", o->bench.refcheck, "check the result against the reference first");
  c->add_option("--device", o->device,
                "cpu (default), cuda or cuda:N (timed by the GPU's events), or emu with --counts");
  c->add_flag("--cold", o->bench.cold, "on a GPU: overwrite its L2 cache before each call");
  c->add_flag("--counts", o->counts, "count memory sectors, bank conflicts and instructions on the emulator");
  c->add_flag("--json", o->json, "print JSON");
  c->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace flashinfer::cli
