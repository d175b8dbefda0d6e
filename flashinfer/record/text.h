// SPDX-License-Identifier: Apache-2.0
// The text of the log at level 3 and above, byte for byte as FlashInfer's Python library prints it.
#pragma once
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "flashinfer/op/observer.h"

namespace flashinfer::record {

/// Appends `v` at `indent` pairs of blanks, without a line end. `statistics`: with min, max, mean and counts of
/// tensors.
void append_value(std::string& out, const op::Value& v, int indent, bool statistics);
/// The record before a call: name, arguments, defaults.
void append_before(std::string& out, std::string_view name, std::span<const op::Arg> args, bool statistics);
/// The record after a call that returned.
void append_after(std::string& out, const op::Value& result, bool statistics);

/// Shape and dtype of a tensor as its caller sees it, also for element types that this library does not support.
class Extents {
 public:
  explicit Extents(const op::TensorValue& t);
  std::span<const int64_t> shape() const { return {shape_.data(), rank_}; }
  std::span<const int64_t> strides() const { return {strides_.data(), rank_}; }
  std::string_view dtype;  // "bfloat16"

 private:
  size_t rank_;
  std::array<int64_t, TensorView::kMaxRank> shape_, strides_;
};

void append_integer(std::string& out, int64_t v);
/// As printf's %.6f.
void append_fixed6(std::string& out, double v);
/// str() of an object of ours or of another library: "<flashinfer.Class object at 0x...>".
std::string object_text(const op::ObjectValue& o);

}  // namespace flashinfer::record
