// SPDX-License-Identifier: Apache-2.0
// Finds recorded calls and reads their metadata, one call at a time; torn or missing parts are reported as sentences.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "flashinfer/formats/chunks.h"
#include "flashinfer/formats/json.h"
#include "flashinfer/formats/pt.h"

#pragma GCC visibility push(default)

namespace flashinfer::replay {

using formats::Json;

/// The last complete record among the lines of a metadata file; `notes` receives what was torn. ValueError: none is
/// complete.
Json last_record(std::string_view text, std::vector<std::string>* notes);

/// Reads members of metadata that may be absent or of another type.
std::string string_of(const Json& j, const char* key, const std::string& otherwise = "");
int64_t integer_of(const Json& j, const char* key, int64_t otherwise = 0);
/// The member, or an empty object.
const Json& object_of(const Json& j, const char* key);

struct Call {
  std::filesystem::path folder;
  Json record = Json::object();
  std::vector<std::string> notes;
  std::string error;  // why there is no record
  std::string function() const { return string_of(record, "function_name", "<unknown>"); }
};

/// A call without its record, which takes about 15 KB of memory.
struct CallEntry {
  std::filesystem::path folder;
  std::string function, error;
};

struct Session {
  std::filesystem::path root;  // folders and their files must be inside
  bool single = false;
  std::vector<CallEntry> calls;  // processes by their first call, calls of a process by sequence number
  std::vector<std::string> notes;
  std::shared_ptr<formats::ChunkReader> chunks;  // the session's store, when there is one

  /// Reads the record of calls[i] again. Never throws: Call::error says why there is none.
  Call read(size_t i) const;
};
/// Reads all records, several at once, and keeps none. ValueError: not a folder, or nothing recorded in it.
Session open_session(const std::filesystem::path& folder);

/// Tensors of `<folder>/<stem>.{pt,safetensors,chunks}`; empty when the call has no such file. Each is compared with
/// the checksum in `details` (ValueError names changed ones). ValueError: a damaged file, a link out of the session.
std::vector<formats::StoredTensor> load_tensors(const Session& session, const std::filesystem::path& folder,
                                                const std::string& stem, const Json& details);
/// The file load_tensors would read; empty when there is none.
std::filesystem::path tensor_file(const std::filesystem::path& folder, const std::string& stem);

}  // namespace flashinfer::replay

#pragma GCC visibility pop
