// SPDX-License-Identifier: Apache-2.0
// Numbers and bytes in hexadecimal, lower case.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace flashinfer {

/// "0x1f", as Python's hex().
std::string hex(uint64_t x);
/// "000000000000001f": all 16 digits, no prefix.
std::string hex_word(uint64_t x);
/// Two digits a byte, no prefix.
std::string hex_bytes(const void* data, size_t bytes);

}  // namespace flashinfer
