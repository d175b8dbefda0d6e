// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/formats/chunks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "flashinfer/core/check.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/hex.h"
#include "flashinfer/formats/file.h"
#include "flashinfer/formats/hash.h"
#include "flashinfer/formats/json.h"

namespace flashinfer::formats {
namespace {

/// A ring deletes whole packs, so a small recording has small ones.
uint64_t pack_size(uint64_t limit) { return std::clamp<uint64_t>(limit / 16, 256 << 10, 64 << 20); }
constexpr size_t kBatchBytes = 512 << 10;  // chunks written by one writev: still in the cache after hashing

ChunkId id_of(const void* data, size_t bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, bytes));
  ChunkId id;
  std::memcpy(id.bytes, canonical.digest, sizeof id.bytes);
  return id;
}

}  // namespace

size_t ChunkIdHash::operator()(const ChunkId& id) const {
  size_t h;
  std::memcpy(&h, id.bytes, sizeof h);
  return h;
}

ChunkStore::ChunkStore(std::filesystem::path folder, std::string prefix)
    : folder_(std::move(folder)), prefix_(std::move(prefix)) {}

ChunkStore::~ChunkStore() {
  if (fd_ >= 0) ::close(fd_);
}

void ChunkStore::open_pack() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  fs::make_dirs(folder_);
  for (;;) {
    const auto path = folder_ / str(prefix_, "-", ++pack_, kPackEnding);
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd_ >= 0) break;
    FI_CHECK(errno == EEXIST, RuntimeError, "cannot create ", path.string(), ": ", std::strerror(errno));
  }
  pack_bytes_ = 0;
  packs_[pack_] = {0, 0};
}

/// After a failed write: the pack is cut back to the last whole batch, and the next chunk starts a new pack.
void ChunkStore::roll_back(uint64_t to) {
  for (const ChunkId& id : pending_ids_) known_.erase(id);
  pending_.clear();
  pending_ids_.clear();
  pending_bytes_ = 0;
  if (fd_ >= 0) {
    if (::ftruncate(fd_, static_cast<off_t>(to)) != 0) {
      // readers drop the torn record
    }
    ::close(fd_);
    fd_ = -1;
  }
}

void ChunkStore::flush() {
  if (pending_.empty()) return;
  std::vector<iovec> parts;
  uint64_t total = 0;
  for (Pending& p : pending_) {
    parts.push_back({&p.header, sizeof p.header});
    parts.push_back({const_cast<uint8_t*>(p.data), p.header.bytes});
    total += sizeof p.header + p.header.bytes;
  }
  const FileSizeLimit limit;
  const uint64_t start = pack_bytes_;
  for (size_t i = 0; i < parts.size();) {
    const ssize_t n = ::writev(fd_, &parts[i], static_cast<int>(std::min<size_t>(parts.size() - i, IOV_MAX)));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = n < 0 ? errno : ENOSPC;
      roll_back(start);
      throw RuntimeError(str("cannot write to ", folder_.string(), ": ", std::strerror(error)));
    }
    size_t left = static_cast<size_t>(n);
    while (i < parts.size() && left >= parts[i].iov_len) left -= parts[i++].iov_len;
    if (i < parts.size()) {
      parts[i].iov_base = static_cast<char*>(parts[i].iov_base) + left;
      parts[i].iov_len -= left;
    }
  }
  pack_bytes_ += total;
  bytes_ += total;
  packs_[pack_].first += total;
  pending_.clear();
  pending_ids_.clear();
  pending_bytes_ = 0;
}

ChunkId ChunkStore::put(const uint8_t* data, size_t bytes, uint32_t kind, std::set<uint32_t>& packs) {
  const ChunkId id = id_of(data, bytes);
  if (const auto it = known_.find(id); it != known_.end()) {
    packs.insert(it->second);
    return id;
  }
  if (bytes_ + pending_bytes_ + bytes > limit_) {
    roll_back(pack_bytes_);
    throw StoreFull();
  }
  if (fd_ < 0 || pack_bytes_ + pending_bytes_ >= pack_size(limit_)) {
    flush();
    open_pack();
  }
  Pending p;
  std::memcpy(p.header.magic, kChunkMagic, sizeof p.header.magic);
  p.header.bytes = static_cast<uint32_t>(bytes);
  p.header.kind = kind;
  p.header.zero = 0;
  std::memcpy(p.header.id, id.bytes, sizeof id.bytes);
  p.data = data;
  pending_.push_back(p);
  pending_ids_.push_back(id);
  pending_bytes_ += sizeof p.header + bytes;
  known_.emplace(id, pack_);
  packs.insert(pack_);
  if (pending_bytes_ >= kBatchBytes) flush();
  return id;
}

