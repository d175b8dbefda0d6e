// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/dtype.h"

#include <array>
#include <charconv>

namespace flashinfer {
namespace {

struct Row {
  std::string_view name;
  int8_t bytes;
  bool floating;
  DLDataType dl;
};
constexpr Row row(std::string_view name, int bytes, bool floating, DLDataTypeCode code, int bits, int lanes = 1) {
  return {name,
          static_cast<int8_t>(bytes),
          floating,
          {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), static_cast<uint16_t>(lanes)}};
}
// In the order of DType.
constexpr std::array<Row, kNumDTypes> kRows{
    row("float32", 4, true, kDLFloat, 32),
    row("float16", 2, true, kDLFloat, 16),
    row("bfloat16", 2, true, kDLBfloat, 16),
    row("float8_e4m3fn", 1, true, kDLFloat8_e4m3fn, 8),
    row("float8_e5m2", 1, true, kDLFloat8_e5m2, 8),
    row("float64", 8, true, kDLFloat, 64),
    row("uint8", 1, false, kDLUInt, 8),
    row("int8", 1, false, kDLInt, 8),
    row("uint16", 2, false, kDLUInt, 16),
    row("int16", 2, false, kDLInt, 16),
    row("uint32", 4, false, kDLUInt, 32),
    row("int32", 4, false, kDLInt, 32),
    row("uint64", 8, false, kDLUInt, 64),
    row("int64", 8, false, kDLInt, 64),
    row("bool", 1, false, kDLBool, 8),
    row("float4_e2m1fn_x2", 1, true, kDLFloat4_e2m1fn, 4, 2),
};
const Row& row_of(DType t) { return kRows[static_cast<size_t>(t)]; }

constexpr std::pair<std::string_view, DType> kAliases[] = {
    {"half", DType::kF16},  {"float", DType::kF32}, {"double", DType::kF64},
    {"short", DType::kI16}, {"int", DType::kI32},   {"long", DType::kI64},
};

std::string_view name(DeviceType t) {
  switch (t) {
    case DeviceType::kCPU: return "cpu";
    case DeviceType::kCUDA: return "cuda";
    case DeviceType::kEmu: return "emu";
  }
  return "unknown";
}

}  // namespace

std::string_view name(DType t) { return row_of(t).name; }
int64_t size_of(DType t) { return row_of(t).bytes; }
bool is_floating(DType t) { return row_of(t).floating; }
DLDataType to_dlpack(DType t) { return row_of(t).dl; }

std::optional<DType> parse_dtype(std::string_view text) {
  if (text.starts_with("torch.")) text.remove_prefix(6);
  for (size_t i = 0; i < kRows.size(); ++i)
    if (kRows[i].name == text) return static_cast<DType>(i);
  for (const auto& [alias, type] : kAliases)
    if (alias == text) return type;
  return std::nullopt;
}

std::optional<DType> from_dlpack(DLDataType t) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    const DLDataType& d = kRows[i].dl;
    if (d.code == t.code && d.bits == t.bits && d.lanes == t.lanes) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::string to_string(DTypeSet set) {
  std::string out;
  int left = __builtin_popcount(set.bits);
  for (int i = 0; i < kNumDTypes; ++i) {
    if (!set.has(static_cast<DType>(i))) continue;
    out += kRows[static_cast<size_t>(i)].name;
    --left;
    if (left > 1) out += ", ";
    if (left == 1) out += " or ";
  }
  return out;
}

std::string to_string(Device d) {
  std::string out(name(d.type));
  if (d.type != DeviceType::kCPU) out += ":" + std::to_string(d.index);
  return out;
}

std::optional<Device> parse_device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view type = text.substr(0, colon);
  Device d;
  if (type == "cpu")
    d.type = DeviceType::kCPU;
  else if (type == "cuda")
    d.type = DeviceType::kCUDA;
  else if (type == "emu")
    d.type = DeviceType::kEmu;
  else
    return std::nullopt;
  if (colon == std::string_view::npos) return d;
  const std::string_view digits = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), d.index);
  if (error != std::errc() || end != digits.data() + digits.size() || d.index < 0) return std::nullopt;
  if (d.type == DeviceType::kCPU) d.index = 0;  // torch writes cpu:0 too; there is one host
  return d;
}

}  // namespace flashinfer
