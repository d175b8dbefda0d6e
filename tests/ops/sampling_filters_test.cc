// SPDX-License-Identifier: Apache-2.0
// Distributions of every sampler (chi-square), exactness of thresholds against a full sort in double precision,
// independence of position, batch and threads, and errors of the filters.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "flashinfer/core/context.h"
#include "flashinfer/core/version.h"
#include "flashinfer/ops/sampling/op.h"
#include "flashinfer/ops/topk/op.h"
#include "tests/ops/errors.h"

namespace flashinfer {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
/// Kernels are slow under a sanitizer, and draws alike; the plain build judges the distributions.
const int64_t kDraws = *build::sanitizer_flags() ? 4000 : 40000;

TensorView f32(const std::vector<float>& v, int64_t rows) {
  return TensorView(v.data(), {rows, static_cast<int64_t>(v.size()) / rows});
}
std::vector<float> repeated(const std::vector<float>& p, int64_t n) {
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i) out.insert(out.end(), p.begin(), p.end());
  return out;
}

/// The chi-square of what was drawn against weights `q` (0: must never be drawn) lies below its 1 - 1e-6 quantile, by
/// Wilson and Hilferty's approximation. Seeds are fixed: a failure is a change of the code, one in a million of chance.
void expect_distribution(std::span<const int32_t> drawn, const std::vector<double>& q, const std::string& what) {
  std::vector<double> count(q.size());
  for (int32_t id : drawn) ++count.at(static_cast<size_t>(id));
  const double mass = std::accumulate(q.begin(), q.end(), 0.0), n = static_cast<double>(drawn.size());
  double chi = 0;
  int cells = -1;
  for (size_t i = 0; i < q.size(); ++i) {
    if (q[i] == 0) {
      EXPECT_EQ(count[i], 0) << what << ": token " << i << " has no probability";
      continue;
    }
    const double want = n * q[i] / mass;
    ASSERT_GE(want, 5) << what << ": too few draws for the test";
    chi += (count[i] - want) * (count[i] - want) / want;
    ++cells;
  }
  const double d = std::max(cells, 1), root = 1 - 2 / (9 * d) + 4.753 * std::sqrt(2 / (9 * d));
  EXPECT_LT(chi, d * root * root * root) << what << ", " << cells << " degrees of freedom";
}

TEST(SamplingDistribution, EverySampler) {
  const std::vector<float> p = {0.05f, 0.3f, 0.1f, 0, 0.25f, 0.2f, 0.1f};
  const std::vector<float> probs = repeated(p, kDraws);
  const TensorView t = f32(probs, kDraws);
  const int64_t seed = 20, offset = 4;
  const auto weights = [&](std::initializer_list<size_t> kept) {
    std::vector<double> q(p.size());
    for (size_t i : kept) q[i] = static_cast<double>(p[i]);
    return q;
  };
  const auto check = [&](const Samples& s, const std::vector<double>& q, const char* what) {
    expect_distribution(s.samples.span<int32_t>(), q, what);
  };
  check(sampling_from_probs({.probs = t, .seed = seed, .offset = offset}), weights({0, 1, 2, 4, 5, 6}), "plain");
  check(top_k_sampling_from_probs({.probs = t, .top_k = 3, .seed = seed, .offset = offset}), weights({1, 4, 5}),
        "top_k");
  check(top_k_sampling_from_probs({.probs = t, .top_k = 4, .seed = seed, .offset = offset}), weights({1, 2, 4, 5, 6}),
        "top_k with a tie at k");
  check(top_p_sampling_from_probs({.probs = t, .top_p = 0.5, .seed = seed, .offset = offset}), weights({1, 4}),
        "top_p");
  check(min_p_sampling_from_probs({.probs = t, .min_p = 0.6, .seed = seed, .offset = offset}), weights({1, 4, 5}),
        "min_p");
  for (const char* order : {"top_k_first", "joint"})
    check(top_k_top_p_sampling_from_probs(
              {.probs = t, .top_k = 3, .top_p = 0.7, .filter_apply_order = order, .seed = seed, .offset = offset}),
          std::string(order) == "joint" ? weights({1, 4, 5}) : weights({1, 4}), order);
}

