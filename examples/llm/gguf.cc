// SPDX-License-Identifier: Apache-2.0
#include "gguf.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>

namespace llm {
namespace {

enum ValueType : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };

/// A position in the mapped file; every read is checked against its end.
class Cursor {
 public:
  Cursor(const std::byte* data, size_t size, const std::string& path) : data_(data), size_(size), path_(path) {}

  template <class T>
  T read() {
    T v;
    std::memcpy(&v, take(sizeof(T)), sizeof(T));
    return v;
  }
  std::string_view text() {
    const uint64_t n = read<uint64_t>();
    return {reinterpret_cast<const char*>(take(n)), static_cast<size_t>(n)};
  }
  /// Throws for a count of items that could not fit into the rest of the file (each takes `least` bytes).
  uint64_t count(uint64_t least, const char* what) {
    const uint64_t n = read<uint64_t>();
    if (n > (size_ - at_) / least)
      fail(std::string("claims ") + std::to_string(n) + " " + what + ", more than it has bytes for");
    return n;
  }
  GgufValue value(uint32_t type, int depth = 0) {
    switch (type) {
      case kU8: return uint64_t{read<uint8_t>()};
      case kI8: return int64_t{read<int8_t>()};
      case kU16: return uint64_t{read<uint16_t>()};
      case kI16: return int64_t{read<int16_t>()};
      case kU32: return uint64_t{read<uint32_t>()};
      case kI32: return int64_t{read<int32_t>()};
      case kU64: return uint64_t{read<uint64_t>()};
      case kI64: return int64_t{read<int64_t>()};
      case kF32: return double{read<float>()};
      case kF64: return read<double>();
      case kBool: return read<uint8_t>() != 0;
      case kString: return text();
      case kArray: {
        if (depth > 2) fail("has arrays nested deeper than 3");
        const uint32_t element = read<uint32_t>();
        const uint64_t n = count(element == kString ? 8 : 1, "array elements");
        auto array = std::make_shared<GgufArray>();
        array->items.reserve(n);
        for (uint64_t i = 0; i < n; ++i) array->items.push_back(value(element, depth + 1));
        return array;
      }
      default: fail("has a metadata value of the unknown type " + std::to_string(type));
    }
  }
  size_t at() const { return at_; }
  [[noreturn]] void fail(const std::string& what) const { throw UserError(path_ + ": " + what); }

 private:
  const std::byte* take(uint64_t n) {
    if (n > size_ - at_)
      fail("is truncated: " + std::to_string(n) + " bytes wanted at offset " + std::to_string(at_) +
           ", but the file has " + std::to_string(size_));
    const std::byte* p = data_ + at_;
    at_ += n;
    return p;
  }
  const std::byte* data_;
  size_t size_;
  size_t at_ = 0;
  const std::string& path_;
};

struct Mapped {
  std::shared_ptr<const std::byte> data;
  size_t size;
};

Mapped map_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw UserError(path + ": cannot be opened: " + std::strerror(errno));
  struct stat info{};
  const bool ok = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const size_t size = ok ? static_cast<size_t>(info.st_size) : 0;
  if (!ok || size < 24) {
    ::close(fd);
    throw UserError(path +
                    (ok ? ": is not a GGUF file: only " + std::to_string(size) + " bytes" : ": is not a regular file"));
  }
  void* p = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  ::close(fd);
  if (p == MAP_FAILED) throw UserError(path + ": cannot be mapped: " + std::strerror(error));
  return {std::shared_ptr<const std::byte>(static_cast<const std::byte*>(p),
                                           [size](const std::byte* q) { ::munmap(const_cast<std::byte*>(q), size); }),
          size};
}

struct Entry {
  GgufTensor tensor;
  uint64_t offset;
  int64_t bytes;
};

/// Name, extents, type and offset of one tensor; `data` follows when the start of the data is known.
Entry read_entry(Cursor& in) {
  Entry e;
  e.tensor.name = std::string(in.text());
  const uint32_t rank = in.read<uint32_t>();
  if (rank < 1 || rank > 4) in.fail("tensor " + e.tensor.name + " has rank " + std::to_string(rank) + ", not 1 to 4");
  int64_t elements = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    const uint64_t d = in.read<uint64_t>();
    if (d == 0 || d > static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / 64 / elements))
      in.fail("tensor " + e.tensor.name + " has an impossible extent " + std::to_string(d));
    e.tensor.dims.push_back(static_cast<int64_t>(d));
    elements *= static_cast<int64_t>(d);
  }
  e.tensor.type = static_cast<GgmlType>(in.read<uint32_t>());
  e.offset = in.read<uint64_t>();
  const BlockSize block = block_size(e.tensor.type);
  e.tensor.row_bytes = 0;  // a type without a decoder: an error when the model loads this tensor
  e.bytes = 0;
  if (block.elements > 0) {
    if (e.tensor.dims[0] % block.elements != 0)
      in.fail("tensor " + e.tensor.name + " has rows of " + std::to_string(e.tensor.dims[0]) +
              " elements, but blocks of " + block.name + " have " + std::to_string(block.elements));
    e.tensor.row_bytes = e.tensor.dims[0] / block.elements * block.bytes;
    e.bytes = elements / block.elements * block.bytes;
  }
  return e;
}

