// SPDX-License-Identifier: Apache-2.0
// Runs a program without a shell.
#pragma once
#include <functional>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace flashinfer::process {

struct Options {
  std::string cwd = {};           // of the child; empty: ours
  double timeout_seconds = 600;   // then its whole process group is killed
  double slow_after_seconds = 1;  // on_slow is called once, in this thread, when the child still runs after this time
  std::function<void()> on_slow = {};
  std::function<bool()> stop = {};  // asked every 20 ms; when true, its whole process group is killed
};

struct Result {
  int exit_code = -1;                       // 128 + signal when a signal ended it; 127 when it could not be started
  bool timed_out = false, stopped = false;  // Options::stop
  std::string output;                       // stdout and stderr interleaved, at most the first 1 MB
  double seconds = 0;
  bool ok() const { return exit_code == 0 && !timed_out; }
};

/// Waits for argv[0] (a path, or a name on PATH) with stdin from /dev/null. Never throws for failures of the child.
Result run(const std::vector<std::string>& argv, const Options& options = {});

/// The absolute path of an executable: `name` itself when it has a slash, else the first on `search_path` (as PATH)
/// that `accept` (if given) accepts. Empty when there is none.
std::string find_executable(const std::string& name, const std::string& search_path,
                            const std::function<bool(const std::string&)>& accept = {});

/// The words that a shell runs as argv in the folder cwd, where posix_spawn cannot change folders.
std::vector<std::string> through_shell(const std::vector<std::string>& argv, const std::string& cwd);

/// A line that a POSIX shell splits back into argv.
std::string shell_line(const std::vector<std::string>& argv);
/// Splits at blanks, honouring '...' and "...", as compiler flags in variables are written.
std::vector<std::string> split_words(const std::string& text);

}  // namespace flashinfer::process

#pragma GCC visibility pop
