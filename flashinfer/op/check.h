// SPDX-License-Identifier: Apache-2.0
// Schema checks of a block: rank, extents, element types, layout, aliasing. Internal to op/.
#pragma once
#include <string_view>

#include "flashinfer/op/op.h"

namespace flashinfer::op {

/// Values of the symbols in a call, with where each came from (for messages).
class Bindings {
 public:
  struct Entry {
    std::string_view symbol;
    int64_t value;
    const Field* field;
    int dim;  // of the tensor; -1: an attribute
  };
  const Entry* find(std::string_view symbol) const {
    for (int i = 0; i < count_; ++i)
      if (entry_[i].symbol == symbol) return &entry_[i];
    return nullptr;
  }
  void bind(std::string_view symbol, int64_t value, const Field* f, int dim);
  /// The extents in place of "...".
  const Field* lead_field = nullptr;
  Shape lead;

 private:
  Entry entry_[24];
  int count_ = 0;
};

/// Throws ValueError, KeyError or NotImplementedError; fills `b` from the inputs and checks outputs that are given.
void check(const Op& op, const void* block, Bindings& b);
/// The same without the check whether outputs share memory with other arguments (for tensors without memory).
void check_fields(const Op& op, const void* block, Bindings& b);
/// Shape and dtype of an output that is absent.
Shape output_shape(const Op& op, const Field& f, const void* block, const Bindings& b);
DType output_dtype(const Op& op, const Field& f, const void* block);

}  // namespace flashinfer::op
