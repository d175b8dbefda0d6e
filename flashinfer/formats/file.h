// SPDX-License-Identifier: Apache-2.0
// Files for readers and writers of dumps: a private mapping that tensors keep alive, and a writer whose file appears
// under its name only when it is complete.
#pragma once
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace flashinfer::formats {

using Bytes = std::span<const uint8_t>;

/// A copy-on-write mapping of a whole regular file: an op that works in place may write to the memory, never to the
/// file.
class MappedFile {
 public:
  /// RuntimeError with the errno text; ValueError when it is not a regular file.
  static std::shared_ptr<MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  Bytes bytes() const { return {data_, size_}; }

 private:
  MappedFile() = default;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

/// Within the scope a write beyond RLIMIT_FSIZE fails with EFBIG in this thread instead of raising SIGXFSZ, which kills
/// the process by default.
class FileSizeLimit {
 public:
  FileSizeLimit();
  ~FileSizeLimit();
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  sigset_t old_mask_;
};

/// Writes `<path>.tmp` (mode 0600) and renames it in commit(); the destructor removes an uncommitted file. Any failure,
/// a short write or a full disk included, throws RuntimeError with the errno text; a file size limit (RLIMIT_FSIZE) is
/// reported the same way and does not kill the process.
class FileWriter {
 public:
  explicit FileWriter(std::filesystem::path path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  /// Pieces below 32 KB are buffered; larger ones are written directly, together with the buffer.
  void write(const void* data, size_t bytes);
  /// Writes memory in one piece while another thread of the context passes it to `also` in pieces that fit the
  /// second-level cache (a checksum takes 0.1 to 0.4 of the time of a write to the page cache, so it is nearly free).
  void write_beside(const uint8_t* data, size_t bytes, const std::function<void(const uint8_t*, size_t)>& also);
  void write(std::string_view text) { write(text.data(), text.size()); }
  uint64_t position() const { return position_; }
  void commit();

 private:
  void flush_with(const void* data, size_t bytes);
  [[noreturn]] void fail(const char* what, int error);

  std::filesystem::path path_, temporary_;
  int fd_ = -1;
  uint64_t position_ = 0;
  bool committed_ = false;
  std::vector<uint8_t> pending_;
  FileSizeLimit limit_;
};

}  // namespace flashinfer::formats

#pragma GCC visibility pop
