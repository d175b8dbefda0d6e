// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/cases/fill.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "flashinfer/core/context.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/ops/common/fill.h"
#include "flashinfer/ops/common/reference.h"

namespace flashinfer::cases {
namespace {

using ops::each, ops::mix, ops::normal, ops::uniform;

op::FillRule parse_rule(std::string_view s) {
  op::FillRule r;
  const size_t open = s.find('(');
  r.name = s.substr(0, open);
  if (open == std::string_view::npos) return r;
  std::string_view args = s.substr(open + 1, s.size() - open - 2);
  const size_t comma = args.find(',');
  auto num = [&](std::string_view t) {
    if (t == "inf" || t == "-inf") return t[0] == '-' ? -HUGE_VAL : HUGE_VAL;
    double v = 0;
    if (std::from_chars(t.data(), t.data() + t.size(), v).ptr != t.data() + t.size())
      throw ValueError(str("case: bad number in fill '", s, "'"));
    return v;
  };
  r.a = num(args.substr(0, comma));
  if (comma != std::string_view::npos) r.b = num(args.substr(comma + 1));
  return r;
}

void fill_probs(const TensorView& t, uint64_t seed) {
  const int64_t d = t.size(-1);
  ref::for_each_row(t, [&](const ref::Index& row) {
    double sum = 0;
    int64_t linear = 0;
    for (int a = 0; a + 1 < t.rank(); ++a) linear = linear * t.size(a) + row[static_cast<size_t>(a)];
    for (int64_t i = 0; i < d; ++i) sum += -std::log(uniform(seed, linear * d + i));
    for (int64_t i = 0; i < d; ++i) ref::set(t, row, i, -std::log(uniform(seed, linear * d + i)) / sum);
  });
}

/// Softmax of normal values with this deviation over each row.
void fill_softmax(const TensorView& t, double deviation, uint64_t seed) {
  if (!t.is_contiguous() || t.rank() == 0)
    throw ValueError("case: softmax(deviation) needs a contiguous tensor of rank 1 or more");
  const int64_t d = t.size(-1);
  if (t.numel() == 0) return;
  const auto value = [&](int64_t i) { return std::exp(deviation * normal(seed, i)); };
  parallel_for(t.numel() / d, [&](int64_t r) {
    double sum = 0;
    for (int64_t i = r * d; i < (r + 1) * d; ++i) sum += value(i);
    for (int64_t i = r * d; i < (r + 1) * d; ++i) ref::store_element(t, i, value(i) / sum);
  });
}

const op::Fill* family_fill(std::string_view name) {
  for (const op::Family& family : op::families())
    for (const op::Fill& f : family.fills)
      if (name == f.name) return &f;
  return nullptr;
}

thread_local FillCache* cache = nullptr;

/// Whether the elements lie without gaps from data() on, in any order of the axes.
bool is_dense(const TensorView& t) {
  int64_t span = 1;
  for (int a = 0; a < t.rank(); ++a) {
    if (t.size(a) == 0 || (t.stride(a) <= 0 && t.size(a) > 1)) return false;
    span += (t.size(a) - 1) * t.stride(a);
  }
  return span == t.numel();
}

/// Copies the first `n` elements of a contiguous tensor over the others.
void repeat(const TensorView& t, int64_t n) {
  char* const data = static_cast<char*>(t.data());
  const int64_t bytes = t.nbytes();
  for (int64_t done = n * t.item_size(); done < bytes; done *= 2)
    std::memcpy(data + done, data, static_cast<size_t>(std::min(done, bytes - done)));
}

void compute(const TensorView& t, std::string_view rule, const std::vector<double>& literal, uint64_t seed) {
  if (rule.empty())
    rule = is_floating(t.dtype()) ? "normal(0,1)" : t.dtype() == DType::kBool ? "randint(0,2)" : "randint(0,100)";
  const op::FillRule r = parse_rule(rule);
  if (r.name == "literal")
    each(t, [&](int64_t i, int64_t o) { ref::store_element(t, o, literal[static_cast<size_t>(i)]); });
  else if (r.name == "normal")
    each(t, [&](int64_t i, int64_t o) { ref::store_element(t, o, r.a + r.b * normal(seed, i)); });
  else if (r.name == "uniform")
    each(t, [&](int64_t i, int64_t o) { ref::store_element(t, o, r.a + (r.b - r.a) * uniform(seed, i)); });
  else if (r.name == "randint")
    each(t, [&](int64_t i, int64_t o) { ref::store_element(t, o, std::floor(r.a + (r.b - r.a) * uniform(seed, i))); });
  else if (r.name == "const")
    each(t, [&](int64_t, int64_t o) { ref::store_element(t, o, r.a); });
  else if (r.name == "range") {
    const double step = rule.find(',') == std::string_view::npos ? 1 : r.b;
    each(t, [&](int64_t i, int64_t o) { ref::store_element(t, o, r.a + step * static_cast<double>(i)); });
  } else if (r.name == "nan")
    each(t, [&](int64_t, int64_t o) { ref::store_element(t, o, std::nan("")); });
  else if (r.name == "probs")
    fill_probs(t, seed);
  else if (r.name == "softmax")
    fill_softmax(t, r.a, seed);
  else if (r.name == "perm") {
    std::vector<int64_t> p(static_cast<size_t>(t.numel()));
    std::iota(p.begin(), p.end(), 0);
    for (size_t i = p.size(); i > 1; --i) std::swap(p[i - 1], p[mix(seed + i) % i]);
    each(t, [&](int64_t i, int64_t o) { ref::store_element(t, o, static_cast<double>(p[static_cast<size_t>(i)])); });
  } else if (const op::Fill* own = family_fill(r.name))
    own->fill(t, r, seed);
  else
    throw ValueError(str("case: unknown fill '", rule, "'"));
}

}  // namespace

void fill(const TensorView& t, std::string_view rule, const std::vector<double>& literal, uint64_t seed,
          int64_t repeat_after) {
  const bool random =
      rule.empty() || rule.starts_with("normal(") || rule.starts_with("uniform(") || rule.starts_with("randint(");
  if (repeat_after > 0 && t.numel() > repeat_after && random && t.device().type == DeviceType::kCPU && is_dense(t)) {
    const int64_t n[] = {repeat_after}, one[] = {1};
    compute(TensorView(t.data(), t.dtype(), n, one), rule, literal, seed);
    repeat(t, repeat_after);
    return;
  }
  if (cache)
    cache->fill(t, rule, literal, seed);
  else
    compute(t, rule, literal, seed);
}

FillCache::FillCache() : previous_(std::exchange(cache, this)) {}
FillCache::~FillCache() { cache = previous_; }

void FillCache::fill(const TensorView& t, std::string_view rule, const std::vector<double>& literal, uint64_t seed) {
  constexpr int64_t kSmall = 1024, kMostBytes = 256 << 20;
  if (rule == "literal" || t.numel() < kSmall) return compute(t, rule, literal, seed);
  std::string key = str(seed, " ", to_string(t.dtype()), " ", rule);
  for (const int64_t extent : t.shape()) key += str(" ", extent);
  const auto found = contents_.find(key);
  if (found != contents_.end()) return copy_elements(found->second.view(), t);
  compute(t, rule, literal, seed);
  const int64_t bytes = t.numel() * t.item_size();
  if (bytes_ + bytes > kMostBytes) return;
  bytes_ += bytes;
  contents_.emplace(std::move(key), Tensor::clone(t));
}

/// Row by row where both rows are contiguous.
void copy_elements(const TensorView& from, const TensorView& to) {
  if (from.numel() == 0) return;
  const size_t item = static_cast<size_t>(from.item_size());
  const auto copy = [&](int64_t a, int64_t b, int64_t n) {
    std::memcpy(to.data_as<char>() + b * static_cast<int64_t>(item),
                from.data_as<char>() + a * static_cast<int64_t>(item), static_cast<size_t>(n) * item);
  };
  if (from.rank() == 0) return copy(0, 0, 1);
  const int64_t d = from.size(-1);
  const bool rows = d == 1 || (from.stride(-1) == 1 && to.stride(-1) == 1);
  ref::for_each_row(from, [&](const ref::Index& row) {
    const int64_t a = ref::offset_of(from, row), b = ref::offset_of(to, row);
    if (rows) return copy(a, b, d);
    for (int64_t i = 0; i < d; ++i) copy(a + i * from.stride(-1), b + i * to.stride(-1), 1);
  });
}

}  // namespace flashinfer::cases
