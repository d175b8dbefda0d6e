// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ffi/describe.h"

#include "flashinfer/formats/json.h"
#include "flashinfer/op/backend.h"
#include "flashinfer/op/glossary.h"
#include "flashinfer/op/registry.h"

namespace flashinfer::ffi {
namespace {

using formats::Json;

const char* text(op::Role r) {
  switch (r) {
    case op::Role::kIn: return "in";
    case op::Role::kInOut: return "inout";
    case op::Role::kOut: return "out";
    case op::Role::kResult: return "result";
    case op::Role::kAttr: return "attr";
    case op::Role::kScratch: return "scratch";
    case op::Role::kPaged: return "paged";
    case op::Role::kPagedInOut: return "paged_inout";
    case op::Role::kSelf: return "self";
  }
  return "";
}

Json dtypes_of(DTypeSet set) {
  Json out = Json::array();
  for (int i = 0; i < kNumDTypes; ++i)
    if (set.has(static_cast<DType>(i))) out.push_back(std::string(name(static_cast<DType>(i))));
  return out;
}

Json split(std::string_view text) {
  Json out = Json::array();
  for (size_t bar = 0; bar != std::string_view::npos; text.remove_prefix(bar == std::string_view::npos ? 0 : bar + 1)) {
    bar = text.find('|');
    out.push_back(std::string(text.substr(0, bar)));
  }
  return out;
}

Json describe(const op::Op& op, const op::Field& f) {
  Json j = {{"name", f.name}, {"role", text(f.role)}, {"type", f.type}};
  auto text_if = [&](const char* key, const char* value) {
    if (value) j[key] = value;
  };
  auto flag_if = [&](const char* key, bool value) {
    if (value) j[key] = true;
  };
  flag_if("optional", f.optional);
  flag_if("required", !op::has_default(op, f));
  if (op::has_default(op, f)) j["default"] = op::default_text(op, f);
  if (f.dims.count >= 0) j["dims"] = f.dims.text;
  if (f.dtypes.bits) j["dtypes"] = dtypes_of(f.dtypes);
  text_if("same_as", f.same_as);
  text_if("dtype_from", f.dtype_from);
  text_if("may_alias", f.may_alias);
  if (f.choices) j["choices"] = split(f.choices);
  if (f.backends) {
    j["backends"] = Json::object();
    for (const op::BackendName& b : op::backend_names(op, f))
      j["backends"][std::string(b.name)] = b.place == op::Place::kAnywhere ? ""
                                           : b.place == op::Place::kGpu    ? "cuda"
                                                                           : "cpu";
  }
  text_if("enumeration", f.enumeration);
  text_if("structure", f.structure);
  text_if("doc", op::meaning(op, f));
  flag_if("keyword_only", f.keyword_only);
  flag_if("was_positional", f.was_positional);
  flag_if("varargs", f.varargs);
  flag_if("not_returned", f.not_returned);
  flag_if("internal", f.internal);
  flag_if("as_numbers", f.as_numbers);
  flag_if("unstacked", f.unstacked);
  flag_if("tuple_with_previous", f.tuple_with_previous);
  flag_if("conditional", f.when != nullptr);
  return j;
}

}  // namespace

std::string describe_ops() {
  Json out = Json::array();
  for (const op::Op* op : op::all_ops()) {
    Json j = {{"name", op->name}, {"module", op->module}, {"doc", op->doc}, {"version", op->version}};
    if (op->alias) j["alias"] = op->alias;
    if (op->state) j["aliases"] = op->state->aliases;
    j["candidates"] = Json::array();
    for (const op::Candidate& c : op->candidates) j["candidates"].push_back(c.name);
    j["fields"] = Json::array();
    for (const op::Field& f : op->fields) j["fields"].push_back(describe(*op, f));
    out.push_back(std::move(j));
  }
  return out.dump();
}

}  // namespace flashinfer::ffi
