// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/call.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "flashinfer/core/context.h"
#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/fork_lock.h"
#include "flashinfer/core/warn.h"
#include "flashinfer/op/backend.h"
#include "flashinfer/op/check.h"
#include "flashinfer/op/device.h"

namespace flashinfer::op {
namespace {

thread_local const std::string* t_forced =
    nullptr;  // empty: none, whatever an outer scope forces (references made of other ops)
thread_local bool t_wait = false;

bool is_cuda(const Candidate& c) { return std::string_view(c.name).starts_with("cuda"); }

[[noreturn]] void nothing_serves(const Op& op, Device device,
                                 const std::vector<std::pair<const char*, Refusal>>& refusals) {
  std::string m = str(op.name, ": no implementation serves this call");
  if (device.type != DeviceType::kCPU && std::none_of(op.candidates.begin(), op.candidates.end(), is_cuda))
    m += str("; this op has no kernel for GPUs yet, and a tensor is on ", to_string(device), ": copy it to the host");
  for (const auto& [who, why] : refusals) m += str("; ", who, ": ", why);
  throw NotImplementedError(m);
}

Refusal refuse(const Op& op, const Candidate& c, const void* block, const char* named) {
  if (t_forced && !t_forced->empty() && *t_forced != c.name) return str("only '", *t_forced, "' is asked for");
  if (named && std::string_view(named) != c.name) return str("only '", named, "' is asked for");
  if (std::string_view(c.name) == "reference") {
    if (Refusal r = refuse_unless_cpu(op, block); !r.empty()) return r;
  }
  return c.refuse(block);
}

void warn_reference(const Op& op, const std::vector<std::pair<const char*, Refusal>>& refusals) {
  static std::set<const Op*> warned;
  {
    std::lock_guard lock(fork_lock(ForkLock::kWarnedOps));
    if (!warned.insert(&op).second) return;
  }
  std::string why;
  for (const auto& [who, sentence] : refusals) why += str("; ", who, ": ", sentence);
  warn(str(op.name, " runs on its reference implementation, which is slow", why));
}

/// Where the call runs, looked up at most once: outputs are allocated on that device, and candidates chosen for it.
class CallDevice {
 public:
  CallDevice(const Op& op, const void* block) : op_(op), block_(block) {}
  Device operator()() {
    if (!known_) device_ = device_of(op_, block_), known_ = true;
    return device_;
  }

 private:
  const Op& op_;
  const void* block_;
  Device device_ = kCpu;
  bool known_ = false;
};

/// Candidates for another kind of device than the tensors' are passed over without a sentence: where there is a choice,
/// most calls have some.
class DeviceFilter {
 public:
  DeviceFilter(const Op& op, CallDevice& device) {
    for (const Candidate& c : op.candidates) active_ |= is_cuda(c);
    active_ = active_ && t_forced == nullptr;
    gpu_ = active_ && device().type != DeviceType::kCPU;
  }
  bool passes_over(const Candidate& c) const { return active_ && is_cuda(c) != gpu_; }

