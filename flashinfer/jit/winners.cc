// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/winners.h"

#include <atomic>
#include <nlohmann/json.hpp>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/version.h"
#include "flashinfer/core/warn.h"
#include "flashinfer/jit/cache.h"
#include "flashinfer/jit/source.h"

namespace flashinfer::jit {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Environment& environment) {
  Json j = {{"flashinfer", build::version()}};
  for (const auto& [name, value] : environment) j[name] = value;
  return j;
}
std::string text_of(const Json& j) { return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

struct Place {
  std::string folder, file;
};
Place place_of(const std::string& root, const Environment& environment, const std::string& runner,
               const std::string& key) {
  const std::string folder = root + "/v2/" + hash_hex(text_of(json_of(environment))).substr(0, 16);
  return {folder, folder + "/entries/" + hash_hex(runner + "\n" + key).substr(0, 24) + ".json"};
}

/// A folder set by the user is used if others cannot write to it.
CacheFolders folders() {
  const std::string& named = env::text("FLASHINFER_AUTOTUNE_CACHE_DIR");
  if (named.empty()) return cache_folders("autotune");
  if (const std::string why = fs::unsafe_folder(named); !why.empty())
    throw RuntimeError("FLASHINFER_AUTOTUNE_CACHE_DIR: " + why);
  return {named, named};
}

void warn_once(const std::string& why) {
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) warn("measured choices are not kept: " + why);
}

}  // namespace

std::optional<std::string> find_winner(const Environment& environment, const std::string& runner,
                                       const std::string& key) {
  try {
    const std::string root = folders().read;
    const auto text = root.empty() ? std::nullopt : fs::read_file(place_of(root, environment, runner, key).file);
    if (!text) return std::nullopt;
    const Json j = Json::parse(*text);
    if (j.at("runner") != runner || j.at("key") != key) return std::nullopt;
    return j.at("tactic").get<std::string>();
  } catch (const Json::exception&) {
    return std::nullopt;
  } catch (const Error& e) {
    warn_once(e.message());
    return std::nullopt;
  }
}

void keep_winner(const Environment& environment, const std::string& runner, const std::string& key,
                 const std::string& tactic) {
  try {
    const Place p = place_of(folders().write, environment, runner, key);
    fs::make_dirs(p.folder + "/entries");
    if (!fs::is_file(p.folder + "/manifest.json"))
      fs::write_atomic(p.folder + "/manifest.json", text_of(json_of(environment)));
    fs::write_atomic(p.file, text_of({{"key", key}, {"runner", runner}, {"tactic", tactic}}));
  } catch (const Error& e) {
    warn_once(e.message());
  }
}

}  // namespace flashinfer::jit
