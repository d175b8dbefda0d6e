// SPDX-License-Identifier: Apache-2.0
// Custom attention variants against their definition in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "flashinfer/core/context.h"
#include "flashinfer/core/env.h"
#include "flashinfer/ops/attention/op.h"
#include "flashinfer/ops/pod/op.h"
#include "flashinfer/record/record.h"
#include "flashinfer/replay/replay.h"
#include "tests/formats/temp_dir.h"
#include "tests/ops/data.h"

namespace flashinfer {
namespace {

struct Shape {
  int64_t qo = 5, kv = 150, hq = 4, hkv = 2, d = 64;
};

Tensor random_tensor(DType t, std::vector<int64_t> shape, unsigned seed) {
  Tensor out = Tensor::empty(shape, t);
  std::mt19937 g(seed);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < out.numel(); ++i) {
    const float x = normal(g);
    if (t == DType::kF32)
      out.data_as<float>()[i] = x;
    else if (t == DType::kF16)
      out.data_as<f16_t>()[i] = f16_t(x);
    else
      out.data_as<bf16_t>()[i] = bf16_t(x);
  }
  return out;
}
double at(const Tensor& t, int64_t i) {
  if (t.dtype() == DType::kF32) return t.data_as<float>()[i];
  if (t.dtype() == DType::kF16) return static_cast<float>(t.data_as<f16_t>()[i]);
  return static_cast<float>(t.data_as<bf16_t>()[i]);
}

/// What a variant means: the logit (in natural units) or weight of (raw product, row, key, head), whether a key is
/// seen, an extra term of the denominator, and what becomes of the output.
struct Meaning {
  bool softmax = true;
  std::function<double(double s, int64_t i, int64_t j, int64_t h)> logit;
  std::function<bool(int64_t i, int64_t j, int64_t h)> visible = [](int64_t, int64_t, int64_t) { return true; };
  std::function<double(int64_t h)> sink_logit;  // natural units
  std::function<double(double o, int64_t i, int64_t h)> output = [](double o, int64_t, int64_t) { return o; };
  std::function<double(double)> q = [](double x) { return x; }, k = [](double x) { return x; };
};

/// K and V are [kv, hkv, d]; q and the result [qo, hq, d].
void expect_meaning(const Meaning& m, const Shape& s, const Tensor& q, const Tensor& k, const Tensor& v,
                    const Tensor& got, bool causal, const Tensor* lse = nullptr) {
  const double tolerance = got.dtype() == DType::kF32 ? 2e-5 : got.dtype() == DType::kF16 ? 2e-3 : 1.2e-2;
  const int64_t off = s.kv - s.qo, group = s.hq / s.hkv;
  for (int64_t i = 0; i < s.qo; ++i)
    for (int64_t h = 0; h < s.hq; ++h) {
      std::vector<double> x(static_cast<size_t>(s.kv)), o(static_cast<size_t>(s.d), 0.0), squares(o);
      std::vector<bool> seen(static_cast<size_t>(s.kv));
      double top = m.sink_logit ? m.sink_logit(h) : -INFINITY;
      for (int64_t j = 0; j < s.kv; ++j) {
        const auto u = static_cast<size_t>(j);
        seen[u] = m.visible(i, j, h) && (!causal || j <= i + off);
        if (!seen[u]) continue;
        double dot = 0;
        for (int64_t d = 0; d < s.d; ++d)
          dot += m.q(at(q, (i * s.hq + h) * s.d + d)) * m.k(at(k, (j * s.hkv + h / group) * s.d + d));
        x[u] = m.logit(dot, i, j, h);
        top = std::max(top, x[u]);
      }
      double sum = m.sink_logit ? std::exp(m.sink_logit(h) - top) : 0;
      for (int64_t j = 0; j < s.kv; ++j) {
        const auto u = static_cast<size_t>(j);
        if (!seen[u]) continue;
        const double p = m.softmax ? std::exp(x[u] - top) : x[u];
        sum += p;
        for (int64_t d = 0; d < s.d; ++d) {
          const double term = p * at(v, (j * s.hkv + h / group) * s.d + d);
          o[static_cast<size_t>(d)] += term;
          squares[static_cast<size_t>(d)] += term * term;
        }
      }
      for (int64_t d = 0; d < s.d; ++d) {
        const double mean = m.softmax ? (sum > 0 ? o[static_cast<size_t>(d)] / sum : 0.0) : o[static_cast<size_t>(d)];
        const double want = m.output(mean, i, h), have = at(got, (i * s.hq + h) * s.d + d);
        // Weights are rounded to q's dtype one by one: without softmax the errors add up like the terms themselves.
        const double spread = m.softmax ? 0.0 : std::sqrt(squares[static_cast<size_t>(d)]);
        ASSERT_NEAR(have, want, tolerance * (1 + std::abs(want) + spread))
            << "row " << i << " head " << h << " dim " << d;
      }
      if (!lse || !m.softmax) continue;
      ASSERT_NEAR(lse->data_as<float>()[i * s.hq + h], (top + std::log(sum)) / std::log(2.0), 2e-3)
          << "row " << i << " head " << h;
    }
}

AttentionVariant variant(const char* name, std::string decl, DType t, int64_t d) {
  return {.dtype_q = t,
          .dtype_kv = t,
          .dtype_o = t,
          .head_dim_qk = d,
          .head_dim_vo = d,
          .variant_name = name,
          .variant_decl = std::move(decl)};
}
std::string constructor(const std::string& name) {
  return "  template <class Params>\n  __device__ __host__ " + name +
         "(const Params& params, uint32_t batch_idx, uint8_t*) : AttentionVariantBase(params, batch_idx) {}\n";
}
op::Value list(std::vector<op::Value> items) { return op::ListValue{std::move(items)}; }

const std::string kSigmoid = "struct Sigmoid : AttentionVariantBase {\n  static constexpr bool use_softmax = false;\n" +
                             constructor("Sigmoid") + R"(
  REGISTER_LOGITS_TRANSFORM(params, logits, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, {
    return math::ptx_rcp(1.f + math::ptx_exp2(-(logits * params.sm_scale + params.bias) * math::log2e));
  })
};)";
Meaning sigmoid(const Shape& s, double bias) {
  Meaning m;
  m.softmax = false;
  m.logit = [=](double x, int64_t, int64_t, int64_t) {
    return 1 / (1 + std::exp(-(x / std::sqrt(static_cast<double>(s.d)) + bias)));
  };
  return m;
}

