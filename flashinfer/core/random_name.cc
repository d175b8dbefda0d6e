// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/random_name.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "flashinfer/core/check.h"
#include "flashinfer/core/hex.h"

namespace flashinfer {

std::string random_name() {
  uint64_t bits[2];
  FI_CHECK(getrandom(bits, sizeof bits, 0) == sizeof bits, RuntimeError,
           "cannot draw a random name: ", std::strerror(errno));
  return hex_bytes(bits, sizeof bits);
}

}  // namespace flashinfer
