// SPDX-License-Identifier: Apache-2.0
// From values to what a recording holds of them: tensors under keys, JSON for the rest.
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

/// A tensor somewhere in the arguments or results.
struct Leaf {
  std::string key;
  op::TensorValue tensor;
  const char* role = nullptr;   // "in", "out", ...; null for a callable that has no schema
  bool described_only = false;  // a workspace
  bool names_pages = false;     // an index array whose values are pages
  std::string same_as;          // the key of a result that is this very view
  std::vector<int64_t> pages;   // used pages, rising; empty: the whole tensor is stored
  Tensor used;                  // [pages, ...], a compact copy
  bool stored() const { return !described_only && same_as.empty(); }
  int64_t bytes() const;  // of what is stored
  Tensor host;            // of device memory: a copy that the host can read
  const TensorView& content() const { return host.defined() ? host.view() : pages.empty() ? tensor.view : used.view(); }
};

/// What one side of a call (its inputs or its outputs) is made of.
struct Side {
  std::vector<Leaf> leaves;
  Json metadata = Json::object();

  uint64_t bytes() const;  // of what is stored
  /// An argument or tuple element: a tensor becomes a leaf and has no metadata, anything else is encoded.
  void add(const std::string& key, const op::Value& v, const char* role, std::string_view name = {});
  /// What a call returned: result, or result_<i>.
  void add_result(const op::Value& result);
};

/// Members of an object's state, as `prefix`<member>.
void add_state(Side& side, const op::StateType& type, const void* state, const std::string& prefix);

/// The encoding of recorder.md 3.3; tensors inside become leaves of `side`.
Json encode(Side& side, const std::string& key, const op::Value& v, const char* role, int depth = 0);

/// True for the tuples that are the parts of one object (format.h), not several results.
bool stands_for_object(const op::TupleValue& t);

/// "in", "inout", ...
const char* role_name(op::Role r);

/// Finds the pages that the call names (integer tensors called indices, kv_indices, page_table, ...) and marks paged
/// pools to be cut down to them. A pool stays whole when no array names pages or when nearly all are named.
void find_used_pages(Side& side);
/// Gives `outputs`' pools the pages that the inputs of the same argument have.
void copy_used_pages(Side& outputs, const Side& inputs, std::string_view prefix);
/// Copies the marked pages; after the limits have let the call pass.
void gather_used_pages(Side& side);

/// Copies what is stored and lies on a GPU to the host, in the order of the call's stream. RuntimeError while that is
/// being captured.
void bring_to_host(Side& side);

/// Tensors to be written, with the page lists; the pointers of `side` stay in use.
std::vector<formats::NamedTensor> stored_tensors(const Side& side, std::vector<Tensor>& keep);
/// Bytes at which a leaf's content is cut into chunks (pages for pools), one per entry of stored_tensors().
std::vector<int64_t> chunk_sizes(const Side& side);

/// Groups of leaves whose memory overlaps.
class StorageNumbers {
 public:
  void add(const Side& side);
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

/// tensor_details of a leaf. `checksum` empty: nothing is stored.
Json details(const Leaf& leaf, const StorageNumbers& storages, const std::string& checksum);

}  // namespace flashinfer::record
