// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/call.h"

#include <algorithm>
#include <utility>

#include "flashinfer/comm/group.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/op/check.h"
#include "flashinfer/op/collective.h"
#include "flashinfer/op/device_indices.h"
#include "flashinfer/op/owned_block.h"

namespace flashinfer::op {
namespace {

thread_local bool t_wait = false;

bool wanted(const Field& f, const void* block) {
  return (f.role == Role::kOut || f.role == Role::kResult) && (!f.when || f.when(block));
}

Tensor allocate(const Field& f, const void* block, const Shape& s, DType dtype, Device device) {
  if (!f.strides) return Tensor::empty(s.span(), dtype, device);
  const Shape strides = f.strides(block);
  const TensorView layout(nullptr, dtype, s.span(), strides.span());
  const Tensor memory = Tensor::empty({layout.span_bytes()}, DType::kU8, device);
  return Tensor(TensorView(memory.data(), dtype, s.span(), strides.span(), device), memory.owner());
}

/// Allocates wanted outputs that are absent and lists what the call returns.
void prepare_outputs(const Op& op, void* block, const Bindings& b, Device device, Results& results) {
  bool returns_inout = false;
  for (const Field& f : op.fields) {
    if (!f.tensors || !wanted(f, block)) {
      returns_inout |= f.role == Role::kInOut && f.when;
      continue;
    }
    if (const Views v = f.tensors(block); !v.empty()) {
      if (!f.not_returned) results.push(Tensor(v[0], nullptr), &f);
      continue;
    }
    const Shape s = output_shape(op, f, block, b);
    Tensor t = allocate(f, block, s, output_dtype(op, f, block), device);
    f.assign(block, t.view());
    if (!f.not_returned) results.push(std::move(t), &f);
  }
  if (!returns_inout) return;
  for (const Field& f : op.fields) {  // arguments written in place that the function returns too, behind its outputs
    if (f.role != Role::kInOut || !f.when || !f.when(block)) continue;
    if (const Views v = f.tensors(block); !v.empty()) results.push(Tensor(v[0], nullptr), &f);
  }
}

void wait_for(Device d) {
  if (d.type == DeviceType::kCUDA) cuda::synchronize(d.index, Context::current().stream);
}

/// What f() does for `op`: an error that leaves it names the op. No other place does.
template <class F>
auto named(const Op& op, F&& f) {
  try {
    return f();
  } catch (Error& e) {
    e.set_op(op.name);
    throw;
  }
}

void fill_internal(const Op& op, void* block) {
  if (op.fill_internal) named(op, [&] { op.fill_internal(block); });
}

/// Whether any candidate runs on GPUs.
bool has_kernel(const Op& op) {
  return std::any_of(op.candidates.begin(), op.candidates.end(),
                     [](const Candidate& c) { return place(c.backend) != Place::kHost; });
}

/// The schema's checks and the op's own; then every output that is wanted has memory. Of an op without a kernel for the
/// GPU of its tensors the selection says so: its own checks may read arrays that the host cannot, and are left out.
Placement check_and_allocate(const Op& op, void* block, Results& results) {
  Bindings bindings;
  check(op, block, bindings);
  const Placement at = placement_of(op, block);
  if (!host_can_read(at.device) && !has_kernel(op)) return at;
  if (op.validate) op.validate(block);
  if (at.device.type != DeviceType::kCPU) check_device_indices(op, block, at.device);
  prepare_outputs(op, block, bindings, at.device, results);
  return at;
}

Results execute_alone(const Op& op, void* block, Invocation* observed) {
  return named(op, [&] {
    Results results;
    const Placement placement = check_and_allocate(op, block, results);
    Selector selector(op, block, placement);
    selector.require();
    if (observed) [[unlikely]] {
      observed->candidate = selector.candidate().name;
      observed->start_ns = detail::monotonic_ns();
    }
    selector.prepared().run();
    if (observed) [[unlikely]] {
      if (std::exchange(t_wait, false)) wait_for(placement.device);
      observed->end_ns = detail::monotonic_ns();
    }
    return results;
  });
}

/// A collective call that throws on this rank is left on all.
Results execute(const Op& op, void* block, Invocation* observed) {
  if (!op.is_collective) [[likely]]
    return execute_alone(op, block, observed);
  try {
    return execute_alone(op, block, observed);
  } catch (const comm::GroupError&) {  // the others know
    throw;
  } catch (const std::exception& e) {
    detail::abandon(op, block, e);
    throw;
  }
}

Results observed_run(Observer& o, const Op& op, void* block, const Passed* passed) {
  t_wait = false;
  detail::ObservedCall call(o, op, block, passed);
  try {
    Results r = execute(op, block, &call.invocation);
    call.after(r.value());
    return r;
  } catch (const std::exception& e) {
    call.failed(e);
    throw;
  }
}

}  // namespace

Results run(const Op& op, void* block, const Passed* passed) {
  fill_internal(op, block);
  if (Observer* o = observer()) [[unlikely]] {
    o = detail::resolve_observer(o);
    if (o) return observed_run(*o, op, block, passed);
  }
  return execute(op, block, nullptr);
}

Results detail::run_unobserved(const Op& op, void* block) {
  fill_internal(op, block);
  return execute(op, block, nullptr);
}

Selection explain(const Op& op, const void* block) {
  const OwnedBlock<> copy(op.block, block);
  fill_internal(op, copy.data());
  return named(op, [&] {
    Results outputs;
    const Placement placement = check_and_allocate(op, copy.data(), outputs);
    Selector selector(op, copy.data(), placement);
    const bool found = selector.find();
    return Selection{found ? &selector.candidate() : nullptr, std::move(selector.rejections)};
  });
}

namespace {
thread_local bool t_inferring = false;
struct Inferring {
  Inferring() { t_inferring = true; }
  ~Inferring() { t_inferring = false; }
};
}  // namespace
bool inferring() { return t_inferring; }

std::vector<OutputType> infer_outputs(const Op& op, const void* block) {
  const Inferring scope;
  return named(op, [&] {
    Bindings b;
    check_fields(op, block, b);
    std::vector<OutputType> out;
    for (const Field& f : op.fields)
      if (f.tensors && wanted(f, block)) out.push_back({&f, output_shape(op, f, block, b), output_dtype(op, f, block)});
    return out;
  });
}

void wait_after_launch() { t_wait = true; }

}  // namespace flashinfer::op
