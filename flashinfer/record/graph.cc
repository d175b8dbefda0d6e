// SPDX-License-Identifier: Apache-2.0
// Calls captured into a CUDA graph: their tensors are retained and written by flush_graph_dumps().
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <set>

#include "flashinfer/core/cuda/memory.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/record/format.h"
#include "flashinfer/record/locks.h"
#include "flashinfer/record/recorder.h"

namespace flashinfer::record {
namespace {

constexpr const char* kSides[] = {kInputsStem, kOutputsStem};

/// The record with `more` after kDumpDir.
Json with(const Json& record, const std::vector<std::pair<const char*, Json>>& more) {
  Json r = Json::object();
  for (const auto& [key, value] : record.items()) {
    r[key] = value;
    if (key != kDumpDir) continue;
    for (const auto& [name, v] : more) r[name] = v;
  }
  return r;
}

std::string flush_folder(const Dump& dump) {
  char text[24];
  std::snprintf(text, sizeof text, "/flush_%04d", dump.flushes);
  return dump.path + "/" + kFlushesFolder + text;
}

/// Atomically replaces the file in the call's own folder with the snapshot's, by a hard link, as a snapshot is never
/// rewritten.
void put_latest(const std::string& snapshot, const std::string& latest) {
  const std::string beside = latest + ".new";
  ::unlink(beside.c_str());
  if (::link(snapshot.c_str(), beside.c_str()) != 0) {  // a file system without links
    const auto bytes = fs::read_file(snapshot);
    FI_CHECK(bytes.has_value(), RuntimeError, "cannot read ", snapshot);
    return fs::write_atomic(latest, *bytes);
  }
  FI_CHECK(::rename(beside.c_str(), latest.c_str()) == 0, RuntimeError, "cannot write ", latest);
}

using StateNow = std::shared_ptr<const void> (*)(const void* state);
struct Followed {
  ForkMutex& mutex = g_followed_mutex;
  std::map<const op::StateType*, StateNow> types;
};
Followed& followed() {
  static Followed& f = *new Followed;
  return f;
}

}  // namespace

void follow_state(const op::StateType& type, StateNow now) {
  Followed& f = followed();
  const std::lock_guard lock(f.mutex);
  f.types[&type] = now;
}

/// Replaces the state at the capture by the one that the replay used.
void Recorder::renew_state(Deferred& d) {
  Dump& dump = *d.dump;
  if (d.outputs || !dump.self_type || !dump.state) return;
  std::shared_ptr<const void> now;
  {
    Followed& f = followed();
    const std::lock_guard lock(f.mutex);
    const auto it = f.types.find(dump.self_type);
    if (it != f.types.end()) now = it->second(dump.state.get());
  }
  if (!now) return;
  const auto of_state = [](const std::string& key) { return key.starts_with(kPlanPrefix); };
  std::erase_if(d.recorded.tensors, [&](const RecordedTensor& l) { return of_state(l.key); });  // behind all others
  d.memory.resize(d.recorded.tensors.size());
  Json rest = Json::object();
  for (const auto& [key, value] : d.recorded.metadata.items())
    if (!of_state(key)) rest[key] = value;
  d.recorded.metadata = std::move(rest);
  add_state(d.recorded, *dump.self_type, now.get(), kPlanPrefix);
  d.memory.resize(d.recorded.tensors.size());
  for (RecordedTensor& l : d.recorded.tensors)
    if (of_state(l.key)) l.tensor.owner = std::const_pointer_cast<void>(now);  // keeps the arrays of the state alive
  dump.inputs.metadata = d.recorded.metadata;
}

void Recorder::defer(Dump& dump, bool outputs, CallValues recorded) {
  Deferred d{dump.shared_from_this(), outputs, std::move(recorded), {}};
  for (RecordedTensor& l : d.recorded.tensors) {
    const Device device = l.tensor.view.device();
    d.memory.push_back(
        device.type == DeviceType::kCUDA && l.stored() ? cuda::allocation_id(l.tensor.view.data(), device.index) : 0);
    // Host memory is stored now, as the launches read it; it may be gone when the graph runs.
    if (host_can_read(device) && l.stored()) l.host = to_device(l.tensor.view, kCpu);
  }
  flush_at_the_end(*this);
  const std::lock_guard lock(graph_mutex_);
  deferred_.push_back(std::move(d));
}

int64_t Recorder::flush_graphs(bool synchronize, uint64_t graph) {
  become_own();
  const std::lock_guard lock(graph_mutex_);
  std::erase_if(deferred_, [](const Deferred& d) { return d.dump->evicted.load(); });
  const auto wanted = [&](const Deferred& d) { return graph == 0 || d.dump->graph == graph; };
  std::set<int> devices;
  for (const Deferred& d : deferred_)
    for (const RecordedTensor& l : d.recorded.tensors)
      if (const Device on = l.tensor.view.device(); wanted(d) && on.type == DeviceType::kCUDA) devices.insert(on.index);
  if (synchronize)
    for (const int index : devices) cuda::synchronize_device(index);
  int64_t written = 0;
  std::set<const Dump*> seen;
  std::set<const Deferred*> lost;
  for (Deferred& d : deferred_) {
    if (!wanted(d)) continue;
    if (seen.insert(d.dump.get()).second) ++d.dump->flushes;
    try {
      const std::string snapshot = flush_folder(*d.dump);
      flush_one(d, snapshot);
      append_flushed(d, snapshot);
      ++written;
      const std::lock_guard counters(mutex_);
      warned_.erase(kSides[d.outputs]);
    } catch (const formats::StoreFull&) {
      const std::lock_guard counters(mutex_);
      ++totals_.skipped;
      warn_once(warned_, "flush size",
                str("Dump size limit reached (", settings_.max_size_gb, " GB). Skipping graph flush for ", d.dump->name,
                    ". Increase FLASHINFER_DUMP_MAX_SIZE_GB if needed."));
    } catch (const std::exception& e) {
      const std::lock_guard counters(mutex_);
      ++totals_.lost;
      warn_once(warned_, kSides[d.outputs],
                str("[DUMP ERROR (", kSides[d.outputs], ") in ", d.dump->name, "]: ", e.what()));
      if (dynamic_cast<const ValueError*>(&e)) lost.insert(&d);
    }
    for (RecordedTensor& l : d.recorded.tensors)
      if (!host_can_read(l.tensor.view.device())) l.host = Tensor();
  }
  std::erase_if(deferred_, [&](const Deferred& d) { return lost.contains(&d); });
  return written;
}

int64_t Recorder::clear_graphs() {
  const std::lock_guard lock(graph_mutex_);
  const auto n = static_cast<int64_t>(deferred_.size());
  for (const Deferred& d : deferred_) d.dump->flushes = 0;
  deferred_.clear();
  return n;
}

/// Writes the files. ValueError: the memory was freed.
void Recorder::flush_one(Deferred& d, const std::string& snapshot) {
  renew_state(d);
  for (size_t i = 0; i < d.recorded.tensors.size(); ++i) {
    const RecordedTensor& l = d.recorded.tensors[i];
    if (d.memory[i] == 0) continue;
    const bool alive = cuda::allocation_id(l.tensor.view.data(), l.tensor.view.device().index) == d.memory[i];
    FI_CHECK(alive, ValueError, "the memory of ", l.key,
             " was freed after its call was captured into a graph; it is not flushed any more");
  }
  Dump& dump = *d.dump;
  check_room(d.recorded.bytes());
  bring_to_host(d.recorded);
  fs::make_dirs(snapshot);
  const formats::WriteReport report = write(dump, snapshot, kSides[d.outputs], d.recorded);
  for (const char* ending : {".pt", ".safetensors", formats::kChunksEnding}) {
    const std::string file = str("/", kSides[d.outputs], ending);
    if (fs::is_file(snapshot + file)) put_latest(snapshot + file, dump.path + file);
  }
  Json keys = Json::array();
  uint64_t bytes = 0;
  add_details(dump, d.recorded, &report, keys, &bytes);
  if (!d.outputs) dump.input_keys = keys;
  if (chunks_) return;
  const std::lock_guard lock(mutex_);
  dump.disk_bytes += report.tensor_bytes;
  bytes_ += report.tensor_bytes;
  for (Kept& k : ring_)
    if (k.path == dump.path) k.bytes = dump.disk_bytes;
}

void Recorder::append_flushed(const Deferred& d, const std::string& snapshot) {
  Dump& dump = *d.dump;
  Json r = dump.record;
  r[kExecutionStatus] = d.outputs ? kCompleted : kInputsSaved;
  r[kInputMetadata] = dump.inputs.metadata;
  r[kTensorInfo][kInputTensorKeys] = dump.input_keys;
  r[kTensorDetails] = dump.details;
  std::vector<std::pair<const char*, Json>> more{
      {kFlushed, true}, {kFlushIndex, dump.flushes}, {kSnapshotDir, snapshot}};
  append(dump.path, with(r, more));
  more.emplace_back(kBaseDumpDir, dump.path);
  r[kDumpDir] = snapshot;
  append(snapshot, with(r, more));
}

}  // namespace flashinfer::record
