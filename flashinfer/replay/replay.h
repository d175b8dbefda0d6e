// SPDX-License-Identifier: Apache-2.0
// Runs recorded calls again and compares the results with the recorded ones. Reading a dump executes none of its
// content: a dump can only name an op of the registry.
//
//   auto report = flashinfer::replay::replay("flashinfer_dumps", {.device = flashinfer::kCpu});
//   return report.exit_code();
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "flashinfer/core/dtype.h"

#pragma GCC visibility push(default)

namespace flashinfer::replay {

enum class Outcome : uint8_t {
  kPassed,          // every recorded output compared equal; or the call failed as recorded, with the same kind of error
  kMismatch,        // an output differs, or the call fails where the recorded one succeeded, or the reverse
  kError,           // the dump could not be read, or the call raised an error
  kNeverCompleted,  // inputs were saved, but the call never returned
  kNotCompared,     // the dump has no outputs to compare with, or the call needs other ranks and did not run
  kUnknownOp,       // no op of this name in the registry
};
/// "passed", "mismatch", "error", "never_completed", "not_compared", "unknown_op".
const char* name(Outcome o);

/// One output that differs.
struct Difference {
  std::string key;         // result, result_1, after__arg_2, ...
  std::string text;        // the sentence that is printed
  int64_t mismatches = 0;  // elements; 0 when shape, type or a plain value differs
  int64_t elements = 0;
  double max_abs = 0, max_rel = 0;
  std::vector<int64_t> index;  // of the worst element
};

struct CallResult {
  std::filesystem::path folder;
  std::string function;
  uint64_t sequence = 0;  // 0: the dump has none
  Outcome outcome = Outcome::kError;
  std::string message;  // one line: why it did not pass
  std::vector<Difference> differences;
  std::vector<std::string> notes;  // torn lines and other problems that did not stop it
  int compared = 0;                // outputs
  double max_abs = 0,
         max_rel = 0;  // largest differences of finite elements of the outputs, within the tolerances or not
  double seconds = 0;  // of the call itself, the fastest repetition
};

struct Report {
  std::vector<CallResult> calls;   // in the order of the recording
  std::vector<std::string> notes;  // about the session as a whole
  bool single = false;             // the folder is one call's
  int64_t passed() const { return count(Outcome::kPassed); }
  int64_t not_compared() const { return count(Outcome::kNotCompared); }
  int64_t failed() const { return static_cast<int64_t>(calls.size()) - passed() - not_compared(); }
  int64_t count(Outcome o) const;
  /// 0 when nothing failed, else 1.
  int exit_code() const { return failed() == 0 ? 0 : 1; }
};

struct Options {
  std::optional<Device> device;      // target of tensors; absent: the recorded device
  std::optional<double> rtol, atol;  // for every float result; absent: the op's, else the dtype's
  std::string filter;                // glob over function names; empty: all
  int repeat = 1;                    // times each call runs; every run must give the same bits
  bool bitwise = false;              // every result must be bitwise equal to the recorded one
  int jobs = 1;                      // calls that run at once
  bool run_incomplete = false;       // also run calls that never completed
  size_t first = 0;                  // after `filter`: only calls from this one on, counted from 0 ...
  size_t count = SIZE_MAX;           // ... at most so many
  std::string candidate;             // ops that have a candidate of this name use it; empty: as they choose
  /// Of several processes that replay one recording (mpirun): this one runs the calls of the ranks r with
  /// r % processes == process. `job` is the same in all of them, and of no other job.
  int process = 0, processes = 1;
  std::string job;
  std::filesystem::path save;  // what each call gives is written below it (save.h); empty: nowhere
  /// Called for each call in order, as soon as it and all before it are done; `total` is known from the start.
  std::function<void(const CallResult&, size_t index, size_t total)> on_result;
};

/// `folder` is one call's dump or a session. ValueError: there is no such folder or nothing recorded in it; no op of
/// its calls has the candidate.
Report replay(const std::filesystem::path& folder, const Options& options = {});

/// Copies a recording to `to`, which must not exist, with separate files for every tensor (.pt, or .safetensors where
/// the recording used them) instead of the chunk store. Returns one line per call that could not be copied completely.
/// `on_call` is called after each of them.
std::vector<std::string> export_session(const std::filesystem::path& from, const std::filesystem::path& to,
                                        const std::function<void(size_t done, size_t total)>& on_call = {});

}  // namespace flashinfer::replay

#pragma GCC visibility pop
