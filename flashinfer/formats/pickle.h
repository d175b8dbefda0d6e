// SPDX-License-Identifier: Apache-2.0
// Pickle as torch.save writes it. Reading only builds values: a global outside a short list of tensor constructors,
// storage classes, dtypes and containers is an error, and no name is ever looked up or called.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "flashinfer/formats/file.h"
#include "flashinfer/formats/layout.h"

#pragma GCC visibility push(default)

namespace flashinfer::formats {

/// A Python value that torch.save can store: numbers, strings, containers, dtypes, devices, tensors.
struct Object {
  enum class Kind : uint8_t {
    kNone,
    kBool,
    kInt,
    kFloat,
    kString,
    kBytes,
    kList,
    kTuple,
    kDict,
    kTensor,
    kDType,
    kDevice
  };
  Kind kind = Kind::kNone;
  bool requires_grad = false;  // of a tensor
  int64_t integer = 0;         // bool and int
  double number = 0;           // float
  std::string text;            // string, bytes, device
  std::vector<Object> items;   // list and tuple; of a dict key, value, key, value, ...
  Tensor tensor;
  DType dtype = DType::kF32;  // of kDType
};

/// The memory of one storage; `owner` keeps it alive.
struct StorageMemory {
  void* data = nullptr;
  uint64_t bytes = 0;
  std::shared_ptr<void> owner;
};
/// Finds the storage that a pickle names ("0", "1", ...); throws when there is none.
using StorageSource = std::function<StorageMemory(const std::string& key)>;

/// ValueError with the byte offset when the pickle is truncated, nests deeper than 100, repeats shared parts beyond 1
/// million values, names a global outside the list or a tensor outside its storage.
Object unpickle(Bytes pickle, const StorageSource& storages);

/// The pickle of {key: tensor, ...} as torch.save writes it (protocol 2), byte for byte. Storage i is named by its
/// number.
std::string pickle_tensors(std::span<const NamedTensor> tensors, const StoragePlan& plan);

}  // namespace flashinfer::formats

#pragma GCC visibility pop
