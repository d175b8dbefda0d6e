// SPDX-License-Identifier: Apache-2.0
// The `flashinfer` command. A subcommand is one file flashinfer/cli/cmd_<name>.cc that defines
//   namespace flashinfer::cli { void add_<name>(CLI::App& app, int& exit_code); }
// which adds its CLI11 subcommand(s) to `app` and whose callback sets `exit_code` (0 unless set). CMake finds the file
// and calls the function; nothing else is edited. Text is written with print() and print_error(), since the command may
// run inside another program (Python's `flashinfer` is generated from this table). Exit codes: 0 success, 1 a failure
// that the command exists to find (a mismatch), 2 wrong usage or unreadable input. A flashinfer::Error or
// std::exception thrown by a callback prints one line and exits 2.
#pragma once
#include <CLI/CLI.hpp>

#include "flashinfer/cli/run.h"

namespace flashinfer::cli {

/// Generated: calls every add_<name>.
void add_commands(CLI::App& app, int& exit_code);

/// As printf, to stdout and stderr, or to the program that runs the command. Control characters other than newlines and
/// tabs, and bytes that are no UTF-8, are escaped (core/printable.h): what is printed often comes from a file.
[[gnu::format(printf, 1, 2)]] void print(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void print_error(const char* format, ...);
/// One line with sequences for a terminal around it, which are written as they are; `text` is escaped as print() does.
void print_styled(std::string_view before, std::string_view text, std::string_view after);
/// Whether the output is a terminal: colours and rewritten lines are allowed.
bool is_terminal();
/// Whether messages end on a terminal, which a line of progress (progress.h) may share with them.
bool errors_to_terminal();
/// Sections that the host language provides.
std::vector<Section> host_sections();

}  // namespace flashinfer::cli
