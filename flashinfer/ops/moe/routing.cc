// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/moe/cases.h"
#include "flashinfer/ops/moe/cuda/layer.h"
#include "flashinfer/ops/moe/ops.h"
#include "flashinfer/ops/moe/routing.h"

namespace flashinfer {
namespace {
namespace family = ops::moe;

enum Method {
  kDefault,
  kRenormalize,
  kDeepSeekV3,
  kLlama4,
  kRenormalizeNaive,
  kTopK,
  kSigmoidRenorm,
  kMiniMax2,
  kSigmoid,
  kTopKSigmoid
};

/// One token's routing as the kernel and the reference take it.
struct Rule {
  int64_t method, experts, top_k, groups, keep;  // groups >= 1, keep of them
  double factor;
  bool renormalise;
};
Rule rule_of(const MoeRouting& a) {
  const int64_t groups = a.routing_method == kDeepSeekV3 ? std::max<int64_t>(a.n_group, 1) : 1;
  return {a.routing_method,
          a.routing_logits.size(1),
          a.top_k,
          groups,
          a.topk_group > 0 ? std::min(a.topk_group, groups) : groups,
          a.routed_scaling_factor,
          a.norm_topk_prob};
}
Rule rule_of(const FusedTopkDeepseek& a) {
  return {kDeepSeekV3, a.scores.size(1), a.topk, a.n_group, a.topk_group, a.routed_scaling_factor, true};
}
bool by_bias(int64_t method) { return method == kDeepSeekV3 || method == kMiniMax2; }

// ---- the kernel: one token, f32 ----
float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }
float number_or_least(float x) { return std::isnan(x) ? -std::numeric_limits<float>::infinity() : x; }

/// Ids of the k largest of keys[0, n), the largest first, ties to the smaller id. taken[] marks what may not be chosen.
void choose(const float* keys, int64_t n, int64_t k, std::vector<char>& taken, int32_t* ids) {
  for (int64_t j = 0; j < k; ++j) {
    int64_t best = -1;
    for (int64_t i = 0; i < n; ++i)
      if (!taken[static_cast<size_t>(i)] && (best < 0 || keys[i] > keys[best])) best = i;
    taken[static_cast<size_t>(best)] = 1;
    ids[j] = static_cast<int32_t>(best);
  }
}
/// Marks all experts of groups that are not among the best.
void drop_groups(const Rule& r, const float* b, std::vector<char>& taken) {
  if (r.keep >= r.groups) return;
  const int64_t size = r.experts / r.groups;
  std::vector<float> score(static_cast<size_t>(r.groups));
  for (int64_t g = 0; g < r.groups; ++g) {
    float first = -std::numeric_limits<float>::infinity(), second = first;
    for (int64_t i = g * size; i < (g + 1) * size; ++i) {
      if (b[i] > first)
        second = first, first = b[i];
      else if (b[i] > second)
        second = b[i];
    }
    score[static_cast<size_t>(g)] = size > 1 ? first + second : first;
  }
  std::vector<char> kept(static_cast<size_t>(r.groups), 0);
  std::vector<int32_t> best(static_cast<size_t>(r.keep));
  choose(score.data(), r.groups, r.keep, kept, best.data());
  for (int64_t i = 0; i < r.experts; ++i) taken[static_cast<size_t>(i)] = !kept[static_cast<size_t>(i / size)];
}
void route(const Rule& r, const std::vector<float>& logits, const std::vector<float>& bias, int32_t* ids,
           float* weights) {
  const int64_t n = r.experts;
  std::vector<float> keys(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    keys[at] = number_or_least(by_bias(r.method) ? sigmoid(logits[at]) + bias[at] : logits[at]);
  }
  std::vector<char> taken(static_cast<size_t>(n), 0);
  drop_groups(r, keys.data(), taken);
  choose(keys.data(), n, r.top_k, taken, ids);
  const float most = *std::max_element(keys.begin(), keys.end());
  float all = 0, chosen = 0;
  if (r.method == kDefault || r.method == kRenormalizeNaive)
    for (float x : logits) all += std::exp(x - most);
  for (int64_t j = 0; j < r.top_k; ++j) {
    const float x = logits[static_cast<size_t>(ids[j])];
    switch (r.method) {
      case kDefault:
      case kRenormalizeNaive: weights[j] = std::exp(x - most) / all; break;
      case kRenormalize: weights[j] = std::exp(x - most); break;
      case kTopK: weights[j] = x; break;
      default: weights[j] = sigmoid(x);
    }
    chosen += weights[j];
  }
  const bool scaled = by_bias(r.method);
  if (r.method == kRenormalize || r.method == kRenormalizeNaive || (r.method == kSigmoidRenorm && r.renormalise) ||
      scaled)
    for (int64_t j = 0; j < r.top_k; ++j)
      weights[j] = scaled ? weights[j] / (chosen + 1e-20f) * static_cast<float>(r.factor) : weights[j] / chosen;
}

// ---- the reference: a stable sort, f64 ----
void route_reference(const Rule& r, const std::vector<float>& logits, const std::vector<float>& bias, int32_t* ids,
                     double* weights) {
  const auto s = [](double x) { return 1 / (1 + std::exp(-x)); };
  std::vector<double> key(logits.size());
  for (size_t i = 0; i < key.size(); ++i) {
    const double k = by_bias(r.method) ? s(logits[i]) + static_cast<double>(bias[i]) : logits[i];
    key[i] = std::isnan(k) ? -HUGE_VAL : k;
  }
  const auto order = [](const std::vector<double>& v) {
    std::vector<int32_t> o(v.size());
    std::iota(o.begin(), o.end(), 0);
    std::stable_sort(o.begin(), o.end(),
                     [&](int32_t a, int32_t b) { return v[static_cast<size_t>(a)] > v[static_cast<size_t>(b)]; });
    return o;
  };
  const size_t size = key.size() / static_cast<size_t>(r.groups);
  std::vector<double> group;
  for (size_t g = 0; g < static_cast<size_t>(r.groups); ++g) {
    std::vector<double> of(key.begin() + static_cast<long>(g * size), key.begin() + static_cast<long>((g + 1) * size));
    std::sort(of.rbegin(), of.rend());
    group.push_back(of.size() > 1 ? of[0] + of[1] : of[0]);
  }
  const std::vector<int32_t> groups = order(group);
  std::vector<int32_t> legal;
  for (int32_t e : order(key))
    if (std::find(groups.begin(), groups.begin() + r.keep, e / static_cast<int32_t>(size)) != groups.begin() + r.keep)
      legal.push_back(e);
  double all = 0, chosen = 0;
  for (float x : logits) all += std::exp(static_cast<double>(x));
  for (int64_t j = 0; j < r.top_k; ++j) {
    ids[j] = legal[static_cast<size_t>(j)];
    const double x = logits[static_cast<size_t>(ids[j])];
    const bool softmax = r.method == kDefault || r.method == kRenormalize || r.method == kRenormalizeNaive;
    weights[j] = softmax ? std::exp(x) / all : r.method == kTopK ? x : s(x);
    chosen += weights[j];
  }
  const bool divided = r.method == kRenormalize || r.method == kRenormalizeNaive || by_bias(r.method) ||
                       (r.method == kSigmoidRenorm && r.renormalise);
  for (int64_t j = 0; divided && j < r.top_k; ++j) weights[j] *= (by_bias(r.method) ? r.factor : 1) / chosen;
}

// ---- arguments ----
std::vector<float> row_of(const TensorView& x, int64_t r) {
  std::vector<float> out(static_cast<size_t>(x.size(-1)));
  for (int64_t i = 0; i < x.size(-1); ++i)
    out[static_cast<size_t>(i)] =
        static_cast<float>(ref::load_element(x, (x.rank() == 2 ? r * x.stride(0) : 0) + i * x.stride(-1)));
  return out;
}
/// f(token, ids, weights) for all tokens, in parallel.
template <class W, class Route, class F>
void each_token(const Rule& r, const TensorView& logits, const std::vector<float>& bias, Route routed, F f) {
  ops::for_rows(logits.size(0), ops::rows_per_task(logits.size(0), r.experts * (r.top_k + 8)), [&](int64_t t) {
    std::vector<int32_t> ids(static_cast<size_t>(r.top_k));
    std::vector<W> weights(static_cast<size_t>(r.top_k));
    routed(r, row_of(logits, t), bias, ids.data(), weights.data());
    f(t, ids, weights);
  });
}
template <class W, class Route>
moe::Routed all_tokens(const MoeRouting& a, Route routed) {
  const auto experts = static_cast<size_t>(a.routing_logits.size(1));
  const std::vector<float> bias = a.routing_bias ? row_of(*a.routing_bias, 0) : std::vector<float>(experts, 0.0f);
  const auto n = static_cast<size_t>(a.routing_logits.size(0) * a.top_k);
  moe::Routed out{std::vector<int32_t>(n), std::vector<double>(n)};
  each_token<W>(rule_of(a), a.routing_logits, bias, routed, [&](int64_t t, const auto& ids, const auto& weights) {
    std::copy(ids.begin(), ids.end(), out.ids.begin() + t * a.top_k);
    std::copy(weights.begin(), weights.end(), out.weights.begin() + t * a.top_k);
  });
  return out;
}
template <class W, class Route>
void run(const MoeRouting& a, Route routed) {
  const moe::Routed all = all_tokens<W>(a, routed);
  for (size_t i = 0; i < all.ids.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i), t = at / a.top_k, j = at % a.top_k;
    ref::put(*a.topk_ids, {t, j}, all.ids[i]);
    ref::put(*a.topk_weights, {t, j}, all.weights[i]);
  }
}
template <class W, class Route>
void run(const FusedTopkDeepseek& a, Route routed) {
  each_token<W>(rule_of(a), a.scores, row_of(a.bias, 0), routed, [&](int64_t t, const auto& ids, const auto& weights) {
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto j = static_cast<int64_t>(i);
      ref::put(a.topk_indices, {t, j}, ids[i]);
      ref::put(a.topk_values, {t, j}, weights[i]);
      if (a.routing_replay_out) ref::put(*a.routing_replay_out, {t, j}, ids[i]);
    }
  });
}
template <class B>
void launch(const B& a) {
  run<float>(a, route);
}
template <class B>
void reference(const B& a) {
  run<double>(a, route_reference);
}

