// SPDX-License-Identifier: Apache-2.0
// Converts values to their recorded form: tensors under keys, JSON for the rest.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "flashinfer/formats/json.h"
#include "flashinfer/formats/layout.h"
#include "flashinfer/op/observer.h"
#include "flashinfer/record/record.h"

namespace flashinfer::record {

using formats::Json;

/// A tensor anywhere in the arguments or results.
struct RecordedTensor {
  std::string key;
  op::TensorValue tensor;
  const char* role = nullptr;   // "in", "out", ...; null for a callable that has no schema
  bool described_only = false;  // a workspace
  bool page_ids = false;        // an index array whose values are pages (op::page_ids)
  std::string same_as;          // the key of an identical view among the results
  std::vector<int64_t> pages;   // used pages, ascending; empty: the whole tensor is stored
  Tensor used;                  // [pages, ...], a compact copy
  bool stored() const { return !described_only && same_as.empty(); }
  int64_t bytes() const;  // of what is stored
  Tensor host;            // of device memory: a host copy
  const TensorView& content() const { return host.defined() ? host.view() : pages.empty() ? tensor.view : used.view(); }
};

/// The recorded values of one side of a call, its inputs or its outputs.
struct CallValues {
  std::vector<RecordedTensor> tensors;
  Json metadata = Json::object();

  uint64_t bytes() const;  // of what is stored
  /// An argument or tuple element: a tensor is added to `tensors` and has no metadata, anything else is encoded.
  void add(const std::string& key, const op::Value& v, const char* role, bool page_ids = false);
  /// The return value: result, or result_<i>.
  void add_result(const op::Value& result);
};

/// Members of an object's state, as `prefix`<member>.
void add_state(CallValues& recorded, const op::StateType& type, const void* state, const std::string& prefix);

/// Encodes a value as JSON: numbers, strings, None and bools directly, other types as objects with "type" (format.h).
/// Tensors inside are added to `recorded`.
Json encode(CallValues& recorded, const std::string& key, const op::Value& v, const char* role, int depth = 0);

/// True for the tuples that are the parts of one object (format.h), not several results.
bool stands_for_object(const op::TupleValue& t);

/// "in", "inout", ...
const char* role_name(op::Role r);

/// Finds the pages that the call uses (integer tensors with op::page_ids) and marks paged
/// pools to be cut down to them. A pool is stored whole when no array names pages or when nearly all are used.
void find_used_pages(CallValues& recorded);
/// Gives pools of `outputs` the used pages of the same argument's inputs.
void copy_used_pages(CallValues& outputs, const CallValues& inputs, std::string_view prefix);
/// Copies the marked pages; called after the limits have admitted the call.
void gather_used_pages(CallValues& recorded);

/// Copies stored device memory to the host, in the order of the call's stream. RuntimeError while that stream is being
/// captured.
void bring_to_host(CallValues& recorded);

/// The tensors to write, with the page lists; they point into `recorded`.
std::vector<formats::NamedTensor> stored_tensors(const CallValues& recorded, std::vector<Tensor>& keep);
/// Chunk sizes of the tensors' content in bytes (pages for pools), one per entry of stored_tensors().
std::vector<int64_t> chunk_sizes(const CallValues& recorded);

/// Groups of tensors whose memory overlaps.
class StorageNumbers {
 public:
  void add(const CallValues& recorded);
  struct Place {
    int id;
    int64_t byte_offset;
  };
  Place find(const TensorView& v) const;

 private:
  struct Range {
    uintptr_t begin, end;
  };
  std::vector<Range> ranges_;
};

/// tensor_details of a tensor. `checksum` empty: nothing is stored.
Json details(const RecordedTensor& tensor, const StorageNumbers& storages, const std::string& checksum);

}  // namespace flashinfer::record
