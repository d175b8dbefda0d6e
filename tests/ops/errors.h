// SPDX-License-Identifier: Apache-2.0
// The error that a call must throw.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "flashinfer/core/check.h"

namespace flashinfer {

/// The whole message of what `f` throws, "no error" when it does not throw.
inline std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}
inline bool holds(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

/// `f` throws, with `part` in its message.
inline void expect_refused(const std::string& part, const std::function<void()>& f) {
  const std::string message = message_of(f);
  EXPECT_TRUE(holds(message, part)) << message << "\nlacks: " << part;
}
/// The same, and the kind of error.
inline void expect_error(ErrorKind kind, const std::string& part, const std::function<void()>& f) {
  try {
    f();
    FAIL() << "no error; expected one with: " << part;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_TRUE(holds(e.what(), part)) << e.what() << "\nlacks: " << part;
  }
}
#define EXPECT_REFUSED(part, call)       \
  do {                                   \
    SCOPED_TRACE(#call);                 \
    expect_refused(part, [&] { call; }); \
  } while (false)

}  // namespace flashinfer
