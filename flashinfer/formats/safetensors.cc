// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "flashinfer/core/check.h"
#include "flashinfer/formats/file.h"
#include "flashinfer/formats/hash.h"
#include "flashinfer/formats/json.h"
#include "flashinfer/formats/pt.h"

namespace flashinfer::formats {
namespace {

constexpr uint64_t kMaxHeader = 100'000'000;  // the limit of the format's own library
constexpr std::pair<const char*, DType> kNames[] = {
    {"F32", DType::kF32},        {"F16", DType::kF16}, {"BF16", DType::kBF16}, {"F8_E4M3", DType::kF8E4M3},
    {"F8_E5M2", DType::kF8E5M2}, {"F64", DType::kF64}, {"U8", DType::kU8},     {"I8", DType::kI8},
    {"U16", DType::kU16},        {"I16", DType::kI16}, {"U32", DType::kU32},   {"I32", DType::kI32},
    {"U64", DType::kU64},        {"I64", DType::kI64}, {"BOOL", DType::kBool}, {"F4", DType::kF4E2M1x2}};

std::string header_of(std::span<const NamedTensor> tensors, const std::vector<size_t>& order) {
  Json header = Json::object();
  int64_t at = 0;
  for (size_t i : order) {
    const TensorView& v = tensors[i].view;
    std::vector<int64_t> shape(v.shape().begin(), v.shape().end());
    if (v.dtype() == DType::kF4E2M1x2) {
      FI_CHECK(!shape.empty(), ValueError, tensors[i].key,
               " is a single pair of FP4 values, which safetensors cannot say");
      shape.back() *= 2;
    }
    const auto name = std::ranges::find(kNames, v.dtype(), &std::pair<const char*, DType>::second);
    FI_CHECK(!header.contains(tensors[i].key), ValueError, "the key ", tensors[i].key, " is there twice");
    header[tensors[i].key] = {{"dtype", name->first}, {"shape", shape}, {"data_offsets", {at, at + v.nbytes()}}};
    at += v.nbytes();
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.append((64 - (text.size() + 8) % 64) % 64, ' ');  // data aligned for every element type and vector
  return text;
}

struct Item {
  std::string key;
  DType dtype;
  std::vector<int64_t> shape;
  uint64_t begin, end;
};

Item read_item(const std::string& key, const Json& j) {
  const auto need = [&](bool ok, const char* what) { FI_CHECK(ok, ValueError, "safetensors: ", key, ": ", what); };
  need(j.is_object() && j.contains("dtype") && j.contains("shape") && j.contains("data_offsets"),
       "an entry is incomplete");
  Item item{key, DType::kF32, {}, 0, 0};
  need(j["dtype"].is_string(), "dtype is no string");
  const auto name = std::ranges::find_if(kNames, [&](const auto& n) { return j["dtype"] == n.first; });
  FI_CHECK(name != std::end(kNames), ValueError, "safetensors: ", key, ": dtype ", j["dtype"].get<std::string>(),
           " is not known");
  item.dtype = name->second;
  need(j["shape"].is_array() && j["shape"].size() <= TensorView::kMaxRank, "shape is no list of at most 8 extents");
  int64_t bytes = size_of(item.dtype);
  for (const Json& extent : j["shape"]) {
    need(extent.is_number_unsigned() && extent.get<uint64_t>() <= std::numeric_limits<int64_t>::max(),
         "an extent is no size");
    item.shape.push_back(extent.get<int64_t>());
  }
  if (item.dtype == DType::kF4E2M1x2) {
    need(!item.shape.empty() && item.shape.back() % 2 == 0, "an odd number of FP4 values");
    item.shape.back() /= 2;
  }
  const bool empty = std::ranges::find(item.shape, 0) != item.shape.end();
  for (int64_t extent : item.shape)
    need(!__builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes), "the size overflows");
  const Json& offsets = j["data_offsets"];
  need(offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned(),
       "data_offsets are not two sizes");
  item.begin = offsets[0].get<uint64_t>(), item.end = offsets[1].get<uint64_t>();
  need(item.begin <= item.end, "data_offsets decrease");
  FI_CHECK(item.end - item.begin == static_cast<uint64_t>(empty ? 0 : bytes), ValueError, "safetensors: ", key, ": ",
           item.end - item.begin, " bytes for a tensor of ", empty ? 0 : bytes);
  return item;
}

}  // namespace

void write_safetensors(const std::filesystem::path& file, std::span<const NamedTensor> tensors, WriteReport* report) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  // Wide elements first: the format forbids gaps between tensors, and in this order all stay aligned.
  std::ranges::sort(order, {}, [&](size_t i) { return std::pair(-tensors[i].view.item_size(), i); });
  for (const NamedTensor& t : tensors)
    FI_CHECK(t.view.device().type != DeviceType::kCUDA, ValueError, t.key, " is on ", to_string(t.view.device()),
             ", and only memory of the host can be written");
  const std::string header = header_of(tensors, order);
  FileWriter out(file);
  const uint64_t length = header.size();
  out.write(&length, sizeof length);
  out.write(header);
  WriteReport r;
  r.checksums.resize(tensors.size());
  for (const NamedTensor& t : tensors) r.gathered.push_back(!t.view.is_contiguous());
  for (size_t i : order) {
    Xxh3 hash;
    const TensorView& v = tensors[i].view;
    const auto add_hash = [&](const uint8_t* p, size_t n) {
      if (report) hash.add(p, n);
    };
    if (v.is_contiguous()) {
      out.write_beside(v.data_as<const uint8_t>(), static_cast<size_t>(v.nbytes()), add_hash);
    } else {
      stream(v, [&](const uint8_t* p, size_t n) {
        add_hash(p, n);
        out.write(p, n);
      });
    }
    r.checksums[i] = hash.digest();
    r.tensor_bytes += static_cast<uint64_t>(tensors[i].view.nbytes());
  }
  r.file_bytes = out.position();
  out.commit();
  if (report) *report = std::move(r);
}

