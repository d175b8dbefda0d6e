// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/openmp.h"
#include "flashinfer/core/printable.h"
#include "flashinfer/core/thread_pool.h"
#include "flashinfer/op/call.h"
#include "flashinfer/record/filter.h"
#include "flashinfer/record/locks.h"
#include "flashinfer/record/machine.h"
#include "flashinfer/record/record.h"
#include "flashinfer/record/recorder.h"
#include "flashinfer/record/sink.h"
#include "flashinfer/record/text.h"

namespace flashinfer::record {
namespace {

/// Statistics and checksums run on the library's own threads, even where calls share torch's: OpenMP waits for every
/// worker of a region, and a descheduled one is milliseconds late; the own pool waits only for claimed tasks. 4 MB
/// beside one busy program: 5 ms instead of 35.
class OwnThreads {
 public:
  explicit OwnThreads(bool wanted) {
    const Context& current = Context::current();
    if (!wanted || current.executor.threads <= 1 || !is_openmp(current.executor)) return;
    context_ = current;
    context_->executor = own_executor();
    scope_.emplace(*context_);
  }

 private:
  std::optional<Context> context_;
  std::optional<ContextScope> scope_;
};

/// Effective settings and the objects made for them. Never deleted: a call may still use replaced settings.
struct Active {
  Settings settings;
  Sink* sink = nullptr;
  std::shared_ptr<Recorder> recorder;  // level >= 10
  bool filtered = false;
};

std::atomic<const Active*> g_active{nullptr};
Recorder* g_recorder = nullptr;

/// A call that is being logged, kept in Invocation::state.
struct Logged {
  const Active* active;
  std::shared_ptr<Dump> dump;
};

thread_local std::string t_text;  // of one record; keeps its capacity

constexpr size_t kKeepText = 1 << 20;

void emit(Sink& sink) {
  sink.write(t_text);
  if (t_text.capacity() > kKeepText) t_text = {};
}

void log_error_to(Sink& sink, std::string_view name, std::string_view phase, std::string_view message) {
  sink.write(str("[LOGGING ERROR in ", name, " ", phase, "]: ", message, "\n"));
}

void put_in_force(const Settings& s);
void install_observer();

/// Checks the control file at most every 50 ms.
class Control {
 public:
  void poll(const std::string& path) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    const int64_t ms = now.tv_sec * 1000 + now.tv_nsec / 1000000;
    int64_t next = next_ms_.load(std::memory_order_relaxed);
    if (ms < next || !next_ms_.compare_exchange_strong(next, ms + 50, std::memory_order_relaxed)) return;
    struct stat st;
    if (::stat(path.c_str(), &st) != 0) return;
    {
      const std::lock_guard lock(g_control_file_mutex);
      const Seen seen{st.st_ino, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
      if (seen == seen_) return;
      seen_ = seen;
      if (!read(path)) return;
    }
    install_observer();
  }

 private:
  struct Seen {
    uint64_t inode = 0;
    int64_t size = -1, seconds = 0, nanoseconds = 0;
    bool operator==(const Seen&) const = default;
  };
  /// False when nothing changed.
  static bool read(const std::string& path) {
    const auto text = fs::read_file(path);
    if (!text) return false;
    Settings s = settings();
    try {
      for (size_t begin = 0; begin < text->size();) {
        const size_t end = std::min(text->find('\n', begin), text->size());
        apply(s, std::string_view(*text).substr(begin, end - begin));
        begin = end + 1;
      }
    } catch (const std::exception& e) {
      std::fprintf(stderr, "flashinfer: warning: %s: %s; nothing of it is done\n", path.c_str(),
                   printable_lines(e.what()).c_str());
      return false;
    }
    put_in_force(s);
    return true;
  }
  std::atomic<int64_t> next_ms_{0};
  Seen seen_;
};
Control g_control;

const Active* in_force() {
  const Active* a = g_active.load(std::memory_order_acquire);
  if (!a || a->settings.control.empty()) return a;
  g_control.poll(a->settings.control);
  return g_active.load(std::memory_order_acquire);
}

Wanted wanted_by(const Active& a, std::string_view name) {
  if (a.settings.level == 1) return Wanted::kName;
  if (a.settings.level < 3) return Wanted::kNothing;
  if (a.filtered && !passes(a.settings.include, a.settings.exclude, name)) return Wanted::kNothing;
  return a.recorder ? Wanted::kDump : Wanted::kValues;
}

class Log final : public op::Observer {
 public:
  void before(op::Invocation& call) override {
    const Active& a = *in_force();
    switch (wanted_by(a, call.name)) {
      case Wanted::kNothing: return;
      case Wanted::kName: return name_only(*a.sink, call.name);
      default: return full(a, call);
    }
  }

  void after(op::Invocation& call, const op::Value& result) override {
    const auto* logged = static_cast<const Logged*>(call.state.get());
    if (!logged) return;
    const Active& a = *logged->active;
    const OwnThreads threads(a.settings.level >= 5);
    try {
      t_text.clear();
      append_after(t_text, result, a.settings.level >= 5);
      emit(*a.sink);
    } catch (const std::exception& e) {
      log_error_to(*a.sink, call.name, "(outputs)", e.what());
    }
    if (logged->dump) a.recorder->after(call, *logged->dump, result);
  }

  void failed(op::Invocation& call, const std::exception& error) override {
    const auto* logged = static_cast<const Logged*>(call.state.get());
    if (logged && logged->dump) logged->active->recorder->failed(call, *logged->dump, error);
  }

