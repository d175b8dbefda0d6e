// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/kernels/emu/undo.h"

#include <algorithm>
#include <cstring>

#include "flashinfer/core/int_math.h"

namespace flashinfer::emu {

namespace {
std::unique_ptr<char[]> copy_of(const void* from, size_t bytes) {
  auto copy = std::make_unique_for_overwrite<char[]>(bytes);
  std::memcpy(copy.get(), from, bytes);
  return copy;
}
}  // namespace

void Undo::keep_piece(const Range& range, uintptr_t piece) {
  recent_[piece / kPiece % kRecent] = piece;
  if (full() || !known_.insert(piece).second) return;
  const size_t offset = piece - reinterpret_cast<uintptr_t>(range.begin),
               bytes = std::min(kPiece, range.bytes - offset);
  bytes_ += bytes;
  uint8_t* const written = range.written == nullptr ? nullptr : range.written + offset / 8;
  char* const begin = reinterpret_cast<char*>(piece);
  pieces_.push_back({begin, bytes, written, copy_of(begin, bytes),
                     written == nullptr ? nullptr : copy_of(written, ceil_div(bytes, size_t{8}))});
}

void Undo::exchange() {
  for (Kept& k : pieces_) {
    if (std::memcmp(k.begin, k.copy.get(), k.bytes) != 0)  // else pages that nothing has used stay so
      std::swap_ranges(k.begin, k.begin + k.bytes, k.copy.get());
    if (k.written != nullptr)
      std::swap_ranges(k.written, k.written + ceil_div(k.bytes, size_t{8}), reinterpret_cast<uint8_t*>(k.bits.get()));
  }
}

}  // namespace flashinfer::emu