ChunkStore::Content ChunkStore::add(const TensorView& view, int64_t chunk, std::set<uint32_t>& packs,
                                    uint64_t* checksum) {
  Content c;
  c.bytes = view.nbytes();
  c.chunk = chunk;
  Xxh3 whole;
  std::vector<ChunkId> ids;
  const auto take = [&](const uint8_t* p, size_t n) {
    if (checksum) whole.add(p, n);
    ids.push_back(put(p, n, 0, packs));
  };
  if (view.is_contiguous()) {
    const uint8_t* p = view.data_as<const uint8_t>();
    for (int64_t at = 0; at < c.bytes; at += chunk) take(p + at, static_cast<size_t>(std::min(chunk, c.bytes - at)));
  } else {
    // The pieces of stream() are valid until it gets control back, so references to them are written before that.
    std::vector<uint8_t> rest;
    stream(view, [&](const uint8_t* p, size_t n) {
      const uint8_t* end = p + n;
      if (!rest.empty()) {
        const size_t more = std::min(n, static_cast<size_t>(chunk) - rest.size());
        rest.insert(rest.end(), p, p + more);
        p += more;
        if (rest.size() == static_cast<size_t>(chunk)) {
          take(rest.data(), rest.size());
          flush();
          rest.clear();
        }
      }
      for (; end - p >= chunk; p += chunk) take(p, static_cast<size_t>(chunk));
      flush();
      rest.insert(rest.end(), p, end);
    });
    if (!rest.empty()) take(rest.data(), rest.size());
    flush();
  }
  if (checksum) *checksum = whole.digest();
  while (ids.size() > 1) {
    std::vector<ChunkId> parents;
    for (size_t i = 0; i < ids.size(); i += kFanOut) {
      const size_t n = std::min<size_t>(kFanOut, ids.size() - i);
      parents.push_back(put(ids[i].bytes, n * sizeof(ChunkId), 1, packs));
    }
    flush();  // the nodes are in `ids`
    ids = std::move(parents);
    ++c.depth;
  }
  if (!ids.empty()) c.id = hex_bytes(ids[0].bytes, sizeof ids[0].bytes);
  return c;
}

std::set<uint32_t> ChunkStore::write(const std::filesystem::path& file, std::span<const NamedTensor> tensors,
                                     std::span<const int64_t> chunk_bytes, WriteReport* report) {
  std::set<uint32_t> packs;
  WriteReport r;
  const std::lock_guard lock(mutex_);
  // Packs may be deleted by another process: then no chunk is known any more.
  struct stat st;
  if (fd_ >= 0 && (::fstat(fd_, &st) != 0 || st.st_nlink == 0)) forget();
  const uint64_t before = bytes_;
  Json list = Json::array();
  try {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const TensorView& v = tensors[i].view;
      FI_CHECK(v.device().type != DeviceType::kCUDA, ValueError, tensors[i].key, " is on ", to_string(v.device()),
               ", and only memory of the host can be written");
      const int64_t chunk = chunk_bytes.empty() || chunk_bytes[i] <= 0 ? kChunkBytes : chunk_bytes[i];
      uint64_t checksum = 0;
      const Content c = add(v, chunk, packs, report ? &checksum : nullptr);
      r.checksums.push_back(checksum);
      r.gathered.push_back(!v.is_contiguous());
      Json shape = Json::array();
      for (const int64_t e : v.shape()) shape.push_back(e);
      list.push_back({{"key", tensors[i].key},
                      {"dtype", name(v.dtype())},
                      {"shape", std::move(shape)},
                      {"requires_grad", tensors[i].requires_grad},
                      {"id", c.id},
                      {"bytes", c.bytes},
                      {"chunk", c.chunk},
                      {"depth", c.depth}});
    }
    flush();
  } catch (...) {
    if (!pending_.empty()) roll_back(pack_bytes_);
    throw;
  }
  const std::string text = dump_json({{"chunks_version", 1}, {"tensors", std::move(list)}}) + "\n";
  FileWriter out(file);
  out.write(text);
  out.commit();
  r.tensor_bytes = bytes_ - before;
  r.file_bytes = text.size() + r.tensor_bytes;
  for (const uint32_t p : packs) ++packs_[p].second;
  if (report) *report = std::move(r);
  return packs;
}

void ChunkStore::forget() {
  roll_back(pack_bytes_);
  known_.clear();
  packs_.clear();
  bytes_ = 0;
}

void ChunkStore::release(std::span<const uint32_t> packs) {
  const std::lock_guard lock(mutex_);
  for (const uint32_t p : packs)
    if (const auto it = packs_.find(p); it != packs_.end()) --it->second.second;
  // A write that failed stored chunks that no call refers to.
  std::erase_if(packs_, [this](const auto& entry) {
    const auto& [number, use] = entry;
    if (use.second > 0 || (number == pack_ && fd_ >= 0)) return false;
    ::unlink((folder_ / str(prefix_, "-", number, kPackEnding)).c_str());
    bytes_ -= use.first;
    return true;
  });
  std::erase_if(known_, [this](const auto& entry) { return !packs_.contains(entry.second); });
}

}  // namespace flashinfer::formats
