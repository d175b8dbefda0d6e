// SPDX-License-Identifier: Apache-2.0
// The chunk store of a recording: tensor content cut into chunks that are stored once and named by their hash.
//
//   <session>/chunks/<prefix>-<n>.pack      a run of records: ChunkHeader, then `bytes` bytes; only ever appended to
//   <session>/<call>/inputs.chunks          JSON: {"chunks_version": 1, "tensors": [{"key", "dtype", "shape",
//                                           "requires_grad", "id", "bytes", "chunk", "depth"}, ...]}
//
// The id of a chunk is the XXH3-128 of its bytes (canonical, high half first), in JSON as 32 hex digits. A tensor's
// content is its elements in row-major order, cut every `chunk` bytes. depth 0: `id` is the one chunk that is the
// content. depth d > 0: `id` is a node, a chunk of kind 1 that holds up to kFanOut ids of depth d - 1 in order. Empty
// content has the id "". So a tensor in which one chunk changed costs that chunk and one node per level.
#pragma once
#include <xxhash.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "flashinfer/core/check.h"
#include "flashinfer/formats/pt.h"

#pragma GCC visibility push(default)

namespace flashinfer::formats {

struct ChunkHeader {
  char magic[4];   // "FIck"
  uint32_t bytes;  // little endian
  uint32_t kind;   // 0 data, 1 node
  uint32_t zero;
  uint8_t id[16];
};
static_assert(sizeof(ChunkHeader) == 32);
inline constexpr char kChunkMagic[] = "FIck";
inline constexpr char kPackEnding[] = ".pack";
inline constexpr char kChunksEnding[] = ".chunks";
inline constexpr int64_t kChunkBytes = 64 << 10;
inline constexpr int kFanOut = 256;

/// The store has reached its limit.
struct StoreFull : RuntimeError {
  StoreFull() : RuntimeError("the recording is full") {}
};

struct ChunkId {
  uint8_t bytes[16];
  friend bool operator==(const ChunkId&, const ChunkId&) = default;
  friend auto operator<=>(const ChunkId&, const ChunkId&) = default;
};
struct ChunkIdHash {
  size_t operator()(const ChunkId& id) const;
};

/// Appends chunks that are not stored yet. Each process writes its own packs; a process that dies leaves at most a torn
/// last record, which readers drop.
class ChunkStore {
 public:
  /// `prefix` names this process's packs; the folder is created (0700) at the first write.
  ChunkStore(std::filesystem::path folder, std::string prefix);
  ~ChunkStore();
  ChunkStore(const ChunkStore&) = delete;
  ChunkStore& operator=(const ChunkStore&) = delete;

  /// Throws StoreFull instead of letting the packs grow beyond this.
  void set_limit(uint64_t bytes) { limit_ = bytes; }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }  // of all live packs

  /// Stores `tensors` and writes `file`, which must be in a call's folder of this session. `chunk_bytes` (empty, or one
  /// per tensor; 0: kChunkBytes) allows a paged pool to be cut at its pages. Returns the packs that the file refers to.
  std::set<uint32_t> write(const std::filesystem::path& file, std::span<const NamedTensor> tensors,
                           std::span<const int64_t> chunk_bytes, WriteReport* report);

  /// Releases the references of deleted files to `packs`, one entry for each. Packs without references are removed,
  /// except the one being written.
  void release(std::span<const uint32_t> packs);

 private:
  struct Pending {
    ChunkHeader header;
    const uint8_t* data;
  };
  struct Content {
    std::string id;
    int64_t bytes = 0, chunk = 0;
    int depth = 0;
  };
  Content add(const TensorView& view, int64_t chunk, std::set<uint32_t>& packs, uint64_t* checksum);
  ChunkId put(const uint8_t* data, size_t bytes, uint32_t kind, std::set<uint32_t>& packs);
  void flush();
  void open_pack();
  void roll_back(uint64_t to);
  void forget();

  std::mutex mutex_;
  std::filesystem::path folder_;
  std::string prefix_;
  uint64_t limit_ = UINT64_MAX;
  std::atomic<uint64_t> bytes_{0};
  uint32_t pack_ = 0;  // number of the pack being written, from 1
  int fd_ = -1;
  uint64_t pack_bytes_ = 0;  // of the open pack, flushed
  uint64_t pending_bytes_ = 0;
  std::vector<Pending> pending_;
  std::vector<ChunkId> pending_ids_;
  std::unordered_map<ChunkId, uint32_t, ChunkIdHash> known_;          // -> pack
  std::unordered_map<uint32_t, std::pair<uint64_t, int64_t>> packs_;  // number -> bytes, calls that refer to it
};

/// Finds chunks in every pack of a session. Damaged tails are skipped; returned chunks are checked against their id.
class ChunkReader {
 public:
  explicit ChunkReader(std::filesystem::path folder);
  ~ChunkReader();
  /// ValueError: no such chunk ("chunk <id> is not in <folder>"), or its bytes do not have this id.
  Bytes chunk(const ChunkId& id);
  /// The tensors of a .chunks file, each an independent copy. ValueError that says what is missing or damaged.
  std::vector<StoredTensor> read(const std::filesystem::path& file);
  /// Problems of the packs, one sentence each (torn tail, not a pack).
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  void scan(const std::filesystem::path& pack);
  void content(const ChunkId& id, int depth, uint64_t bytes, uint64_t chunk, uint8_t*& out, uint8_t* end);

  std::filesystem::path folder_;
  std::vector<std::shared_ptr<MappedFile>> packs_;
  std::unordered_map<ChunkId, Bytes, ChunkIdHash> index_;
  std::vector<std::string> problems_;
};
/// Uses the packs of <file>/../../chunks.
std::vector<StoredTensor> read_chunks(const std::filesystem::path& file);

}  // namespace flashinfer::formats

#pragma GCC visibility pop
