// SPDX-License-Identifier: Apache-2.0
// Warnings: things a user should know that are no errors. Printed to stderr unless the program takes them.
#pragma once
#include <string>

namespace flashinfer {

/// Passes `message` to the handler. Callers see to it that a warning comes once.
void warn(const std::string& message);

/// Who takes warnings from now on; null: stderr, as "flashinfer: warning: ...". Called from the thread of the call that warns.
using WarningHandler = void (*)(const std::string& message);
void set_warning_handler(WarningHandler handler);

}  // namespace flashinfer
