// SPDX-License-Identifier: Apache-2.0
// A line at the bottom of the terminal on which a command shows how far it is (cli/progress.h). Who else writes to
// stderr does it by write_stderr(), which takes the line away for that time, so that the two never share a line.
#pragma once
#include <string_view>

#pragma GCC visibility push(default)

namespace flashinfer {

/// Draws `line` (no line ends) in place of the last one; empty: none. The caller has checked that stderr is a terminal.
void set_status_line(std::string_view line);
/// Writes whole lines to stderr.
void write_stderr(std::string_view text);

/// Takes the line away for what other code prints within the scope.
class StatusLineHidden {
 public:
  StatusLineHidden();
  ~StatusLineHidden();
  StatusLineHidden(const StatusLineHidden&) = delete;
  StatusLineHidden& operator=(const StatusLineHidden&) = delete;

 private:
  bool hidden_ = false;
};

}  // namespace flashinfer

#pragma GCC visibility pop
