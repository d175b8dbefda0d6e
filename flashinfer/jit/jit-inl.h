// SPDX-License-Identifier: Apache-2.0
// Bodies of jit.h: the lookup is inline, the miss path is out of line.
#pragma once
#include <type_traits>

#include "flashinfer/jit/request.h"
#include "flashinfer/jit/table.h"
#include "flashinfer/op/observer.h"

#pragma GCC visibility push(default)

namespace flashinfer::jit {
namespace detail {

/// Number of threads that are collecting kernels (engine.h: KernelCollector); while it is not 0, every lookup goes to
/// the engine.
extern std::atomic<int> recordings;
/// The engine: loads or compiles, once per kernel and process. `keep`: the result is final and may be stored in a
/// table.
const Loaded& obtain(const Request& request, bool& keep);
/// The same for a request that holds a user's source.
const Loaded& obtain_extended(const Request& request, bool& keep);

/// One table per kernel and Config type, constant-initialised: no guard on the launch path.
template <const Kernel& K, class Config>
inline constinit Table<Config> table;

template <const Kernel& K, class Config>
[[gnu::noinline, gnu::cold]] const Loaded& miss(const Config& config, uint64_t hash) {
  bool keep = true;
  const Loaded& loaded = obtain(make_request(K, Config::kName, members(config)), keep);
  if (keep) table<K, Config>.insert(config, hash, &loaded);
  return loaded;
}

}  // namespace detail

template <const Kernel& K, class Config>
std::string kernel_text(const Config& config) {
  return detail::make_request(K, Config::kName, detail::members(config)).text();
}

/// A recorded call stores the name of the last kernel that its launch looked up.
template <const Kernel& K, class Config>
const Loaded& cpu_kernel(const Config& config) {
  static_assert(std::has_unique_object_representations_v<Config>, "a Config is hashed and compared by its bytes");
  const uint64_t hash = detail::hash_bytes(config);
  if (detail::recordings.load(std::memory_order_relaxed) == 0) [[likely]]
    if (const Loaded* loaded = detail::table<K, Config>.find(config, hash)) [[likely]] {
      if (op::config_wanted()) [[unlikely]]
        op::report_config(kernel_text<K>(config));
      return *loaded;
    }
  const Loaded& loaded = detail::miss<K>(config, hash);
  if (op::config_wanted()) [[unlikely]]
    op::report_config(kernel_text<K>(config));
  return loaded;
}

template <const Kernel& K, class Config>
const Loaded& cpu_kernel(const Config& config, const Extension& extension) {
  bool keep = false;
  const Request request = detail::make_request(K, Config::kName, detail::members(config), &extension);
  if (op::config_wanted()) op::report_config(request.text());
  return detail::obtain_extended(request, keep);
}

template <class Config>
std::string config_text(const Config& config) {
  const std::string type = Config::kName;
  const size_t colon = type.rfind(':');
  return type.substr(colon == std::string::npos ? 0 : colon + 1) + detail::config_braces(detail::members(config));
}

}  // namespace flashinfer::jit

#pragma GCC visibility pop
