// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/formats/pt.h"

#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

#include "flashinfer/core/check.h"
#include "flashinfer/core/hex.h"
#include "flashinfer/formats/hash.h"
#include "flashinfer/formats/zip.h"

namespace flashinfer::formats {
namespace {

/// The tensor whose row-major elements are exactly the storage's bytes, so that one pass computes both checksums; -1
/// when there is none.
int whole_tensor(std::span<const NamedTensor> tensors, const StoragePlan& plan, int storage) {
  const Storage& s = plan.storages[static_cast<size_t>(storage)];
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (plan.placements[i].storage != storage) continue;
    if (s.gather || (tensors[i].view.is_contiguous() && tensors[i].view.nbytes() == s.bytes))
      return static_cast<int>(i);
  }
  return -1;
}

/// torch writes forty digits that identify the content; ours are a hash of the names and checksums of the storages.
std::string serialization_id(const std::string& pickle, const std::vector<uint32_t>& crcs) {
  char text[41];
  std::snprintf(text, sizeof text, "%020llu%020llu",
                static_cast<unsigned long long>(XXH3_64bits(pickle.data(), pickle.size())),
                static_cast<unsigned long long>(XXH3_64bits(crcs.data(), crcs.size() * sizeof(uint32_t))));
  return text;
}

StorageMemory memory_of(Bytes data, const std::shared_ptr<void>& owner) {
  uint8_t* p = const_cast<uint8_t*>(data.data());
  if (reinterpret_cast<uintptr_t>(p) % 16 == 0 || data.empty()) return {p, data.size(), owner};
  Tensor copy =
      Tensor::empty({static_cast<int64_t>(data.size())}, DType::kU8);  // files of torch before 2.1 may be unaligned
  std::memcpy(copy.data(), data.data(), data.size());
  return {copy.data(), data.size(), copy.owner()};
}

}  // namespace

uint64_t checksum(const TensorView& view) {
  Xxh3 hash;
  stream(view, [&](const uint8_t* p, size_t n) { hash.add(p, n); });
  return hash.digest();
}

std::string checksum_text(uint64_t checksum) { return "xxh3:" + hex_word(checksum); }

void write_pt(const std::filesystem::path& file, std::span<const NamedTensor> tensors, WriteReport* report) {
  const StoragePlan plan = plan_storages(tensors);
  const std::string pickle = pickle_tensors(tensors, plan), stem = file.stem().string();
  FileWriter out(file);
  ZipWriter zip(&out);
  zip.entry(stem + "/data.pkl", pickle);
  zip.entry(stem + "/.format_version", "1");
  zip.entry(stem + "/.storage_alignment", "64");
  zip.entry(stem + "/byteorder", "little");
  WriteReport r;
  r.checksums.resize(tensors.size());
  std::vector<uint8_t> hashed(tensors.size());
  std::vector<uint32_t> crcs;
  for (size_t s = 0; s < plan.storages.size(); ++s) {
    const Storage& storage = plan.storages[s];
    const int whole = report ? whole_tensor(tensors, plan, static_cast<int>(s)) : -1;
    Xxh3 hash;
    zip.begin(stem + "/data/" + std::to_string(s), static_cast<uint64_t>(storage.bytes));
    const auto add_hash = [&](const uint8_t* p, size_t n) {
      if (whole >= 0) hash.add(p, n);
    };
    if (storage.gather) {
      stream(storage, [&](const uint8_t* p, size_t n) {
        add_hash(p, n);
        zip.add(p, n);
      });
    } else {
      zip.add(storage.data, static_cast<size_t>(storage.bytes), add_hash);
    }
    crcs.push_back(zip.end());
    r.tensor_bytes += static_cast<uint64_t>(storage.bytes);
    if (whole >= 0) r.checksums[static_cast<size_t>(whole)] = hash.digest(), hashed[static_cast<size_t>(whole)] = 1;
  }
  zip.entry(stem + "/version", "3\n");
  zip.entry(stem + "/.data/serialization_id", serialization_id(pickle, crcs));
  zip.finish();
  r.file_bytes = out.position();
  out.commit();
  if (!report) return;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!hashed[i]) r.checksums[i] = checksum(tensors[i].view);
    const bool gathered = plan.storages[static_cast<size_t>(plan.placements[i].storage)].gather;
    r.gathered.push_back(gathered && !tensors[i].view.is_contiguous());
  }
  *report = std::move(r);
}

Object load_pt(std::span<uint8_t> archive, std::shared_ptr<void> owner, bool verify) {
  const ZipReader zip(archive);
  std::string stem;
  for (const auto& [name, entry] : zip.entries())
    if (name.ends_with("/data.pkl") && std::ranges::count(name, '/') == 1) stem = name.substr(0, name.size() - 8);
  FI_CHECK(!stem.empty(), ValueError, "no data.pkl in the archive: torch.save did not write it");
  const auto entry = [&](const std::string& name) -> const ZipReader::Entry& {
    const ZipReader::Entry* e = zip.find(stem + name);
    FI_CHECK(e != nullptr, ValueError, "the archive has no ", name);
    if (verify) ZipReader::verify(name, *e);
    return *e;
  };
  if (const auto* order = zip.find(stem + "byteorder")) {
    const std::string text(order->data.begin(), order->data.end());
    FI_CHECK(text == "little", ValueError, "the archive's byte order is ", text, ", but only little is read");
  }
  std::map<std::string, StorageMemory> loaded;  // a storage that is named again is the same memory
  return unpickle(entry("data.pkl").data, [&](const std::string& key) {
    auto it = loaded.find(key);
    if (it == loaded.end()) it = loaded.emplace(key, memory_of(entry("data/" + key).data, owner)).first;
    return it->second;
  });
}

Object load_pt(const std::filesystem::path& file, bool verify) {
  auto mapped = MappedFile::open(file);
  try {
    return load_pt({mapped->data(), mapped->size()}, mapped, verify);
  } catch (const Error& e) {
    throw_error(e.kind(), file.string() + ": " + e.message());
  }
}

std::vector<StoredTensor> read_pt(const std::filesystem::path& file, bool verify) {
  Object root = load_pt(file, verify);
  FI_CHECK(root.kind == Object::Kind::kDict, ValueError, file.string(), ": not a dict of tensors");
  std::vector<StoredTensor> tensors;
  for (size_t i = 0; i + 1 < root.items.size(); i += 2) {
    Object &key = root.items[i], &value = root.items[i + 1];
    FI_CHECK(key.kind == Object::Kind::kString, ValueError, file.string(), ": a key is no string");
    FI_CHECK(value.kind == Object::Kind::kTensor, ValueError, file.string(), ": ", key.text, " is no tensor");
    tensors.push_back({std::move(key.text), std::move(value.tensor), value.requires_grad});
  }
  return tensors;
}

std::vector<StoredTensor> read_tensors(const std::filesystem::path& file, bool verify) {
  return file.extension() == ".safetensors" ? read_safetensors(file) : read_pt(file, verify);
}

}  // namespace flashinfer::formats
