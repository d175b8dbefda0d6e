// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/hex.h"

#include <charconv>

namespace flashinfer {

std::string hex(uint64_t x) {
  char text[18] = {'0', 'x'};
  return {text, std::to_chars(text + 2, text + sizeof text, x, 16).ptr};
}

std::string hex_word(uint64_t x) {
  std::string text(16, '0');
  for (size_t i = text.size(); i-- > 0; x >>= 4) text[i] = "0123456789abcdef"[x & 15];
  return text;
}

std::string hex_bytes(const void* data, size_t bytes) {
  std::string text;
  text.reserve(2 * bytes);
  for (const auto* p = static_cast<const unsigned char*>(data); bytes-- > 0; ++p)
    text += {"0123456789abcdef"[*p >> 4], "0123456789abcdef"[*p & 15]};
  return text;
}

}  // namespace flashinfer
