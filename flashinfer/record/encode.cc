// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/record/encode.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "flashinfer/core/hex.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/record/format.h"
#include "flashinfer/record/text.h"

namespace flashinfer::record {
namespace {

using op::Value;

constexpr int kMaxDepth = 8;

Json extents(std::span<const int64_t> v) {
  Json out = Json::array();
  for (const int64_t e : v) out.push_back(e);
  return out;
}

Json opaque(const std::string& type, const std::string& repr) { return {{kType, type}, {kRepr, repr.substr(0, 1000)}}; }

Json items(CallValues& recorded, const std::string& key, const std::vector<Value>& values, const std::string& type,
           const char* role, int depth) {
  Json out{{kType, type}, {"length", values.size()}};
  if (depth < kMaxDepth) {
    Json list = Json::array();
    for (size_t i = 0; i < values.size(); ++i)
      list.push_back(encode(recorded, key + "__" + std::to_string(i), values[i], role, depth + 1));
    out["items"] = std::move(list);
  }
  out["truncated"] = depth >= kMaxDepth;
  return out;
}

Json dict(CallValues& recorded, const std::string& key, const op::DictValue& d, const char* role, int depth) {
  Json out{{kType, kTypeDict}, {"length", d.items.size()}};
  if (depth < kMaxDepth) {
    Json list = Json::array();
    for (size_t i = 0; i < d.items.size(); ++i) {
      Json entry;
      entry["key"] = encode(recorded, key + "__key_" + std::to_string(i), d.items[i].first, role, depth + 1);
      entry["value"] = encode(recorded, key + "__value_" + std::to_string(i), d.items[i].second, role, depth + 1);
      list.push_back(std::move(entry));
    }
    out["items"] = std::move(list);
  }
  out["truncated"] = depth >= kMaxDepth;
  return out;
}

Json enum_value(const op::EnumValue& e) {
  Json value = e.value;
  if (e.numeric) {
    int64_t integer = 0;
    double number = 0;
    const char *begin = e.value.data(), *end = begin + e.value.size();
    if (std::from_chars(begin, end, integer).ptr == end)
      value = integer;
    else if (std::from_chars(begin, end, number).ptr == end)
      value = formats::number_to_json(number);
  }
  return {{kType, kTypeEnum}, {"name", e.name}, {kValue, std::move(value)}};
}

RecordedTensor recorded_tensor(const std::string& key, const op::TensorValue& t, const char* role) {
  RecordedTensor l;
  l.key = key;
  l.tensor = t;
  l.role = role;
  l.described_only = role == role_name(op::Role::kScratch);
  return l;
}

Json nested_tensor(CallValues& recorded, const std::string& key, const op::TensorValue& t, const char* role) {
  const Extents of(t);
  Json out{{kType, kTypeTensor},
           {kShape, extents(of.shape())},
           {kDType, "torch." + std::string(of.dtype)},
           {kStride, extents(of.strides())},
           {kDevice, to_string(t.view.device())},
           {"requires_grad", t.requires_grad},
           {"is_contiguous", t.view.is_contiguous()},
           {kTensorKey, key}};
  recorded.tensors.push_back(recorded_tensor(key, t, role));
  return out;
}

Json plain_list(const op::Value& v) {
  Json out = Json::array();
  if (const auto* t = v.as<op::TupleValue>())
    for (const op::Value& item : t->items) out.push_back(item.as<int64_t>() ? *item.as<int64_t>() : 0);
  return out;
}

/// A tensor of a type that the library does not support.
Json described_tensor(const op::TupleValue& t) {
  const auto text = [&t](size_t i) {
    return t.items[i].as<std::string>() ? *t.items[i].as<std::string>() : std::string();
  };
  const auto flag = [&t](size_t i) { return t.items[i].as<bool>() && *t.items[i].as<bool>(); };
  return {{kType, kTypeTensor},         {kShape, plain_list(t.items[0])},
          {kDType, "torch." + text(2)}, {kStride, plain_list(t.items[1])},
          {kDevice, text(3)},           {"requires_grad", flag(4)},
          {"is_contiguous", flag(5)},   {kStored, kStoredNothing}};
}

/// The text that torch prints for a generator, and its state, from which another one can continue.
Json torch_generator(CallValues& recorded, const std::string& key, const op::TupleValue& t, const char* role) {
  const auto* text = t.items[0].as<op::OpaqueValue>();
  const auto* state = t.items[2].as<op::TensorValue>();
  Json out = opaque(kTypeGenerator, text ? text->repr : "");
  out[kSeed] = encode(recorded, key, t.items[1], role);
  if (state) out[kState] = nested_tensor(recorded, key + "__state", *state, role);
  return out;
}

bool is_pool(const RecordedTensor& l) {
  return (l.role == role_name(op::Role::kPaged) || l.role == role_name(op::Role::kPagedInOut)) &&
         l.tensor.view.rank() > 1 && l.tensor.view.device().type != DeviceType::kCUDA;
}

void mark_pages(const TensorView& v, std::vector<uint8_t>& used) {
  const auto pages = static_cast<int64_t>(used.size());
  formats::stream(v, [&](const uint8_t* p, size_t n) {
    const size_t item = static_cast<size_t>(v.item_size());
    for (size_t at = 0; at + item <= n; at += item) {
      int64_t page = 0;
      if (item == 4) {
        int32_t x;
        std::memcpy(&x, p + at, sizeof x);
        page = x;
      } else {
        std::memcpy(&page, p + at, sizeof page);
      }
      if (page >= 0 && page < pages) used[static_cast<size_t>(page)] = 1;
    }
  });
}

/// A compact copy of the pages along the first dimension.
Tensor gather_pages(const TensorView& pool, std::span<const int64_t> pages) {
  std::vector<int64_t> shape(pool.shape().begin(), pool.shape().end());
  shape[0] = static_cast<int64_t>(pages.size());
  Tensor out = Tensor::empty(shape, pool.dtype());
  uint8_t* to = out.data_as<uint8_t>();
  for (const int64_t page : pages)
    formats::stream(pool.select(0, page), [&](const uint8_t* p, size_t n) {
      std::memcpy(to, p, n);
      to += n;
    });
  return out;
}

}  // namespace

const char* role_name(op::Role r) {
  switch (r) {
    case op::Role::kIn: return "in";
    case op::Role::kInOut: return "inout";
    case op::Role::kOut: return "out";
    case op::Role::kResult: return "result";
    case op::Role::kScratch: return "scratch";
    case op::Role::kPaged: return "paged";
    case op::Role::kPagedInOut: return "paged_inout";
    case op::Role::kAttr: return "attr";
    case op::Role::kSelf: return "self";
  }
  return nullptr;
}

Json encode(CallValues& recorded, const std::string& key, const Value& v, const char* role, int depth) {
  if (v.is_none()) return nullptr;
  if (const auto* b = v.as<bool>()) return *b;
  if (const auto* i = v.as<int64_t>()) return *i;
  if (const auto* d = v.as<double>()) return formats::number_to_json(*d);
  if (const auto* s = v.as<std::string>()) return *s;
  if (const auto* t = v.as<op::TensorValue>()) return nested_tensor(recorded, key, *t, role);
  if (const auto* t = v.as<DType>()) return {{kType, kTypeDType}, {kValue, "torch." + std::string(name(*t))}};
  if (const auto* d = v.as<Device>()) return opaque(kTypeDevice, to_string(*d));
  if (const auto* e = v.as<op::EnumValue>()) return enum_value(*e);
  if (const auto* l = v.as<op::ListValue>()) return items(recorded, key, l->items, kTypeList, role, depth);
  if (const auto* t = v.as<op::TupleValue>()) {
    if (t->type == kTypeTensor && t->items.size() == 6) return described_tensor(*t);
    if (t->type == kTypeTorchGenerator && t->items.size() == 3) return torch_generator(recorded, key, *t, role);
    return items(recorded, key, t->items, t->type, role, depth);
  }
  if (const auto* d = v.as<op::DictValue>()) return dict(recorded, key, *d, role, depth);
  if (const auto* g = v.as<op::Generator>()) {
    Json out = opaque(kTypeGenerator, op::python_repr(v));
    out[kSeed] = g->seed();
    out[kOffset] = g->offset();
    return out;
  }
  if (const auto* c = v.as<op::Complex>()) {
    Json out = opaque(kTypeComplex, op::python_repr(v));
    out[kValue] = {formats::number_to_json(c->re), formats::number_to_json(c->im)};
    return out;
  }
  if (const auto* o = v.as<op::ObjectValue>()) {
    Json out = opaque(o->class_name, object_text(*o));
    out[kModule] = o->module;
    out[kObjectId] = o->id;
    return out;
  }
  const auto* o = v.as<op::OpaqueValue>();
  if (o->type == kTypeDType) return {{kType, kTypeDType}, {kValue, o->repr}};
  return opaque(o->type, o->str.empty() ? o->repr : o->str);
}

bool stands_for_object(const op::TupleValue& t) {
  return t.type == kTypeTorchGenerator || t.type == kTypeTensor || t.type == kTypeFp4Tensor;
}

void CallValues::add(const std::string& key, const Value& v, const char* role, bool page_ids) {
  if (const auto* t = v.as<op::TensorValue>()) {
    tensors.push_back(recorded_tensor(key, *t, role));
    tensors.back().page_ids = page_ids;
  } else {
    metadata[key] = encode(*this, key, v, role);
  }
}

void CallValues::add_result(const Value& result) {
  const char* role = role_name(op::Role::kResult);
  if (const auto* t = result.as<op::TupleValue>(); t && !stands_for_object(*t)) {
    for (size_t i = 0; i < t->items.size(); ++i) add(std::string(kResult) + "_" + std::to_string(i), t->items[i], role);
  } else {
    add(kResult, result, role);
  }
}

void add_state(CallValues& recorded, const op::StateType& type, const void* state, const std::string& prefix) {
  for (const op::Field& f : type.fields) recorded.add(prefix + f.name, f.get(state), role_name(f.role), f.page_ids);
}

uint64_t CallValues::bytes() const {
  uint64_t n = 0;
  for (const RecordedTensor& l : tensors) n += static_cast<uint64_t>(l.bytes());
  return n;
}

int64_t RecordedTensor::bytes() const {
  if (!stored()) return 0;
  const int64_t all = tensor.view.nbytes();
  return pages.empty() ? all : all / tensor.view.size(0) * static_cast<int64_t>(pages.size());
}

void find_used_pages(CallValues& recorded) {
  for (RecordedTensor& pool : recorded.tensors) {
    if (!is_pool(pool)) continue;
    std::vector<uint8_t> used(static_cast<size_t>(pool.tensor.view.size(0)));
    for (const RecordedTensor& l : recorded.tensors) {
      const TensorView& v = l.tensor.view;
      const bool integer = v.dtype() == DType::kI32 || v.dtype() == DType::kI64;
      if (l.page_ids && integer && v.device().type != DeviceType::kCUDA) mark_pages(v, used);
    }
    std::vector<int64_t> pages;
    for (size_t i = 0; i < used.size(); ++i)
      if (used[i]) pages.push_back(static_cast<int64_t>(i));
    if (pages.size() * 10 < used.size() * 9) pool.pages = std::move(pages);
  }
}

void copy_used_pages(CallValues& outputs, const CallValues& inputs, std::string_view prefix) {
  for (RecordedTensor& out : outputs.tensors) {
    if (!out.stored() || !std::string_view(out.key).starts_with(prefix)) continue;
    for (const RecordedTensor& in : inputs.tensors)
      if (std::string_view(out.key).substr(prefix.size()) == in.key) out.pages = in.pages;
  }
}

void gather_used_pages(CallValues& recorded) {
  for (RecordedTensor& l : recorded.tensors)
    if (!l.pages.empty()) l.used = gather_pages(l.tensor.view, l.pages);
}

void bring_to_host(CallValues& recorded) {
  for (RecordedTensor& l : recorded.tensors)
    if (l.stored() && !host_can_read(l.tensor.view.device())) l.host = to_device(l.tensor.view, kCpu);
}

std::vector<formats::NamedTensor> stored_tensors(const CallValues& recorded, std::vector<Tensor>& keep) {
  std::vector<formats::NamedTensor> out;
  for (const RecordedTensor& l : recorded.tensors) {
    if (!l.stored()) continue;
    out.push_back({l.key, l.content(), l.tensor.requires_grad});
    if (l.pages.empty()) continue;
    keep.push_back(Tensor::copy_of(std::span<const int64_t>(l.pages), {static_cast<int64_t>(l.pages.size())}));
    out.push_back({l.key + kPagesSuffix, keep.back().view(), false});
  }
  return out;
}

std::vector<int64_t> chunk_sizes(const CallValues& recorded) {
  std::vector<int64_t> out;
  for (const RecordedTensor& l : recorded.tensors) {
    if (!l.stored()) continue;
    int64_t chunk = 0;
    if (is_pool(l) && l.tensor.view.size(0) > 0) {
      const int64_t page = l.tensor.view.nbytes() / l.tensor.view.size(0);
      constexpr int64_t kSmall = 4096, kLarge = 64 << 10;  // below 4 KB the ids would cost more than they save
      if (page > 0 && page < kSmall)
        chunk = kSmall / page * page;
      else if (page > 0) {
        int64_t parts = ceil_div(page, kLarge);
        while (page % parts != 0) ++parts;
        chunk = page / parts;
      }
    }
    out.push_back(chunk);
    if (!l.pages.empty()) out.push_back(0);
  }
  return out;
}

void StorageNumbers::add(const CallValues& recorded) {
  std::vector<Range> fresh;
  for (const RecordedTensor& l : recorded.tensors) {
    const TensorView& v = l.tensor.view;
    if (v.numel() == 0 || find(v).id >= 0) continue;
    const auto begin = reinterpret_cast<uintptr_t>(v.data());
    fresh.push_back({begin, begin + static_cast<uintptr_t>(v.span_bytes())});
  }
  std::ranges::stable_sort(fresh, {}, &Range::begin);
  for (const Range& r : fresh) {
    if (!ranges_.empty() && &r != fresh.data() && r.begin < ranges_.back().end && r.begin >= ranges_.back().begin)
      ranges_.back().end = std::max(ranges_.back().end, r.end);
    else
      ranges_.push_back(r);
  }
}

StorageNumbers::Place StorageNumbers::find(const TensorView& v) const {
  const auto at = reinterpret_cast<uintptr_t>(v.data());
  for (size_t i = 0; i < ranges_.size() && v.numel() > 0; ++i)
    if (ranges_[i].begin <= at && at < ranges_[i].end)
      return {static_cast<int>(i), static_cast<int64_t>(at - ranges_[i].begin)};
  return {-1, 0};
}

Json details(const RecordedTensor& tensor, const StorageNumbers& storages, const std::string& checksum) {
  const TensorView& v = tensor.tensor.view;
  const Extents of(tensor.tensor);
  Json d{{kShape, extents(of.shape())},
         {kDType, "torch." + std::string(of.dtype)},
         {kStride, extents(of.strides())},
         {kDevice, to_string(v.device())}};
  if (const auto place = storages.find(v); place.id >= 0) {
    d[kStorageOffset] = place.byte_offset / (tensor.tensor.bytes_of.empty() ? v.item_size() : v.size(-1));
    d[kStorageId] = place.id;
    d[kAddress] = hex(reinterpret_cast<uintptr_t>(v.data()));
  }
  if (tensor.role) d[kRole] = tensor.role;
  if (!tensor.same_as.empty()) d[kSameAs] = tensor.same_as;
  if (tensor.described_only) d[kStored] = kStoredNothing;
  if (!tensor.tensor.bytes_of.empty()) d[kStored] = kStoredBytes;
  if (!tensor.pages.empty()) {
    d[kStored] = kStoredPages;
    d[kPageDim] = 0;
  }
  if (!checksum.empty()) d[kChecksum] = checksum;
  return d;
}

}  // namespace flashinfer::record
