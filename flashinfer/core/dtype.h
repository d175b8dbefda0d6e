// SPDX-License-Identifier: Apache-2.0
// Element types and devices: names as PyTorch prints them, sizes, and the DLPack codes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "flashinfer/core/dlpack.h"
#include "flashinfer/core/scalar.h"  // enum class DType

#pragma GCC visibility push(default)

namespace flashinfer {

/// "float32", "bfloat16", "float8_e4m3fn", "bool", ...: torch's name without the "torch." prefix.
std::string_view name(DType t);
/// Bytes of one element (1 for the packed FP4 pair).
int64_t size_of(DType t);
bool is_floating(DType t);
/// Accepts "bfloat16" and "torch.bfloat16", and "half", "float", "double", "long", "int".
std::optional<DType> parse_dtype(std::string_view text);
DLDataType to_dlpack(DType t);
std::optional<DType> from_dlpack(DLDataType t);

/// A set of element types as a bit mask, for schemas: `floats | kF8E4M3`.
struct DTypeSet {
  uint32_t bits = 0;
  constexpr DTypeSet() = default;
  constexpr DTypeSet(DType t) : bits(1u << static_cast<int>(t)) {}
  constexpr explicit DTypeSet(uint32_t mask) : bits(mask) {}
  constexpr bool has(DType t) const { return (bits >> static_cast<int>(t)) & 1u; }
  friend constexpr DTypeSet operator|(DTypeSet a, DTypeSet b) { return DTypeSet(a.bits | b.bits); }
};
/// "bfloat16 or float16".
std::string to_string(DTypeSet set);

enum class DeviceType : uint8_t { kCPU, kCUDA, kEmu };  // kEmu: the CUDA emulator on the host

struct Device {
  DeviceType type = DeviceType::kCPU;
  int16_t index = 0;
  friend constexpr bool operator==(Device, Device) = default;
};
inline constexpr Device kCpu{};
/// "cpu", "cuda:0", "emu:0".
std::string to_string(Device d);
/// "cpu", "cuda", "cuda:1", "emu".
std::optional<Device> parse_device(std::string_view text);

}  // namespace flashinfer

#pragma GCC visibility pop
