// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <typeinfo>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/warn.h"
#include "flashinfer/op/tracer.h"
#include "flashinfer/trace/trace.h"

namespace flashinfer::trace {
namespace {

/// Settings and names. Never deleted: a call may still use replaced settings.
constinit ForkMutex g_mutex(ForkLayer::kRecord, 100);
std::atomic<const Settings*> g_settings{nullptr};

std::set<std::string>& written() {
  static auto& names = *new std::set<std::string>;
  return names;
}
/// True the first time. Guarded by g_mutex.
bool first_time(const std::string& what) {
  const std::lock_guard lock(g_mutex);
  return written().insert(what).second;
}

class Tracer final : public op::Observer {
 public:
  void before(op::Invocation& call) override {
    const Settings* fixed = g_settings.load(std::memory_order_acquire);
    if (!fixed || !call.op || call.depth > 0) return;
    try {
      const Settings s = fixed->watch ? settings_from_env() : *fixed;
      if (!s.on) return;
      const Json definition =
          define(*call.op, facts_of(*call.op, call.block), {.strict = s.strict, .block = call.block});
      if (!definition.empty() && !s.dir.empty()) write_once(definition, s.dir);
    } catch (const std::exception& e) {
      const auto* error = dynamic_cast<const Error*>(&e);
      const std::string kind = error ? std::string(name(error->kind())) : typeid(e).name();
      if (first_time(str("warned ", call.name, " ", kind)))
        warn(str(call.name, ": no trace definition is written: ", e.what()));
    }
  }
  void after(op::Invocation&, const op::Value&) override {}
  void failed(op::Invocation&, const std::exception&) override {}
};
constinit Tracer g_tracer;

}  // namespace

Settings settings_from_env() {
  const std::string on = env::text("FLASHINFER_TRACE_DUMP");
  return {.on = !on.empty() && on != "0",
          .strict = env::flag("FLASHINFER_TRACE_DUMP_STRICT"),
          .dir = env::text("FLASHINFER_TRACE_DUMP_DIR"),
          .watch = !on.empty()};
}

Settings settings() {
  op::start_tracing();
  const Settings* s = g_settings.load(std::memory_order_acquire);
  return s ? *s : Settings{};
}

bool configured() { return g_settings.load(std::memory_order_acquire) != nullptr; }
void configure(const Settings& s) {
  static auto& kept = *new std::vector<std::unique_ptr<const Settings>>;
  {
    const std::lock_guard lock(g_mutex);
    kept.push_back(std::make_unique<const Settings>(s));
    g_settings.store(kept.back().get(), std::memory_order_release);
  }
  op::set_tracer(s.on || s.watch ? &g_tracer : nullptr);
}

void restart_from_env() {
  {
    const std::lock_guard lock(g_mutex);
    written().clear();
  }
  configure(settings_from_env());
}

std::string file_text(const Json& definition) { return definition.dump(2, ' ', true, Json::error_handler_t::replace); }

void write(const Json& definition, const std::string& dir) {
  const std::string name = definition.at("name");
  FI_CHECK(!name.empty() && name.find('/') == name.npos && name[0] != '.', ValueError, "the definition's name \"", name,
           "\" is not the name of a file");
  fs::make_dirs(dir);
  fs::write_atomic(dir + "/" + name + ".json", file_text(definition), 0644);
}

void write_once(const Json& definition, const std::string& dir) {
  if (first_time("name " + definition.at("name").get<std::string>())) write(definition, dir);
}

}  // namespace flashinfer::trace

namespace flashinfer::op {
void start_tracing() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (!trace::configured()) trace::configure(trace::settings_from_env());
  });
}
}  // namespace flashinfer::op
