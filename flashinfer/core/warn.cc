// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/warn.h"

#include <atomic>
#include <cstdio>

#include "flashinfer/core/printable.h"

namespace flashinfer {
namespace {
std::atomic<WarningHandler> g_handler{nullptr};
}

void warn(const std::string& text) {
  const std::string message = printable_lines(text);
  if (const WarningHandler handler = g_handler.load(std::memory_order_acquire))
    return handler(message, WarningKind::kUser);
  std::fprintf(stderr, "flashinfer: warning: %s\n", message.c_str());
}

void deprecated(const std::string& message) {
  if (const WarningHandler handler = g_handler.load(std::memory_order_acquire))
    handler(message, WarningKind::kDeprecation);
}

void future(const std::string& message) {
  if (const WarningHandler handler = g_handler.load(std::memory_order_acquire)) handler(message, WarningKind::kFuture);
}

void set_warning_handler(WarningHandler handler) { g_handler.store(handler, std::memory_order_release); }

}  // namespace flashinfer
