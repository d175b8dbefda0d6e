// SPDX-License-Identifier: Apache-2.0
// The flight recorder: a folder per call, written before and after it. Exceptions never reach the call: the observer
// catches them.
#pragma once
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "flashinfer/formats/chunks.h"
#include "flashinfer/op/observer.h"
#include "flashinfer/record/encode.h"
#include "flashinfer/record/locks.h"
#include "flashinfer/record/record.h"
#include "flashinfer/record/sink.h"

namespace flashinfer::record {

/// A call whose inputs are on disk.
struct Dump : std::enable_shared_from_this<Dump> {
  std::string path;  // dump_dir as configured / folder of the call
  std::string name, module, timestamp;
  uint64_t call_sequence = 0;
  CallValues inputs;
  StorageNumbers storages;
  Json group;  // of a collective call; else null
  Json arg_names = Json::array(), details = Json::object(), input_keys = Json::array();
  uint64_t input_bytes = 0;                              // bytes of the stored tensors' elements, as FlashInfer counts
  uint64_t disk_bytes = 0;                               // added to the disk by this call
  std::vector<uint32_t> packs;                           // one entry for each file that refers to a pack
  std::vector<std::pair<std::string, op::Arg>> written;  // key and argument of tensors that the call may write
  const op::Object* self = nullptr;                      // while the call runs
  const op::StateType* self_type = nullptr;
  std::shared_ptr<const void> state;  // of self, before the call
  int64_t wall_ns = 0;
  uint64_t graph = 0;  // the capture that the call is part of: nothing is written before a flush
  int flushes = 0;
  Json record;                        // the last one, of a captured call
  std::atomic<bool> evicted = false;  // by the ring
};

/// The inputs or outputs of a captured call, kept until it is flushed and for later flushes.
struct Deferred {
  std::shared_ptr<Dump> dump;
  bool outputs;
  CallValues recorded;
  std::vector<uint64_t> memory;  // of each tensor: cuda::allocation_id() during the capture
};

class Recorder {
 public:
  Recorder(Settings settings, Sink& sink);

  /// Writes the inputs and the record `inputs_saved`. Null: not recorded (a limit, an error). `args` as
  /// Invocation::args().
  std::shared_ptr<Dump> before(op::Invocation& call, const std::vector<op::Arg>& args);
  void after(op::Invocation& call, Dump& dump, const op::Value& result);
  void failed(op::Invocation& call, Dump& dump, const std::exception& error);

  /// As in record.h, for this recorder's calls.
  int64_t flush_graphs(bool synchronize, uint64_t graph);
  int64_t clear_graphs();

  Totals totals() const;
  const Settings& settings() const { return settings_; }
  /// In a forked child counters, packs and the ring are the parent's: the first thread that uses the recorder resets
  /// them while the others wait.
  void become_own();
  Sink& sink() const { return sink_; }

 private:
  struct Kept {
    std::string path;
    uint64_t bytes;
    std::vector<uint32_t> packs;
    std::weak_ptr<Dump> dump;
  };
  bool admit(const std::string& name, uint64_t bytes, Dump& dump);
  void open_chunks();
  void make_room(uint64_t bytes);
  void evict_oldest();
  void describe(op::Invocation& call, const std::vector<op::Arg>& args, Dump& dump);
  void make_folder(Dump& dump);
  formats::WriteReport write(Dump& dump, const std::string& folder, const char* stem, const CallValues& recorded);
  /// `report` null: nothing is stored yet.
  void add_details(Dump& dump, const CallValues& recorded, const formats::WriteReport* report, Json& keys,
                   uint64_t* bytes);
  void defer(Dump& dump, bool outputs, CallValues recorded);
  void renew_state(Deferred& d);
  void flush_one(Deferred& d, const std::string& snapshot);
  void append_flushed(const Deferred& d, const std::string& snapshot);
  void check_room(uint64_t bytes);
  Json record(const op::Invocation& call, const Dump& dump, const char* status, const Json& output_metadata,
              const Json& output_keys, const uint64_t* output_bytes) const;
  /// Appends to `folder`'s metadata and to the session.
  void append(const std::string& folder, const Json& record);
  void finish(Dump& dump, uint64_t bytes);
  void abandon(Dump& dump);
  void warn_once(std::set<std::string>& given, const std::string& key, const std::string& text);
  bool use_pages() const;
  uint64_t cap() const;

  const Settings settings_;
  Sink& sink_;
  ForkMutex& mutex_ = g_recorder_mutex;  // only one recorder is active at a time
  std::atomic<int> pid_;                 // the process that owns the other members
  std::map<std::string, uint64_t> sequences_;
  uint64_t admitted_ = 0;  // calls counted against max_count
  uint64_t bytes_ = 0;
  Totals totals_;
  std::set<std::string> warned_;
  bool full_ = false;                 // the packs reached the limit
  std::deque<Kept> ring_;             // finished calls, oldest first
  std::vector<std::string> evicted_;  // whose lines are still in session.jsonl
  std::unique_ptr<formats::ChunkStore> chunks_;
  ForkMutex& graph_mutex_ = g_graphs_mutex;
  std::vector<Deferred> deferred_;  // in the order of the calls
};

/// Adds `r` to the recorders flushed at exit; the first call installs the exit and SIGTERM handlers.
void flush_at_the_end(Recorder& r);
/// In a forked child: drops the parent's graphs, and restores the program's SIGTERM handler.
void forget_graphs();

}  // namespace flashinfer::record