std::vector<StoredTensor> read_safetensors(std::span<uint8_t> file, const std::shared_ptr<void>& owner) {
  FI_CHECK(file.size() >= 8, ValueError, "safetensors: ", file.size(), " bytes are no such file");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  FI_CHECK(length <= kMaxHeader && length <= file.size() - 8, ValueError, "safetensors: a header of ", length,
           " bytes does not fit a file of ", file.size());
  const Json header = parse_json({reinterpret_cast<const char*>(file.data()) + 8, length});
  FI_CHECK(header.is_object(), ValueError, "safetensors: the header is no object");
  const std::span<uint8_t> data = file.subspan(8 + length);
  std::vector<Item> items;
  for (const auto& [key, value] : header.items())
    if (key != "__metadata__") items.push_back(read_item(key, value));
  std::vector<const Item*> by_offset;
  for (const Item& i : items) by_offset.push_back(&i);
  std::ranges::sort(by_offset, [](const Item* a, const Item* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t at = 0;
  for (const Item* i : by_offset) {
    FI_CHECK(i->begin == at, ValueError, "safetensors: ", i->key, " begins at ", i->begin,
             ", but the data before it ends at ", at);
    at = i->end;
  }
  FI_CHECK(at == data.size(), ValueError, "safetensors: tensors take ", at, " bytes, but the file holds ", data.size());
  std::vector<StoredTensor> tensors;
  for (Item& i : items) {
    uint8_t* p = data.data() + i.begin;
    Tensor t(TensorView(p, i.dtype, i.shape), owner);
    if (reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(size_of(i.dtype)) != 0) {
      Tensor aligned = Tensor::empty(i.shape, i.dtype);
      std::memcpy(aligned.data(), p, i.end - i.begin);
      t = aligned;
    }
    tensors.push_back({std::move(i.key), std::move(t), false});
  }
  return tensors;
}

std::vector<StoredTensor> read_safetensors(const std::filesystem::path& file) {
  auto mapped = MappedFile::open(file);
  try {
    return read_safetensors({mapped->data(), mapped->size()}, mapped);
  } catch (const Error& e) {
    throw_error(e.kind(), file.string() + ": " + e.message());
  }
}

}  // namespace flashinfer::formats
