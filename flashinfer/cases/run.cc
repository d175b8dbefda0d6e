// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/cases/run.h"

#include <optional>

#include "flashinfer/cases/fill.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/layout_error.h"
#include "flashinfer/jit/emulator.h"
#include "flashinfer/jit/targets.h"
#include "flashinfer/ops/attention/cuda/launch.h"

namespace flashinfer::cases {
namespace {

bool is_output(op::Role r) {
  return r == op::Role::kOut || r == op::Role::kResult || r == op::Role::kInOut || r == op::Role::kPagedInOut;
}
struct Failure {
  std::string what;
};

void expect_same(const Outputs& a, const Outputs& b, const char* variant) {
  if (a.tensors.size() != b.tensors.size())
    throw Failure{str(variant, ": ", b.tensors.size(), " outputs instead of ", a.tensors.size())};
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    const Comparison c = compare_bits(b.tensors[i].second.view(), a.tensors[i].second.view());
    if (!c.equal)
      throw Failure{str(variant, ": ", a.tensors[i].first, " is not bitwise equal to the first run; ", c.text)};
  }
}

/// Attention of e4m3 queries on GPUs with products of e4m3, whose sums keep 14 bits: an LSE is within 1e-3.
bool sums_of_e4m3(const op::Case& c, Device device) {
  if (device.type == DeviceType::kCPU) return false;
  const std::string_view args = c.args;
  return cuda::attention_has_e4m3(jit::arch_number(device)) &&
         (args.starts_with("q=e4m3") || args.find(" q=e4m3") != args.npos || args.find("query=e4m3") != args.npos);
}

op::Tolerance tolerance_of(const op::Op& op, const op::Case& c, DType t, Device device) {
  op::Tolerance tol = default_tolerance(t);
  if (!is_floating(t)) return tol;
  if (t == DType::kF32 && sums_of_e4m3(c, device)) tol = {1e-3, 1e-3};
  tol.rtol = c.rtol >= 0 ? c.rtol : std::max(tol.rtol, op.tolerance.rtol);
  tol.atol = c.atol >= 0 ? c.atol : std::max(tol.atol, op.tolerance.atol);
  return tol;
}

Outputs run_guarded(const op::Op& op, Built& b, const char* variant) {
  Outputs out = run_block(b);
  if (std::string e = check_guards(b, op); !e.empty()) throw Failure{str(variant, ": ", e)};
  return out;
}

void check_reference(const op::Op& op, const op::Case& c, const Outputs& got, Device device) {
  if (op.candidates.back().backend != op::Backend::kReference) return;
  Built b = build(op, c.args);
  op::ForceCandidate force("reference");
  const Outputs want = run_block(b);
  for (size_t i = 0; i < got.tensors.size(); ++i) {
    const auto& [name, t] = got.tensors[i];
    const op::Tolerance tol = tolerance_of(op, c, t.dtype(), device);
    const Comparison r = compare(t.view(), want.tensors.at(i).second.view(), tol.rtol, tol.atol);
    if (!r.equal) throw Failure{str("against the reference: ", name, " ", r.text)};
  }
}

/// The same call with every absent output supplied, between guards; false: none is absent.
bool check_given_outputs(const op::Op& op, const op::Case& c, const Outputs& first, Device device) {
  Built b = build(op, c.args, {.device = device});
  std::vector<std::unique_ptr<GuardedTensor>> given;
  for (const auto& [name, t] : first.tensors) {
    const op::Field* f = op::find_field(op, name);
    if (!f || !f->assign || (f->role != op::Role::kOut && f->role != op::Role::kResult) ||
        !f->get(b.block.data()).is_none())
      continue;
    given.push_back(guarded(name, t.shape(), t.dtype(), device));
    f->assign(b.block.data(), given.back()->tensor.view());
  }
  if (given.empty()) return false;
  expect_same(first, run_guarded(op, b, "outputs given"), "outputs given");
  for (const auto& g : given)
    if (std::string e = check_guards(*g, true); !e.empty()) throw Failure{str("outputs given: ", e)};
  return true;
}

std::string served_by_another(const op::Op& op, const Built& b, std::string_view wanted);
const char* gpu_candidate(const op::Op& op, Device device);

void check_padded(const op::Op& op, const op::Case& c, const Outputs& first, Device device) {
  try {
    Built b = build(op, c.args, {.device = device, .pad_inputs = true});
    // Rows that 8 elements more bring out of alignment may have no kernel on a GPU.
    if (device.type != DeviceType::kCPU && !served_by_another(op, b, gpu_candidate(op, device)).empty()) return;
    expect_same(first, run_guarded(op, b, "padded rows"), "padded rows");
  } catch (const UnsupportedLayout&) {  // an op may require contiguous arguments, if its error says so
  }
}

/// False: the op wants other rows, or has no kernel for them.
bool check_spread(const op::Op& op, const op::Case& c, const Outputs& first, Device device) {
  try {
    Built b = build(op, c.args, {.device = device, .spread_inputs = true});
    if (!served_by_another(op, b, gpu_candidate(op, device)).empty()) return false;
    expect_same(first, run_guarded(op, b, "rows 2^33 elements apart"), "rows 2^33 elements apart");
    return true;
  } catch (const UnsupportedLayout&) {
    return false;
  }
}

void check_threads(const op::Op& op, const op::Case& c, const Outputs& first) {
  for (int threads : {1, 3}) {
    const auto pool = make_thread_pool(threads);
    Context context = Context::current();
    context.executor = *pool;
    ContextScope scope(context);
    Built b = build(op, c.args);
    expect_same(first, run_block(b), threads == 1 ? "one thread" : "three threads");
  }
}

}  // namespace