class AttentionVariants : public ::testing::TestWithParam<DType> {};

TEST_P(AttentionVariants, SigmoidPrefillAndDecode) {
  const DType t = GetParam();
  for (const Shape& s : {Shape{}, Shape{.qo = 1, .kv = 1, .hq = 3, .hkv = 1, .d = 40}, Shape{.qo = 130, .kv = 129}}) {
    AttentionVariant v = variant("Sigmoid", kSigmoid, t, s.d);
    v.additional_scalar_names = {"bias"}, v.additional_scalar_dtypes = {"float"};
    const Tensor q = random_tensor(t, {s.qo, s.hq, s.d}, 1), k = random_tensor(t, {s.kv, s.hkv, s.d}, 2),
                 w = random_tensor(t, {s.kv, s.hkv, s.d}, 3);
    for (const bool causal : {false, true}) {
      const Tensor out = single_prefill_with_kv_cache_with_jit_module(
          {.jit_module = v.value(), .q = q, .k = k, .v = w, .mask_mode = causal, .args = list({-1.5})});
      expect_meaning(sigmoid(s, -1.5), s, q, k, w, out, causal);
    }
    if (s.qo > s.kv) continue;
    const Tensor one = Tensor::clone(q.view().select(0, 0));
    const Tensor out = single_decode_with_kv_cache_with_jit_module(
        {.jit_module = v.value(), .q = one, .k = k, .v = w, .args = list({0.25})});
    expect_meaning(sigmoid(s, 0.25), {1, s.kv, s.hq, s.hkv, s.d}, one, k, w, out, false);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AttentionVariants, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& i) { return std::string(name(i.param)); });