std::string dims_text(std::span<const int64_t> dims) {
  std::string s;
  for (int64_t d : dims) s += (s.empty() ? "" : " x ") + std::to_string(d);
  return s;
}

}  // namespace

Gguf::Gguf(const std::string& path) : path_(path) {
  static_assert(std::endian::native == std::endian::little);
  const Mapped file = map_file(path);
  mapping_ = file.data;
  Cursor in(mapping_.get(), file.size, path_);
  if (in.read<uint32_t>() != 0x46554747u) fail("is not a GGUF file: it does not begin with the letters GGUF");
  const uint32_t version = in.read<uint32_t>();
  if (version != 2 && version != 3)
    fail("is GGUF version " + std::to_string(version) + ", but versions 2 and 3 (little-endian) are read");
  const uint64_t tensors = in.count(24, "tensors");
  const uint64_t keys = in.count(12, "metadata keys");
  for (uint64_t i = 0; i < keys; ++i) {
    const std::string key(in.text());
    const uint32_t type = in.read<uint32_t>();
    metadata_.insert_or_assign(key, in.value(type));
  }
  std::vector<Entry> entries;
  for (uint64_t i = 0; i < tensors; ++i) entries.push_back(read_entry(in));

  const int64_t alignment = integer_or("general.alignment", 32);
  if (alignment <= 0 || alignment > 65536 || !std::has_single_bit(static_cast<uint64_t>(alignment)))
    fail("general.alignment is " + std::to_string(alignment) + ", not a power of two up to 65536");
  const size_t mask = static_cast<size_t>(alignment) - 1, start = (in.at() + mask) & ~mask;
  for (Entry& e : entries) {
    const size_t room = file.size > start ? file.size - start : 0;
    if (e.offset > room || static_cast<uint64_t>(e.bytes) > room - e.offset)
      fail("is truncated: tensor " + e.tensor.name + " ends at byte " +
           std::to_string(start + e.offset + static_cast<uint64_t>(e.bytes)) + ", but the file has " +
           std::to_string(file.size));
    if (e.offset & mask) fail("tensor " + e.tensor.name + " lies at the unaligned offset " + std::to_string(e.offset));
    e.tensor.data = mapping_.get() + start + e.offset;
    tensors_.insert_or_assign(e.tensor.name, std::move(e.tensor));
  }
}

void Gguf::fail(const std::string& what) const { throw UserError(path_ + ": " + what); }

const GgufValue& Gguf::value(std::string_view key, const char* wanted) const {
  const auto it = metadata_.find(key);
  if (it == metadata_.end()) fail("has no metadata key " + std::string(key) + " (" + wanted + ")");
  return it->second;
}

int64_t Gguf::integer(std::string_view key) const {
  const GgufValue& v = value(key, "an integer");
  if (const auto* i = std::get_if<int64_t>(&v)) return *i;
  if (const auto* u = std::get_if<uint64_t>(&v); u && *u <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return static_cast<int64_t>(*u);
  fail("metadata key " + std::string(key) + " is not an integer");
}

double Gguf::number(std::string_view key) const {
  const GgufValue& v = value(key, "a number");
  if (const auto* d = std::get_if<double>(&v)) return *d;
  return static_cast<double>(integer(key));
}

std::string_view Gguf::text(std::string_view key) const {
  const GgufValue& v = value(key, "a string");
  if (const auto* s = std::get_if<std::string_view>(&v)) return *s;
  fail("metadata key " + std::string(key) + " is not a string");
}

bool Gguf::flag_or(std::string_view key, bool otherwise) const {
  if (!has(key)) return otherwise;
  const GgufValue& v = value(key, "a bool");
  if (const auto* b = std::get_if<bool>(&v)) return *b;
  fail("metadata key " + std::string(key) + " is not a bool");
}

const std::vector<GgufValue>& Gguf::array(std::string_view key) const {
  const GgufValue& v = value(key, "an array");
  if (const auto* a = std::get_if<std::shared_ptr<GgufArray>>(&v)) return (*a)->items;
  fail("metadata key " + std::string(key) + " is not an array");
}

const GgufTensor& Gguf::tensor(std::string_view name, std::span<const int64_t> dims) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) fail("has no tensor " + std::string(name));
  const GgufTensor& t = it->second;
  if (t.dims.size() != dims.size() || !std::equal(dims.begin(), dims.end(), t.dims.begin()))
    fail("tensor " + t.name + " is " + dims_text(t.dims) + ", but the model's metadata make it " + dims_text(dims));
  if (const BlockSize b = block_size(t.type); b.elements == 0)
    fail("tensor " + t.name + " is stored as " + b.name +
         "; this program reads F32, F16, BF16, Q4_0, Q4_1, Q8_0, Q4_K and Q6_K");
  return t;
}

}  // namespace llm