 private:
  bool active_ = false, gpu_ = false;
};

/// The first candidate that does not refuse. The usual first-candidate case builds nothing.
const Candidate& select(const Op& op, const void* block, CallDevice& device) {
  std::vector<std::pair<const char*, Refusal>> refusals;
  const char* named = named_backend(op, block);
  const DeviceFilter filter(op, device);
  for (const Candidate& c : op.candidates) {
    if (filter.passes_over(c)) continue;
    Refusal r = refuse(op, c, block, named);
    if (r.empty()) {
      if (!refusals.empty() && !t_forced && !named && std::string_view(c.name) == "reference")
        warn_reference(op, refusals);
      return c;
    }
    refusals.emplace_back(c.name, std::move(r));
  }
  for (const Candidate& c : op.candidates)
    if (filter.passes_over(c)) refusals.emplace_back(c.name, refuse(op, c, block, named));
  nothing_serves(op, device(), refusals);
}

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
Results prepare_outputs(const Op& op, void* block, const Bindings& b, CallDevice& device) {
  Results results;
  for (const Field& f : op.fields) {
    if (!f.tensors || !wanted(f, block)) continue;
    const TensorView* v[2];
    const bool given = f.tensors(block, v) > 0;
    Tensor t;
    if (given) {
      t = Tensor(*v[0], nullptr);
    } else {
      const Shape s = output_shape(op, f, block, b);
      t = allocate(f, block, s, output_dtype(op, f, block), device());
      f.assign(block, t.view());
    }
    if (!f.not_returned) results.push(std::move(t), &f);
  }
  return results;
}

void wait_for(Device d) {
  if (d.type == DeviceType::kCUDA) cuda::synchronize(d.index, Context::current().stream);
}

Results execute(const Op& op, void* block, Invocation* observed) {
  Bindings bindings;
  check(op, block, bindings);
  if (op.validate) op.validate(block);
  CallDevice device(op, block);
  Results results = prepare_outputs(op, block, bindings, device);
  const Candidate& c = select(op, block, device);
  if (observed) [[unlikely]] {
    observed->candidate = c.name;
    observed->start_ns = detail::monotonic_ns();
  }
  c.launch(block);
  if (observed) [[unlikely]] {
    if (std::exchange(t_wait, false)) wait_for(device());
    observed->end_ns = detail::monotonic_ns();
  }
  return results;
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
  if (op.prepare) op.prepare(block);
  if (Observer* o = observer()) [[unlikely]] {
    if ((o = detail::resolve_observer(o))) return observed_run(*o, op, block, passed);
  }
  return execute(op, block, nullptr);
}

Results detail::run_unobserved(const Op& op, void* block) {
  if (op.prepare) op.prepare(block);
  return execute(op, block, nullptr);
}

namespace {
Value number_at(const TensorView& v, int64_t i) {
  switch (v.dtype()) {
    case DType::kF32: return static_cast<double>(v.data_as<float>()[i * v.stride(0)]);
    case DType::kF64: return v.data_as<double>()[i * v.stride(0)];
    default: return index_at(v, i);
  }
}
TupleValue slices(const Tensor& t) {
  TupleValue out;
  for (int64_t i = 0; i < t.size(0); ++i) out.items.emplace_back(TensorValue{t.view().select(0, i), t.owner()});
  return out;
}
}  // namespace

Value Results::value(const std::function<Value(int)>& tensor) const {
  std::vector<Value> items;
  bool open = false;  // the last item is a tuple that `joined` made
  for (int i = 0; i < count_; ++i) {
    const Tensor& t = (*this)[i];
    const Field* f = field(i);
    if (f && f->as_numbers) {
      for (int64_t k = 0; k < t.size(0); ++k) items.push_back(number_at(t.view(), k));
      continue;
    }
    Value v = f && f->unstacked ? Value(slices(t)) : tensor(i);
    if (!f || !f->joined || items.empty()) {
      items.push_back(std::move(v));
      open = false;
      continue;
    }
    if (!open) items.back() = TupleValue{{items.back()}};
    open = true;
    std::get<TupleValue>(static_cast<Value::Base&>(items.back())).items.push_back(std::move(v));
  }
  if (items.empty()) return Value();
  return items.size() == 1 ? std::move(items[0]) : Value(TupleValue{std::move(items)});
}
Value Results::value() const {
  return value([&](int i) { return Value((*this)[i]); });
}

Selection explain(const Op& op, const void* block) {
  Block copy(op);
  op.block.destroy(copy.data());
  op.block.copy(copy.data(), block);
  if (op.prepare) op.prepare(copy.data());
  Bindings b;
  check(op, copy.data(), b);
  if (op.validate) op.validate(copy.data());
  CallDevice device(op, copy.data());
  const Results keep = prepare_outputs(op, copy.data(), b, device);
  Selection s;
  const char* named = named_backend(op, copy.data());
  const DeviceFilter filter(op, device);
  for (const Candidate& c : op.candidates) {
    if (filter.passes_over(c)) continue;
    Refusal r = refuse(op, c, copy.data(), named);
    if (r.empty()) {
      s.candidate = &c;
      break;
    }
    s.refusals.emplace_back(c.name, std::move(r));
  }
  return s;
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
  Bindings b;
  check_fields(op, block, b);
  std::vector<OutputType> out;
  for (const Field& f : op.fields)
    if (f.tensors && wanted(f, block)) out.push_back({&f, output_shape(op, f, block, b), output_dtype(op, f, block)});
  return out;
}

Device device_of(const Op& op, const void* block) {
  Device d = kCpu;
  for_each_tensor(
      op, block,
      [](void* ctx, const Field&, const TensorView& v) {
        auto& out = *static_cast<Device*>(ctx);
        if (out.type == DeviceType::kCPU) out = v.device();
      },
      &d);
  return d;
}

void wait_after_launch() { t_wait = true; }

ForceCandidate::ForceCandidate(std::string name) : previous_(t_forced), name_(std::move(name)) { t_forced = &name_; }
ForceCandidate::~ForceCandidate() { t_forced = previous_; }

void for_each_tensor(const Op& op, const void* block, void (*fn)(void*, const Field&, const TensorView&), void* ctx) {
  for (const Field& f : op.fields) {
    if (!f.tensors) continue;
    const TensorView* v[2];
    const int n = f.tensors(block, v);
    for (int i = 0; i < n; ++i) fn(ctx, f, *v[i]);
  }
}

Refusal refuse_unless_cpu(const Op& op, const void* block) {
  Refusal r;
  for_each_tensor(
      op, block,
      [](void* ctx, const Field& f, const TensorView& v) {
        auto& out = *static_cast<Refusal*>(ctx);
        if (v.device().type != DeviceType::kCPU && out.empty())
          out = str(f.name, " is on ", to_string(v.device()), ", but this implementation runs on the CPU");
      },
      &r);
  return r;
}

Refusal refuse_unless_gpu(const Op& op, const void* block, Device& device) {
  struct Found {
    Device* device;
    const Field* field = nullptr;
    Refusal refusal;
  } found{&device, nullptr, {}};
  for_each_tensor(
      op, block,
      [](void* ctx, const Field& f, const TensorView& v) {
        auto& out = *static_cast<Found*>(ctx);
        if (!out.refusal.empty()) return;
        if (v.device().type == DeviceType::kCPU)
          out.refusal = str(f.name, " is in host memory, but this implementation runs on GPUs");
        else if (out.field && !(v.device() == *out.device))
          out.refusal = str(f.name, " is on ", to_string(v.device()), ", but ", out.field->name, " is on ",
                            to_string(*out.device));
        else if (!out.field)
          out.field = &f, *out.device = v.device();
      },
      &found);
  if (!found.field && found.refusal.empty()) return "no tensor says on which GPU";
  return found.refusal;
}

int64_t index_at(const TensorView& v, int64_t i) {
  FI_CHECK(v.device().type != DeviceType::kCUDA, NotImplementedError, "an index array is on ", to_string(v.device()),
           ", where the host cannot read it");
  const char* p = static_cast<const char*>(v.data()) + (v.rank() ? i * v.stride(0) : 0) * v.item_size();
  switch (v.dtype()) {
    case DType::kI32: return *reinterpret_cast<const int32_t*>(p);
    case DType::kI64: return *reinterpret_cast<const int64_t*>(p);
    case DType::kU32: return *reinterpret_cast<const uint32_t*>(p);
    case DType::kU64: return static_cast<int64_t>(*reinterpret_cast<const uint64_t*>(p));
    case DType::kU16: return *reinterpret_cast<const uint16_t*>(p);
    case DType::kU8:
    case DType::kBool: return *reinterpret_cast<const uint8_t*>(p);
    default: throw InternalError(str("index_at: ", name(v.dtype()), " is no index type"));
  }
}

void check_index_range(std::string_view op, std::string_view name, const TensorView& v, int64_t lo, int64_t hi,
                       std::string_view why) {
  const int64_t n = v.rank() ? v.size(0) : 1;
  if (v.device().type == DeviceType::kCUDA) return;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t x = index_at(v, i);
    if (x < lo || x >= hi) [[unlikely]]
      throw ValueError(str(op, ": ", name, "[", i, "] is ", x, ", but must be in [", lo, ", ", hi, ") (", why, ")"));
  }
}

int64_t check_indptr(std::string_view op, std::string_view name, const TensorView& v) {
  const int64_t n = v.size(0);
  FI_CHECK(n >= 1, ValueError, op, ": ", name, " is empty, but must have one entry more than there are requests");
  int64_t previous = index_at(v, 0);
  FI_CHECK(previous == 0, ValueError, op, ": ", name, "[0] is ", previous, ", but must be 0");
  for (int64_t i = 1; i < n; ++i) {
    const int64_t x = index_at(v, i);
    FI_CHECK(x >= previous, ValueError, op, ": ", name, "[", i, "] is ", x, ", but ", name, "[", i - 1, "] is ",
             previous, ": it must never decrease");
    previous = x;
  }
  return previous;
}

}  // namespace flashinfer::op
