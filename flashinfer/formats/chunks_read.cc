// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "flashinfer/core/check.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/hex.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/formats/chunks.h"
#include "flashinfer/formats/file.h"
#include "flashinfer/formats/json.h"

namespace flashinfer::formats {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 40;  // of one tensor: a larger size means a damaged file

std::string hex(const ChunkId& id) { return hex_bytes(id.bytes, sizeof id.bytes); }

ChunkId parse_id(const std::string& text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  ChunkId id{};
  bool good = text.size() == 2 * sizeof id.bytes;
  for (size_t i = 0; good && i < sizeof id.bytes; ++i) {
    const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    good = high >= 0 && low >= 0;
    id.bytes[i] = static_cast<uint8_t>(high << 4 | (low & 15));
  }
  FI_CHECK(good, ValueError, "\"", text, "\" is no chunk id");
  return id;
}

/// Bytes of one child of a node of depth `depth`.
uint64_t span_of(uint64_t chunk, int depth) {
  uint64_t n = chunk;
  for (int i = 1; i < depth; ++i) n = n > kMostBytes ? n : n * kFanOut;
  return n;
}

struct Described {
  std::string key;
  DType dtype;
  std::vector<int64_t> shape;
  bool requires_grad;
  std::string id;
  uint64_t bytes, chunk;
  int depth;
};

Described describe(const Json& j) {
  Described d;
  d.key = j.at("key").get<std::string>();
  const auto dtype = parse_dtype(j.at("dtype").get<std::string>());
  FI_CHECK(dtype.has_value(), ValueError, "\"", j.at("dtype").get<std::string>(), "\" is no element type");
  d.dtype = *dtype;
  d.shape = j.at("shape").get<std::vector<int64_t>>();
  d.requires_grad = j.at("requires_grad").get<bool>();
  d.id = j.at("id").get<std::string>();
  const int64_t bytes = j.at("bytes").get<int64_t>(), chunk = j.at("chunk").get<int64_t>();
  d.depth = j.at("depth").get<int>();
  const TensorView shape(nullptr, d.dtype, d.shape);  // checks extents and overflow
  FI_CHECK(bytes == shape.nbytes(), ValueError, d.key, " has ", bytes, " bytes, but its shape has ", shape.nbytes());
  FI_CHECK(static_cast<uint64_t>(bytes) <= kMostBytes, ValueError, d.key, " has ", bytes, " bytes");
  FI_CHECK(chunk > 0 && chunk <= (int64_t{1} << 31), ValueError, d.key, ": chunks of ", chunk, " bytes");
  FI_CHECK(d.depth >= 0 && d.depth <= 8, ValueError, d.key, ": a tree of depth ", d.depth);
  d.bytes = static_cast<uint64_t>(bytes);
  d.chunk = static_cast<uint64_t>(chunk);
  return d;
}

}  // namespace

ChunkReader::ChunkReader(std::filesystem::path folder) : folder_(std::move(folder)) {
  for (const std::string& name : fs::list_dir(folder_))
    if (name.ends_with(kPackEnding)) scan(folder_ / name);
}
ChunkReader::~ChunkReader() = default;

void ChunkReader::scan(const std::filesystem::path& pack) {
  std::shared_ptr<MappedFile> file;
  try {
    file = MappedFile::open(pack);
  } catch (const Error& e) {
    problems_.push_back(e.message());
    return;
  }
  const Bytes all = file->bytes();
  size_t at = 0;
  while (at < all.size()) {
    ChunkHeader header;
    if (all.size() - at < sizeof header) break;
    std::memcpy(&header, all.data() + at, sizeof header);
    if (std::memcmp(header.magic, kChunkMagic, sizeof header.magic) != 0) {
      problems_.push_back(str(pack.string(), ": no chunk at byte ", at, "; what follows is not read"));
      break;
    }
    if (all.size() - at - sizeof header < header.bytes) break;
    ChunkId id;
    std::memcpy(id.bytes, header.id, sizeof id.bytes);
    index_.emplace(id, all.subspan(at + sizeof header, header.bytes));
    at += sizeof header + header.bytes;
  }
  if (at < all.size() && (problems_.empty() || !problems_.back().starts_with(pack.string())))
    problems_.push_back(str(pack.string(), ": the last record, at byte ", at, ", is cut off"));
  packs_.push_back(std::move(file));
}

Bytes ChunkReader::chunk(const ChunkId& id) {
  const auto it = index_.find(id);
  FI_CHECK(it != index_.end(), ValueError, "chunk ", hex(id), " is not in ", folder_.string());
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(it->second.data(), it->second.size()));
  FI_CHECK(std::memcmp(canonical.digest, id.bytes, sizeof id.bytes) == 0, ValueError, "chunk ", hex(id), " in ",
           folder_.string(), " is damaged: its bytes have another hash");
  return it->second;
}

void ChunkReader::content(const ChunkId& id, int depth, uint64_t bytes, uint64_t chunk_bytes, uint8_t*& out,
                          uint8_t* end) {
  const Bytes data = chunk(id);
  if (depth == 0) {
    FI_CHECK(data.size() == bytes && static_cast<uint64_t>(end - out) >= bytes, ValueError, "chunk ", hex(id), " has ",
             data.size(), " bytes, but must have ", bytes);
    std::memcpy(out, data.data(), data.size());
    out += data.size();
    return;
  }
  const uint64_t child = span_of(chunk_bytes, depth), count = ceil_div(bytes, child);
  FI_CHECK(data.size() == count * sizeof(ChunkId) && count <= kFanOut, ValueError, "node ", hex(id), " has ",
           data.size(), " bytes, but must name ", count, " parts");
  for (uint64_t i = 0; i < count; ++i) {
    ChunkId next;
    std::memcpy(next.bytes, data.data() + i * sizeof next, sizeof next);
    content(next, depth - 1, std::min(child, bytes - i * child), chunk_bytes, out, end);
  }
}

std::vector<StoredTensor> ChunkReader::read(const std::filesystem::path& file) {
  const auto mapped = MappedFile::open(file);
  std::vector<StoredTensor> out;
  try {
    const Json root = parse_json({reinterpret_cast<const char*>(mapped->data()), mapped->size()});
    FI_CHECK(root.at("chunks_version").get<int>() == 1, ValueError, "version ", root.at("chunks_version").get<int>(),
             " of the chunk list, but only 1 is read");
    for (const Json& j : root.at("tensors")) {
      const Described d = describe(j);
      Tensor t = Tensor::empty(d.shape, d.dtype);
      uint8_t* at = t.data_as<uint8_t>();
      uint8_t* const end = at + d.bytes;
      try {
        if (d.bytes > 0) content(parse_id(d.id), d.depth, d.bytes, d.chunk, at, end);
        FI_CHECK(at == end, ValueError, "only ", d.bytes - static_cast<uint64_t>(end - at), " of ", d.bytes, " bytes");
      } catch (const ValueError& e) {
        throw ValueError(d.key + ": " + e.message());
      }
      out.push_back({d.key, std::move(t), d.requires_grad});
    }
  } catch (const ValueError& e) {
    throw ValueError(file.string() + ": " + e.message());
  } catch (const Json::exception& e) {
    throw ValueError(file.string() + ": " + e.what());
  }
  return out;
}

std::vector<StoredTensor> read_chunks(const std::filesystem::path& file) {
  return ChunkReader(file.parent_path().parent_path() / "chunks").read(file);
}

}  // namespace flashinfer::formats
