// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/warn.h"

#include <atomic>

#include "flashinfer/core/printable.h"
#include "flashinfer/core/status_line.h"

namespace flashinfer {
namespace {
std::atomic<WarningHandler> g_handler{nullptr};
}

void warn(const std::string& text) {
  const std::string message = printable_lines(text);
  if (const WarningHandler handler = g_handler.load(std::memory_order_acquire)) {
    const StatusLineHidden while_it_prints;
    return handler(message, WarningKind::kUser);
  }
  write_stderr("flashinfer: warning: " + message + "\n");
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
