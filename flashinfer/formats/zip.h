// SPDX-License-Identifier: Apache-2.0
// The subset of zip that torch.save uses: stored entries, data aligned to 64 bytes, zip64 where sizes need it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "flashinfer/formats/file.h"

namespace flashinfer::formats {

/// Writes entries to a FileWriter. An entry's checksum follows its data, so data is read and written once.
class ZipWriter {
 public:
  explicit ZipWriter(FileWriter* file) : file_(file) {}
  /// `bytes` must be the total of the following add() calls.
  void begin(std::string name, uint64_t bytes);
  void add(const uint8_t* data, size_t bytes);
  /// The same for an entry in one piece of memory; `also` receives the pieces too.
  void add(const uint8_t* data, size_t bytes, const std::function<void(const uint8_t*, size_t)>& also);
  /// Returns the entry's CRC32.
  uint32_t end();
  void entry(std::string name, std::string_view content);
  /// Offset of the current entry's data in the file.
  uint64_t data_offset() const { return entries_.back().data_offset; }
  /// The central directory. The file is complete after it.
  void finish();

 private:
  struct Entry {
    std::string name;
    uint64_t header_offset, data_offset, bytes;
    uint32_t crc;
  };
  FileWriter* file_;
  std::vector<Entry> entries_;
};

/// The entries of an archive in memory. The constructor checks signatures, bounds, that no two entries share a byte or
/// a name, that names stay inside the archive's folder, and that no entry is compressed or encrypted.
class ZipReader {
 public:
  struct Entry {
    Bytes data;
    uint32_t crc;
  };
  /// ValueError that says what is wrong; `archive` must outlive the reader.
  explicit ZipReader(Bytes archive);
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  const Entry* find(std::string_view name) const;
  /// ValueError when the CRC32 of the bytes is not that of the archive.
  static void verify(std::string_view name, const Entry& e);

 private:
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace flashinfer::formats