TEST(SamplingDistribution, FromLogits) {
  const std::vector<float> x = {0.5f, -1, 2, -kInf, 1.5f, 0, 1, -0.5f};
  const std::vector<float> logits = repeated(x, kDraws);
  std::vector<double> q;
  for (float v : x) q.push_back(std::exp(static_cast<double>(v)));
  const int64_t seed = 21, offset = 0;
  for (int64_t at : {0, 4, 1, 7}) {  // 1 and 7: numbers straddle two counters
    const Tensor ids = sampling_from_logits({.logits = f32(logits, kDraws), .seed = seed, .offset = at});
    expect_distribution(ids.span<int32_t>(), q, "offset " + std::to_string(at));
  }
  const Tensor ids = top_k_top_p_sampling_from_logits(
      {.logits = f32(logits, kDraws), .top_k = 4, .top_p = 0.9, .seed = seed, .offset = offset});
  for (size_t i : {1, 5, 7}) q[i] = 0;  // of the four largest, three have .898 of the mass, so that the fourth stays
  expect_distribution(ids.span<int32_t>(), q, "top_k and top_p");
}

TEST(SamplingDistribution, ARowOfManyTokens) {  // blocks, spans, the loop's second stage
  constexpr int64_t kV = 9000, kMany = 2000;
  std::vector<float> p(kV);
  for (size_t i = 0; i < p.size(); ++i) p[i] = static_cast<float>((i * 7919) % 100 + 1);
  const double mass = std::accumulate(p.begin(), p.end(), 0.0);
  for (float& v : p) v = static_cast<float>(v / mass);
  const std::vector<float> probs = repeated(p, kMany);
  const int64_t seed = 22, offset = 0;
  const Samples s =
      top_k_sampling_from_probs({.probs = f32(probs, kMany), .top_k = 900, .seed = seed, .offset = offset});
  // The 10 most frequent weights of the 100, 90 tokens each, are the top 900; all tokens of a weight are one cell.
  std::vector<int32_t> cells;
  for (int32_t id : s.samples.span<int32_t>()) cells.push_back(static_cast<int32_t>((int64_t{id} * 7919) % 100));
  std::vector<double> q(100);
  for (size_t w = 90; w < 100; ++w) q[w] = static_cast<double>(w + 1);
  expect_distribution(cells, q, "top 900 of 9000");
}

TEST(SamplingDistribution, EveryTieIsEligible) {  // in whichever vector it lies
  constexpr int64_t kV = 256;
  const std::vector<float> probs = repeated(std::vector<float>(kV, 1.0f / kV), kDraws);
  const int64_t seed = 25, offset = 0;
  const Samples s = top_k_top_p_sampling_from_probs(
      {.probs = f32(probs, kDraws), .top_k = 3, .top_p = 1.0, .seed = seed, .offset = offset});
  expect_distribution(s.samples.span<int32_t>(), std::vector<double>(kV, 1.0), "ties at k");
}

TEST(SamplingDistribution, ChainFollowsTheTarget) {
  // The first token of a chain is distributed as the target, whatever the draft.
  const std::vector<float> draft = {0.6f, 0.1f, 0.1f, 0.2f}, first = {0.1f, 0.4f, 0.3f, 0.2f},
                           second = {0.25f, 0.25f, 0.25f, 0.25f};
  std::vector<float> d = repeated(draft, kDraws), t;
  for (int64_t i = 0; i < kDraws; ++i) {
    t.insert(t.end(), first.begin(), first.end());
    t.insert(t.end(), second.begin(), second.end());
  }
  const int64_t seed = 23, other = 24, offset = 0;
  const Samples proposal = sampling_from_probs({.probs = f32(d, kDraws), .seed = other, .offset = offset});
  const auto [ids, accepted, emitted] =
      chain_speculative_sampling({.draft_probs = TensorView(d.data(), {kDraws, 1, 4}),
                                  .draft_token_ids = TensorView(proposal.samples.data_as<int32_t>(), {kDraws, 1}),
                                  .target_probs = TensorView(t.data(), {kDraws, 2, 4}),
                                  .seed = seed,
                                  .offset = offset});
  std::vector<int32_t> one, bonus;
  for (int64_t i = 0; i < kDraws; ++i) {
    one.push_back(ids.data_as<int32_t>()[2 * i]);
    const int32_t next = ids.data_as<int32_t>()[2 * i + 1];
    EXPECT_EQ(next >= 0, emitted.data_as<int32_t>()[i] == 1);
    if (next >= 0) bonus.push_back(next);
    EXPECT_GE(accepted.data_as<int32_t>()[i], emitted.data_as<int32_t>()[i]);
  }
  expect_distribution(one, std::vector<double>(first.begin(), first.end()), "first token");
  expect_distribution(bonus, std::vector<double>(second.begin(), second.end()), "bonus token");
}

