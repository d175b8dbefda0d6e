// SPDX-License-Identifier: Apache-2.0
// Warnings: things a user should know that are no errors. Printed to stderr unless the program takes them.
#pragma once
#include <string>

namespace flashinfer {

enum class WarningKind { kUser, kDeprecation };

/// Passes `message` to the handler. Callers see to it that a warning comes once.
void warn(const std::string& message);
/// A way of calling that will go. Passed to the handler each time, which knows the place of the call; printed once.
void deprecated(const std::string& message);

/// Who takes warnings from now on; null: stderr, as "flashinfer: warning: ...". Called from the thread of the call that warns.
using WarningHandler = void (*)(const std::string& message, WarningKind kind);
void set_warning_handler(WarningHandler handler);

}  // namespace flashinfer
