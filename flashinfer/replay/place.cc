// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/record/format.h"
#include "flashinfer/replay/inputs.h"

namespace flashinfer::replay {
namespace {

constexpr int64_t kMaxMemory = int64_t{1} << 38;  // a pool's address range; only written pages use memory

/// Zeroed memory that the system allocates as it is touched: a pool with few recorded pages costs only those.
Tensor zeroed(int64_t bytes) {
  if (bytes == 0) return Tensor::empty({0}, DType::kU8);
  const size_t n = static_cast<size_t>(bytes);
  void* p = ::mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  FI_CHECK(p != MAP_FAILED, RuntimeError, "no memory for ", bytes, " bytes of arguments");
  const int64_t shape[] = {bytes};
  return Tensor(TensorView(p, DType::kU8, shape), std::shared_ptr<void>(p, [n](void* q) { ::munmap(q, n); }));
}

void copy(const TensorView& to, const TensorView& from) {
  if (to.numel() == 0) return;
  if (to.rank() > 1 && !(to.is_contiguous() && from.is_contiguous())) {
    for (int64_t i = 0; i < to.size(0); ++i) copy(to.select(0, i), from.select(0, i));
    return;
  }
  const size_t item = static_cast<size_t>(to.item_size());
  if (to.is_contiguous() && from.is_contiguous()) {
    std::memcpy(to.data(), from.data(), static_cast<size_t>(to.nbytes()));
    return;
  }
  auto* p = to.data_as<uint8_t>();
  const auto* q = from.data_as<const uint8_t>();
  for (int64_t i = 0; i < to.size(0); ++i)
    std::memcpy(p + i * to.stride(0) * to.item_size(), q + i * from.stride(0) * from.item_size(), item);
}

int64_t page_at(const TensorView& pages, int64_t i, int64_t count) {
  const int64_t page = op::index_at(pages, i);
  FI_CHECK(page >= 0 && page < count, ValueError, "page ", page, " is outside the pool of ", count, " pages");
  return page;
}

/// The caller's layout of a tensor.
struct Layout {
  std::string key;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape, strides;
  int64_t offset = 0;    // elements
  int64_t storage = -1;  // -1: not shared
  Device device;
  std::string stored;
  int page_dim = 0;
  const Tensor* content = nullptr;  // null: a workspace
  const Tensor* pages = nullptr;
  int64_t span() const {  // elements from the first to one past the last
    int64_t last = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t reach = 0;
      if (shape[i] == 0) return 0;
      const bool overflow =
          __builtin_mul_overflow(shape[i] - 1, strides[i], &reach) || __builtin_add_overflow(last, reach, &last);
      FI_CHECK(!overflow && last < kMaxMemory, ValueError, key, ": its strides reach beyond ", kMaxMemory, " elements");
    }
    return last + 1;
  }
};

std::vector<int64_t> sizes(const Json& j, const char* key) {
  std::vector<int64_t> r;
  const auto it = j.find(key);
  if (it == j.end() || !it->is_array()) return r;
  for (const Json& x : *it) {
    FI_CHECK(x.is_number_integer() && x.get<int64_t>() >= 0, ValueError, key, " holds ", x.dump(),
             ", which is no size");
    r.push_back(x.get<int64_t>());
  }
  return r;
}

Device device_of(const Json& d, std::optional<Device> wanted, const std::string& key) {
  Device device = kCpu;
  const std::string text = string_of(d, record::kDevice);
  // A plan is made and read by the host, whatever the device of its runs.
  if (key.starts_with(record::kPlanPrefix) && text == "cpu") return kCpu;
  if (wanted) {
    device = *wanted;
  } else if (!text.empty()) {
    const auto parsed = parse_device(text);
    FI_CHECK(parsed.has_value(), ValueError, key, " was on ", text, ", which is no device here (try --device cpu)");
    device = *parsed;
  }
  const std::string why = device.type == DeviceType::kCUDA ? cuda::why_no_device(device.index) : std::string();
  FI_CHECK(why.empty(), ValueError, key, wanted ? " should go to " : " was on ", to_string(device), ", but ", why,
           " (try --device cpu)");
  return device;
}

Layout layout_of(const std::string& key, const Json& d, const Tensor* content, std::optional<Device> device) {
  Layout l;
  l.key = key;
  l.content = content;
  l.device = device_of(d, device, key);
  l.stored = string_of(d, record::kStored);
  l.storage = integer_of(d, record::kStorageId, -1);
  l.offset = integer_of(d, record::kStorageOffset);
  l.page_dim = static_cast<int>(integer_of(d, record::kPageDim));
  if (content && l.stored != record::kStoredPages) {
    l.dtype = content->dtype();
    l.shape.assign(content->shape().begin(), content->shape().end());
  } else {
    const auto dtype = parse_dtype(string_of(d, record::kDType));
    FI_CHECK(dtype.has_value(), ValueError, key, ": dtype ", string_of(d, record::kDType), " is not known");
    l.dtype = *dtype;
    l.shape = sizes(d, record::kShape);
  }
  l.strides = sizes(d, record::kStride);
  FI_CHECK(l.shape.size() <= TensorView::kMaxRank && l.offset >= 0, ValueError, key,
           ": its shape or offset is no such thing");
  if (l.strides.size() != l.shape.size()) {  // unknown: as stored, or compact
    l.strides.assign(l.shape.size(), 1);
    for (size_t i = l.shape.size(); i-- > 1;) l.strides[i - 1] = l.strides[i] * std::max<int64_t>(l.shape[i], 1);
    if (content && l.stored.empty())
      l.strides.assign(content->view().strides().begin(), content->view().strides().end());
    l.storage = -1;
  }
  return l;
}

/// The same bytes on the call's device: `memory` itself when that is host memory.
Tensor memory_on(const Tensor& memory, Device device) {
  if (device.type == DeviceType::kCPU || memory.numel() == 0) return memory;
  return to_device(memory.view(), device);
}

void fill(const Layout& l, const TensorView& to) {
  if (!l.content) return;
  if (l.stored != record::kStoredPages) return copy(to, l.content->view());
  FI_CHECK(l.pages && l.page_dim < to.rank() && l.content->rank() == to.rank() &&
               l.content->size(l.page_dim) == l.pages->numel(),
           ValueError, l.key, ": its pages do not fit the list of their numbers");
  for (int64_t i = 0; i < l.pages->numel(); ++i) {
    const TensorView page = to.select(l.page_dim, page_at(l.pages->view(), i, to.size(l.page_dim)));
    const TensorView content = l.content->view().select(l.page_dim, i);
    FI_CHECK(std::ranges::equal(page.shape(), content.shape()) && page.dtype() == content.dtype(), ValueError, l.key,
             ": a stored page is ", to_string(content), ", but one of the pool is ", to_string(page));
    copy(page, content);
  }
}

/// Allocates one memory for the members of one storage.
void place_group(const std::vector<Layout>& group, Tensors* out) {
  if (group.size() == 1 && group[0].content && group[0].stored.empty()) {
    const Layout& l = group[0];
    if (std::ranges::equal(l.content->view().strides(), l.strides) || l.content->numel() <= 1) {
      (*out)[l.key] = memory_on(*l.content, l.device);
      return;
    }
  }
  int64_t begin = std::numeric_limits<int64_t>::max(), end = 0;
  for (const Layout& l : group) {
    const int64_t item = size_of(l.dtype);
    FI_CHECK(l.offset < kMaxMemory, ValueError, l.key, ": a storage offset of ", l.offset);
    begin = std::min(begin, l.offset * item);
    end = std::max(end, (l.offset + l.span()) * item);
  }
  FI_CHECK(end - begin <= kMaxMemory, ValueError, group[0].key, ": its memory would span ", end - begin, " bytes");
  begin -= begin % 64;
  const Tensor memory = zeroed(end - begin);
  const auto at = [&](const Layout& l) { return l.offset * size_of(l.dtype) - begin; };
  for (const Layout& l : group) fill(l, TensorView(memory.data_as<uint8_t>() + at(l), l.dtype, l.shape, l.strides));
  const Device device = group[0].device;  // one storage is on one device
  const Tensor moved = memory_on(memory, device);
  for (const Layout& l : group)
    (*out)[l.key] =
        Tensor(TensorView(moved.data_as<uint8_t>() + at(l), l.dtype, l.shape, l.strides, device), moved.owner());
}

/// Into memory that several processes share: at the places that the tensors had in that of the recorded call.
void place_in(const Shared& shared, const std::vector<Layout>& group, Tensors* out) {
  const TensorView& to = shared.memory.view();
  const Layout& first = *std::ranges::find(group, shared.key, &Layout::key);
  const int64_t item = size_of(first.dtype);
  FI_CHECK(first.shape.size() == 2 && first.shape[0] == to.size(0) &&
               (to.size(0) == 1 || first.strides[0] * item == to.stride(0)),
           ValueError, first.key, " was recorded in another layout than ", to_string(to));
  const auto at = [&](const Layout& l) {
    FI_CHECK(l.offset < kMaxMemory && first.offset < kMaxMemory, ValueError, l.key, ": a storage offset of ", l.offset);
    const int64_t begin = l.offset * size_of(l.dtype) - first.offset * item;
    FI_CHECK(begin >= 0 && begin + l.span() * size_of(l.dtype) <= to.span_bytes(), ValueError, l.key,
             " lies outside the memory that the ranks share");
    return to.data_as<uint8_t>() + begin;
  };
  for (const Layout& l : group) {
    const TensorView place(at(l), l.dtype, l.shape, l.strides);
    fill(l, place);
    (*out)[l.key] = Tensor(place, shared.memory.owner());
  }
}

bool is_output(const std::string& key) {
  return key.starts_with(record::kResult) || key.starts_with(record::kAfterPrefix);
}

}  // namespace

