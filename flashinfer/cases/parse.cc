// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/cases/parse.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "flashinfer/cases/fill.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/op/registry.h"

namespace flashinfer::cases {
namespace {

constexpr int64_t kGuard = 256;  // bytes on both sides; keeps the 64-byte alignment
constexpr uint8_t kPattern = 0xA5;

struct TensorText {
  DType dtype;
  std::vector<int64_t> shape;
  std::string fill;  // without the values of a literal
  std::vector<double> literal;
  std::string layout;
};

[[noreturn]] void bad(std::string_view what, std::string_view text) {
  throw ValueError(str("case: ", what, ": '", text, "'"));
}

std::optional<DType> short_dtype(std::string_view s) {
  static constexpr std::pair<std::string_view, DType> kNames[] = {
      {"f32", DType::kF32},     {"f16", DType::kF16}, {"bf16", DType::kBF16}, {"e4m3", DType::kF8E4M3},
      {"e5m2", DType::kF8E5M2}, {"f64", DType::kF64}, {"u8", DType::kU8},     {"i8", DType::kI8},
      {"u16", DType::kU16},     {"i16", DType::kI16}, {"u32", DType::kU32},   {"i32", DType::kI32},
      {"u64", DType::kU64},     {"i64", DType::kI64}, {"bool", DType::kBool}, {"fp4x2", DType::kF4E2M1x2}};
  for (const auto& [n, t] : kNames)
    if (n == s) return t;
  return std::nullopt;
}

/// Splits at `sep` outside brackets and quotes.
std::vector<std::string_view> split(std::string_view s, char sep) {
  std::vector<std::string_view> out;
  int depth = 0;
  bool quoted = false;
  size_t start = 0;
  for (size_t i = 0; i <= s.size(); ++i) {
    const char c = i < s.size() ? s[i] : sep;
    if (c == '\'' && i < s.size()) quoted = !quoted;
    if (quoted) continue;
    if (i < s.size() && (c == '(' || c == '[')) ++depth;
    if (i < s.size() && (c == ')' || c == ']')) --depth;
    if (c == sep && depth == 0) {
      std::string_view part = s.substr(start, i - start);
      while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
      while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
      if (!part.empty() || sep != ' ') out.push_back(part);
      start = i + 1;
    }
  }
  return out;
}

double number(std::string_view s) {
  if (s == "inf") return HUGE_VAL;
  if (s == "-inf") return -HUGE_VAL;
  double v = 0;
  const auto r = std::from_chars(s.data(), s.data() + s.size(), v);
  if (r.ec != std::errc() || r.ptr != s.data() + s.size()) bad("not a number", s);
  return v;
}

constexpr int64_t kMaxExtent = int64_t{1} << 40;
int64_t integer(std::string_view s, int64_t least, int64_t most) {
  const double v = number(s);
  if (!(v >= static_cast<double>(least) && v <= static_cast<double>(most)) || v != std::floor(v))
    bad(str("not an integer in ", least, "..", most), s);
  return static_cast<int64_t>(v);
}

TensorText parse_tensor(std::string_view s) {
  TensorText t;
  const size_t caret = s.rfind('^');
  if (caret != std::string_view::npos) {
    t.layout = s.substr(caret + 1);
    s = s.substr(0, caret);
  }
  const auto parts = split(s, ':');
  if (parts.size() < 2 || parts.size() > 3) bad("a tensor is dtype:extents[:fill]", s);
  const auto dtype = short_dtype(parts[0]);
  if (!dtype) bad("unknown dtype", parts[0]);
  t.dtype = *dtype;
  if (parts.size() == 3) t.fill = parts[2];
  if (parts[1].starts_with("[")) {
    if (!parts[1].ends_with("]")) bad("missing ]", parts[1]);
    const auto inner = parts[1].substr(1, parts[1].size() - 2);
    if (!inner.empty())
      for (auto v : split(inner, ',')) t.literal.push_back(number(v));
    t.shape = {static_cast<int64_t>(t.literal.size())};
    t.fill = "literal";
    return t;
  }
  if (!parts[1].empty())
    for (auto e : split(parts[1], 'x')) t.shape.push_back(integer(e, 0, kMaxExtent));
  if (t.shape.size() > TensorView::kMaxRank) bad(str("more than ", TensorView::kMaxRank, " extents"), parts[1]);
  return t;
}

/// Strides in elements of the layout; returns the number of elements the allocation needs.
int64_t layout_strides(const TensorText& t, bool pad, std::vector<int64_t>& strides) {
  const int rank = static_cast<int>(t.shape.size());
  std::vector<int> order(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) order[static_cast<size_t>(i)] = i;
  int64_t extra = 0;
  if (t.layout == "t") {
    if (rank < 2) bad("layout t needs two axes", t.layout);
    std::swap(order[static_cast<size_t>(rank - 1)], order[static_cast<size_t>(rank - 2)]);
  } else if (t.layout.starts_with("perm(")) {
    const auto list = split(std::string_view(t.layout).substr(5, t.layout.size() - 6), ',');
    if (static_cast<int>(list.size()) != rank) bad("perm must name every axis", t.layout);
    for (int i = 0; i < rank; ++i)
      order[static_cast<size_t>(i)] = static_cast<int>(integer(list[static_cast<size_t>(i)], 0, rank - 1));
    std::vector<int> sorted = order;
    std::ranges::sort(sorted);
    for (int i = 0; i < rank; ++i)
      if (sorted[static_cast<size_t>(i)] != i) bad("perm must name every axis once", t.layout);
  } else if (t.layout.starts_with("pad")) {
    extra = integer(std::string_view(t.layout).substr(3), 0, kMaxExtent);
  } else if (!t.layout.empty()) {
    bad("unknown layout", t.layout);
  } else if (pad && rank >= 2) {
    extra = 8;
  }
  strides.assign(static_cast<size_t>(rank), 0);
  int64_t step = 1;
  for (int k = rank - 1; k >= 0; --k) {
    const size_t axis = static_cast<size_t>(order[static_cast<size_t>(k)]);
    strides[axis] = step;
    const int64_t extent = std::max<int64_t>(t.shape[axis], 1) + (k == rank - 1 ? extra : 0);
    FI_CHECK(step <= (int64_t{1} << 56) / extent, ValueError, "case: a tensor has more than 2^56 elements");
    step *= extent;
  }
  return step;
}

std::unique_ptr<GuardedTensor> allocate(std::string argument, std::span<const int64_t> shape,
                                        std::span<const int64_t> strides, int64_t elements, DType dtype) {
  auto g = std::make_unique<GuardedTensor>();
  g->argument = std::move(argument);
  g->allocation = Tensor::empty({elements * size_of(dtype) + 2 * kGuard}, DType::kU8);
  std::memset(g->allocation.data(), kPattern, static_cast<size_t>(g->allocation.nbytes()));
  g->tensor =
      Tensor(TensorView(g->allocation.data_as<uint8_t>() + kGuard, dtype, shape, strides), g->allocation.owner());
  return g;
}

/// Moves a tensor in host memory, and its guards, to the device where the case runs.
void move_to(GuardedTensor& g, Device device) {
  if (device.type == DeviceType::kCPU) return;
  const int64_t guard = device.type == DeviceType::kEmu ? kGuard : 0;  // bytes that are not moved, on each side
  const TensorView whole = g.allocation.view().slice(0, guard, g.allocation.numel() - guard), v = g.tensor.view();
  const Tensor moved = to_device(whole, device);
  if (!g.before.empty()) g.before.assign(whole.data_as<uint8_t>(), whole.data_as<uint8_t>() + whole.nbytes());
  const int64_t offset = v.data_as<uint8_t>() - whole.data_as<uint8_t>();
  g.tensor =
      Tensor(TensorView(moved.data_as<uint8_t>() + offset, v.dtype(), v.shape(), v.strides(), device), moved.owner());
  g.allocation = moved;
}

/// Elements over which a tensor is spread: an offset that is computed in 32 bits, with a sign or without one, leads to
/// another place.
constexpr int64_t kSpread = int64_t{1} << 33;

/// The first axis that counts anything, if there are others behind it; else -1.
int spread_axis(std::span<const int64_t> shape) {
  size_t axis = 0;
  while (axis < shape.size() && shape[axis] == 1) ++axis;
  const bool some = std::ranges::none_of(shape, [](int64_t n) { return n == 0; });
  return some && axis + 1 < shape.size() ? static_cast<int>(axis) : -1;
}

/// Moves a tensor without gaps in host memory to the emulator, `axis` spread over kSpread elements, and drops its
/// guards. Rows keep their alignment.
void spread_to(GuardedTensor& g, int axis, Device device) {
  const TensorView from = g.tensor.view();
  const int64_t n = from.size(axis), block = from.stride(axis),
                step = round_up(ceil_div(kSpread, n - 1), int64_t{64}) + round_up(block, int64_t{64});
  std::vector<int64_t> strides(from.strides().begin(), from.strides().end());
  for (int i = 0; i <= axis; ++i) strides[static_cast<size_t>(i)] = i == axis ? step : n * step;
  const auto bytes = [&](int64_t elements) { return elements * from.item_size(); };
  Tensor memory = Tensor::empty({bytes((n - 1) * step + block)}, DType::kU8, device);
  for (int64_t i = 0; i < n; ++i)
    copy_bytes(memory.data_as<uint8_t>() + bytes(i * step), device, from.data_as<uint8_t>() + bytes(i * block), kCpu,
               static_cast<size_t>(bytes(block)));
  g.before.clear();
  g.tensor = Tensor(TensorView(memory.data(), from.dtype(), from.shape(), strides, device), memory.owner());
  g.allocation = std::move(memory);
}

class Builder {
 public:
  Builder(const op::Op& op, std::string_view args, const BuildOptions& o) : op_(op), options_(o), out_(op) {
    for (auto token : split(args, ' ')) {
      const size_t eq = token.find('=');
      if (eq == std::string_view::npos) bad("expected name=value", token);
      entries_.push_back({token.substr(0, eq), token.substr(eq + 1)});
    }
  }
  Built build() {
    if (op_.state) make_object();
    device_ = options_.device;
    for (const auto& [name, value] : entries_)
      if (name.find('.') == std::string_view::npos) out_.block.set(name, parse(name, value));
    return std::move(out_);
  }

