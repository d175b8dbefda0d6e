// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/replay/save.h"

#include <algorithm>

#include "flashinfer/core/check.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/core/version.h"
#include "flashinfer/record/encode.h"
#include "flashinfer/record/format.h"

namespace flashinfer::replay {
namespace {

/// Of a member that the call may have written.
bool written(const std::string& role) {
  return role == record::role_name(op::Role::kOut) || role == record::role_name(op::Role::kInOut) ||
         role == record::role_name(op::Role::kPagedInOut) || role == record::role_name(op::Role::kResult);
}

void add(record::CallValues& out, const std::string& key, const Tensor& tensor, size_t results) {
  for (size_t i = 0; i < results; ++i)
    if (out.tensors[i].tensor.view.same_elements(tensor.view())) return;  // returned, too
  out.add(key, op::Value(tensor), nullptr);
}

/// Arguments that the call may have written, as they are now; of pools the recorded pages.
void add_arguments(record::CallValues& out, const Tensors& tensors, const Json& details) {
  const size_t results = out.tensors.size();
  for (const auto& [key, d] : details.items()) {
    const auto tensor = tensors.find(key);
    if (tensor == tensors.end() || !written(string_of(d, record::kRole)) || key.starts_with(record::kAfterPrefix))
      continue;
    const std::string after = record::kAfterPrefix + key;
    const auto pages = tensors.find(key + record::kPagesSuffix);
    if (pages == tensors.end()) {
      add(out, after, tensor->second, results);
      continue;
    }
    const Tensor host = host_readable(tensor->second.view()), list = host_readable(pages->second.view());
    const TensorView pool(host.data(), host.dtype(), host.shape(), host.view().strides());
    add(out, after, take_pages(pool, static_cast<int>(integer_of(d, record::kPageDim)), list.view()), 0);
    add(out, after + record::kPagesSuffix, pages->second, 0);
  }
}

}  // namespace

Saver::Saver(const std::filesystem::path& folder, const Call& call)
    : folder_(folder / call.folder.filename()), call_(call) {
  fs::make_dirs(folder_.string());
}

void Saver::write(const char* status, const Json& more) {
  Json r = Json::object();
  for (const char* key : {record::kFunctionName, record::kModule, record::kTimestamp, record::kProcessId, record::kHost,
                          record::kSequence, record::kDepth, record::kOpVersion})
    if (const auto it = call_.record.find(key); it != call_.record.end()) r[key] = *it;
  r[record::kExecutionStatus] = status;
  r[record::kGitCommit] = build::commit();
  r.update(more);
  fs::write_atomic((folder_ / record::kMetadataFile).string(), formats::dump_json(r) + "\n");
}

void Saver::started() {
  ran_ = true;
  write(record::kInputsSaved, Json::object());
}

void Saver::completed(const op::Value& result, const Inputs& inputs, const std::shared_ptr<const void>& state_before) {
  record::CallValues out;
  out.add_result(result);
  add_arguments(out, inputs.tensors, object_of(call_.record, record::kTensorDetails));
  if (inputs.self && inputs.self->state && inputs.self->state != state_before)
    record::add_state(out, *inputs.self->type, inputs.self->state.get(),
                      std::string(record::kAfterPrefix) + record::kPlanPrefix);
  if (call_.record.contains(record::kGroup))  // a replay makes a group of its own
    for (const char* member : {record::kStateGroup, record::kStateId})
      out.metadata.erase(str(record::kAfterPrefix, record::kPlanPrefix, member));
  record::bring_to_host(out);
  std::vector<Tensor> keep;
  if (const auto tensors = record::stored_tensors(out, keep); !tensors.empty())
    formats::write_pt(folder_ / (std::string(record::kOutputsStem) + ".pt"), tensors);
  write(record::kCompleted, {{record::kOutputMetadata, out.metadata}});
}

void Saver::failed(const std::string& type, const std::string& message) {
  write(record::kFailed, {{record::kError, {{record::kErrorType, type}, {record::kErrorMessage, message}}}});
}

void Saver::not_run(const std::string& outcome, const std::string& message) {
  write(kNotRun, {{record::kError, {{record::kErrorType, outcome}, {record::kErrorMessage, message}}}});
}

}  // namespace flashinfer::replay