/// Rows of different kinds, as probabilities.
std::vector<std::vector<float>> rows_of_all_kinds(size_t n) {
  std::mt19937_64 random(n);
  std::vector<std::vector<float>> rows;
  const auto make = [&](auto&& value) {
    std::vector<double> x(n);
    for (size_t i = 0; i < n; ++i) x[i] = value(i);
    const double sum = std::accumulate(x.begin(), x.end(), 0.0);
    std::vector<float> p(n);
    for (size_t i = 0; i < n; ++i) p[i] = static_cast<float>(x[i] / sum);
    rows.push_back(p);
  };
  std::normal_distribution<double> normal;
  std::exponential_distribution<double> exponential;
  make([&](size_t) { return std::exp(3 * normal(random)); });                    // peaked
  make([&](size_t) { return exponential(random); });                             // broad
  make([&](size_t i) { return 1 + 1e-3 * static_cast<double>(i % 97); });        // nearly flat, with ties
  make([&](size_t i) { return i % 3 ? 0.0 : 1 + static_cast<double>(i % 5); });  // zeros and five values
  make([&](size_t i) { return i == n / 2 ? 1e6 : 1; });                          // one token
  make([&](size_t i) { return static_cast<double>(n - i); });                    // sorted: what a strided sample sees
  return rows;
}

TEST(Thresholds, ExactAgainstAFullSort) {
  for (size_t n : {1u, 5u, 255u, 257u, 1024u, 5000u, 20011u})
    for (const std::vector<float>& p : rows_of_all_kinds(n)) {
      std::vector<double> sorted(p.begin(), p.end());
      std::sort(sorted.rbegin(), sorted.rend());
      const TensorView t(p.data(), {1, static_cast<int64_t>(n)});
      for (double top_p : {0.001, 0.1, 0.5, 0.9, 0.999}) {
        double least = sorted[0], run = 0;
        bool edge = false;  // a sum within rounding of top_p: either answer is right
        for (size_t i = 0; i < n && (i == 0 || run < top_p); run += sorted[i++]) least = sorted[i];
        run = 0;
        for (size_t i = 0; i < n; run += sorted[i++]) edge |= i > 0 && std::abs(run - static_cast<float>(top_p)) < 2e-6;
        if (edge) continue;
        const Tensor y = top_p_renorm_probs({.probs = t, .top_p = top_p});
        double kept = 0;
        for (size_t i = 0; i < n; ++i) kept += static_cast<double>(p[i]) >= least ? static_cast<double>(p[i]) : 0;
        for (size_t i = 0; i < n; ++i) {
          const double want = p[i] > 0 && static_cast<double>(p[i]) >= least ? static_cast<double>(p[i]) / kept : 0;
          ASSERT_NEAR(y.data_as<float>()[i], want, 1e-5 * want) << "n " << n << ", top_p " << top_p << ", token " << i;
        }
      }
      for (int64_t k :
           {int64_t{1}, int64_t{2}, int64_t{40}, static_cast<int64_t>(n / 3), static_cast<int64_t>(n) - 1}) {
        if (k < 1 || k > static_cast<int64_t>(n)) continue;
        const Tensor y = top_k_mask_logits({.logits = t, .top_k = k});
        const double least = sorted[static_cast<size_t>(k - 1)];
        for (size_t i = 0; i < n; ++i)
          ASSERT_EQ(y.data_as<float>()[i], static_cast<double>(p[i]) >= least ? p[i] : -kInf)
              << "n " << n << ", k " << k;
        const auto [values, indices] = top_k({.input = t, .k = k, .sorted = true});
        for (int64_t i = 0; i < k; ++i) {
          ASSERT_EQ(static_cast<double>(values.data_as<float>()[i]), sorted[static_cast<size_t>(i)])
              << "n " << n << ", k " << k;
          ASSERT_EQ(p[static_cast<size_t>(indices.data_as<int64_t>()[i])], values.data_as<float>()[i]);
        }
      }
    }
}

