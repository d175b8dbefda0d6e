// SPDX-License-Identifier: Apache-2.0
// The command line as a function, for programs in other languages that are to have the same one.
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

/// Who runs the command and reads what it says.
struct Host {
  std::function<void(bool error, std::string_view text)> write = {};  // empty: the program's stdout and stderr
  bool terminal = false;                                              // with write: whether it ends on a terminal
  std::function<std::vector<Section>()> sections =
      {};  // of the language around us; collect-env puts their lines behind its own
};

/// Runs `flashinfer <args>` and returns its exit code (cli.h). One at a time in a process: a second call waits. What
/// `write` throws is thrown when the command has ended.
int run(const std::vector<std::string>& args, const Host& host = {});

/// The subcommands as JSON, for making the same ones elsewhere (run_c.h).
std::string commands_json();

}  // namespace flashinfer::cli
