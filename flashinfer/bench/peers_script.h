// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace flashinfer::bench {

/// The text of bench/peers.py.
extern const char* const kPeersScript;

}  // namespace flashinfer::bench