 private:
  static void name_only(Sink& sink, std::string_view name) {
    constexpr std::string_view kText = "FlashInfer API Call: ";
    char line[512];
    char* p = line;
    const auto put = [&p](std::string_view s) {
      std::memcpy(p, s.data(), s.size());
      p += s.size();
    };
    put(timestamp_prefix());
    put(kText);
    put(name.substr(0, sizeof line - 64));
    *p++ = '\n';
    sink.write({line, static_cast<size_t>(p - line)});
  }

  static void full(const Active& a, op::Invocation& call) {
    auto logged = std::make_shared<Logged>();
    logged->active = &a;
    if (a.settings.sync) op::wait_after_launch();
    const OwnThreads threads(a.settings.level >= 5);
    try {
      const std::vector<op::Arg> args = call.args();
      if (a.recorder) logged->dump = a.recorder->before(call, args);
      t_text.clear();
      append_before(t_text, call.name, args, a.settings.level >= 5);
      emit(*a.sink);
    } catch (const std::exception& e) {
      log_error_to(*a.sink, call.name, "(pre-execution)", e.what());
    }
    call.state = std::move(logged);
  }
};

Log& the_log() {
  static Log& log = *new Log;  // calls may run until the process ends
  return log;
}

std::string list_text(const std::vector<std::string>& items) {
  std::string s = "[";
  for (size_t i = 0; i < items.size(); ++i) s += (i ? ", " : "") + op::python_repr(items[i]);
  return s + "]";
}

/// Level 10 prints on stdout what it is about to do, wherever the log goes.
void print_security_block(const Settings& s) {
  std::string t(kDoubleRuler);
  t += "WARNING: FlashInfer API Logging is set to Level 10 (Tensor Dumping).\n"
       "This will dump ALL input and outputs including tensors for FlashInfer APIs to disk in\n"
       "the configured dump directory. Ensure that you are NOT processing sensitive data\n"
       "or that the dump directory is secure. To disable dumping, unset FLASHINFER_LOGLEVEL or\n"
       "set it to below 10. For more information, see https://docs.flashinfer.ai/logging.html\n";
  t += "Current dump directory is: " + s.dump_dir + "\n";
  if (!s.include.empty()) t += "Include filter: " + list_text(s.include) + "\n";
  if (!s.exclude.empty()) t += "Exclude filter: " + list_text(s.exclude) + "\n";
  const auto others = other_versions();  // a program with torch, whose graphs the Python package watches
  if (std::ranges::any_of(others, [](const auto& v) { return v.first == "torch"; }))
    t += "CUDA graph replay hook enabled: flush_graph_dumps() will run after every torch.cuda.CUDAGraph.replay().\n"
         "CUDA graph capture stores tensor references and materializes snapshots after every replay.\n";
  t += kDoubleRuler;
  Sink::open("stdout").write(t);
}

}  // namespace

namespace {

void put_in_force(const Settings& s) {
  static auto& actives = *new std::vector<std::unique_ptr<const Active>>;
  [[maybe_unused]] static const int fork_handler = pthread_atfork(nullptr, nullptr, forget_graphs);
  const std::lock_guard lock(g_settings_mutex);
  const Active* old = g_active.load(std::memory_order_acquire);
  auto next = std::make_unique<Active>();
  next->settings = s;
  next->filtered = !s.include.empty() || !s.exclude.empty();
  const bool on = s.level != 0;
  if (on) next->sink = &Sink::open(s.destination);
  if (on && (!old || old->settings.level == 0)) next->sink->write(banner());
  if (s.level >= 10) {
    if (old && old->settings.level >= 10 && same_recording(old->settings, s)) {
      next->recorder = old->recorder;
    } else {
      print_security_block(s);
      next->recorder = std::make_shared<Recorder>(s, *next->sink);
    }
  }
  if (s.level >= 1 && (!old || old->settings.level < 1)) next->sink->write(version_line());
  g_recorder = next->recorder.get();
  g_active.store(next.get(), std::memory_order_release);
  actives.push_back(std::move(next));
}

/// Calls Python, so it must not be called under a ForkMutex. The last thread installs the effective settings.
void install_observer() {
  const Active* a = nullptr;
  while (a != g_active.load(std::memory_order_acquire)) {
    a = g_active.load(std::memory_order_acquire);
    op::set_observer(a->settings.level != 0 || !a->settings.control.empty() ? &the_log() : nullptr);
  }
}

}  // namespace

void configure(const Settings& s) {
  put_in_force(s);
  install_observer();
}

Settings settings() {
  init_from_env();
  const Active* a = g_active.load(std::memory_order_acquire);
  return a ? a->settings : Settings{};
}

void start(int level) {
  Settings s = settings();
  s.level = std::max(s.level, level);
  configure(s);
}

void stop() {
  Settings s = settings();
  s.level = 0;
  configure(s);
}

Totals totals() {
  const std::lock_guard lock(g_settings_mutex);
  if (!g_recorder) return {};
  g_recorder->become_own();
  return g_recorder->totals();
}

Wanted wanted(std::string_view name) {
  const Active* a = in_force();
  return a ? wanted_by(*a, name) : Wanted::kNothing;
}

void log_error(std::string_view name, std::string_view phase, std::string_view message) {
  const Active* a = g_active.load(std::memory_order_acquire);
  if (a && a->sink) log_error_to(*a->sink, name, phase, message);
}

void init_from_env() {
  static std::once_flag once;
  std::call_once(once, [] {
    const Settings s = settings_from_env();
    if (!g_active.load(std::memory_order_acquire)) configure(s);
  });
}

void restart_from_env() {
  static std::atomic<bool> started{false};
  init_from_env();
  if (!started.exchange(true)) return;
  env::reload();
  configure({});
  configure(settings_from_env());
}

}  // namespace flashinfer::record

namespace flashinfer::op {
void start_observing() { record::init_from_env(); }
}  // namespace flashinfer::op
