// SPDX-License-Identifier: Apache-2.0
// The bytes of memory that a set of tensors needs in a file: views of one buffer share one storage, a small view of a
// large buffer stores only its own elements.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer::formats {

struct NamedTensor {
  std::string key;
  TensorView view;
  bool requires_grad = false;
};

/// A run of bytes stored once: the memory [data, data + bytes) or, when `gather` is set, the elements of `view` in
/// row-major order.
struct Storage {
  const uint8_t* data = nullptr;
  int64_t bytes = 0;
  bool gather = false;
  TensorView view;  // with gather
  DType dtype = DType::kU8;
  bool mixed = false;  // shared by tensors of several element types
};

/// Position of a tensor in its storage, in elements of its own type.
struct Placement {
  int storage = 0;
  int64_t offset = 0;
  std::vector<int64_t> strides;
};

struct StoragePlan {
  std::vector<Storage> storages;      // in order of the first tensor that uses them
  std::vector<Placement> placements;  // one per tensor
};

/// Tensors whose memory intersects share a storage (with their true strides and offsets) when the memory they span
/// together is no larger than their elements; so dense, transposed, expanded and overlapping views keep their layout,
/// and q, k and v cut from one buffer stay views of one buffer. Views with gaps are gathered into compact rows.
/// ValueError: memory that the host cannot read.
StoragePlan plan_storages(std::span<const NamedTensor> tensors);

/// Calls `sink` with the storage's bytes in order, in pieces of at most 256 KB, which fit the second-level cache.
/// Copies only elements that must be gathered.
using ByteSink = std::function<void(const uint8_t* data, size_t bytes)>;
void stream(const Storage& storage, const ByteSink& sink);
/// The elements of `view` in row-major order.
void stream(const TensorView& view, const ByteSink& sink);

}  // namespace flashinfer::formats

#pragma GCC visibility pop
