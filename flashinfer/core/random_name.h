// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace flashinfer {

/// 32 random hexadecimal digits, for names and ids that no other process draws. RuntimeError: the system has none.
std::string random_name();

}  // namespace flashinfer