// ---- on a GPU ----
MoeRouteParams gpu_params(const Rule& r, const TensorView& logits, const std::optional<TensorView>& bias) {
  MoeRouteParams p{.logits = moe::numbers_of(logits)};
  if (bias) p.bias = moe::row_of_numbers(*bias);
  p.method = static_cast<int32_t>(r.method), p.tokens = static_cast<int32_t>(logits.size(0));
  p.experts = static_cast<int32_t>(r.experts), p.top_k = static_cast<int32_t>(r.top_k);
  p.groups = static_cast<int32_t>(r.groups), p.keep = static_cast<int32_t>(r.keep);
  p.factor = static_cast<float>(r.factor), p.renormalise = r.renormalise;
  return p;
}
op::Prepared prepare_cuda(const MoeRouting& a, const op::Call& call) {
  MoeRouteParams p = gpu_params(rule_of(a), a.routing_logits, a.routing_bias);
  p.ids = moe::results_of(*a.topk_ids), p.weights = moe::results_of(*a.topk_weights);
  return moe::prepare_route(p, call.device);
}
op::Prepared prepare_cuda(const FusedTopkDeepseek& a, const op::Call& call) {
  MoeRouteParams p = gpu_params(rule_of(a), a.scores, a.bias);
  p.ids = moe::results_of(a.topk_indices), p.weights = moe::results_of(a.topk_values);
  if (a.routing_replay_out) p.replay = moe::results_of(*a.routing_replay_out);
  return moe::prepare_route(p, call.device);
}

