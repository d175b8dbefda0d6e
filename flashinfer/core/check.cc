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
    : std::runtime_error(message), kind_(kind), message_(message), what_(str(name(kind), ": ", message)) {}

void Error::set_op(std::string_view op) {
  const bool named = message_.size() > op.size() && message_.starts_with(op) && message_[op.size()] == ':';
  if (!has_op_ && !named) {
    message_ = str(op, ": ", message_);
    what_ = str(name(kind_), ": ", message_);
  }
  has_op_ = true;
}

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
