// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_map>

#include "flashinfer/core/check.h"
#include "flashinfer/formats/pickle.h"
#include "flashinfer/formats/unpickler.h"

namespace flashinfer::formats {
namespace {

constexpr size_t kMaxNodes = 1u << 20;
constexpr int kMaxDepth = 100;

std::optional<DType> storage_dtype(std::string_view n) {
  static const std::unordered_map<std::string_view, DType> table = {
      {"FloatStorage", DType::kF32},     {"DoubleStorage", DType::kF64}, {"HalfStorage", DType::kF16},
      {"BFloat16Storage", DType::kBF16}, {"ByteStorage", DType::kU8},    {"CharStorage", DType::kI8},
      {"ShortStorage", DType::kI16},     {"IntStorage", DType::kI32},    {"LongStorage", DType::kI64},
      {"BoolStorage", DType::kBool}};
  const auto it = table.find(n);
  return it == table.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace

void Unpickler::fail(const std::string& what) const { throw ValueError(str("pickle: byte ", at_, ": ", what)); }

uint32_t Unpickler::make(Node n) {
  if (nodes_.size() >= kMaxNodes) fail("more than 1 million values");
  nodes_.push_back(std::move(n));
  return static_cast<uint32_t>(nodes_.size() - 1);
}

Unpickler::Node& Unpickler::top() {
  if (stack_.empty()) fail("the stack is empty");
  return nodes_[stack_.back()];
}

uint32_t Unpickler::pop() {
  if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size())) fail("the stack is empty");
  const uint32_t i = stack_.back();
  stack_.pop_back();
  return i;
}

std::vector<uint32_t> Unpickler::pop_mark() {
  if (marks_.empty()) fail("no mark");
  const size_t m = marks_.back();
  marks_.pop_back();
  std::vector<uint32_t> items(stack_.begin() + static_cast<ptrdiff_t>(m), stack_.end());
  stack_.resize(m);
  return items;
}

Bytes Unpickler::take(uint64_t n) {
  if (n > bytes_.size() - at_) fail("cut off");
  const Bytes r = bytes_.subspan(at_, n);
  at_ += n;
  return r;
}

uint64_t Unpickler::u(int n) {
  uint64_t v = 0;
  for (int i = 0; const uint8_t b : take(static_cast<uint64_t>(n))) v |= static_cast<uint64_t>(b) << (8 * i++);
  return v;
}

std::string Unpickler::text(uint64_t n) {
  const Bytes b = take(n);
  return {b.begin(), b.end()};
}

std::string Unpickler::line() {
  const auto rest = bytes_.subspan(at_);
  const auto end = std::find(rest.begin(), rest.end(), '\n');
  if (end == rest.end()) fail("cut off");
  std::string s(rest.begin(), end);
  at_ += s.size() + 1;
  return s;
}

void Unpickler::push_long(uint64_t n) {
  if (n > 8) fail("an integer beyond 64 bits");
  uint64_t v = u(static_cast<int>(n));
  if (n > 0 && n < 8 && (v >> (8 * n - 1)) & 1) v |= ~uint64_t{0} << (8 * n);
  push_int(Object::Kind::kInt, static_cast<int64_t>(v));
}

void Unpickler::push_int(Object::Kind kind, int64_t v) {
  Node n{kind};
  n.integer = v;
  push(std::move(n));
}

void Unpickler::push_text(Object::Kind kind, std::string s) {
  Node n{kind};
  n.text = std::move(s);
  push(std::move(n));
}

void Unpickler::push_tuple(std::vector<uint32_t> items) {
  Node n{Object::Kind::kTuple};
  n.items = std::move(items);
  push(std::move(n));
}

void Unpickler::push_global(const std::string& module, const std::string& name) {
  Node n;
  n.text = module + "." + name;
  const auto is = [&](const char* m, const char* x) { return module == m && name == x; };
  if (is("torch._utils", "_rebuild_tensor")) {
    n.global = Global::kRebuildV1;
  } else if (is("torch._utils", "_rebuild_tensor_v2")) {
    n.global = Global::kRebuildV2;
  } else if (is("torch._utils", "_rebuild_tensor_v3")) {
    n.global = Global::kRebuildV3;
  } else if (is("torch._utils", "_rebuild_parameter")) {
    n.global = Global::kParameter;
  } else if (is("collections", "OrderedDict")) {
    n.global = Global::kOrderedDict;
  } else if (is("torch", "Size")) {
    n.global = Global::kSize;
  } else if (is("torch", "device")) {
    n.global = Global::kDevice;
  } else if (is("torch.storage", "UntypedStorage")) {
    n.global = Global::kUntyped;
  } else if (const auto s = module == "torch" ? storage_dtype(name) : std::nullopt) {
    n.global = Global::kTyped;
    n.dtype = *s;
  } else if (const auto d = module == "torch" ? parse_dtype(name) : std::nullopt) {
    n.kind = Object::Kind::kDType;
    n.dtype = *d;
  } else {
    fail(module + "." + name + " is not among the names that a file of tensors may use");
  }
  push(std::move(n));
}

void Unpickler::memoize(uint64_t index) {
  top();
  memo_[index] = stack_.back();
}

void Unpickler::recall(uint64_t index) {
  const auto it = memo_.find(index);
  if (it == memo_.end()) fail(str("no memo ", index));
  stack_.push_back(it->second);
}

void Unpickler::extend(Object::Kind kind, const std::vector<uint32_t>& items) {
  Node& target = top();
  if (target.kind != kind || target.global != Global::kNo) fail("items for a value that is no such container");
  if (kind == Object::Kind::kDict && items.size() % 2 != 0) fail("a dict entry without a value");
  target.items.insert(target.items.end(), items.begin(), items.end());
}

void Unpickler::persistent() {
  const Node id = nodes_[pop()];
  if (id.kind != Object::Kind::kTuple || id.items.size() != 5) fail("a persistent id that is no storage");
  const Node &tag = nodes_[id.items[0]], &type = nodes_[id.items[1]], &key = nodes_[id.items[2]],
             &count = nodes_[id.items[4]];
  if (tag.kind != Object::Kind::kString || tag.text != "storage" || key.kind != Object::Kind::kString ||
      count.kind != Object::Kind::kInt || (type.global != Global::kTyped && type.global != Global::kUntyped))
    fail("a persistent id that is no storage");
  Node n;
  n.global = Global::kStorage;
  n.dtype = type.dtype;
  n.typed = type.global == Global::kTyped;
  n.memory = std::make_shared<StorageMemory>(storages_(key.text));
  const int64_t item = n.typed ? size_of(n.dtype) : 1;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(count.integer, item, &bytes) || bytes < 0 ||
      static_cast<uint64_t>(bytes) != n.memory->bytes)
    fail(str("storage ", key.text, " should have ", count.integer, " elements of ", item, " bytes, but holds ",
             n.memory->bytes, " bytes"));
  push(std::move(n));
}

