// SPDX-License-Identifier: Apache-2.0
// Warnings: things a user should know that are no errors. Printed to stderr unless the program takes them.
#pragma once
#include <string>

namespace flashinfer {

enum class WarningKind { kUser, kDeprecation };

/// Passes `message` to the handler. Callers see to it that a warning comes once.
void warn(const std::string& message);
/// A way of calling that upstream will drop. Passed to the handler each time, which knows the place of the call;
/// without a handler nobody is told: in C++ it is a way like others.
void deprecated(const std::string& message);

/// Who takes warnings from now on; null: stderr, as "flashinfer: warning: ...". Called from the thread of the call that
/// warns.
using WarningHandler = void (*)(const std::string& message, WarningKind kind);
void set_warning_handler(WarningHandler handler);

}  // namespace flashinfer