Tensors place(const std::vector<formats::StoredTensor>& stored, const Json& details, std::optional<Device> device,
              const Shared* shared) {
  std::map<std::string, const Tensor*> content;
  for (const auto& t : stored) content[t.key] = &t.tensor;
  std::map<int64_t, std::vector<Layout>> groups;
  int64_t alone = -1;
  const auto add = [&](Layout l) {
    const int64_t id = l.storage >= 0 ? l.storage : --alone;
    groups[id].push_back(std::move(l));
  };
  for (const auto& [key, tensor] : content) {
    Layout l = layout_of(key, object_of(details, key.c_str()), tensor, device);
    const auto pages = content.find(key + record::kPagesSuffix);
    if (pages != content.end()) l.pages = pages->second;
    add(std::move(l));
  }
  for (const auto& [key, d] : details.items())
    if (!content.contains(key) && string_of(d, record::kStored) == record::kStoredNothing && !is_output(key))
      add(layout_of(key, d, nullptr, device));
  Tensors out;
  for (const auto& [id, group] : groups)
    if (shared && std::ranges::find(group, shared->key, &Layout::key) != group.end())
      place_in(*shared, group, &out);
    else
      place_group(group, &out);
  FI_CHECK(!shared || out.contains(shared->key), ValueError, shared->key, " is not in the record");
  return out;
}

Tensor take_pages(const TensorView& v, int dim, const TensorView& pages) {
  FI_CHECK(dim >= 0 && dim < v.rank(), ValueError, "page dimension ", dim, " of ", to_string(v));
  std::vector<int64_t> shape(v.shape().begin(), v.shape().end());
  shape[static_cast<size_t>(dim)] = pages.numel();
  Tensor out = Tensor::empty(shape, v.dtype());
  for (int64_t i = 0; i < pages.numel(); ++i)
    copy(out.view().select(dim, i), v.select(dim, page_at(pages, i, v.size(dim))));
  return out;
}

}  // namespace flashinfer::replay