TEST(Thresholds, FollowAPermutation) {
  const size_t n = 9001;
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(5));
  for (const std::vector<float>& p : rows_of_all_kinds(n)) {
    std::vector<float> moved(n);
    for (size_t i = 0; i < n; ++i) moved[i] = p[order[i]];
    const Tensor a = top_k_renorm_probs({.probs = f32(p, 1), .top_k = 700}),
                 b = top_k_renorm_probs({.probs = f32(moved, 1), .top_k = 700});
    for (size_t i = 0; i < n; ++i)
      ASSERT_NEAR(b.data_as<float>()[i], a.data_as<float>()[order[i]], 1e-6 * a.data_as<float>()[order[i]]);
  }
}

TEST(Sampling, BatchAndThreadsDoNotMatter) {
  constexpr int64_t kV = 40000, kRows = 5;
  std::vector<float> logits(kRows * kV);
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 3);
  for (float& v : logits) v = normal(random);
  const Tensor p = softmax({.logits = f32(logits, kRows)});
  const std::vector<int64_t> seeds = {4, 8, 15, 16, 23}, offsets = {0, 4, 8, 12, 16};
  const std::vector<std::function<Tensor(TensorView, TensorView, TensorView, TensorView)>> samplers = {
      [](TensorView probs, TensorView, TensorView s, TensorView o) {
        return sampling_from_probs({.probs = probs, .seed = s, .offset = o}).samples;
      },
      [](TensorView probs, TensorView, TensorView s, TensorView o) {
        return top_k_top_p_sampling_from_probs({.probs = probs, .top_k = 50, .top_p = 0.9, .seed = s, .offset = o})
            .samples;
      },
      [](TensorView probs, TensorView, TensorView s, TensorView o) {
        return top_p_sampling_from_probs({.probs = probs, .top_p = 0.3, .seed = s, .offset = o}).samples;
      },
      [](TensorView, TensorView x, TensorView s, TensorView o) {
        return sampling_from_logits({.logits = x, .seed = s, .offset = o});
      },
      [](TensorView, TensorView x, TensorView s, TensorView o) {
        return top_k_top_p_sampling_from_logits({.logits = x, .top_k = 50, .top_p = 0.9, .seed = s, .offset = o});
      },
  };
  for (size_t which = 0; which < samplers.size(); ++which) {
    const auto run = [&](int64_t begin, int64_t end, int threads) {
      const auto pool = make_thread_pool(threads);
      Context context = Context::current();
      context.executor = *pool;
      ContextScope scope(context);
      // A seed for each row wants more than one row: a single one is drawn twice and the first draw kept.
      std::vector<int64_t> s(seeds.begin() + begin, seeds.begin() + end),
          o(offsets.begin() + begin, offsets.begin() + end);
      const Tensor ids =
          samplers[which](p.view().slice(0, begin, end), f32(logits, kRows).slice(0, begin, end),
                          TensorView(std::span<const int64_t>(s)), TensorView(std::span<const int64_t>(o)));
      return std::vector<int32_t>(ids.span<int32_t>().begin(), ids.span<int32_t>().end());
    };
    const std::vector<int32_t> all = run(0, kRows, 1);
    EXPECT_EQ(run(0, kRows, 3), all) << which;
    for (int64_t r = 0; r < kRows; ++r) {  // alone, cut over the threads or not
      EXPECT_EQ(run(r, r + 1, 1)[0], all[static_cast<size_t>(r)]) << which << ", row " << r;
      EXPECT_EQ(run(r, r + 1, 3)[0], all[static_cast<size_t>(r)]) << which << ", row " << r;
    }
  }
}