// ---- checks ----
void check_groups(int64_t experts, int64_t groups, int64_t keep, int64_t top_k) {
  FI_CHECK(groups >= 1 && experts % groups == 0, ValueError, "n_group is ", groups, ", but must divide ", experts,
           " experts");
  FI_CHECK(keep >= 1 && keep <= groups, ValueError, "topk_group is ", keep, ", but must be in [1, ", groups,
           "] (n_group)");
  FI_CHECK(keep * (experts / groups) >= top_k, ValueError, "top_k is ", top_k, ", but ", keep, " groups have ",
           keep * (experts / groups), " experts");
}
void validate_routing_as(const MoeRouting& a) {
  const int64_t m = a.routing_method, e = a.routing_logits.size(1);
  FI_CHECK(m >= 0 && m <= kTopKSigmoid, ValueError, "routing_method is ", m, ", but must be in [0, 9]");
  FI_CHECK(a.top_k >= 1 && a.top_k <= e, ValueError, "top_k is ", a.top_k, ", but must be in [1, ", e, "] (experts)");
  FI_CHECK(m != kLlama4 || a.top_k == 1, ValueError, "top_k is ", a.top_k, ", but Llama4 routes to one expert");
  FI_CHECK(by_bias(m) || !a.routing_bias, ValueError,
           "routing_bias is given, but only DeepSeekV3 (2) and MiniMax2 (7) have one; routing_method is ", m);
  if (m == kDeepSeekV3) {
    const Rule r = rule_of(a);
    FI_CHECK(a.n_group >= 0 && a.topk_group >= 0, ValueError, "n_group is ", a.n_group, " and topk_group ",
             a.topk_group, ", but they must not be negative");
    check_groups(e, r.groups, a.topk_group > 0 ? a.topk_group : r.keep, a.top_k);
  } else {
    FI_CHECK(a.n_group <= 1 && a.topk_group <= 1, ValueError, "n_group is ", a.n_group, " and topk_group ",
             a.topk_group, ", but only DeepSeekV3 has groups");
  }
  FI_CHECK(by_bias(m) || a.routed_scaling_factor == 1, ValueError, "routed_scaling_factor is ", a.routed_scaling_factor,
           ", but only DeepSeekV3 (2) and MiniMax2 (7) have one");
}
void validate_routing(const MoeRouting& a) { validate_routing_as(a); }
void validate_deepseek(const FusedTopkDeepseek& a) {
  const int64_t e = a.scores.size(1);
  FI_CHECK(a.topk >= 1 && a.topk <= std::min<int64_t>(8, e), ValueError, "topk is ", a.topk, ", but must be in [1, ",
           std::min<int64_t>(8, e), "]");
  FI_CHECK(a.n_group >= 1 && a.n_group <= 32, ValueError, "n_group is ", a.n_group, ", but must be in [1, 32]");
  check_groups(e, a.n_group, a.topk_group, a.topk);
  const int64_t size = e / a.n_group;
  FI_CHECK(a.n_group > 1 || e <= 384, ValueError, "scores.shape[1] is ", e, ", but must be at most 384 with one group");
  FI_CHECK(a.n_group == 1 || (size <= 32 && size * a.topk_group <= 128), ValueError, "groups have ", size, " experts, ",
           a.topk_group, " of them ", size * a.topk_group, ", but at most 32 and 128 are allowed");
  if (a.routing_replay_out)
    FI_CHECK(a.routing_replay_out->size(0) >= a.scores.size(0) && a.routing_replay_out->size(1) == a.topk, ValueError,
             "routing_replay_out is ", to_string(*a.routing_replay_out), ", but must be [", a.scores.size(0),
             " or more, ", a.topk, "]");
}

