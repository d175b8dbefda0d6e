// SPDX-License-Identifier: Apache-2.0
// Custom variants of attention on the emulator: the same text that the CPU's kernels are compiled with, beside the
// CPU's result (which tests/ops compares with the definition); and the text compiled for four GPUs.
#include <gtest/gtest.h>

#include <algorithm>

#include <cmath>
#include <cstdlib>
#include <random>

#include "../ops/errors.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/jit/aot.h"
#include "flashinfer/jit/emulator.h"
#include "flashinfer/jit/engine.h"
#include "flashinfer/jit/targets.h"
#include "flashinfer/ops/attention/op.h"
#include "test_paths.h"

namespace flashinfer {
namespace {

constexpr Device kEmulator{DeviceType::kEmu, 0};

Tensor normal(DType t, const std::vector<int64_t>& shape, unsigned seed) {
  Tensor out = Tensor::empty(shape, t);
  std::mt19937 random(seed);
  std::normal_distribution<float> d;
  for (int64_t i = 0; i < out.numel(); ++i) {
    const float x = d(random);
    if (t == DType::kF32)
      out.data_as<float>()[i] = x;
    else if (t == DType::kF16)
      out.data_as<f16_t>()[i] = f16_t(x);
    else
      out.data_as<bf16_t>()[i] = bf16_t(x);
  }
  return out;
}
double element(const Tensor& t, int64_t i) {
  if (t.dtype() == DType::kF32) return t.data_as<float>()[i];
  return t.dtype() == DType::kF16 ? static_cast<float>(t.data_as<f16_t>()[i])
                                  : static_cast<float>(t.data_as<bf16_t>()[i]);
}
void expect_near(const Tensor& there, const Tensor& want, double tolerance) {
  const Tensor got = to_device(there.view(), kCpu);
  ASSERT_EQ(got.numel(), want.numel());
  double largest = 0;
  for (int64_t i = 0; i < want.numel(); ++i) {
    const double x = element(got, i), y = element(want, i);
    if (std::isnan(y) || std::isinf(y))
      ASSERT_EQ(std::isnan(y) ? std::isnan(x) : x == y, true) << i << ": " << x << " for " << y;
    else
      ASSERT_NEAR(x, y, tolerance * (1 + std::abs(y))) << i;
    largest = std::max(largest, std::abs(y));
  }
  EXPECT_GT(largest, 0.01);  // not all zeros
}
op::Value list(std::vector<op::Value> items) { return op::ListValue{std::move(items)}; }

std::string with_constructor(const std::string& name, const std::string& body) {
  return "struct " + name + " : AttentionVariantBase {\n  template <class Params>\n  __device__ __host__ " + name +
         "(const Params& params, uint32_t batch_idx, uint8_t*) : AttentionVariantBase(params, batch_idx) {}\n" + body +
         "};";
}
AttentionVariant sigmoid(DType t) {
  AttentionVariant v{
      .dtype_q = t, .dtype_kv = t, .dtype_o = t, .head_dim_qk = 64, .head_dim_vo = 64, .variant_name = "Sigmoid"};
  v.additional_scalar_names = {"bias"}, v.additional_scalar_dtypes = {"float"};
  v.variant_decl = with_constructor("Sigmoid", R"(
  static constexpr bool use_softmax = false;
  REGISTER_LOGITS_TRANSFORM(params, logits, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, {
    return math::ptx_rcp(1.f + math::ptx_exp2(-(logits * params.sm_scale + params.bias) * math::log2e));
  })
)");
  return v;
}
/// Every hook that changes rows: a bias learned for each (head, distance), a mask, a sink in the denominator, a gate on
/// the output.
AttentionVariant learned(DType t) {
  AttentionVariant v{
      .dtype_q = t, .dtype_kv = t, .dtype_o = t, .head_dim_qk = 64, .head_dim_vo = 64, .variant_name = "Learned"};
  v.additional_tensor_names = {"bias", "sink", "maybe_gate"}, v.additional_tensor_dtypes = {"float", "float", "float"};
  v.additional_scalar_names = {"max_distance"}, v.additional_scalar_dtypes = {"int64_t"};
  v.variant_decl = with_constructor("Learned", R"(
  REGISTER_LOGITS_TRANSFORM(params, logits, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, {
    const int distance = int(qo_idx + kv_len - qo_len) - int(kv_idx);
    return logits + params.bias[qo_head_idx * params.max_distance + (distance < 0 ? 0 : distance)] + float(kv_head_idx + batch_idx);
  })
  REGISTER_LOGITS_MASK(params, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, { return (kv_idx + qo_idx + qo_head_idx) % 3 != 0; })
  REGISTER_M_D_UPDATE(params, kv_tile_idx, qo_head_idx, m, d, scale, {
    const float sink = params.sink[qo_head_idx] * math::log2e;
    const float top = sink > m ? sink : m;
    scale = math::ptx_exp2(m - top);
    d = math::ptx_exp2(sink - top) + d * scale;
    m = top;
  })
  REGISTER_OUTPUT_TRANSFORM(params, output, batch_idx, qo_idx, qo_head_idx, m, d, scale, {
    const float mean = d > 0 ? output * scale / d : 0.f;
    return params.maybe_gate ? mean * params.maybe_gate[qo_head_idx] + float(qo_idx) : mean;
  })
)");
  return v;
}
struct LearnedArguments {
  Tensor bias, sink, gate;
  int64_t keys;
  explicit LearnedArguments(int64_t n)
      : bias(normal(DType::kF32, {4, n}, 7)),
        sink(normal(DType::kF32, {4}, 8)),
        gate(normal(DType::kF32, {4}, 9)),
        keys(n) {}
  op::Value on(Device d) {
    if (d.type == DeviceType::kCPU) return list({bias, sink, gate, keys});
    return list({to_device(bias.view(), d), to_device(sink.view(), d), to_device(gate.view(), d), keys});
  }
};

/// One request on the CPU and on the emulator.
template <class Check>
void both(const AttentionVariant& v, int64_t rows, int64_t keys, const std::function<op::Value(Device)>& args,
          Check check) {
  const DType t = v.dtype_q;
  const Tensor q = normal(t, {rows, 4, 64}, 1), k = normal(t, {keys, 2, 64}, 2), w = normal(t, {keys, 2, 64}, 3);
  std::vector<std::pair<Tensor, Tensor>> results;
  for (const Device d : {kCpu, kEmulator}) {
    const Tensor q_there = to_device(q.view(), d), k_there = to_device(k.view(), d), w_there = to_device(w.view(), d);
    results.push_back(single_prefill_with_kv_cache_with_jit_module({.jit_module = v.value(),
                                                                    .q = q_there,
                                                                    .k = k_there,
                                                                    .v = w_there,
                                                                    .mask_mode = 1,
                                                                    .return_lse = true,
                                                                    .args = args(d)}));
  }
  check(results[0], results[1]);
}
double tolerance(DType t) { return t == DType::kF32 ? 3e-5 : t == DType::kF16 ? 4e-3 : 2e-2; }
void check_both(const AttentionVariant& v, int64_t rows, int64_t keys, const std::function<op::Value(Device)>& args,
                size_t launches, unsigned threads) {
  const jit::Emulation emulation(1);
  both(v, rows, keys, args, [&](const auto& cpu, const auto& emu) {
    expect_near(emu.first, cpu.first, tolerance(v.dtype_q));
    const double lse = tolerance(v.dtype_q == DType::kF32 ? DType::kF32 : DType::kF16);
    if (v.variant_name != "Sigmoid")
      expect_near(emu.second, cpu.second, lse);
    else
      EXPECT_TRUE(std::isnan(to_device(emu.second.view(), kCpu).template data_as<float>()[0]));
  });
  ASSERT_EQ(emulation.launches().size(), launches);
  EXPECT_EQ(emulation.launches()[0].launch.block[0], threads);
  for (const auto& l : emulation.launches())
    EXPECT_NE(l.kernel.find("+" + v.variant_name), std::string::npos) << l.kernel;
}

/// Four warps divide the keys of a chunk; the last block of five merges.
TEST(EmulatedVariant, WeightsWithoutSoftmaxOverCutKeys) {
  check_both(sigmoid(DType::kBF16), 1, 1100, [](Device) { return list({-3.0}); }, 1, 128);
}
TEST(EmulatedVariant, EveryHookOnTensorCores) {
  LearnedArguments a(90);
  check_both(learned(DType::kF16), 20, 90, [&](Device d) { return a.on(d); }, 1, 128);
}
TEST(EmulatedVariant, EveryHookWithoutTensorCoresOverCutKeys) {
  LearnedArguments a(1100);
  check_both(learned(DType::kF32), 2, 1100, [&](Device d) { return a.on(d); }, 1, 128);
}
/// Each lane leaves the user's loop in a round of its own; barriers and products are for warps that are together.
TEST(EmulatedVariant, LanesOfALoopComeTogetherBeforeProducts) {
  AttentionVariant v{.dtype_q = DType::kF16,
                     .dtype_kv = DType::kF16,
                     .dtype_o = DType::kF16,
                     .head_dim_qk = 64,
                     .head_dim_vo = 64,
                     .variant_name = "Loop"};
  v.additional_tensor_names = {"steps"}, v.additional_tensor_dtypes = {"int32_t"};
  v.variant_decl = with_constructor("Loop", R"(
  static constexpr bool use_softmax = false;
  REGISTER_LOGITS_TRANSFORM(params, logits, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, {
    float x = logits * 0.05f;
    for (int i = 0; i < params.steps[kv_idx]; ++i) x = x * 0.5f + 0.01f;
    return x;
  })
)");
  std::vector<int32_t> steps;
  for (int32_t i = 0; i < 70; ++i) steps.push_back(i * 7 % 5);
  const Tensor of_keys = Tensor::copy_of(std::span<const int32_t>(steps), {70});
  const jit::Emulation emulation(1);
  both(
      v, 20, 70, [&](Device d) { return list({to_device(of_keys.view(), d)}); },
      [](const auto& cpu, const auto& emu) { expect_near(emu.first, cpu.first, tolerance(DType::kF16)); });
  EXPECT_EQ(emulation.launches().size(), 1u);
}
TEST(EmulatedVariant, ElementsOfQueryAndKey) {
  AttentionVariant v{.dtype_q = DType::kF16,
                     .dtype_kv = DType::kF16,
                     .dtype_o = DType::kF16,
                     .head_dim_qk = 64,
                     .head_dim_vo = 64,
                     .variant_name = "Elements"};
  v.variant_decl = with_constructor("Elements", R"(
  REGISTER_QUERY_TRANSFORM(params, q, { return q > 0 ? q : 0.f; })
  REGISTER_KEY_TRANSFORM(params, k, { return k * k - params.shift; })
)");
  v.additional_scalar_names = {"shift"}, v.additional_scalar_dtypes = {"float"};
  check_both(v, 20, 70, [](Device) { return list({0.5}); }, 1, 128);
  v.dtype_q = v.dtype_kv = v.dtype_o = DType::kF32;
  check_both(v, 3, 33, [](Device) { return list({0.5}); }, 1, 128);
}

/// The batch wrapper, its pages scattered, in the form that a graph captures: a variant's arguments travel with the
/// launch.
TEST(EmulatedVariant, GraphDecodeFollowsEveryPlan) {
  const AttentionVariant v = sigmoid(DType::kBF16);
  const auto ints = [](std::vector<int32_t> x) {
    return Tensor::copy_of(std::span<const int32_t>(x), {static_cast<int64_t>(x.size())});
  };
  const Tensor q = normal(DType::kBF16, {2, 4, 64}, 1), cache = normal(DType::kBF16, {6, 2, 16, 2, 64}, 2),
               workspace = Tensor::empty({0}, DType::kU8);
  const auto there = [](const Tensor& t) { return to_device(t.view(), kEmulator); };
  const Tensor q_there = there(q), cache_there = there(cache), indptr_buffer = there(ints({0, 0, 0})),
               ids_buffer = there(ints({0, 0, 0, 0, 0, 0})), last_buffer = there(ints({0, 0}));
  BatchDecodeWithPagedKVCacheWrapper cpu({.float_workspace_buffer = workspace, .jit_args = v.value()});
  BatchDecodeWithPagedKVCacheWrapper graph({.float_workspace_buffer = workspace,
                                            .use_cuda_graph = true,
                                            .paged_kv_indptr_buffer = indptr_buffer,
                                            .paged_kv_indices_buffer = ids_buffer,
                                            .paged_kv_last_page_len_buffer = last_buffer,
                                            .jit_args = v.value()});
  const Tensor indptr = ints({0, 2, 5}), last = ints({9, 16});
  for (const std::vector<int32_t>& pages : {std::vector<int32_t>{4, 0, 1, 3, 2}, {5, 2, 4, 0, 3}}) {
    const Tensor ids = ints(pages);
    for (auto* w : {&cpu, &graph})
      w->plan({.indptr = indptr,
               .indices = ids,
               .last_page_len = last,
               .num_qo_heads = 4,
               .num_kv_heads = 2,
               .head_dim = 64,
               .page_size = 16,
               .q_data_type = DType::kBF16});
    const Tensor want = cpu.run({.q = q, .paged_kv_cache = op::PagedKv(cache.view()), .args = list({-1.0})});
    const Tensor got =
        graph.run({.q = q_there, .paged_kv_cache = op::PagedKv(cache_there.view()), .args = list({-1.0})});
    expect_near(got, want, 2e-2);
  }
}

TEST(EmulatedVariant, SaysWhatIsWrong) {
  LearnedArguments a(90);
  expect_error(ErrorKind::kValueError, "bias is on cpu, but q is on emu:0",
               [&] { both(learned(DType::kF16), 20, 90, [&](Device) { return a.on(kCpu); }, [](auto&, auto&) {}); });
  AttentionVariant many = sigmoid(DType::kF16);
  for (int i = 0; i < 30; ++i)
    many.additional_scalar_names.push_back("s" + std::to_string(i)), many.additional_scalar_dtypes.push_back("float");
  const Tensor q = to_device(normal(DType::kF16, {1, 4, 64}, 1).view(), kEmulator);
  expect_refused("the variant has 0 additional tensors and 31 scalars, but a launch carries 24 of each", [&] {
    single_prefill_with_kv_cache_with_jit_module(
        {.jit_module = many.value(), .q = q, .k = q, .v = q, .args = list(std::vector<op::Value>(31, 1.0))});
  });
}

/// No register is spilled either.
TEST(EmulatedVariant, TheTextCompilesForFourGpus) {
  const std::string python = FI_TEST_PYTHON;
  ::setenv("VIRTUAL_ENV", python.substr(0, python.rfind("/bin/")).c_str(), 1);
  ::setenv("FLASHINFER_EXTRA_CUDAFLAGS", "--ptxas-options=--warn-on-spills --ptxas-options=--warning-as-error", 1);
  env::reload();
  jit::reset();
  std::vector<jit::Request> requests;
  {
    jit::KernelCollector recording;
    for (const AttentionVariant& v : {learned(DType::kF16), learned(DType::kF32)}) {
      LearnedArguments a(1100);
      const Tensor q = to_device(normal(v.dtype_q, {2, 4, 64}, 1).view(), kEmulator),
                   k = to_device(normal(v.dtype_q, {1100, 2, 64}, 2).view(), kEmulator);
      EXPECT_THROW(single_prefill_with_kv_cache_with_jit_module(
                       {.jit_module = v.value(), .q = q, .k = k, .v = k, .args = a.on(kEmulator)}),
                   InternalError);
    }
    requests = recording.take();
  }
  EXPECT_EQ(requests.size(), 2u);
  const std::string out = fs::make_temp_dir("/tmp", "flashinfer-aot-");
  for (const char* name : {"sm_80", "sm_90a", "sm_100a", "sm_120a"}) {
    const jit::Target target[] = {jit::parse_target(name)};
    const jit::AotResult r = jit::aot(out, target, requests);
    EXPECT_EQ(r.compiled, static_cast<int64_t>(requests.size())) << name;
    for (const std::string& e : r.errors) ADD_FAILURE() << e;
  }
  fs::remove_tree(out);
  ::unsetenv("FLASHINFER_EXTRA_CUDAFLAGS");
  env::reload();
  jit::reset();
}

}  // namespace
}  // namespace flashinfer
