// SPDX-License-Identifier: Apache-2.0
// Which of several ways of doing one thing was the fastest here, kept on disk: <root>/v2/<environment>/manifest.json
// names what the times depend on, <root>/v2/<environment>/entries/<key>.json the winner of one key. <root> is
// FLASHINFER_AUTOTUNE_CACHE_DIR, else <cache>/autotune. Files appear by rename; what cannot be read or names something
// else counts as missing.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace flashinfer::jit {

/// Names and values that make times comparable: GPU, versions.
using Environment = std::vector<std::pair<std::string, std::string>>;

/// The tactic kept for `key` (any text) of `runner`; nullopt: nobody measured it in this environment.
std::optional<std::string> find_winner(const Environment& environment, const std::string& runner,
                                       const std::string& key);
/// Keeps it for later processes. What cannot be written is not kept: one warning.
void keep_winner(const Environment& environment, const std::string& runner, const std::string& key,
                 const std::string& tactic);

}  // namespace flashinfer::jit
