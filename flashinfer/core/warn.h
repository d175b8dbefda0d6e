// SPDX-License-Identifier: Apache-2.0
// Warnings, printed to stderr unless the program handles them.
#pragma once
#include <string>

#pragma GCC visibility push(default)

namespace flashinfer {

enum class WarningKind { kUser, kDeprecation, kFuture };

/// Passes `message` to the handler. Callers make sure that a warning is given once.
void warn(const std::string& message);
/// A calling convention that upstream will drop. Passed to the handler on each call, which knows the calling line;
/// ignored without a handler, as it is not deprecated in C++.
void deprecated(const std::string& message);

/// The same for what users set, such as environment variables: Python's FutureWarning.
void future(const std::string& message);

/// Sets the handler of warnings; null: stderr, as "flashinfer: warning: ...". It runs on the thread of the call that
/// warns.
using WarningHandler = void (*)(const std::string& message, WarningKind kind);
void set_warning_handler(WarningHandler handler);

}  // namespace flashinfer

#pragma GCC visibility pop
