// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/warn.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>

namespace flashinfer {
namespace {
std::atomic<WarningHandler> g_handler{nullptr};
}

void warn(const std::string& message) {
  if (const WarningHandler handler = g_handler.load(std::memory_order_acquire)) return handler(message, WarningKind::kUser);
  std::fprintf(stderr, "flashinfer: warning: %s\n", message.c_str());
}

void deprecated(const std::string& message) {
  if (const WarningHandler handler = g_handler.load(std::memory_order_acquire)) return handler(message, WarningKind::kDeprecation);
  static std::mutex mutex;
  static std::set<std::string> printed;
  std::lock_guard lock(mutex);
  if (printed.insert(message).second) std::fprintf(stderr, "flashinfer: deprecated: %s\n", message.c_str());
}

void set_warning_handler(WarningHandler handler) { g_handler.store(handler, std::memory_order_release); }

}  // namespace flashinfer
