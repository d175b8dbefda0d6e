// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/linear_attention/conv/causal_conv1d.h"

#include <algorithm>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/copy.h"
#include "flashinfer/ops/common/task_scratch.h"
#include "flashinfer/ops/linear_attention/cases.h"
#include "flashinfer/ops/linear_attention/conv/cuda.h"
#include "flashinfer/ops/linear_attention/conv/form.h"
#include "flashinfer/ops/linear_attention/conv/ref.h"
#include "flashinfer/ops/linear_attention/ops.h"

namespace flashinfer {
namespace {
namespace la = ops::linear_attention;
using Fn = CausalConv1dFn;
using Update = CausalConv1dUpdate;
#define FI_CONV "flashinfer/ops/linear_attention/kernels/conv/conv.h"
inline constexpr jit::Kernel kConv{FI_CONV, "flashinfer::cpu::causal_conv1d", "flashinfer::ConvParams"};
inline constexpr jit::Kernel kStates{FI_CONV, "flashinfer::cpu::causal_conv1d_states", "flashinfer::ConvParams"};
#undef FI_CONV

/// A task is 128 tokens with all channels where these are side by side (2 MB at 16 bits for 8192 channels), else 4096
/// tokens of 32 channels; of an update, one token of 512 channels of each sequence.
constexpr int64_t kUnitTokens = 128, kLongUnit = 4096, kFewChannels = 32, kTaskChannels = 512;

template <class Args>
void validate(const Args& a) {
  const auto on_host = [](const std::optional<TensorView>& t) { return !t || t->device() == kCpu; };
  bool values = !op::inferring();
  if constexpr (std::is_same_v<Args, Fn>)
    values = values && on_host(a.query_start_loc) && on_host(a.cache_indices) && on_host(a.has_initial_state);
  else
    values = values && on_host(a.cache_seqlens) && on_host(a.conv_state_indices) && on_host(a.num_accepted_tokens);
  la::conv_form(a, values);
}

bool channels_last(const la::ConvForm& f) { return f.channels <= 1 || f.x.stride(1) == 1; }
ConvParams params_of(la::ConvForm& f) {
  ConvParams p{};
  p.x = f.x.data(), p.out = f.out.data(), p.channels = f.channels;
  p.sequences = static_cast<int64_t>(f.rows.size());
  p.x_channel = f.x.stride(1), p.x_token = f.x.stride(2), p.out_channel = f.out.stride(1),
  p.out_token = f.out.stride(2);
  p.weight = f.weight.data(), p.weight_channel = f.weight.stride(0), p.weight_tap = f.weight.stride(1);
  if (f.bias.defined()) p.bias = f.bias.data(), p.bias_channel = f.bias.stride(0);
  if (f.state.defined()) {
    p.state = f.state.data(), p.state_len = f.state.size(2);
    p.state_slot = f.state.stride(0), p.state_channel = f.state.stride(1), p.state_token = f.state.stride(2);
  }
  p.mode = f.mode, p.unit_tokens = channels_last(f) ? kUnitTokens : kLongUnit;
  for (ConvRow& r : f.rows) r.first_unit = p.units, p.units += ceil_div(r.tokens, p.unit_tokens);
  p.rows = f.rows.data();
  return p;
}
void launch(jit::CpuFn fn, jit::CpuFn states, la::ConvForm f, bool is_update) {
  ConvParams p = params_of(f);
  if (!p.channels || !p.units) return;
  p.past_caches = f.out.nbytes() >= ops::kStreamBytes;
  // With one unit for each sequence, a task of some channels computes all sequences and stores their states.
  p.store_states = is_update && p.units == p.sequences;
  if (p.store_states) {
    p.channels_per_task = std::min(p.channels, kTaskChannels);
    p.units_per_task = p.units;  // sequences that share a slot go one after the other
  } else {
    p.channels_per_task = channels_last(f) ? p.channels : std::min(p.channels, kFewChannels);
    p.units_per_task = 1;
  }
  const int64_t blocks = ceil_div(p.channels, p.channels_per_task),
                tasks = blocks * ceil_div(p.units, p.units_per_task);
  const auto run = [&](jit::CpuFn kernel, int64_t n, int64_t channels) {
    ops::run_rows_with_scratch(kernel, p, n, 1, conv_scratch(channels, f.width));
  };
  run(fn, tasks, p.channels_per_task);
  if (p.store_states || !p.state) return;
  p.channels_per_task = std::min(p.channels, kTaskChannels);
  run(states, ceil_div(p.channels, p.channels_per_task), p.channels_per_task);
}
template <class Args>
op::Prepared prepare(const Args& a) {
  const la::ConvForm f = la::conv_form(a, false);
  const ConvConfig config{a.x.dtype(), a.weight.dtype(), static_cast<short>(f.width), channels_last(f), f.silu};
  const jit::Loaded& states = jit::cpu_kernel<kStates>(config);
  jit::cpu_kernel<kConv>(config);  // the list for precompiling holds what is looked up: both
  if (!states.fn) return op::Unsupported{states.why_not};
  return ops::with_kernel<kConv>(config, [&a, states = states.fn](jit::CpuFn fn) {
    launch(fn, states, la::conv_form(a, true), std::is_same_v<Args, Update>);
  });
}

/// Indices are read by the kernels alone. Sequences that share a slot have no order on a GPU.
template <class Args>
op::Prepared prepare_cuda(const Args& a, const op::Call& call) {
  la::ConvForm f = la::conv_form(a, false);
  if (call.device.type == DeviceType::kEmu && f.state.defined() && la::conv_shares_slots(la::conv_form(a, true).rows))
    return op::Unsupported{"sequences share a slot that they write: on a GPU they have no order"};
  const ConvCudaParams p = la::conv_cuda_params(f, params_of(f), a);
  constexpr bool kUpdate = std::is_same_v<Args, Update>;
  const ConvCudaConfig config{a.x.dtype(), kUpdate || channels_last(f), 128}, states{a.x.dtype(), true, 128};
  const int64_t batch = f.packed ? std::min<int64_t>(f.sequences, 1) : f.sequences,
                units = config.channels_last ? ceil_div(p.tokens, la::kConvCudaUnit) : f.channels;
  const int64_t y = kUpdate ? f.sequences : std::max(units, f.sequences), z = kUpdate ? 1 : batch;
  if (std::string why = la::conv_unsupported(y, z); !why.empty()) return op::Unsupported{std::move(why)};
  const cuda::Launch by_channel = la::conv_launch(f.channels, f.sequences, 1, 128);
  if constexpr (kUpdate) return ops::prepare_cuda<la::kConvUpdateCuda>(config, p, call.device, by_channel);
  const cuda::Launch all = la::conv_launch(config.channels_last ? f.channels : p.tokens, units, batch, 128);
  if (!f.state.defined()) return ops::prepare_cuda<la::kConvCuda>(config, p, call.device, all);
  const jit::CudaLoaded& then = jit::cuda_kernel<la::kConvStatesCuda>(states, call.device);
  if (!then.why_not.empty()) return op::Unsupported{then.why_not};
  return ops::with_cuda_kernel<la::kConvCuda>(config, call.device, [p, all, by_channel, &then](const auto& kernel) {
    ops::launch_unless_empty(kernel, p, all);
    ops::launch_unless_empty(then, p, by_channel);
  });
}

template <class Args>
op::Shape out_shape(const Args& a) {
  op::Shape s{a.x.rank(), {}};
  for (int i = 0; i < a.x.rank(); ++i) s.size[i] = a.x.size(i);
  return s;
}
/// In the order of x, without gaps.
template <class Args>
op::Shape out_strides(const Args& a) {
  op::Shape s{a.x.rank(), {}};
  const bool channels_last =
      a.x.rank() >= 2 && a.x.stride(a.x.rank() - 1) != 1 && !(std::is_same_v<Args, Update> && a.x.rank() == 2);
  int64_t step = 1;
  for (int i = a.x.rank() - 1; i >= 0; --i) s.size[i] = step, step *= a.x.size(i);
  if (!channels_last) return s;
  const int c = a.x.rank() - 2, t = a.x.rank() - 1;
  s.size[c] = 1, s.size[t] = a.x.size(c);
  return s;
}
template <class Args>
op::Cost cost(const Args& a) {
  const double n = static_cast<double>(a.x.numel());
  double state = 0;
  if constexpr (std::is_same_v<Args, Update>) state = 2 * static_cast<double>(a.conv_state.nbytes());
  return {.bytes = 2 * n * static_cast<double>(a.x.item_size()) + state,
          .flops = n * static_cast<double>(2 * a.weight.size(1) + 8)};
}

constexpr op::Field fn_fields[] = {
    op::in<&Fn::x>("x", nullptr, op::floats, op::any_layout),
    op::in<&Fn::weight>("weight", nullptr, op::floats, op::any_layout),
    op::in<&Fn::bias>("bias", nullptr, op::same_as("weight"), op::any_layout),
    op::in<&Fn::query_start_loc>("query_start_loc", nullptr, op::indices),
    op::in<&Fn::cache_indices>("cache_indices", nullptr, op::indices, op::any_layout),
    op::in<&Fn::has_initial_state>("has_initial_state", nullptr, DType::kBool, op::any_layout),
    op::inout<&Fn::conv_states>("conv_states", nullptr, op::same_as("x"), op::any_layout),
    op::attr<&Fn::activation>("activation"),
    op::attr<&Fn::pad_slot_id>("pad_slot_id"),
    op::out<&Fn::out>("out", nullptr, op::same_as("x"), op::any_layout, op::shape<out_shape<Fn>>,
                      op::strides<out_strides<Fn>>),
};
constexpr op::Field update_fields[] = {
    op::in<&Update::x>("x", nullptr, op::floats, op::any_layout),
    op::inout<&Update::conv_state>("conv_state", nullptr, op::same_as("x"), op::any_layout),
    op::in<&Update::weight>("weight", nullptr, op::floats, op::any_layout),
    op::in<&Update::bias>("bias", nullptr, op::same_as("weight"), op::any_layout),
    op::attr<&Update::activation>("activation"),
    op::in<&Update::cache_seqlens>("cache_seqlens", nullptr, op::indices, op::any_layout),
    op::in<&Update::conv_state_indices>("conv_state_indices", nullptr, op::indices, op::any_layout),
    op::attr<&Update::pad_slot_id>("pad_slot_id"),
    op::in<&Update::num_accepted_tokens>("num_accepted_tokens", nullptr, op::indices, op::any_layout, op::keyword_only),
    op::out<&Update::out>("out", nullptr, op::same_as("x"), op::any_layout, op::shape<out_shape<Update>>,
                          op::strides<out_strides<Update>>),
};
constexpr op::Candidate fn_candidates[] = {op::cuda<prepare_cuda<Fn>>(), op::cpu<prepare<Fn>>(),
                                           op::reference<ref::causal_conv1d<Fn>>()};
constexpr op::Candidate update_candidates[] = {op::cuda<prepare_cuda<Update>>(), op::cpu<prepare<Update>>(),
                                               op::reference<ref::causal_conv1d<Update>>()};
constexpr const char* kModule = "flashinfer.mamba";
}  // namespace

namespace ops::linear_attention {
ConvCudaParams conv_update_cuda_params(const CausalConv1dUpdate& a) {
  ConvForm f = conv_form(a, false);
  return conv_cuda_params(f, params_of(f), a);
}

constinit const op::Op causal_conv1d_fn_op = op::define<Fn, validate<Fn>, cost<Fn>>(
    "causal_conv1d_fn", kModule,
    "activation(bias + sum over k of weight[:, k] * x[:, t - width + 1 + k]) for each channel, sequences with states.",
    fn_fields, fn_candidates, causal_conv1d_fn_cases);
constinit const op::Op causal_conv1d_update_op = op::define<Update, validate<Update>, cost<Update>>(
    "causal_conv1d_update", kModule,
    "causal_conv1d_fn for the next tokens of sequences, whose last inputs are in conv_state.", update_fields,
    update_candidates, causal_conv1d_update_cases);
}  // namespace ops::linear_attention

Tensor causal_conv1d_fn(const Fn& args) { return op::call(la::causal_conv1d_fn_op, args); }
Tensor causal_conv1d_update(const Update& args) { return op::call(la::causal_conv1d_update_op, args); }

}  // namespace flashinfer
