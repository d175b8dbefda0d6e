// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/cli/bench_report.h"

#include <algorithm>

#include "flashinfer/cli/cli.h"
#include "flashinfer/cli/machine.h"
#include "flashinfer/cli/report.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/printable.h"
#include "flashinfer/core/version.h"
#include "flashinfer/kernels/emu/emu.h"

namespace flashinfer::cli {
namespace {

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 1.0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

/// `<name>_s` and `<name>_ratio`, null where it was not measured.
void add_peer(nlohmann::ordered_json& j, const std::string& name, const bench::PeerTime* p) {
  if (name == "over") j[name] = nullptr;
  const bool there = p != nullptr && p->median_s > 0;
  j[name + "_s"] = there ? nlohmann::ordered_json(p->median_s) : nullptr;
  j[name + "_ratio"] = there ? nlohmann::ordered_json(p->ratio) : nullptr;
}

/// What took turns with the row, or nothing.
std::string rivals_of(const bench::Row& r) {
  std::string text;
  const auto add = [&](const std::string& name, const bench::PeerTime& p) {
    if (p.median_s > 0)
      text += str(text.empty() ? "" : "; ", name, " ", p.median_s * 1e6, " us, ", p.ratio, " of the row's time");
  };
  if (r.read_bandwidth > 0)
    text = str("reading ", r.read_bandwidth * 1e-9, " GB/s, ", r.share_of_read, " of the row's time");
  add(r.over.name, r.over);
  for (const bench::PeerTime& p : r.peers) add(p.name, p);
  return text;
}

}  // namespace

nlohmann::ordered_json to_json(const bench::Row& r, double over_first) {
  const double median = r.samples.median();
  nlohmann::ordered_json j = {{"op", r.op},
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
                              {"check", r.check},
                              {"over_first", over_first},
                              {"threads", r.threads},
                              {"read_gb_per_s", r.read_bandwidth * 1e-9},
                              {"share_of_read", r.share_of_read}};
  add_peer(j, "over", &r.over);
  if (!r.over.name.empty()) j["over"] = r.over.name;
  for (const char* name : bench::kPeers) {
    const auto p = std::ranges::find(r.peers, name, &bench::PeerTime::name);
    add_peer(j, name, p == r.peers.end() ? nullptr : &*p);
  }
  j["goal"] = r.goal;
  return j;
}

void print_head() {
  print("%-40s %-14s %-9s %10s %10s %10s %8s %6s %9s %6s %7s  %s\n", "op", "case", "by", "median us", "p10", "p90",
        "GB/s", "/copy", "GFLOP/s", "/peak", "x first", "check");
}

void print_row(const bench::Row& r, double over_first, const std::string& repro) {
  const double m = r.samples.median();
  print("%-40s %-14s %-9s %10.2f %10.2f %10.2f %8.2f %6.2f %9.1f %6.2f %7s  %s\n", r.op.c_str(), r.name.c_str(),
        r.candidate.c_str(), m * 1e6, r.samples.quantile(0.1) * 1e6, r.samples.quantile(0.9) * 1e6,
        r.cost.bytes / m * 1e-9, r.cost.bytes / m / r.copy_bandwidth, r.cost.flops / m * 1e-9,
        r.peak > 0 ? r.cost.flops / m / r.peak : 0.0, over_first > 0 ? str(over_first).substr(0, 7).c_str() : "",
        r.check.c_str());
  if (const std::string rivals = rivals_of(r); !rivals.empty()) print("    %s\n", rivals.c_str());
  print("    %s\n", repro.c_str());
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

std::string csv_head() {
  bench::Row row;
  row.samples.seconds = {1.0};
  const nlohmann::ordered_json columns = to_json(row, 0);
  std::string line;
  for (const auto& [name, value] : columns.items()) line += name + ",";
  return line + "repro_command";
}

std::string csv_line(const bench::Row& r, double over_first, const std::string& repro) {
  const nlohmann::ordered_json columns = to_json(r, over_first);
  std::string line;
  for (const auto& [name, value] : columns.items())
    line += (value.is_null() ? "" : quoted(value.is_string() ? value.get<std::string>() : value.dump())) + ",";
  return line + quoted(repro);
}

std::string bench_page(nlohmann::ordered_json rows) {
  nlohmann::ordered_json machine = nlohmann::ordered_json::array();
  const auto add = [&](const char* title, const std::string& value) { machine.push_back({title, printable(value)}); };
  add("CPU", cpu_model());
  add("kernels for", runnable_targets());
  add("compiler", kernel_compiler());
  add("threads", std::to_string(default_executor().threads));
  add("version", build::version());
  add("commit", build::commit());
  return html_page("flashinfer bench", "bench", {{"machine", machine}, {"rows", std::move(rows)}});
}

}  // namespace flashinfer::cli
