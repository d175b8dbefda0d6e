// SPDX-License-Identifier: Apache-2.0
// The log and the flight recorder: what they do is in docs/recorder.md. The environment configures them at the first
// call of any op; these functions re-aim them while the program runs.
#pragma once
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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
  std::string control;  // a file of lines as in apply(), looked at while calls run
};

/// What the environment asks for.
Settings settings_from_env();
/// What is in force.
Settings settings();
/// Puts settings into force for the calls that begin after it; those that are running finish with the old ones.
/// Counters and limits start anew when dump_dir changes or recording starts.
void configure(const Settings& s);
/// configure() with the level raised to at least `level` (10 records), or back to 0.
void start(int level = 10);
void stop();
/// Changes `s` by one "name=value" (level, dest, dir, max_size_gb, max_count, include, exclude, safetensors, keep,
/// dedup, pages, sync) or by "start" or "stop". ValueError that names the line.
void apply(Settings& s, std::string_view line);

/// What the log or the recorder wants to know of a call of this name that begins now.
enum class Wanted : uint8_t { kNothing, kName, kValues, kDump };
Wanted wanted(std::string_view name);

/// An error that another language raised inside a call: the record names its type.
class ForeignError : public std::exception {
 public:
  ForeignError(std::string type, std::string message) : type_(std::move(type)), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& type() const { return type_; }

 private:
  std::string type_, message_;
};
/// The line that tells of an error in turning a call's values into what is recorded; `phase`: "(pre-execution)",
/// "(outputs)".
void log_error(std::string_view name, std::string_view phase, std::string_view message);

/// The version of something else in this process, for the banner ("torch") and for what records call `versions`.
void add_version(const std::string& name, const std::string& version);

/// From its second call on: forgets the environment and what was configured, and begins as a new process would. A
/// Python module calls it when it is imported.
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
/// the graph runs. Its record waits (`graph_capture_pending_flush`) until this is called after a replay, which writes
/// what the tensors hold now; again after each further replay. Returns how many entries were written (inputs and
/// outputs of a call are two). `graph`: those of one capture (cuda::capture_id() during it); 0: all. `synchronize`:
/// waits for the device first. Also done at exit and on SIGTERM.
int64_t flush_graph_dumps(bool synchronize = true, uint64_t graph = 0);
/// For classes whose captured calls read what a later plan() writes: `now` gives, for an object's state at the capture,
/// the one that holds now (null: the same). A flush records that one.
void follow_state(const op::StateType& type, std::shared_ptr<const void> (*now)(const void* state));
/// Forgets what waits, and how often it was flushed; returns how many entries.
int64_t clear_graph_dumps();

}  // namespace flashinfer::record
