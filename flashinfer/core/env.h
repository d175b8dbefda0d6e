// SPDX-License-Identifier: Apache-2.0
// Every environment variable the library reads, in one table, parsed once. A bad value warns once on stderr and falls
// back to the default; no other code of the library calls getenv.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)

namespace flashinfer::env {

struct Variable {
  const char* name;           // "FLASHINFER_LOGLEVEL"
  const char* default_value;  // as text
  const char* meaning;        // one sentence, with the legal values
};
/// The whole table in a fixed order, for `flashinfer show-config` and the docs.
std::span<const Variable> table();
/// The effective value as text (the environment's if legal, else the default) and whether it was set.
struct Current {
  std::string value;
  bool set;
};
Current current(std::string_view name);

/// Typed access; `name` must be in the table (InternalError otherwise). Parsed at the first call and cached.
int64_t integer(std::string_view name);
double number(std::string_view name);
bool flag(std::string_view name);  // exactly "1"
const std::string& text(std::string_view name);
std::vector<std::string> list(std::string_view name);  // comma separated, blanks stripped, empty entries dropped

/// The same of a variable that every call asks for: looked up once, and after reload() again.
///   static constinit env::Cached checks("FLASHINFER_CUDA_CHECK_INDICES");
class Cached {
 public:
  explicit constexpr Cached(const char* name) : name_(name) {}
  bool flag() const;
  const std::string& text() const;

 private:
  const char* name_;
  mutable std::atomic<const void*> parsed_{nullptr};
};

/// Drops the parsed values, so that the next access reads the environment again (tests; a re-imported Python module).
void reload();

}  // namespace flashinfer::env

#pragma GCC visibility pop
