// SPDX-License-Identifier: Apache-2.0
// The command line as a function, for programs in other languages.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flashinfer::cli {

/// A titled block of `key: value` lines, as show-config and collect-env print them.
struct Section {
  std::string title;
  std::vector<std::pair<std::string, std::string>> lines;
};

/// The program that runs the command and receives its output.
struct Host {
  std::function<void(bool error, std::string_view text)> write = {};  // empty: the program's stdout and stderr
  bool terminal = false;                                              // with write: whether it ends on a terminal
  std::function<std::vector<Section>()> sections =
      {};  // of the host language; collect-env appends their lines to its own
};

/// Runs `flashinfer <args>` and returns its exit code (cli.h). One at a time in a process: a second call waits. An
/// exception of `write` is rethrown when the command has ended.
int run(const std::vector<std::string>& args, const Host& host = {});

/// The subcommands as JSON, for generating them in another language (run_c.h).
std::string commands_json();

}  // namespace flashinfer::cli
