// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

struct PlantedParams {
  float* in;   // n elements
  float* out;  // n elements
  uint32_t* counter;
  int64_t n;
};
