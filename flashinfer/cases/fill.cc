// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/cases/fill.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>

#include "flashinfer/core/context.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/gemm/kernels/gguf_layout.h"  // the header lines of packed weights

namespace flashinfer::cases {
namespace {

uint64_t mix(uint64_t x) {  // splitmix64's finaliser
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
double uniform(uint64_t seed, int64_t i) {
  return (static_cast<double>(mix(seed + static_cast<uint64_t>(i) * 2) >> 11) + 0.5) * 0x1p-53;
}
double normal(uint64_t seed, int64_t i) {
  const double u = uniform(seed, i), v = uniform(~seed, i);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

/// Calls f(linear index, offset in elements) for every element, rows in parallel.
template <class F>
void each(const TensorView& t, F&& f) {
  const int64_t n = t.numel();
  if (!n) return;
  const int64_t d = t.rank() ? t.size(-1) : 1, rows = n / d, block = std::max<int64_t>(1, 65536 / d);
  parallel_for((rows + block - 1) / block, [&](int64_t task) {
    for (int64_t r = task * block; r < std::min(rows, (task + 1) * block); ++r) {
      int64_t rest = r, offset = 0;
      for (int a = t.rank() - 2; a >= 0; --a) {
        offset += rest % t.size(a) * t.stride(a);
        rest /= t.size(a);
      }
      for (int64_t i = 0; i < d; ++i) f(r * d + i, offset + (t.rank() ? i * t.stride(-1) : 0));
    }
  });
}

struct Rule {
  std::string_view name;
  double a = 0, b = 0;
};
Rule parse_rule(std::string_view s) {
  Rule r;
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

/// A weight packed by prepare_mm_weights: normal values after the header line of each panel.
void fill_packed(const TensorView& t, int64_t k, int64_t n, uint64_t seed) {
  if (t.rank() != 3 || t.dtype() != DType::kBF16 || t.size(0) != packed_panels(n) || t.size(1) != packed_lines(k) ||
      t.size(2) != kPackedWidth)
    throw ValueError(
        str("case: packed(", k, ",", n, ") needs bf16:", packed_panels(n), "x", packed_lines(k), "x", kPackedWidth));
  each(t, [&](int64_t i, int64_t o) { ref::store_element(t, o, normal(seed, i)); });
  for (int64_t p = 0; p < t.size(0); ++p)
    write_packed_header(t.data_as<bf16_t>() + p * t.stride(0), std::min<int64_t>(16, n - 16 * p), k);
}

/// A weight packed by prepare_quantized_weights, [..., panels, lines, 64] of (k, n): normal values or random codes
/// after the headers.
void fill_panels(const TensorView& t, int64_t k, int64_t n, uint64_t seed) {
  const GemmFormat f = t.dtype() == DType::kF8E4M3 ? GemmFormat::kE4M3 : GemmFormat::kFp4;
  if (t.rank() < 3 || t.size(-3) != panels_of(n) || t.size(-2) != word_lines(f, k) || t.size(-1) != kPanelLine)
    throw ValueError(str("case: panels(", k, ",", n, ") needs ", panels_of(n), "x", word_lines(f, k), "x64"));
  each(t, [&](int64_t i, int64_t o) {
    ref::store_element(
        t, o,
        f == GemmFormat::kE4M3 ? normal(seed, i) : static_cast<double>(mix(seed + static_cast<uint64_t>(i)) % 256));
  });
  for (int64_t i = 0; i < (t.rank() == 4 ? t.size(0) : 1); ++i)
    for (int64_t p = 0; p < t.size(-3); ++p)
      write_panel_header(static_cast<uint8_t*>(t.data()) + (t.rank() == 4 ? i * t.stride(0) : 0) + p * t.stride(-3), f,
                         std::min<int64_t>(16, n - 16 * p), k);
}

void put_half(uint8_t* p, double v) {
  const f16_t h(static_cast<float>(v));
  std::memcpy(p, &h.bits, 2);
}
/// GGUF blocks, [n, bytes], or a weight packed by prepare_gguf_weights, [panels, lines, 64] of (k, n): random quants,
/// small scales.
void fill_gguf(const TensorView& t, const GgufFormat& f, int64_t k, int64_t n, uint64_t seed) {
  each(t, [&](int64_t i, int64_t o) {
    t.data_as<uint8_t>()[o] = static_cast<uint8_t>(mix(seed + static_cast<uint64_t>(i)));
  });
  const auto scale = [&](int64_t i) { return 0.002 * (0.5 + uniform(~seed, i)); };
  if (t.rank() == 3) {
    const int64_t blocks = k / 32, halves = gguf_scale_bytes(f.format) / 2;
    if (!f.panels || t.size(0) != panels_of(n) || t.size(1) != gguf_lines(f.format, k) || t.size(2) != kPanelLine)
      throw ValueError(
          str("case: ", f.name, "(", k, ",", n, ") needs u8:", panels_of(n), "x", gguf_lines(f.format, k), "x64"));
    for (int64_t p = 0; p < t.size(0); ++p) {
      uint8_t* const panel = t.data_as<uint8_t>() + p * t.stride(0);
      write_panel_header(panel, f.format, std::min<int64_t>(16, n - 16 * p), k);
      uint8_t* const scales = panel + kPanelLine + blocks * gguf_quant_bytes(f.format);
      for (int64_t i = 0; i < blocks * halves; ++i) put_half(scales + 2 * i, scale(p * blocks * halves + i));
    }
    return;
  }
  for (int64_t r = 0; r < t.size(0); ++r)
    for (int64_t b = 0; b < t.size(1) / f.bytes; ++b) {
      uint8_t* const block = t.data_as<uint8_t>() + r * t.stride(0) + b * f.bytes;
      put_half(block + (f.format == GemmFormat::kQ6_K ? 208 : 0), scale(2 * (r * t.size(1) + b)));
      if (f.minimum) put_half(block + 2, scale(2 * (r * t.size(1) + b) + 1));
    }
}
const GgufFormat* gguf_named(std::string_view name) {
  for (const GgufFormat& f : kGgufFormats)
    if (name == f.name) return &f;
  return nullptr;
}

}  // namespace

void fill(const TensorView& t, std::string_view rule, const std::vector<double>& literal, uint64_t seed) {
  if (rule.empty())
    rule = is_floating(t.dtype()) ? "normal(0,1)" : t.dtype() == DType::kBool ? "randint(0,2)" : "randint(0,100)";
  const Rule r = parse_rule(rule);
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
  else if (r.name == "range")
    each(t, [&](int64_t i, int64_t o) { ref::store_element(t, o, r.a + static_cast<double>(i)); });
  else if (r.name == "nan")
    each(t, [&](int64_t, int64_t o) { ref::store_element(t, o, std::nan("")); });
  else if (r.name == "probs")
    fill_probs(t, seed);
  else if (r.name == "packed")
    fill_packed(t, static_cast<int64_t>(r.a), static_cast<int64_t>(r.b), seed);
  else if (r.name == "panels")
    fill_panels(t, static_cast<int64_t>(r.a), static_cast<int64_t>(r.b), seed);
  else if (const GgufFormat* f = gguf_named(r.name))
    fill_gguf(t, *f, static_cast<int64_t>(r.a), static_cast<int64_t>(r.b), seed);
  else if (r.name == "perm") {
    std::vector<int64_t> p(static_cast<size_t>(t.numel()));
    std::iota(p.begin(), p.end(), 0);
    for (size_t i = p.size(); i > 1; --i) std::swap(p[i - 1], p[mix(seed + i) % i]);
    each(t, [&](int64_t i, int64_t o) { ref::store_element(t, o, static_cast<double>(p[static_cast<size_t>(i)])); });
  } else
    throw ValueError(str("case: unknown fill '", rule, "'"));
}

void copy_elements(const TensorView& from, const TensorView& to) {
  const size_t item = static_cast<size_t>(from.item_size());
  each(from, [&](int64_t i, int64_t o) {
    int64_t offset = 0, rest = i;
    for (int a = to.rank() - 1; a >= 0; --a) {
      offset += rest % to.size(a) * to.stride(a);
      rest /= to.size(a);
    }
    std::memcpy(to.data_as<char>() + offset * static_cast<int64_t>(item),
                from.data_as<char>() + o * static_cast<int64_t>(item), item);
  });
}

}  // namespace flashinfer::cases
