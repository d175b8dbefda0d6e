// SPDX-License-Identifier: Apache-2.0
// Autotuning results on disk: <root>/v2/<environment>/manifest.json names what the times depend on,
// <root>/v2/<environment>/entries/<key>.json the winner of one key. <root> is FLASHINFER_AUTOTUNE_CACHE_DIR, else
// <cache>/autotune. Files are published by rename; an unreadable or mismatching file is treated as missing.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace flashinfer::jit {

/// Names and values that make times comparable: GPU, versions.
using Environment = std::vector<std::pair<std::string, std::string>>;

/// The stored tactic for `key` (any text) of `runner`; nullopt: not measured in this environment.
std::optional<std::string> find_winner(const Environment& environment, const std::string& runner,
                                       const std::string& key);
/// Stores it for later processes. A failed write gives one warning.
void keep_winner(const Environment& environment, const std::string& runner, const std::string& key,
                 const std::string& tactic);

}  // namespace flashinfer::jit