 private:
  void make_object() {
    const std::string_view name = op_.name;
    const std::string cls(name.substr(0, name.rfind('.')));
    const op::Op* init = op::find_op(cls + ".__init__");
    const op::Op* plan = op::find_op(cls + ".plan");
    if (!plan) plan = op::find_op(cls + ".begin_forward");  // two older classes
    if (!init) throw InternalError(str("case: no op ", cls, ".__init__"));
    out_.object = std::make_unique<op::Object>(op::intern_class(cls), op_.module, *op_.state);
    const op::Value self = op::to_value(out_.object.get());
    if (op_.fields.data() != init->fields.data()) {
      call(*init, "init.", self);
      if (plan && plan != &op_ && has_any("plan.")) call(*plan, "plan.", self);  // a run may need no plan
    }
    out_.block.set("self", self);
  }
  bool has_any(std::string_view prefix) const {
    return std::ranges::any_of(entries_, [&](const auto& entry) { return entry.first.starts_with(prefix); });
  }
  void call(const op::Op& op, std::string_view prefix, const op::Value& self) {
    op::Block block(op);
    block.set("self", self);
    called_ = &op, prefix_ = prefix;
    for (const auto& [name, value] : entries_)
      if (name.starts_with(prefix)) block.set(name.substr(prefix.size()), parse(name, value));
    called_ = &op_, prefix_ = {};
    op::run(op, block.data());
  }
  op::Value parse(std::string_view name, std::string_view v) {
    if (v == "None") return {};
    if (v == "True" || v == "False") return v == "True";
    if (v.starts_with("'") && v.ends_with("'") && v.size() >= 2) return std::string(v.substr(1, v.size() - 2));
    if (v.starts_with("@")) return alias(v.substr(1));
    if (v.starts_with("gen(")) {
      const auto p = split(v.substr(4, v.size() - 5), ',');
      if (p.size() != 2) bad("gen(seed,offset)", v);
      return op::Generator(static_cast<uint64_t>(number(p[0])), static_cast<uint64_t>(number(p[1])));
    }
    if (v.starts_with("(") && v.ends_with(")")) {
      op::TupleValue t;
      int i = 0;
      for (auto item : split(v.substr(1, v.size() - 2), ',')) t.items.push_back(parse(str(name, "[", i++, "]"), item));
      return t;
    }
    if (const auto t = parse_dtype(v)) return *t;
    if (v.find(':') != std::string_view::npos) return tensor(std::string(name), parse_tensor(v));
    if (v.find_first_of(".ein") == std::string_view::npos) return static_cast<int64_t>(number(v));
    return number(v);
  }
  op::Value alias(std::string_view name) {
    for (const auto& t : out_.tensors)
      if (t->argument == name) return t->tensor;
    bad("no earlier argument of that name", name);
  }
  op::Value tensor(const std::string& name, const TensorText& t) {
    std::vector<int64_t> strides;
    const int64_t elements = layout_strides(t, options_.pad_inputs && !must_be_contiguous(name), strides);
    auto g = allocate(name, t.shape, strides, elements, t.dtype);
    if (options_.random_floats || !is_bulk(t))
      fill(g->tensor.view(), t.fill, t.literal, fnv(name), options_.repeat_after);
    if (options_.keep_bytes)
      g->before.assign(g->allocation.data_as<uint8_t>(), g->allocation.data_as<uint8_t>() + g->allocation.nbytes());
    const bool spread = options_.spread_inputs && device_.type == DeviceType::kEmu && t.layout.empty();
    if (const int axis = spread_axis(t.shape); spread && axis >= 0 && !must_be_contiguous(name))
      spread_to(*g, axis, device_);
    else
      move_to(*g, device_);
    out_.tensors.push_back(std::move(g));
    return out_.tensors.back()->tensor;
  }
  /// By the schema of the op that is called, for an argument or an item of one ("plan.kv[0]").
  bool must_be_contiguous(std::string_view argument) const {
    const std::string_view name = argument.substr(prefix_.size());
    const op::Field* f = op::find_field(*called_, name.substr(0, name.find('[')));
    return f && f->contiguous;
  }
  /// Random floats in numbers that no check and no plan reads.
  static bool is_bulk(const TensorText& t) {
    int64_t elements = 1;
    for (const int64_t extent : t.shape) elements *= extent;
    return elements > 4096 && is_floating(t.dtype) && (t.fill.empty() || t.fill.starts_with("normal("));
  }
  static uint64_t fnv(std::string_view s) {
    uint64_t h = 1469598103934665603ull;
    for (unsigned char c : s) h = (h ^ c) * 1099511628211ull;
    return h;
  }

