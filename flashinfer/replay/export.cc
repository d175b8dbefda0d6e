// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "flashinfer/core/check.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/formats/chunks.h"
#include "flashinfer/record/format.h"
#include "flashinfer/replay/replay.h"
#include "flashinfer/replay/session.h"

namespace flashinfer::replay {
namespace {

namespace stdfs = std::filesystem;

/// The lines of a metadata file with their new format; torn lines are dropped.
std::string plain_lines(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    try {
      Json j = formats::parse_json(std::string_view(text).substr(at, end - at));
      if (string_of(j, record::kTensorFormat) == record::kFormatChunks) j[record::kTensorFormat] = record::kFormatTorch;
      out += formats::dump_json(j) + "\n";
    } catch (const Error&) {
    }
    at = end + 1;
  }
  return out;
}

void export_lines(const stdfs::path& from, const stdfs::path& to) {
  if (const auto text = fs::read_file(from.string())) fs::write_atomic(to.string(), plain_lines(*text));
}

void export_tensors(const Session& session, const Call& call, const stdfs::path& to, const std::string& stem) {
  const stdfs::path file = tensor_file(call.folder, stem);
  if (file.empty()) return;
  const auto stored = load_tensors(session, call.folder, stem, object_of(call.record, record::kTensorDetails));
  std::vector<formats::NamedTensor> tensors;
  for (const auto& t : stored) tensors.push_back({t.key, t.tensor.view(), t.requires_grad});
  if (file.extension() == ".safetensors")
    formats::write_safetensors(to / (stem + ".safetensors"), tensors);
  else
    formats::write_pt(to / (stem + ".pt"), tensors);
}

}  // namespace

std::vector<std::string> export_session(const stdfs::path& from, const stdfs::path& to,
                                        const std::function<void(size_t done, size_t total)>& on_call) {
  const Session session = open_session(from);
  FI_CHECK(!stdfs::exists(to), ValueError, to.string(), " exists; export writes a new folder");
  fs::make_dirs(to.string());
  std::vector<std::string> problems;
  size_t done = 0;
  for (size_t i = 0; i < session.calls.size(); ++i) {
    const Call call = session.read(i);
    const stdfs::path folder = session.single ? to : to / call.folder.filename();
    fs::make_dirs(folder.string());
    export_lines(call.folder / record::kMetadataFile, folder / record::kMetadataFile);
    for (const char* stem : {record::kInputsStem, record::kOutputsStem}) {
      try {
        export_tensors(session, call, folder, stem);
      } catch (const Error& e) {
        problems.push_back(str(call.folder.filename().string(), ": ", e.message()));
      }
    }
    if (on_call) on_call(++done, session.calls.size());
  }
  if (!session.single) export_lines(from / record::kSessionFile, to / record::kSessionFile);
  return problems;
}

}  // namespace flashinfer::replay