/// A bias that was learned for every (head, distance), a mask of its own, and a gate on the output.
TEST(AttentionVariant, LearnedBiasMaskAndGate) {
  constexpr DType t = DType::kBF16;
  const Shape s{.qo = 20, .kv = 90};
  AttentionVariant v = variant("Learned", "struct Learned : AttentionVariantBase {\n" + constructor("Learned") + R"(
  REGISTER_LOGITS_TRANSFORM(params, logits, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, {
    const int distance = int(qo_idx + kv_len - qo_len) - int(kv_idx);
    return logits + params.bias[qo_head_idx * params.max_distance + (distance < 0 ? 0 : distance)];
  })
  REGISTER_LOGITS_MASK(params, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, { return (kv_idx + qo_idx + qo_head_idx) % 3 != 0; })
  REGISTER_OUTPUT_TRANSFORM(params, output, batch_idx, qo_idx, qo_head_idx, m, d, scale, {
    const float mean = d > 0 ? output * scale / d : 0.f;
    return params.maybe_gate ? mean * params.maybe_gate[qo_head_idx] : mean;
  })
};)",
                               t, s.d);
  v.additional_tensor_names = {"bias", "maybe_gate"}, v.additional_tensor_dtypes = {"float", "float"};
  v.additional_scalar_names = {"max_distance"}, v.additional_scalar_dtypes = {"int64_t"};
  const Tensor q = random_tensor(t, {s.qo, s.hq, s.d}, 4), k = random_tensor(t, {s.kv, s.hkv, s.d}, 5),
               w = random_tensor(t, {s.kv, s.hkv, s.d}, 6);
  const Tensor bias = random_tensor(DType::kF32, {s.hq, s.kv}, 7), gate = random_tensor(DType::kF32, {s.hq}, 8);
  Meaning m;
  const int64_t off = s.kv - s.qo;
  m.logit = [&](double x, int64_t i, int64_t j, int64_t h) {
    return (x + bias.data_as<float>()[h * s.kv + std::max<int64_t>(i + off - j, 0)]) /
           std::sqrt(static_cast<double>(s.d));
  };
  m.visible = [](int64_t i, int64_t j, int64_t h) { return (i + j + h) % 3 != 0; };
  for (const bool gated : {true, false}) {
    m.output = [&](double o, int64_t, int64_t h) { return gated ? o * gate.data_as<float>()[h] : o; };
    const std::pair<Tensor, Tensor> r = single_prefill_with_kv_cache_with_jit_module(
        {.jit_module = v.value(),
         .q = q,
         .k = k,
         .v = w,
         .mask_mode = 1,
         .return_lse = true,
         .args = list({bias, gated ? op::Value(gate) : op::Value(), s.kv})});
    expect_meaning(m, s, q, k, w, r.first, true, &r.second);
  }
}

/// The sink of gpt-oss as a variant, with the scale given by the caller under the library's own name.
TEST(AttentionVariant, SinkByUpdate) {
  constexpr DType t = DType::kF16;
  const Shape s{.qo = 8, .kv = 70};
  AttentionVariant v = variant("Sink", "struct Sink : AttentionVariantBase {\n" + constructor("Sink") + R"(
  REGISTER_M_D_UPDATE(params, kv_tile_idx, qo_head_idx, m, d, scale, {
    const float sink = kv_tile_idx == 0 ? params.sink[qo_head_idx] * math::log2e : -math::inf;
    const float top = sink > m ? sink : m;
    scale = math::ptx_exp2(m - top);
    d = math::ptx_exp2(sink - top) + d * scale;
    m = top;
  })
};)",
                               t, s.d);
  v.additional_tensor_names = {"sink"}, v.additional_tensor_dtypes = {"float"};
  v.additional_scalar_names = {"sm_scale"}, v.additional_scalar_dtypes = {"float"};
  const Tensor q = random_tensor(t, {s.qo, s.hq, s.d}, 9), k = random_tensor(t, {s.kv, s.hkv, s.d}, 10),
               w = random_tensor(t, {s.kv, s.hkv, s.d}, 11);
  const Tensor sink = random_tensor(DType::kF32, {s.hq}, 12);
  for (const double scale : {0.2, -0.2, 0.0, 1 / std::sqrt(static_cast<double>(s.d))}) {
    Meaning m;
    m.logit = [=](double x, int64_t, int64_t, int64_t) { return x * scale; };
    m.sink_logit = [&](int64_t h) { return static_cast<double>(sink.data_as<float>()[h]); };
    const bool fill = scale > 0 && scale != 0.2;  // the library fills sm_scale when it is left out
    const std::pair<Tensor, Tensor> r =
        single_prefill_with_kv_cache_with_jit_module({.jit_module = v.value(),
                                                      .q = q,
                                                      .k = k,
                                                      .v = w,
                                                      .mask_mode = 1,
                                                      .return_lse = true,
                                                      .args = fill ? list({sink}) : list({sink, scale})});
    expect_meaning(m, s, q, k, w, r.first, true, &r.second);
  }
}

