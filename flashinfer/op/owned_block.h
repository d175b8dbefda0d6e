// SPDX-License-Identifier: Apache-2.0
// A block whose type only its op knows.
#pragma once
#include <cstddef>
#include <new>
#include <utility>

#include "flashinfer/op/op.h"

#pragma GCC visibility push(default)

namespace flashinfer::op {

/// A block of an op's type (which lives as long as the program), in place when it has at most `kInline` bytes, else on
/// the heap.
template <size_t kInline = 0>
class OwnedBlock {
 public:
  /// Default-constructed.
  explicit OwnedBlock(const BlockType& type) : type_(type), data_(memory()) { type.construct(data_); }
  OwnedBlock(const BlockType& type, const void* copied) : type_(type), data_(memory()) { type.copy(data_, copied); }
  OwnedBlock(const OwnedBlock& o) : OwnedBlock(o.type_, o.data_) {}
  OwnedBlock(OwnedBlock&& o) noexcept
    requires(kInline == 0)
      : type_(o.type_), data_(std::exchange(o.data_, nullptr)) {}
  ~OwnedBlock() {
    if (data_ == nullptr) return;  // moved from
    type_.destroy(data_);
    if (data_ != buffer_) ::operator delete(data_, std::align_val_t(type_.align));
  }
  OwnedBlock& operator=(const OwnedBlock&) = delete;
  void* data() const { return data_; }

 private:
  static constexpr size_t kAlign = kInline ? 64 : 1;
  void* memory() {
    if (type_.size <= kInline && type_.align <= kAlign) return buffer_;
    return ::operator new(type_.size, std::align_val_t(type_.align));
  }

  const BlockType& type_;
  void* data_;
  alignas(kAlign) std::byte buffer_[kInline ? kInline : 1];
};

}  // namespace flashinfer::op

#pragma GCC visibility pop
