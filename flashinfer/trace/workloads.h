// SPDX-License-Identifier: Apache-2.0
// From a recording to a data set of flashinfer-bench: strict definitions, the calls' extents as workloads, and the
// content of index arrays.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "flashinfer/trace/definition.h"

#pragma GCC visibility push(default)

namespace flashinfer::trace {

struct DataSet {
  int definitions = 0, workloads = 0;
  int calls = 0;                   // of the recording
  std::vector<std::string> notes;  // calls that are in no workload, and why
};

/// Writes `out`/definitions/<op_type>/<name>.json, `out`/workloads/<op_type>/<name>.jsonl with one line for each
/// definition and set of variable extents, and `out`/blob/workloads/<op_type>/<name>/*.safetensors with the integer
/// arrays of these calls, or with all their tensors if `dense`. Files of the same names are replaced.
/// ValueError: `recording` is none.
DataSet write_workloads(const std::filesystem::path& recording, const std::filesystem::path& out, bool dense = false);

/// A call's strict definition and its workload {"uuid", "axes", "inputs"} with all tensors random; both empty, and
/// `why` set, when it has no valid one.
struct Described {
  Json definition, workload;
  std::string why;
};
Described describe(const op::Op& op, const void* block);

}  // namespace flashinfer::trace

#pragma GCC visibility pop
