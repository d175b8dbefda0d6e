// SPDX-License-Identifier: Apache-2.0
// Errors. Every message names the op, the argument and both values; its kind is the Python exception class that the
// Python interface raises.
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace flashinfer {

enum class ErrorKind : unsigned char {
  kValueError,
  kTypeError,
  kKeyError,
  kRuntimeError,
  kNotImplementedError,
  kAssertionError,
  kInternalError,
};
std::string_view name(ErrorKind k);  // "ValueError", ...

/// what() is "ValueError: rmsnorm: weight.shape[0] is 4096, but d is 5120 (from input.shape[1])".
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message);
  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }  // without the kind
  const char* what() const noexcept override { return what_.c_str(); }
  /// Puts "<op>: " in front of the message, once: an error keeps the name of the innermost op that it left. Checks and
  /// kernels therefore do not name their op; the one call of this is in op/call.cc.
  void set_op(std::string_view op);

 private:
  ErrorKind kind_;
  bool has_op_ = false;
  std::string message_, what_;
};

struct ValueError : Error {
  explicit ValueError(const std::string& m) : Error(ErrorKind::kValueError, m) {}
};
struct TypeError : Error {
  explicit TypeError(const std::string& m) : Error(ErrorKind::kTypeError, m) {}
};
struct KeyError : Error {
  explicit KeyError(const std::string& m) : Error(ErrorKind::kKeyError, m) {}
};
struct RuntimeError : Error {
  explicit RuntimeError(const std::string& m) : Error(ErrorKind::kRuntimeError, m) {}
};
struct NotImplementedError : Error {
  explicit NotImplementedError(const std::string& m) : Error(ErrorKind::kNotImplementedError, m) {}
};
/// A bug in the library, never the caller's fault.
struct InternalError : Error {
  explicit InternalError(const std::string& m) : Error(ErrorKind::kInternalError, m) {}
};

/// Throws the class of `kind`.
[[noreturn]] void throw_error(ErrorKind kind, const std::string& message);

/// str("page id ", id, " is outside the pool of ", n, " pages")
template <class... T>
std::string str(const T&... parts) {
  std::ostringstream s;
  (s << ... << parts);
  return s.str();
}

/// FI_CHECK(cond, ValueError, "eps is ", eps, ", but must be positive"); the message is built only on failure.
#define FI_CHECK(cond, Kind, ...)                               \
  do {                                                          \
    if (!(cond)) [[unlikely]]                                   \
      throw ::flashinfer::Kind(::flashinfer::str(__VA_ARGS__)); \
  } while (false)

}  // namespace flashinfer

#pragma GCC visibility pop