TEST(AttentionVariant, ElementsOfQueryAndKey) {
  constexpr DType t = DType::kBF16;
  const Shape s{.qo = 3, .kv = 33};
  const AttentionVariant v =
      variant("Elements", "struct Elements : AttentionVariantBase {\n" + constructor("Elements") + R"(
  REGISTER_QUERY_TRANSFORM(params, q, { return q > 0 ? q : 0.f; })
  REGISTER_KEY_TRANSFORM(params, k, { return k * k; })
};)",
              t, s.d);
  const Tensor q = random_tensor(t, {s.qo, s.hq, s.d}, 13), k = random_tensor(t, {s.kv, s.hkv, s.d}, 14),
               w = random_tensor(t, {s.kv, s.hkv, s.d}, 15);
  Meaning m;
  m.q = [](double x) { return std::max(x, 0.0); };
  m.k = [](double x) { return x * x; };
  m.logit = [&](double x, int64_t, int64_t, int64_t) { return x / std::sqrt(static_cast<double>(s.d)); };
  const Tensor out = single_prefill_with_kv_cache_with_jit_module({.jit_module = v.value(), .q = q, .k = k, .v = w});
  expect_meaning(m, s, q, k, w, out, false);
}
/// Chunks of a long request are added in one order, whatever the threads.
TEST(AttentionVariant, LongRequestsDoNotDependOnThreads) {
  const Shape s{.qo = 2, .kv = 5000};
  AttentionVariant v = variant("Sigmoid", kSigmoid, DType::kBF16, s.d);
  v.additional_scalar_names = {"bias"}, v.additional_scalar_dtypes = {"float"};
  const Tensor q = random_tensor(DType::kBF16, {s.qo, s.hq, s.d}, 1),
               k = random_tensor(DType::kBF16, {s.kv, s.hkv, s.d}, 2),
               w = random_tensor(DType::kBF16, {s.kv, s.hkv, s.d}, 3);
  const SinglePrefillWithJitModule call{.jit_module = v.value(), .q = q, .k = k, .v = w, .args = list({-3.0})};
  const Tensor many = single_prefill_with_kv_cache_with_jit_module(call);
  const auto pool = make_thread_pool(1);
  Context context;
  context.executor = *pool;
  const ContextScope scope(context);
  const Tensor one = single_prefill_with_kv_cache_with_jit_module(call);
  EXPECT_EQ(std::memcmp(many.data(), one.data(), static_cast<size_t>(one.nbytes())), 0);
  Meaning m = sigmoid(s, -3.0);
  expect_meaning(m, s, q, k, w, one, false);
}

/// A pool of pages of 16 whose tokens are in order, so that one tensor is both the pool and the keys.
Tensor pages_of(const Tensor& t) {
  return Tensor(t.view().view({t.size(0) / 16, 16, t.size(1), t.size(2)}), t.owner());
}
Tensor page_ids(int64_t n) {
  std::vector<int32_t> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<int32_t>(i);
  return ints(v);
}

