// SPDX-License-Identifier: Apache-2.0
// The first call of a recording that two builds, or two candidates of one, compute differently.
//
// Calls are tried from the first one on, not by halves: each is replayed from its own recorded inputs, plan included,
// so whether a call differs says nothing of the others, and a search by halves would find some call, not the first.
// Both sides replay the same few calls in processes of their own (`flashinfer replay --save`), first one, then two,
// four, ..., so that an early difference is found without replaying the rest, the outputs of few calls are on disk at a
// time, and a call that ends its process costs only itself.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "flashinfer/replay/replay.h"

#pragma GCC visibility push(default)

namespace flashinfer::replay {

struct Side {
  std::string name;                  // in messages: "good"
  std::vector<std::string> command;  // that runs a build's `flashinfer`, its arguments follow
  std::string candidate;             // as Options::candidate
};

struct BisectOptions {
  std::string device, filter;  // as for replay; empty: the recorded device, all calls
  std::optional<double> rtol, atol;
  bool bitwise = false;
  std::function<void(size_t done, size_t total)> on_calls;  // after each group of calls
  std::function<bool()> stop;                               // asked while builds run; they end when it is true
};

struct BisectReport {
  size_t calls = 0;                         // of the recording, after the filter
  int64_t equal = 0;                        // gave the same on both sides, up to the first difference
  std::optional<CallResult> first;          // the difference: kMismatch with its message
  size_t index = 0;                         // of that call, from 0
  std::map<std::string, int> not_compared;  // "<function>: <why>", and how many calls
  bool one_sided = false;                   // some of these ran on one side alone
  /// 0: all that was compared is equal; 1: a call differs; 2: no difference was found, but calls that one side runs are
  /// missing on the other one, or nothing was compared.
  int exit_code() const { return first ? 1 : one_sided || equal == 0 ? 2 : 0; }
};

/// ValueError: nothing recorded there. RuntimeError: a side's command fails other than in a call (quotes its output),
/// or options.stop. Temporary files are removed in any case.
BisectReport bisect(const std::filesystem::path& recording, const Side& good, const Side& bad,
                    const BisectOptions& options = {});

/// Why `command` cannot be a side (it does not run, is no flashinfer, is too old); empty: it can, and `version` is what
/// it says of itself.
std::string why_no_build(const std::vector<std::string>& command, std::string* version);

}  // namespace flashinfer::replay

#pragma GCC visibility pop
