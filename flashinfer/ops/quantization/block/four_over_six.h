// SPDX-License-Identifier: Apache-2.0
// The recipe "4 over 6" of NVFP4: each block of 16 takes the better of two scales, amax / 6 and amax / 4.
//   s6 = e4m3(amax / 6 * gs), s4 = e4m3(amax / 6 * gs * 1.5); codes of each as in fp4.h, each step in f32.
//   The error of a candidate is the sum over the block, in order, of |d| (MAE) or d * d (MSE), where d is
//   code * s / gs - x, with a scale for each row code * s * amax(row) / (6 * e4m3_max) - x, and with fast mathematics
//   code * s - x * gs. s4 is taken where its error is less.
// e4m3_max, 448 or 256, is not a limit of the scales: it decides the global scale, e4m3_max * 6 / amax(tensor).
#pragma once
#include "flashinfer/op/value.h"

namespace flashinfer::ops {

struct FourOverSix {
  bool on = false;
  bool max_is_256 = false;
  bool squares = false;  // MSE
  bool fast = false;
  float e4m3_max() const { return max_is_256 ? 256.0f : 448.0f; }
  /// BlockQuantConfig::four_over_six
  unsigned char config() const { return static_cast<unsigned char>(on ? 1 | squares << 1 | fast << 2 : 0); }
};

/// What an argument `nvfp4_4over6` means: None is off; the text of an argument left out (kUnset4Over6) and -1 are the
/// environment's, read at each call (FLASHINFER_NVFP4_4OVER6*, a FutureWarning the first time that it is on); a number
/// is that of nvfp4_4over6_code (bit 0 on, bit 1 256, bits 2 and 3 the error mode, bit 4 fast mathematics); a
/// dictionary has the members of Python's NVFP44Over6Config. ValueError: no such recipe; TypeError: any other value.
FourOverSix four_over_six(const op::Value& setting);
/// ValueError where a recipe is on for what has none (MX formats, e4m3 input).
void check_no_4over6(const op::Value& setting, const char* what);

}  // namespace flashinfer::ops