TEST(AttentionVariant, BatchWrappersTakeJitArgs) {
  const Shape s{.qo = 1, .kv = 160};
  AttentionVariant v = variant("Sigmoid", kSigmoid, DType::kF32, s.d);
  v.additional_scalar_names = {"bias"}, v.additional_scalar_dtypes = {"float"};
  const Tensor k = random_tensor(DType::kF32, {s.kv, s.hkv, s.d}, 2),
               w = random_tensor(DType::kF32, {s.kv, s.hkv, s.d}, 3);
  const Tensor kp = pages_of(k), vp = pages_of(w), workspace = Tensor::empty({0}, DType::kU8);
  const Tensor indptr = ints({0, 10}), ids = page_ids(10), last = ints({16});

  const Tensor one = random_tensor(DType::kF32, {1, s.hq, s.d}, 1);
  BatchDecodeWithPagedKVCacheWrapper decode({.float_workspace_buffer = workspace, .jit_args = v.value()});
  decode.plan({.indptr = indptr,
               .indices = ids,
               .last_page_len = last,
               .num_qo_heads = s.hq,
               .num_kv_heads = s.hkv,
               .head_dim = s.d,
               .page_size = 16,
               .q_data_type = DType::kF32});
  const Tensor o1 = decode.run({.q = one, .paged_kv_cache = op::PagedKv(kp, vp), .args = list({-1.0})});
  expect_meaning(sigmoid(s, -1.0), s, one, k, w, o1, false);

  const Shape many{.qo = 7, .kv = 160};
  const Tensor q = random_tensor(DType::kF32, {many.qo, s.hq, s.d}, 4), qo = ints({0, 7}), kv = ints({0, 160});
  BatchPrefillWithPagedKVCacheWrapper paged(
      {.float_workspace_buffer = workspace, .jit_args = v.value(), .variant_owns_mask = true});
  paged.plan({.qo_indptr = qo,
              .paged_kv_indptr = indptr,
              .paged_kv_indices = ids,
              .paged_kv_last_page_len = last,
              .num_qo_heads = s.hq,
              .num_kv_heads = s.hkv,
              .head_dim_qk = s.d,
              .page_size = 16,
              .causal = true,
              .q_data_type = DType::kF32});
  const Tensor o2 = paged.run({.q = q, .paged_kv_cache = op::PagedKv(kp, vp), .args = list({-1.0})});
  expect_meaning(sigmoid(s, -1.0), many, q, k, w, o2, true);

  BatchPrefillWithRaggedKVCacheWrapper ragged({.float_workspace_buffer = workspace, .jit_args = v.value()});
  ragged.plan({.qo_indptr = qo,
               .kv_indptr = kv,
               .num_qo_heads = s.hq,
               .num_kv_heads = s.hkv,
               .head_dim_qk = s.d,
               .causal = true,
               .q_data_type = DType::kF32});
  const Tensor o3 = ragged.run({.q = q, .k = k, .v = w, .args = list({-1.0})});
  expect_meaning(sigmoid(s, -1.0), many, q, k, w, o3, true);

  PODWithPagedKVCacheWrapper pod(PodInit{.float_workspace_buffer = workspace, .jit_args = v.value()});  // both halves
  pod.plan({.indptr = indptr,
            .indices = ids,
            .last_page_len = last,
            .num_qo_heads = s.hq,
            .num_kv_heads = s.hkv,
            .head_dim = s.d,
            .page_size = 16,
            .q_data_type = DType::kF32});
  const std::pair<Tensor, Tensor> halves = pod.run({.q_p = q,
                                                    .k_p = k,
                                                    .v_p = w,
                                                    .q_d = one,
                                                    .paged_kv_cache_d = op::PagedKv(kp, vp),
                                                    .causal_p = true,
                                                    .args = list({-1.0})});
  expect_meaning(sigmoid(s, -1.0), many, q, k, w, halves.first, true);
  expect_meaning(sigmoid(s, -1.0), s, one, k, w, halves.second, false);
}

