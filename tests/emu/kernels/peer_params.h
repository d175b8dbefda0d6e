// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

/// Of a launch on GPU `rank` of `ranks`.
struct PeerParams {
  float* data[4];      // of each GPU, for all: two slots of kPeerSlot elements
  uint32_t* flags[4];  // of each GPU, for all: [block][GPU]
  uint32_t* calls;     // launches that have ended
  float* out;
  uint32_t rank, ranks;
};
inline constexpr int kPeerSlot = 128;