Outputs run_block(Built& b) {
  const op::Op& op = b.block.op();
  const op::Results results = op::run(op, b.block.data());
  Outputs out;
  for (const op::Field& f : op.fields) {
    if (!f.tensors || !is_output(f.role)) continue;
    const op::Views v = f.tensors(b.block.data());
    for (int i = 0; i < v.size(); ++i) {
      std::shared_ptr<void> owner;  // of memory that the call allocated
      for (int r = 0; r < results.size(); ++r)
        if (results[r].data() == v[i].data()) owner = results[r].owner();
      for (const auto& t : b.tensors)
        if (!owner && t->tensor.data() == v[i].data()) owner = t->tensor.owner();
      out.tensors.emplace_back(f.name, Tensor(v[i], owner));
    }
  }
  return out;
}

namespace {

/// Empty, or why another candidate than `wanted` would run the call.
std::string served_by_another(const op::Op& op, const Built& b, std::string_view wanted) {
  const op::Selection s = op::explain(op, b.block.data());
  if (s.candidate && s.candidate->name == wanted) return {};
  std::string reasons;
  for (const auto& [who, why] : s.rejections) reasons += str("; ", who->name, ": ", why);
  return str("run by ", s.candidate ? s.candidate->name : "nothing", " instead of ", wanted, reasons);
}

void check_again(const op::Op& op, const op::Case& c, const Outputs& first, Device device, const std::string& variant) {
  Built again = build(op, c.args, {.device = device});
  expect_same(first, run_block(again), variant.c_str());
}
/// The emulator's second schedule is that of the call with given outputs, if it has any, and with padded rows: one
/// schedule gives the same bits every time, so that the call is repeated under others alone.
void check_schedules(const op::Op& op, const op::Case& c, const Outputs& first, const DeviceRun& run) {
  int seed = 1;
  {
    std::optional<jit::Emulation> emulation;
    if (run.seeds > 0) emulation.emplace(1);
    if (check_given_outputs(op, c, first, run.device)) ++seed;
    check_padded(op, c, first, run.device);
  }
  if (seed <= run.seeds) {
    const jit::Emulation emulation(static_cast<uint64_t>(seed));
    if (check_spread(op, c, first, run.device)) ++seed;
  }
  if (run.seeds == 0 && seed == 1) check_again(op, c, first, run.device, "second run");
  for (; seed <= run.seeds; ++seed) {
    const jit::Emulation emulation(static_cast<uint64_t>(seed));
    check_again(op, c, first, run.device, str("schedule ", seed));
  }
}

/// A library's kernels are not on the emulator.
bool runs_on(const op::Candidate& c, Device device) {
  return device.type != DeviceType::kEmu || c.backend != op::Backend::kCublasLt;
}
/// "cuda", or the name of the op's GPU candidate that has another name ("cuda_cublaslt").
const char* gpu_candidate(const op::Op& op, Device device) {
  for (const op::Candidate& c : op.candidates)
    if (op::place(c.backend) == op::Place::kGpu && runs_on(c, device)) return c.name;
  return "cuda";
}

/// Why the GPU candidate does not support the row; empty: it does.
std::string check_all(const op::Op& op, const op::Case& c, const DeviceRun& run) {
  const bool cpu = run.device.type == DeviceType::kCPU;
  const FillCache same_contents;
  Built b = build(op, c.args, {.device = run.device});
  std::string another = served_by_another(op, b, cpu ? c.candidate : gpu_candidate(op, run.device));
  if (!cpu && !another.empty()) return another;
  if (!another.empty()) throw Failure{another};
  const Outputs first = run_guarded(op, b, "first run");
  check_reference(op, c, first, run.device);
  if (run.device.type == DeviceType::kEmu) {
    check_schedules(op, c, first, run);
    return {};
  }
  check_again(op, c, first, run.device, "second run");
  check_given_outputs(op, c, first, run.device);
  check_padded(op, c, first, run.device);
  if (cpu) check_threads(op, c, first);
  return {};
}

}  // namespace

CaseResult run_case(const op::Op& op, const op::Case& c) { return run_case(op, c, DeviceRun{}); }

CaseResult run_case(const op::Op& op, const op::Case& c, const DeviceRun& run) {
  CaseResult r;
  const std::string device = run.device.type == DeviceType::kCPU ? "" : str(" --device ", to_string(run.device));
  r.repro = str("flashinfer cases ", op.name, device, " --args \"", c.args, "\"");
  try {
    r.unsupported = check_all(op, c, run);
  } catch (const Failure& f) {
    r.passed = false;
    r.failure = f.what;
  } catch (const std::exception& e) {
    r.passed = false;
    r.failure = str("threw ", e.what());
  }
  return r;
}

bool supports(const op::Op& op, Device device) {
  for (const op::Candidate& c : op.candidates) {
    const op::Place place = op::place(c.backend);
    if (runs_on(c, device) && (place == op::Place::kGpu) == (device.type != DeviceType::kCPU)) return true;
  }
  return false;
}

}  // namespace flashinfer::cases