  const op::Op& op_;
  const op::Op* called_ = &op_;  // takes the arguments that are made next, whose names begin with prefix_
  std::string_view prefix_;
  BuildOptions options_;
  Device device_ = kCpu;  // of the tensors created next
  Built out_;
  std::vector<std::pair<std::string_view, std::string_view>> entries_;
};

bool is_written(const op::Op& op, std::string_view argument) {
  const op::Field* f = op::find_field(op, argument.substr(0, argument.find('[')));
  return f && (f->role == op::Role::kOut || f->role == op::Role::kInOut || f->role == op::Role::kResult ||
               f->role == op::Role::kPagedInOut || f->role == op::Role::kScratch);
}

}  // namespace

Built build(const op::Op& op, std::string_view args, const BuildOptions& options) {
  return Builder(op, args, options).build();
}

std::unique_ptr<GuardedTensor> guarded(std::string argument, std::span<const int64_t> shape, DType dtype,
                                       Device device) {
  int64_t n = 1;
  std::vector<int64_t> strides(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = n;
    n *= std::max<int64_t>(shape[i], 1);
  }
  auto g = allocate(std::move(argument), shape, strides, n, dtype);
  g->before.assign(g->allocation.data_as<uint8_t>(), g->allocation.data_as<uint8_t>() + g->allocation.nbytes());
  move_to(*g, device);
  return g;
}

std::string check_guards(const GuardedTensor& t, bool written) {
  if (t.before.empty()) return {};
  std::vector<uint8_t> expected = t.before;
  const Tensor now = host_readable(t.allocation.view());
  const auto* base = now.data_as<uint8_t>();
  const TensorView& view = t.tensor.view();
  const int64_t first = view.data_as<uint8_t>() - t.allocation.data_as<uint8_t>();
  const TensorView v(base + first, view.dtype(), view.shape(), view.strides());
  if (written && v.numel() > 0)
    copy_elements(v, TensorView(expected.data() + first, v.dtype(), v.shape(), v.strides()));
  for (size_t i = 0; i < expected.size(); ++i)
    if (expected[i] != base[i])
      return str(t.argument, ": byte ", static_cast<int64_t>(i) - first, " of ", to_string(v),
                 written ? ", which is no element," : "", " was changed");
  return {};
}

std::string check_guards(const Built& b, const op::Op& op) {
  for (const auto& t : b.tensors) {
    // An output that is a view of an input (`out=@input`) writes the input's elements.
    bool written = is_written(op, t->argument);
    for (const op::Field& f : op.fields) {
      if (!f.tensors || !is_written(op, f.name)) continue;
      const op::Views v = f.tensors(b.block.data());
      for (int i = 0; i < v.size(); ++i) written |= v[i].data() == t->tensor.data();
    }
    if (std::string e = check_guards(*t, written); !e.empty()) return e;
  }
  return {};
}

}  // namespace flashinfer::cases