std::vector<int64_t> Unpickler::extents(uint32_t index) {
  const Node& n = nodes_[index];
  if (n.kind != Object::Kind::kTuple && n.kind != Object::Kind::kList) fail("a shape that is no tuple");
  std::vector<int64_t> r;
  for (uint32_t i : n.items) {
    if (nodes_[i].kind != Object::Kind::kInt || nodes_[i].integer < 0) fail("an extent or stride that is no size");
    r.push_back(nodes_[i].integer);
  }
  return r;
}

void Unpickler::rebuild(const std::vector<uint32_t>& a, Global how) {
  const size_t required = how == Global::kRebuildV1 ? 4 : how == Global::kRebuildV2 ? 6 : 7;
  if (a.size() < required) fail("a tensor with too few arguments");
  const Node& storage = nodes_[a[0]];
  if (storage.global != Global::kStorage || nodes_[a[1]].kind != Object::Kind::kInt) fail("a tensor without storage");
  DType dtype = storage.dtype;
  if (how == Global::kRebuildV3) {
    if (nodes_[a[6]].kind != Object::Kind::kDType) fail("a tensor whose type is no dtype");
    dtype = nodes_[a[6]].dtype;
  } else if (!storage.typed) {
    fail("a tensor of untyped storage without a dtype");
  }
  const std::vector<int64_t> shape = extents(a[2]), strides = extents(a[3]);
  const int64_t offset = nodes_[a[1]].integer, item = size_of(dtype);
  if (shape.size() != strides.size()) fail("a shape and strides of different length");
  if (shape.size() > TensorView::kMaxRank) fail(str("a tensor of ", shape.size(), " dimensions; at most 8 are read"));
  int64_t last = offset, numel = 1;  // the last element addressed; the checks prevent overflow of every product
  bool overflow = offset < 0;
  for (size_t i = 0; i < shape.size(); ++i)
    overflow |= __builtin_mul_overflow(numel, std::max<int64_t>(shape[i], 1), &numel);
  const bool empty = std::ranges::find(shape, 0) != shape.end();
  for (size_t i = 0; i < shape.size() && !empty && !overflow; ++i) {
    int64_t reach = 0;
    overflow |= __builtin_mul_overflow(shape[i] - 1, strides[i], &reach) || __builtin_add_overflow(last, reach, &last);
  }
  overflow |= __builtin_mul_overflow(numel, item, &numel);
  const int64_t held = static_cast<int64_t>(storage.memory->bytes) / item;
  if (overflow || (empty ? offset > held : last >= held))
    fail(str("a tensor reaches element ", last, " of a storage of ", held));
  Node n{Object::Kind::kTensor};
  uint8_t* data = static_cast<uint8_t*>(storage.memory->data) + (empty ? 0 : offset * item);
  n.tensor = Tensor(TensorView(data, dtype, shape, strides), storage.memory->owner);
  n.integer = how != Global::kRebuildV1 && nodes_[a[4]].integer != 0;
  push(std::move(n));
}

