// SPDX-License-Identifier: Apache-2.0
// Reader of GGUF model files, versions 2 and 3, little-endian. The file is mapped; every length is checked against it
// before use.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <flashinfer/flashinfer.h>

namespace llm {

/// An error of the user; what() is one line that names the file or the option.
struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Storage types by their number in the file; only those that dequantize() supports have a name here.
enum class GgmlType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ6_K = 14,
  kBF16 = 30
};

/// Elements and bytes of one block; {0, 0, "type 17"} for types without a decoder.
struct BlockSize {
  int64_t elements;
  int64_t bytes;
  std::string name;
};
BlockSize block_size(GgmlType type);

struct GgufTensor {
  std::string name;
  std::vector<int64_t> dims;  // fastest first, as the file has them: a linear layer is {inputs, outputs}
  GgmlType type;
  const std::byte* data;  // in the mapping
  int64_t row_bytes;      // of dims[0] elements
};

/// Rows first, first + 1, ... of a matrix (a vector is one row) as bf16 into `out`, [rows, dims[0]], rows contiguous.
void dequantize(const GgufTensor& t, int64_t first, const flashinfer::TensorView& out);

struct GgufArray;
using GgufValue = std::variant<int64_t, uint64_t, double, bool, std::string_view, std::shared_ptr<GgufArray>>;
struct GgufArray {
  std::vector<GgufValue> items;
};

class Gguf {
 public:
  /// UserError: cannot open, not a GGUF file, another version, truncated, a tensor beyond the end of the file.
  explicit Gguf(const std::string& path);

  const std::string& path() const { return path_; }
  bool has(std::string_view key) const { return metadata_.find(key) != metadata_.end(); }
  /// UserError when the key is missing or has another type.
  int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  std::string_view text(std::string_view key) const;
  const std::vector<GgufValue>& array(std::string_view key) const;
  int64_t integer_or(std::string_view key, int64_t otherwise) const { return has(key) ? integer(key) : otherwise; }
  double number_or(std::string_view key, double otherwise) const { return has(key) ? number(key) : otherwise; }
  bool flag_or(std::string_view key, bool otherwise) const;
  std::string_view text_or(std::string_view key, std::string_view otherwise) const {
    return has(key) ? text(key) : otherwise;
  }

  bool has_tensor(std::string_view name) const { return tensors_.find(name) != tensors_.end(); }
  /// UserError when it is missing, has other extents (`dims`, fastest first) or a type that dequantize() does not
  /// support.
  const GgufTensor& tensor(std::string_view name, std::span<const int64_t> dims) const;
  const GgufTensor& tensor(std::string_view name, std::initializer_list<int64_t> dims) const {
    return tensor(name, std::span<const int64_t>(dims.begin(), dims.size()));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const;
  const GgufValue& value(std::string_view key, const char* wanted) const;

  std::string path_;
  std::shared_ptr<const std::byte> mapping_;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::map<std::string, GgufTensor, std::less<>> tensors_;
};

}  // namespace llm
