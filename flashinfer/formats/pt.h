// SPDX-License-Identifier: Apache-2.0
// Files of tensors: .pt, compatible with torch.save and torch.load (also weights_only=True), and .safetensors. Readers
// map the file: a tensor is a copy-on-write view of it and keeps the mapping alive.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "flashinfer/formats/layout.h"
#include "flashinfer/formats/pickle.h"

#pragma GCC visibility push(default)

namespace flashinfer::formats {

struct WriteReport {
  uint64_t file_bytes = 0;
  uint64_t tensor_bytes = 0;        // of storages: a shared one is included once
  std::vector<uint64_t> checksums;  // one per tensor, see checksum()
  std::vector<uint8_t> gathered;    // one per tensor: 1 when its strides were not kept
};

/// XXH3-64 of the elements in row-major order: the same in every format and layout.
uint64_t checksum(const TensorView& view);
/// "xxh3:0123456789abcdef", the form in metadata.
std::string checksum_text(uint64_t checksum);

/// Writes host tensors as one dict in one pass over memory: `<file>.tmp` with mode 0600, then a rename. A failure
/// leaves no file. RuntimeError: the system's error text; ValueError: device memory.
void write_pt(const std::filesystem::path& file, std::span<const NamedTensor> tensors, WriteReport* report = nullptr);
/// The same for safetensors: every tensor compact, aliasing is lost. FP4 pairs are written as F4 with the last extent
/// doubled.
void write_safetensors(const std::filesystem::path& file, std::span<const NamedTensor> tensors,
                       WriteReport* report = nullptr);

struct StoredTensor {
  std::string key;
  Tensor tensor;
  bool requires_grad = false;
};

/// Any value of a .pt file. `verify` compares the CRC32 of every entry read. ValueError: not such a file, damaged, or a
/// global or an element type that is not supported.
Object load_pt(const std::filesystem::path& file, bool verify = true);
/// A .pt file that is a dict of tensors, in its order. ValueError when it holds anything else.
std::vector<StoredTensor> read_pt(const std::filesystem::path& file, bool verify = true);
std::vector<StoredTensor> read_safetensors(const std::filesystem::path& file);
/// Reads either format, by the file name's suffix.
std::vector<StoredTensor> read_tensors(const std::filesystem::path& file, bool verify = true);

/// The same from memory that `owner` keeps alive and that tensors may write to.
Object load_pt(std::span<uint8_t> archive, std::shared_ptr<void> owner, bool verify);
std::vector<StoredTensor> read_safetensors(std::span<uint8_t> file, const std::shared_ptr<void>& owner);

}  // namespace flashinfer::formats

#pragma GCC visibility pop
