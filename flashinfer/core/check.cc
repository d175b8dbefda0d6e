// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/check.h"

namespace flashinfer {

std::string_view name(ErrorKind k) {
  switch (k) {
    case ErrorKind::kValueError: return "ValueError";
    case ErrorKind::kTypeError: return "TypeError";
    case ErrorKind::kKeyError: return "KeyError";
    case ErrorKind::kRuntimeError: return "RuntimeError";
    case ErrorKind::kNotImplementedError: return "NotImplementedError";
    case ErrorKind::kAssertionError: return "AssertionError";
    case ErrorKind::kInternalError: return "InternalError";
  }
  return "Error";
}

Error::Error(ErrorKind kind, const std::string& message)
    : std::runtime_error(std::string(name(kind)) + ": " + message), kind_(kind), message_(message) {}

void throw_error(ErrorKind kind, const std::string& message) {
  switch (kind) {
    case ErrorKind::kValueError: throw ValueError(message);
    case ErrorKind::kTypeError: throw TypeError(message);
    case ErrorKind::kKeyError: throw KeyError(message);
    case ErrorKind::kRuntimeError: throw RuntimeError(message);
    case ErrorKind::kNotImplementedError: throw NotImplementedError(message);
    case ErrorKind::kInternalError: throw InternalError(message);
    case ErrorKind::kAssertionError: break;
  }
  throw Error(kind, message);
}

}  // namespace flashinfer