op::Cost cost_routing(const MoeRouting& a) { return {.bytes = static_cast<double>(a.routing_logits.nbytes())}; }
op::Cost cost_deepseek(const FusedTopkDeepseek& a) { return {.bytes = static_cast<double>(a.scores.nbytes())}; }

// ---- tables ----
constexpr const char* kMethods =
    "RoutingMethodType: "
    "Default=0|Renormalize=1|DeepSeekV3=2|Llama4=3|RenormalizeNaive=4|TopK=5|SigmoidRenorm=6|MiniMax2=7|Sigmoid=8|"
    "TopKSigmoid=9|Unspecified=10";
op::Shape chosen(const MoeRouting& a) { return {2, {a.routing_logits.size(0), a.top_k}}; }
using R = MoeRouting;
constexpr op::Field routing_fields[] = {
    op::in<&R::routing_logits>("routing_logits", "t e", op::floats),
    op::attr<&R::routing_method>("routing_method", op::required, op::enumeration(kMethods)),
    op::attr<&R::top_k>("top_k", op::required),
    op::in<&R::routing_bias>("routing_bias", "e", op::floats),
    op::attr<&R::n_group>("n_group"),
    op::attr<&R::topk_group>("topk_group"),
    op::attr<&R::routed_scaling_factor>("routed_scaling_factor"),
    op::attr<&R::norm_topk_prob>("norm_topk_prob"),
    op::result<&R::topk_ids>("topk_ids", nullptr, DType::kI32, op::shape<chosen>),
    op::result<&R::topk_weights>("topk_weights", nullptr, DType::kF32, op::shape<chosen>),
};
using D = FusedTopkDeepseek;
constexpr op::Field deepseek_fields[] = {
    op::in<&D::scores>("scores", "t e", op::floats, op::contiguous),
    op::in<&D::bias>("bias", "e", op::floats, op::contiguous),
    op::attr<&D::n_group>("n_group", op::required),
    op::attr<&D::topk_group>("topk_group", op::required),
    op::attr<&D::topk>("topk", op::required),
    op::attr<&D::routed_scaling_factor>("routed_scaling_factor", op::required),
    op::out<&D::topk_values>("topk_values", "t k", op::same_as("scores"), op::contiguous, op::required,
                             op::not_returned),
    op::out<&D::topk_indices>("topk_indices", "t k", DType::kI32, op::contiguous, op::required, op::not_returned),
    op::attr<&D::launch_with_pdl>("launch_with_pdl"),
    op::inout<&D::routing_replay_out>("routing_replay_out", "rows k", DType::kI16, op::contiguous),
    op::attr<&D::backend>("backend", op::keyword_only, op::choices("default|cake")),
};
constexpr op::Candidate routing_candidates[] = {
    op::cuda<static_cast<op::Prepared (*)(const R&, const op::Call&)>(prepare_cuda)>(), op::cpu<launch<R>>(),
    op::reference<reference<R>>()};