TEST(Filters, RowsWithoutUsableProbabilityBecomeZeros) {
  std::vector<float> p = repeated({0.1f, 0.2f, 0.3f, 0.4f}, 4);
  p[1 * 4 + 3] = NAN;
  for (size_t i = 0; i < 4; ++i) p[2 * 4 + i] = 0;
  p[3 * 4] = -1;  // taken as 0
  const Tensor y = top_p_renorm_probs({.probs = f32(p, 4), .top_p = 0.6}),
               z = top_k_renorm_probs({.probs = f32(p, 4), .top_k = 2});
  for (const Tensor* t : {&y, &z})
    for (int64_t i = 0; i < 16; ++i) {
      const float want = (i / 4 == 1 || i / 4 == 2 || i % 4 < 2) ? 0 : i % 4 == 2 ? 0.3f / 0.7f : 0.4f / 0.7f;
      EXPECT_FLOAT_EQ(t->data_as<float>()[i], want) << i;
    }
}

TEST(Filters, ErrorsNameTheArgument) {
  const std::vector<float> probs = repeated({0.5f, 0.5f}, 3), two = {0.5f, 0.5f}, bad = {0.5f, NAN, 0.5f};
  const std::vector<int32_t> k = {1, 2};
  const TensorView p = f32(probs, 3);
  const auto has = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  has(message_of([&] { top_p_renorm_probs({.probs = p, .top_p = TensorView(std::span<const float>(two))}); }),
      "top_p_renorm_probs: Sampling parameter top_p batch size mismatch: it has 2 elements, but probs has 3 rows");
  has(message_of([&] { top_p_renorm_probs({.probs = p, .top_p = TensorView(std::span<const float>(bad))}); }),
      "top_p[1] is nan");
  has(message_of([&] { top_k_mask_logits({.logits = p, .top_k = TensorView(std::span<const int32_t>(k))}); }),
      "but logits has 3 rows");
  has(message_of([&] { top_k_renorm_probs({.probs = p, .top_k = 2.5}); }), "top_k is 2.5");
  has(message_of([&] { min_p_sampling_from_probs({.probs = p, .min_p = 1.5}); }),
      "min_p is 1.5, but must be at most 1");
  has(message_of([&] { top_k_sampling_from_probs({.probs = p, .top_k = TensorView(k.data(), {2, 1})}); }),
      "Expected a 1D tensor");
  has(message_of([&] { sampling_from_logits({.logits = f32(bad, 1), .check_nan = true}); }),
      "logits contains NaN, the first at [0, 1]");
}

TEST(TopKTransforms, ErrorsNameTheArgument) {
  const std::vector<float> x(20);
  const std::vector<int32_t> table(12), lengths = {5, 10}, far = {5, 11}, starts = {0, 1}, batch = {0, 2};
  const auto of = [&](const std::vector<int32_t>& v) { return TensorView(std::span<const int32_t>(v)); };
  const auto has = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  const TensorView in = f32(x, 2), pages(table.data(), {2, 6});
  const auto run = [&](const std::vector<int32_t>& n, TopKPageTableTransform a) {
    a.input = in, a.src_page_table = pages, a.lengths = of(n);
    return message_of([&] { top_k_page_table_transform(a); });
  };
  has(run(lengths, {.k = 0}), "k is 0");
  has(run(far, {.k = 3, .page_size = 2}), "lengths[1] is 11 from 0 on, but a row has 10");
  has(run(lengths, {.k = 3, .page_size = 3}), "page_size is 3");
  has(run(lengths, {.k = 3}), "row 1 needs pages [0, 9] of its table, but src_page_table.shape[1] is 6");
  has(run({5, 5}, {.k = 3, .row_starts = of(starts), .page_size = 2}), "needs page_table_row_starts");
  has(run({5, 5}, {.k = 3, .row_to_batch = of(batch)}), "row_to_batch[1] is 2");
  has(message_of([&] { top_k_ragged_transform({.input = in, .offsets = of(starts), .lengths = of(far), .k = 3}); }),
      "lengths[1] is 11");
}

}  // namespace
}  // namespace flashinfer
