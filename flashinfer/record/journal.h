// SPDX-License-Identifier: Apache-2.0
// session.jsonl: one line per record, each one write, by any number of processes at once.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace flashinfer::record {

/// Appends `line` (with its line end) to a file with one write; creates it with mode 0600. RuntimeError with the errno
/// text. After a short write the next line starts with a line end, so that only the torn line is lost.
void append_line(const std::string& path, std::string_view line);

/// Takes the lines of calls whose folders (as recorded in dump_dir) are gone out of a session, under a lock that
/// append_line respects; the file is replaced by rename. Errors are ignored: the lines stay.
void drop_lines(const std::string& path, const std::vector<std::string>& dump_dirs);

}  // namespace flashinfer::record