/// A recording is data; its source is compiled only when the user says so.
TEST(AttentionVariant, ReplayAsksBeforeItCompilesRecordedSource) {
  const Shape s{.qo = 3, .kv = 40};
  AttentionVariant v = variant("Shifted", "struct Shifted : AttentionVariantBase {\n" + constructor("Shifted") + R"(
  REGISTER_OUTPUT_TRANSFORM(params, output, batch_idx, qo_idx, qo_head_idx, m, d, scale, { return output / d + params.shift[qo_head_idx]; })
};)",
                               DType::kF32, s.d);
  v.additional_tensor_names = {"shift"}, v.additional_tensor_dtypes = {"float"};
  const Tensor q = random_tensor(DType::kF32, {s.qo, s.hq, s.d}, 1),
               k = random_tensor(DType::kF32, {s.kv, s.hkv, s.d}, 2);
  const Tensor shift = random_tensor(DType::kF32, {s.hq}, 3);
  const testing::TempDir dir;
  record::Settings settings = record::settings();
  settings.level = 10;
  settings.destination = (dir / "log").string();
  settings.dump_dir = (dir / "dumps").string();
  record::configure(settings);
  single_prefill_with_kv_cache_with_jit_module(
      {.jit_module = v.value(), .q = q, .k = k, .v = k, .args = list({shift})});
  record::stop();

  replay::Report report = replay::replay(settings.dump_dir);
  ASSERT_EQ(report.calls.size(), 1u);
  EXPECT_EQ(report.calls[0].outcome, replay::Outcome::kError);
  EXPECT_NE(report.calls[0].message.find("FLASHINFER_ALLOW_RECORDED_SOURCE=1"), std::string::npos)
      << report.calls[0].message;
  ::setenv("FLASHINFER_ALLOW_RECORDED_SOURCE", "1", 1);
  env::reload();
  report = replay::replay(settings.dump_dir);
  ::unsetenv("FLASHINFER_ALLOW_RECORDED_SOURCE");
  env::reload();
  EXPECT_EQ(report.calls[0].outcome, replay::Outcome::kPassed) << report.calls[0].message;
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return std::string(name(e.kind())) + ": " + e.message();
  }
  return "no error";
}

TEST(AttentionVariant, SaysWhatIsWrong) {
  const Shape s;
  const Tensor q = random_tensor(DType::kF32, {s.qo, s.hq, s.d}, 1),
               k = random_tensor(DType::kF32, {s.kv, s.hkv, s.d}, 2);
  AttentionVariant v = variant("Sigmoid", kSigmoid, DType::kF32, s.d);
  v.additional_scalar_names = {"bias"}, v.additional_scalar_dtypes = {"float"};
  const auto call = [&](const AttentionVariant& with, op::Value args) {
    return error_of([&] {
      single_prefill_with_kv_cache_with_jit_module({.jit_module = with.value(), .q = q, .k = k, .v = k, .args = args});
    });
  };
  const auto expect = [](const std::string& have, const char* part) {
    EXPECT_NE(have.find(part), std::string::npos) << have;
  };
  expect(call(v, {}),
         "TypeError: single_prefill_with_kv_cache_with_jit_module: 0 additional arguments, but jit_args declares 0 "
         "tensors and 1 scalars");
  expect(call(v, list({std::string("x")})),
         "TypeError: single_prefill_with_kv_cache_with_jit_module: bias (of jit_args) must be a number, but is str");
  AttentionVariant wrong = v;
  wrong.variant_decl = "struct Sigmoid { no };";
  expect(call(wrong, list({1.0})), "variant_decl:1");
  wrong = v;
  wrong.head_dim_qk = 128;
  expect(call(wrong, list({1.0})), "the head dims are 64 and 64, but jit_args declares 128 and 64");
  wrong = v;
  wrong.dtype_kv = DType::kF16;
  expect(call(wrong, list({1.0})),
         "ValueError: single_prefill_with_kv_cache_with_jit_module: the dtype of K and V is float32, but jit_args "
         "declares float16");
  wrong = v;
  wrong.additional_scalar_dtypes = {"std::string"};
  expect(call(wrong, list({1.0})),
         "additional_scalar_dtypes holds 'std::string', but must hold C types: float, double");
  wrong = v;
  wrong.additional_scalar_names = {"x; system(0)"};
  expect(call(wrong, list({1.0})), "additional_scalar_names holds 'x; system(0)', which is no C++ name");
  wrong = v;
  wrong.additional_tensor_names = {"gate"}, wrong.additional_tensor_dtypes = {"float"};
  expect(
      call(wrong, list({op::Value(), 1.0})),
      "TypeError: single_prefill_with_kv_cache_with_jit_module: gate (of jit_args) must be a tensor, but is NoneType");
}

}  // namespace
}  // namespace flashinfer
