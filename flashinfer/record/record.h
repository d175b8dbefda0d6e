// SPDX-License-Identifier: Apache-2.0
// The log and the flight recorder, described in docs/recorder.md. The environment configures them at the first call of
// any op; these functions reconfigure them while the program runs.
#pragma once
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)

namespace flashinfer::op {
struct StateType;
}

namespace flashinfer::record {

struct Settings {
  int level = 0;                       // FLASHINFER_LOGLEVEL
  std::string destination = "stdout";  // stdout, stderr or a file; %i is the process id
  std::string dump_dir = "flashinfer_dumps";
  double max_size_gb = 20;                    // of 1024^3 bytes, per process; inf: no limit
  int64_t max_count = 1000;                   // recorded calls, per process
  std::vector<std::string> include, exclude;  // globs over public names
  bool safetensors = false;
  bool keep_last = false;  // a ring of the last calls instead of the first ones
  bool dedup = false;
  enum class Pages : uint8_t { kDefault, kUsed, kFull } pages = Pages::kDefault;  // default: used with dedup, else full
  bool sync = false;
  std::string control;  // a file of lines as in apply(), checked while calls run
};

/// The settings of the environment.
Settings settings_from_env();
/// The effective settings.
Settings settings();
/// Applies settings to calls that begin afterwards; running calls finish with the old ones. Counters and limits are
/// reset when dump_dir changes or recording starts.
void configure(const Settings& s);
/// configure() with the level raised to at least `level` (10 records), or back to 0.
void start(int level = 10);
void stop();
/// Changes `s` by one "name=value" (setting_names()) or by "start" or "stop". ValueError that names the line.
void apply(Settings& s, std::string_view line);
/// "level", "dest", "dir", ...: docs/recorder.md says what they mean.
std::vector<std::string_view> setting_names();
/// Whether a recorder goes on with its counters when settings at level 10 change from `a` to `b`.
bool same_recording(const Settings& a, const Settings& b);

/// What the log or the recorder needs of a call of this name that begins now.
enum class Wanted : uint8_t { kNothing, kName, kValues, kDump };
Wanted wanted(std::string_view name);

/// An error raised by another language inside a call: the record names its type.
class ForeignError : public std::exception {
 public:
  ForeignError(std::string type, std::string message) : type_(std::move(type)), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& type() const { return type_; }

 private:
  std::string type_, message_;
};
/// Logs an error in the encoding of a call's values; `phase`: "(pre-execution)", "(outputs)".
void log_error(std::string_view name, std::string_view phase, std::string_view message);

/// The version of other software in this process, for the banner ("torch") and the records' `versions`.
void add_version(const std::string& name, const std::string& version);

/// From its second call on: drops the environment and the configuration, and starts as a new process would. A Python
/// module calls it when it is imported.
void restart_from_env();

/// Reads the environment once per process; op::start_observing calls it before the first call.
void init_from_env();

/// What this process has recorded.
struct Totals {
  uint64_t calls = 0;    // dumped, evicted ones included
  uint64_t bytes = 0;    // on disk now, tensor files and packs
  uint64_t skipped = 0;  // not dumped because of a limit
  uint64_t lost = 0;     // not dumped because of an error
};
Totals totals();

/// A call on a stream that is being captured into a CUDA graph copies nothing: its tensors hold their values only when
/// the graph runs. Its record waits (`graph_capture_pending_flush`) until this is called after a replay and writes the
/// current content of the tensors; again after each further replay. Returns the number of entries written (inputs and
/// outputs of a call are two). `graph`: those of one capture (cuda::capture_id() during it); 0: all. `synchronise`:
/// waits for the device first. Also done at exit and on SIGTERM.
int64_t flush_graph_dumps(bool synchronize = true, uint64_t graph = 0);
/// For classes whose captured calls read what a later plan() writes: `now` maps an object's state at the capture to the
/// current one (null: unchanged). A flush records that one.
void follow_state(const op::StateType& type, std::shared_ptr<const void> (*now)(const void* state));
/// Drops pending entries and their flush counters; returns the number of entries.
int64_t clear_graph_dumps();

}  // namespace flashinfer::record

#pragma GCC visibility pop
