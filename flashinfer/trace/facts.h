// SPDX-License-Identifier: Apache-2.0
// What a definition needs to know of a call: shapes and element types of its arguments, and plain values. No content.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flashinfer/formats/json.h"
#include "flashinfer/op/op.h"

#pragma GCC visibility push(default)

namespace flashinfer::trace {

using formats::Json;

struct Fact {
  enum Kind : uint8_t { kNone, kTensor, kNumber, kText, kDType, kSequence } kind = kNone;
  std::vector<int64_t> shape;  // kTensor
  std::string text;            // the element type of a tensor; a dtype's name; text
  double number = 0;           // kNumber; True is 1
  std::vector<Fact> items;     // kSequence

  bool is_tensor() const { return kind == kTensor; }
  /// The number as an integer, if it is one.
  std::optional<int64_t> integer() const;
  /// As Python's str() shows it: what `when` of an entry compares with.
  std::string str() const;
};

/// Arguments by name. Members of the receiver's state have "self." in front of their names.
using Facts = std::map<std::string, Fact, std::less<>>;

Fact fact_of(const op::Value& v);
/// All members of a block of `op` and of the receiver's state.
Facts facts_of(const op::Op& op, const void* block);
void add_state(Facts& facts, const op::Object& self);
/// {"name": {"shape": [2, 3], "dtype": "bfloat16"} | {"items": [...]} | {"dtype": "float16"} | number | text | null}:
/// how other languages pass facts. ValueError: anything else.
Facts facts_from_json(const Json& j);

/// The fact of that name; null when there is none or it is None.
const Fact* find(const Facts& facts, std::string_view name);

}  // namespace flashinfer::trace

#pragma GCC visibility pop
