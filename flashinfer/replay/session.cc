// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/replay/session.h"

#include <algorithm>
#include <map>
#include <set>

#include "flashinfer/core/check.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/jobs.h"
#include "flashinfer/formats/chunks.h"
#include "flashinfer/record/format.h"

namespace flashinfer::replay {
namespace {

namespace stdfs = std::filesystem;

constexpr size_t kFewCalls = 64;  // read without threads

/// ValueError when `path`, links resolved, is outside `root`.
void stay_inside(const stdfs::path& root, const stdfs::path& path) {
  const stdfs::path base = stdfs::weakly_canonical(root), real = stdfs::weakly_canonical(path);
  const auto [end, at] = std::mismatch(base.begin(), base.end(), real.begin(), real.end());
  FI_CHECK(end == base.end(), ValueError, path.string(), " leads out of ", root.string());
}

Call read_call(const stdfs::path& root, const stdfs::path& folder) {
  Call call;
  call.folder = folder;
  try {
    const stdfs::path file = folder / record::kMetadataFile;
    stay_inside(root, file);
    const auto text = fs::read_file(file.string());
    FI_CHECK(text.has_value(), ValueError, "cannot read ", file.filename().string());
    call.record = last_record(*text, &call.notes);
  } catch (const Error& e) {
    call.error = e.message();
  } catch (const std::exception& e) {
    call.error = e.what();
  }
  return call;
}

/// A call's place among the others.
struct Place {
  std::string process;  // "<host>:<pid>": sequence numbers and object ids are per process
  int64_t sequence = 0;
  std::string began;
  CallEntry entry;
};

Place place_of(const Call& c) {
  return {string_of(c.record, record::kHost) + ":" + std::to_string(integer_of(c.record, record::kProcessId)),
          integer_of(c.record, record::kSequence),
          string_of(c.record, record::kTimestamp, c.folder.filename().string()),
          {c.folder, c.function(), c.error}};
}

void sort_places(std::vector<Place>& places) {
  std::map<std::string, std::string> first;  // process -> time of its first call
  for (const Place& p : places) {
    const auto [it, fresh] = first.emplace(p.process, p.began);
    if (!fresh) it->second = std::min(it->second, p.began);
  }
  std::ranges::sort(places, [&](const Place& a, const Place& b) {
    return std::tie(first[a.process], a.process, a.sequence, a.began, a.entry.folder) <
           std::tie(first[b.process], b.process, b.sequence, b.began, b.entry.folder);
  });
}

/// A process that is killed between making a call's folder and writing its first record leaves an empty file: nothing
/// of the call was recorded, and nothing can be replayed.
bool never_recorded(const stdfs::path& metadata) {
  std::error_code unreadable;
  return stdfs::is_regular_file(metadata, unreadable) && stdfs::file_size(metadata, unreadable) == 0 && !unreadable;
}

/// Calls that session.jsonl lists but that have no folder. A ring of the last calls removes the oldest folders before
/// their lines, so lines older than all remaining folders give one note, not one each.
void note_missing(Session* s, const std::set<std::string>& unrecorded) {
  const auto text = fs::read_file((s->root / record::kSessionFile).string());
  if (!text) return;
  std::set<std::string> have = unrecorded;
  for (const CallEntry& c : s->calls) have.insert(c.folder.filename().string());
  std::map<std::string, std::string> missing;  // folder -> function
  size_t torn = 0;
  for (size_t at = 0; at < text->size();) {
    const size_t end = std::min(text->find('\n', at), text->size());
    const std::string_view line = std::string_view(*text).substr(at, end - at);
    at = end + 1;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    try {
      const Json j = formats::parse_json(line);
      const stdfs::path where =
          string_of(j, record::kBaseDumpDir, string_of(j, record::kDumpDir));  // of a snapshot: its call's
      const std::string folder = where.filename().string();
      if (!folder.empty() && !have.contains(folder)) missing[folder] = string_of(j, record::kFunctionName);
    } catch (const Error&) {
      ++torn;
    }
  }
  if (torn > 0)
    s->notes.push_back(str(record::kSessionFile, ": ", torn, " torn line", torn > 1 ? "s" : "", " left out"));
  size_t older = 0;  // names begin with the time
  for (const auto& [folder, function] : missing) {
    if (have.empty() || folder < *have.begin())
      ++older;
    else
      s->notes.push_back(str(record::kSessionFile, " lists ", function, " (", folder, "), whose folder is gone"));
  }
  if (older > 0) s->notes.push_back(str(record::kSessionFile, " lists ", older, " older calls whose folders are gone"));
}

void verify(const stdfs::path& file, const std::vector<formats::StoredTensor>& tensors, const Json& details) {
  std::string changed;
  for (const auto& t : tensors) {
    const std::string want = string_of(object_of(details, t.key.c_str()), record::kChecksum);
    if (want.empty() || want == formats::checksum_text(formats::checksum(t.tensor.view()))) continue;
    changed += (changed.empty() ? "" : ", ") + t.key;
  }
  FI_CHECK(changed.empty(), ValueError, file.filename().string(), ": the checksum of ", changed,
           " is not the recorded one: ", "the values were changed");
}

}  // namespace

std::string string_of(const Json& j, const char* key, const std::string& otherwise) {
  const auto it = j.is_object() ? j.find(key) : j.end();
  return it != j.end() && it->is_string() ? it->get<std::string>() : otherwise;
}

int64_t integer_of(const Json& j, const char* key, int64_t otherwise) {
  const auto it = j.is_object() ? j.find(key) : j.end();
  return it != j.end() && it->is_number_integer() ? it->get<int64_t>() : otherwise;
}

const Json& object_of(const Json& j, const char* key) {
  static const Json empty = Json::object();
  const auto it = j.is_object() ? j.find(key) : j.end();
  return it != j.end() && it->is_object() ? *it : empty;
}

Json last_record(std::string_view text, std::vector<std::string>* notes) {
  size_t torn = 0;
  for (size_t end = text.size(); end > 0;) {
    const size_t newline = text.substr(0, end).rfind('\n');
    const size_t begin = newline == text.npos ? 0 : newline + 1;
    const std::string_view line = text.substr(begin, end - begin);
    end = newline == text.npos ? 0 : newline;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    try {
      Json j = formats::parse_json(line);
      FI_CHECK(j.is_object(), ValueError, "no object");
      if (torn > 0 && notes)
        notes->push_back(str(record::kMetadataFile, ": ", torn, " torn line", torn > 1 ? "s" : "",
                             " left out, the one before is used"));
      return j;
    } catch (const Error&) {
      ++torn;
    }
  }
  throw ValueError(str(record::kMetadataFile, torn > 0 ? " holds no whole line" : " is empty"));
}

Session open_session(const stdfs::path& folder) {
  FI_CHECK(fs::is_dir(folder.string()), ValueError, "Directory not found: ", folder.string());
  Session s;
  s.root = folder;
  s.single = fs::is_file((folder / record::kMetadataFile).string());
  stdfs::path session = stdfs::weakly_canonical(s.single ? folder / ".." : folder);
  if (s.single && session.filename() == record::kFlushesFolder) session = session.parent_path().parent_path();
  const stdfs::path store = session / record::kChunkFolder;
  if (fs::is_dir(store.string())) {
    stay_inside(store.parent_path(), store);
    s.chunks = std::make_shared<formats::ChunkReader>(store);
    s.notes = s.chunks->problems();
  }
  std::set<std::string> unrecorded;
  std::vector<Place> places;
  const auto add = [&](const stdfs::path& call) {
    if (!never_recorded(call / record::kMetadataFile)) return void(places.push_back({.entry = {call, {}, {}}}));
    const std::string name = call.filename().string();
    unrecorded.insert(name);
    s.notes.push_back(str(name, ": the process ended before the call's first record; nothing of it was recorded"));
  };
  if (s.single) add(folder);
  const std::vector<std::string> entries = s.single ? std::vector<std::string>() : fs::list_dir(folder.string());
  for (const std::string& entry : entries)
    if (fs::is_file((folder / entry / record::kMetadataFile).string())) add(folder / entry);
  const int jobs = places.size() < kFewCalls ? 1 : 0;
  for_each_job(static_cast<int64_t>(places.size()), jobs, [&](int64_t i) {
    Place& p = places[static_cast<size_t>(i)];
    p = place_of(read_call(folder, p.entry.folder));
  });
  sort_places(places);
  for (Place& p : places) s.calls.push_back(std::move(p.entry));
  if (s.single) return s;
  note_missing(&s, unrecorded);
  FI_CHECK(!s.calls.empty() || !s.notes.empty(), ValueError, "nothing is recorded in ", folder.string());
  return s;
}

Call Session::read(size_t i) const { return read_call(root, calls.at(i).folder); }

stdfs::path tensor_file(const stdfs::path& folder, const std::string& stem) {
  for (const char* ending : {".pt", ".safetensors", formats::kChunksEnding})
    if (fs::is_file((folder / (stem + ending)).string())) return folder / (stem + ending);
  return {};
}

std::vector<formats::StoredTensor> load_tensors(const Session& session, const stdfs::path& folder,
                                                const std::string& stem, const Json& details) {
  const stdfs::path file = tensor_file(folder, stem);
  if (file.empty()) return {};
  stay_inside(session.root, file);
  if (file.extension() != formats::kChunksEnding && file.extension() != ".safetensors") {
    // The recorded checksums identify a changed tensor; without them the archive's own checksums are used.
    auto tensors = formats::read_pt(file, false);
    const bool known = std::ranges::all_of(
        tensors, [&](const auto& t) { return object_of(details, t.key.c_str()).contains(record::kChecksum); });
    if (!known) tensors = formats::read_pt(file, true);
    verify(file, tensors, details);
    return tensors;
  }
  std::vector<formats::StoredTensor> tensors;
  if (file.extension() == formats::kChunksEnding) {
    FI_CHECK(session.chunks, ValueError, file.filename().string(), " names chunks, but there is no folder ",
             record::kChunkFolder);
    tensors = session.chunks->read(file);
  } else {
    tensors = formats::read_safetensors(file);
  }
  verify(file, tensors, details);
  return tensors;
}

}  // namespace flashinfer::replay