void Unpickler::reduce() {
  const uint32_t arguments = pop(), callee = pop();
  if (nodes_[arguments].kind != Object::Kind::kTuple) fail("arguments that are no tuple");
  const std::vector<uint32_t> a = nodes_[arguments].items;
  switch (const Global g = nodes_[callee].global) {
    case Global::kRebuildV1:
    case Global::kRebuildV2:
    case Global::kRebuildV3: return rebuild(a, g);
    case Global::kParameter:
      if (a.empty() || nodes_[a[0]].kind != Object::Kind::kTensor) fail("a parameter that is no tensor");
      stack_.push_back(a[0]);
      return;
    case Global::kOrderedDict:
      if (!a.empty()) fail("an OrderedDict with arguments");
      return push(Node{Object::Kind::kDict});
    case Global::kSize:
      if (a.size() != 1) fail("a torch.Size without a tuple");
      stack_.push_back(a[0]);
      return;
    case Global::kDevice:
      if (a.empty() || nodes_[a[0]].kind != Object::Kind::kString) fail("a torch.device without a name");
      return push_text(Object::Kind::kDevice, nodes_[a[0]].text);
    default: fail("a call of something that is no function");
  }
}

Object Unpickler::convert(uint32_t index, int depth) {
  if (depth > kMaxDepth) fail("values nest deeper than 100");
  if (++converted_ > kMaxNodes) fail("shared parts repeat beyond 1 million values");
  const Node& n = nodes_[index];
  if (n.global != Global::kNo) fail(n.text.empty() ? "a storage as a value" : n.text + " as a value");
  Object o;
  o.kind = n.kind;
  o.integer = n.integer;
  o.number = n.number;
  o.text = n.text;
  o.dtype = n.dtype;
  o.tensor = n.tensor;
  o.requires_grad = n.kind == Object::Kind::kTensor && n.integer != 0;
  o.items.reserve(n.items.size());
  for (uint32_t i : n.items) o.items.push_back(convert(i, depth + 1));
  return o;
}

Object unpickle(Bytes pickle, const StorageSource& storages) { return Unpickler(pickle, storages).run(); }

}  // namespace flashinfer::formats
