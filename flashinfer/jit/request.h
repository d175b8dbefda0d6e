// SPDX-License-Identifier: Apache-2.0
// A requested kernel as text: compiled by the engine, hashed by the cache, shown by the CLI.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "flashinfer/core/dtype.h"

#pragma GCC visibility push(default)

namespace flashinfer::jit {

struct Kernel;
struct Extension;

struct Request {
  std::string name;      // "norm.rmsnorm": family (folder of the header) and function
  std::string config;    // "{dtype=bfloat16,gemma=0}"
  std::string header;    // "flashinfer/ops/norm/kernels/cpu/norm.h"
  std::string instance;  // "flashinfer::cpu::rmsnorm<Config{...}>"
  std::string source;    // the whole generated file
  std::string text() const { return name + config; }
};

namespace detail {

/// A member of a Config: its name, its value as an integer literal (enums as their number, bools as 0 and 1) and in
/// readable form (element types by name).
struct Member {
  const char* name;
  std::string value, shown;
};

template <class T>
std::string literal(T value) {
  if constexpr (std::is_enum_v<T>)
    return literal(static_cast<std::underlying_type_t<T>>(value));
  else
    return std::to_string(+value);
}

/// Whether visit() names every member of Config once. A member that is left out would be 0 in the generated source:
/// another kernel. Without padding, distinct members whose sizes add up to the whole are all of them; names and order
/// are checked by the designated initializers of the generated source. A member that only fills padding has no name.
template <class Config>
consteval bool visits_every_member() {
  static_assert(std::has_unique_object_representations_v<Config>, "padding between members of a Config");
  const Config config{};
  const void* seen[sizeof(Config)] = {};
  size_t count = 0, bytes = 0;
  bool distinct = true;
  config.visit([&](const char*, const auto& member) {
    for (size_t i = 0; i < count; ++i) distinct = distinct && seen[i] != &member;
    if (distinct) seen[count++] = &member;
    bytes += sizeof member;
  });
  return distinct && bytes == sizeof(Config);
}

template <class Config>
  requires(visits_every_member<Config>())
std::vector<Member> members(const Config& config) {
  std::vector<Member> list;
  config.visit([&](const char* name, auto value) {
    if (name == nullptr) return;  // padding
    static_assert(std::is_integral_v<decltype(value)> || std::is_enum_v<decltype(value)>, "ints, bools and enums only");
    std::string text = literal(value), shown = text;
    if constexpr (std::is_same_v<decltype(value), DType>) shown = flashinfer::name(value);
    list.push_back({name, std::move(text), std::move(shown)});
  });
  return list;
}

/// "{dtype=bfloat16,gemma=0}"
std::string config_braces(std::span<const Member> members);
Request make_request(const Kernel& kernel, const char* config_type, std::span<const Member> members,
                     const Extension* extension = nullptr);

}  // namespace detail
}  // namespace flashinfer::jit

#pragma GCC visibility pop
