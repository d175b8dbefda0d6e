// SPDX-License-Identifier: Apache-2.0
// Trace definitions (docs/trace.md): a JSON file that describes a function with the extents of one call. Calls write
// them when FLASHINFER_TRACE_DUMP says so; these functions do it while the program runs.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "flashinfer/trace/definition.h"

#pragma GCC visibility push(default)

namespace flashinfer::trace {

struct Settings {
  bool on = false;
  bool strict = false;
  std::string dir = {};  // empty: definitions are made, not written
  bool watch = false;    // the variables are read at each call, which may turn it on and off
};
/// `watch`, when FLASHINFER_TRACE_DUMP is set: to a program without it calls cost nothing more.
Settings settings_from_env();
Settings settings();
/// For calls that begin afterwards. Names that were written before are not written again.
void configure(const Settings& s);
bool configured();
/// Forgets the environment and the names: a Python module calls it when it is imported.
void restart_from_env();

/// Writes `<dir>/<name>.json`, whole (a temporary file that is renamed); makes the folder. ValueError: a name that is
/// no file's.
void write(const Json& definition, const std::string& dir);
/// As write(), unless this process wrote the name already (or `text` is of a program's own function and did).
void write_once(const Json& definition, const std::string& dir);
/// The file's text: indent of 2, ASCII.
std::string file_text(const Json& definition);

/// What is wrong with a definition by flashinfer-bench's data model; empty: nothing. Python in it is not parsed.
std::vector<std::string> problems(const Json& definition);

}  // namespace flashinfer::trace

#pragma GCC visibility pop
