// SPDX-License-Identifier: Apache-2.0
// Limits, the ring, folders and lines. The content of a call's record is in dump.cc.
#include "flashinfer/record/recorder.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "flashinfer/core/fs.h"
#include "flashinfer/record/format.h"
#include "flashinfer/record/journal.h"
#include "flashinfer/record/machine.h"

namespace flashinfer::record {
namespace {

std::string number_text(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%g", v);
  return text;
}

std::string pack_prefix() { return str(host_name(), "-", ::getpid(), "-", std::to_string(::time(nullptr))); }

constexpr size_t kDropLinesAfter = 64;  // evicted calls; their lines are dropped together

}  // namespace

Recorder::Recorder(Settings settings, Sink& sink) : settings_(std::move(settings)), sink_(sink), pid_(::getpid()) {
  open_chunks();
}

void Recorder::open_chunks() {
  if (!settings_.dedup) return;
  // In a forked child the store may be half-changed by a thread of the parent: it stays, unused, where a leak checker
  // finds it.
  static auto& inherited = *new std::vector<std::unique_ptr<formats::ChunkStore>>;
  if (chunks_) inherited.push_back(std::move(chunks_));
  chunks_ = std::make_unique<formats::ChunkStore>(settings_.dump_dir + "/" + kChunkFolder, pack_prefix());
  chunks_->set_limit(cap());
}

void Recorder::become_own() {
  const int pid = ::getpid();
  if (pid_.load(std::memory_order_acquire) == pid) return;
  const std::lock_guard graphs(graph_mutex_);
  const std::lock_guard lock(mutex_);
  if (pid_.load(std::memory_order_relaxed) == pid) return;  // another thread of the child was first
  deferred_.clear();
  sequences_.clear();
  admitted_ = bytes_ = 0;
  totals_ = {};
  full_ = false;
  warned_.clear();
  ring_.clear();
  evicted_.clear();
  open_chunks();
  pid_.store(pid, std::memory_order_release);  // last: a thread that reads it without the lock finds everything done
}

uint64_t Recorder::cap() const {
  const double bytes = settings_.max_size_gb * 1024 * 1024 * 1024;
  if (std::isnan(bytes) || bytes >= 1.8e19) return UINT64_MAX;
  return bytes <= 0 ? 0 : static_cast<uint64_t>(bytes);
}

bool Recorder::use_pages() const {
  return settings_.pages == Settings::Pages::kUsed || (settings_.pages == Settings::Pages::kDefault && settings_.dedup);
}

Totals Recorder::totals() const {
  const std::lock_guard lock(mutex_);
  Totals t = totals_;
  t.bytes = bytes_ + (chunks_ ? chunks_->bytes() : 0);
  return t;
}

void Recorder::warn_once(std::set<std::string>& given, const std::string& key, const std::string& text) {
  if (given.insert(key).second) sink_.write(text + "\n");
}

void Recorder::evict_oldest() {
  const Kept oldest = std::move(ring_.front());
  ring_.pop_front();
  fs::remove_tree(oldest.path);
  bytes_ -= std::min(bytes_, oldest.bytes);
  if (chunks_) chunks_->release(oldest.packs);
  if (const auto dump = oldest.dump.lock()) dump->evicted = true;
  evicted_.push_back(oldest.path);
  if (evicted_.size() < kDropLinesAfter) return;
  drop_lines(settings_.dump_dir + "/" + kSessionFile, evicted_);
  evicted_.clear();
}

void Recorder::make_room(uint64_t bytes) {
  const uint64_t most = cap();
  while (!ring_.empty() && bytes_ + (chunks_ ? chunks_->bytes() : 0) + bytes > most) evict_oldest();
  while (!ring_.empty() && ring_.size() >= static_cast<uint64_t>(settings_.max_count)) evict_oldest();
}

bool Recorder::admit(const std::string& name, uint64_t bytes, Dump& dump) {
  const std::lock_guard lock(mutex_);
  const bool too_many =
      settings_.max_count <= 0 || (!settings_.keep_last && admitted_ >= static_cast<uint64_t>(settings_.max_count));
  if (too_many) {
    ++totals_.skipped;
    warn_once(warned_, "count",
              str("Dump limit reached (", settings_.max_count, " dumps). Skipping dump for ", name,
                  ". Increase FLASHINFER_DUMP_MAX_COUNT if needed."));
    return false;
  }
  dump.call_sequence = ++sequences_[name];
  const uint64_t held = bytes_ + (chunks_ ? chunks_->bytes() : 0);
  // With dedup, stored content costs nothing: the store rejects only new content beyond the limit.
  const bool too_large = std::isless(settings_.max_size_gb, 0.0) || (settings_.keep_last ? bytes > cap() && !chunks_
                                                                     : chunks_           ? full_ && bytes > 0
                                                                                         : held + bytes > cap());
  if (too_large) {
    ++totals_.skipped;
    warn_once(warned_, "size",
              str("Dump size limit reached (", number_text(settings_.max_size_gb), " GB). Skipping dump for ", name,
                  ". Increase FLASHINFER_DUMP_MAX_SIZE_GB if needed."));
    return false;
  }
  if (settings_.keep_last) make_room(chunks_ ? 0 : bytes);
  ++admitted_;
  ++totals_.calls;
  return true;
}

void Recorder::make_folder(Dump& dump) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  dump.wall_ns = now.tv_sec * 1000000000ll + now.tv_nsec;
  char text[40], milliseconds[24];
  format_local_time(text, sizeof text, "%Y%m%d_%H%M%S_", now.tv_sec);
  std::snprintf(milliseconds, sizeof milliseconds, "%03ld", now.tv_nsec / 1000000);
  dump.timestamp = std::string(text) + milliseconds;
  std::string name = dump.name;
  for (char& c : name)
    if (c == '/' || c == '\0') c = '_';
  char sequence[24];
  std::snprintf(sequence, sizeof sequence, "%04llu", static_cast<unsigned long long>(dump.call_sequence));
  const std::string base =
      str(settings_.dump_dir, "/", dump.timestamp, "_pid", ::getpid(), "_", name.substr(0, 150), "_call", sequence);
  // Another host may have the same process id in the same millisecond: its folder is not reused.
  for (int i = 1; i < 1000; ++i) {
    dump.path = i == 1 ? base : str(base, "_", i);
    if (::mkdir(dump.path.c_str(), 0700) == 0) return;
    if (errno == ENOENT) {
      fs::make_dirs(settings_.dump_dir);
      if (::mkdir(dump.path.c_str(), 0700) == 0) return;
    }
    if (errno != EEXIST) break;
  }
  const int error = errno;
  dump.path.clear();
  throw RuntimeError(str("cannot create ", base, ": ", std::strerror(error)));
}

void Recorder::append(const std::string& folder, const Json& record) {
  const std::string line = formats::dump_json(record) + "\n";
  append_line(folder + "/" + kMetadataFile, line);
  append_line(settings_.dump_dir + "/" + kSessionFile, line);
}

/// The call is over: the ring may evict it from now on.
void Recorder::finish(Dump& dump, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ += bytes;
  dump.disk_bytes += bytes;
  if (settings_.keep_last) ring_.push_back({dump.path, dump.disk_bytes, dump.packs, dump.weak_from_this()});
}

/// The inputs could not be written: removes everything of this call.
void Recorder::abandon(Dump& dump) {
  if (!dump.path.empty()) fs::remove_tree(dump.path);
  const std::lock_guard lock(mutex_);
  if (chunks_) chunks_->release(dump.packs);
  bytes_ -= std::min(bytes_, dump.disk_bytes);
  --admitted_;
  --totals_.calls;
  ++totals_.lost;
}

}  // namespace flashinfer::record
