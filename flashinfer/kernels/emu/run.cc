// SPDX-License-Identifier: Apache-2.0
// Runs a launch as often as it takes to find its bugs: the guarded forms of its kernels, the kernels, and again in
// other orders where atomics may hide a race.
#include <algorithm>
#include <cstdio>
#include <mutex>

#include "flashinfer/core/check.h"
#include "flashinfer/kernels/emu/guarded.h"
#include "flashinfer/kernels/emu/machine.h"
#include "flashinfer/kernels/emu/watchdog.h"

namespace flashinfer::emu {
namespace {
std::mutex one_run;

Report run_machine(Machine& m, double idle_seconds) {
  machine = &m;
  Report r;
  {
    const Watchdog watchdog(idle_seconds);
    r = m.run();
  }
  machine = nullptr;
  return r;
}

/// Runs the guarded forms of the kernels that have one, and takes back what they write.
Report find_bad_locals(std::span<const std::vector<Work>> gpus, const Options& options) {
  std::vector<std::vector<Work>> guarded(gpus.begin(), gpus.end());
  bool any = false;
  for (auto& launches : guarded)
    for (Work& w : launches)
      if (const Kernel form = guarded_form(w.kernel)) w.kernel = form, any = true;
  if (!any) return {};
  Options plain = options;
  plain.races = plain.count = false;
  constexpr double kIdleSeconds = 1;  // a kernel that never ends is found by the run that follows
  Machine m(guarded, plain, {.guarded = true, .undone = true});
  if (!map_stack_shadow(stacks().begin(), stacks().bytes())) return {};
  Report r = run_machine(m, std::min(kIdleSeconds, options.idle_seconds));
  if (m.stopped()) clear_stack_shadow();
  if (!r.error.empty()) std::fwrite(m.printed().data(), 1, m.printed().size(), stdout);  // no other run follows
  m.undo().exchange();
  return r;
}

/// The launches again, from the memory that `undo` has kept, by number in both directions: the order of two atomic
/// operations on one word may hide a race in one of them. Memory stays as it is.
Report try_other_orders(std::span<const std::vector<Work>> gpus, Options options, Undo& undo) {
  Report r;
  undo.exchange();
  options.seed = 0, options.count = false;
  for (const Mode::Order order : {Mode::Order::kDescending, Mode::Order::kAscending}) {
    Machine m(gpus, options, {.order = order, .undone = true});
    r = run_machine(m, options.idle_seconds);
    m.undo().exchange();
    if (!r.error.empty()) break;
  }
  undo.exchange();
  return r;
}
}  // namespace

Report run_together(std::span<const std::vector<Work>> gpus, const Options& options) {
  FI_CHECK(!gpus.empty() && std::ranges::none_of(gpus, [](const auto& launches) { return launches.empty(); }),
           ValueError, "emulator: a GPU without a launch");
  const std::lock_guard lock(one_run);
  // What a run writes can be taken back where all memory is known.
  const bool again = options.races && !options.memory.empty(),
             empty = std::ranges::find(gpus[0][0].launch.grid, 0u) != std::end(gpus[0][0].launch.grid);
  if (again && !empty)
    if (Report r = find_bad_locals(gpus, options); !r.error.empty()) return r;
  Report r;
  Undo undo;
  bool may_differ = false;
  {
    Machine m(gpus, options);
    if (empty) return {};
    r = run_machine(m, options.idle_seconds);
    may_differ = m.chose_an_order();
    undo = std::move(m.undo());
  }
  if (again && r.error.empty() && may_differ && !undo.full())
    if (const Report other = try_other_orders(gpus, options, undo); !other.error.empty())
      r.error = other.error, r.errors = other.errors;
  return r;
}
Report run(void (*kernel)(const void*), const void* params, size_t bytes, const cuda::Launch& launch,
           const Options& options) {
  const std::vector<Work> work[] = {{{kernel, params, bytes, launch}}};
  return run_together(work, options);
}

}  // namespace flashinfer::emu