constexpr op::Candidate deepseek_candidates[] = {
    op::cuda<static_cast<op::Prepared (*)(const D&, const op::Call&)>(prepare_cuda)>(), op::cpu<launch<D>>(),
    op::reference<reference<D>>()};
}  // namespace

namespace ops::moe {
constinit const op::Op routing_op = op::define<R, validate_routing, cost_routing>(
    "moe_routing", "flashinfer.fused_moe", "The experts of each token and their weights, by a routing method.",
    routing_fields, routing_candidates, routing_cases);
constinit const op::Op deepseek_op = op::define<D, validate_deepseek, cost_deepseek>(
    "fused_topk_deepseek", "flashinfer.fused_moe",
    "DeepSeek-V3's routing: sigmoid plus bias, the best groups, then the best experts in them.", deepseek_fields,
    deepseek_candidates, deepseek_cases);
}  // namespace ops::moe

namespace moe {
MoeRouting without_unused(MoeRouting a) {
  if (!by_bias(a.routing_method)) a.routing_bias.reset(), a.routed_scaling_factor = 1;
  return a;
}
void check_routing(const MoeRouting& a) { validate_routing_as(a); }
MoeRouteParams route_params(const MoeRouting& a) { return gpu_params(rule_of(a), a.routing_logits, a.routing_bias); }
Routed route(const MoeRouting& a) { return all_tokens<float>(a, flashinfer::route); }
Routed route_reference(const MoeRouting& a) { return all_tokens<double>(a, flashinfer::route_reference); }
}  // namespace moe

std::pair<Tensor, Tensor> moe_routing(const R& a) { return op::call(family::routing_op, a); }
void fused_topk_deepseek(const D& a) { op::call(family::deepseek_op, a); }

}  // namespace flashinfer
