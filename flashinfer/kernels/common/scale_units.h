// SPDX-License-Identifier: Apache-2.0
// The scale factors of a matrix in units of 32, as a warp of a GPU processes them: byte i of a unit is the scale of the
// lane i, and a unit is 32 consecutive bytes in memory, one full sector, in every layout. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/common/scale_layout.h"

namespace flashinfer {

inline constexpr uint32_t kScaleUnit = 32;

/// rows x columns scale factors in `layout` (128x4, 8x4 or linear).
struct ScaleUnits {
  uint32_t rows, columns;  // without padding
  uint32_t tiles;          // of four columns
  uint32_t units;          // the last one of a linear layout may have fewer than 32 scales
  SfLayout layout;
};
constexpr ScaleUnits scale_units(SfLayout layout, int64_t rows, int64_t columns) {
  return {static_cast<uint32_t>(rows), static_cast<uint32_t>(columns), static_cast<uint32_t>(ceil_div(columns, 4)),
          static_cast<uint32_t>(ceil_div(sf_bytes(layout, rows, columns), int64_t{kScaleUnit})), layout};
}

/// Where the scales of a unit belong. Neighbouring `turn`s are neighbouring columns of the same rows, so that the
/// blocks that run together read long pieces of rows.
struct ScaleUnit {
  uint32_t index;        // its bytes begin at 32 * index
  uint32_t row, column;  // of scale 0; linear: unused
};
constexpr ScaleUnit scale_unit(const ScaleUnits& s, uint32_t turn) {
  if (s.layout == SfLayout::kLinear) return {turn, 0, 0};
  if (s.layout == SfLayout::k8x4) return {turn, turn / s.tiles * 8, turn % s.tiles * 4};
  const uint32_t across = turn / s.tiles, tile = turn % s.tiles;  // `across`: 16 units of two rows in each tile
  return {(across / 16 * s.tiles + tile) * 16 + across % 16, across / 16 * 128 + across % 16 * 2, tile * 4};
}
/// Row and column of scale i of the unit; they may lie in the padding.
struct ScaleCell {
  uint32_t row, column;
};
constexpr ScaleCell scale_cell(const ScaleUnits& s, const ScaleUnit& u, uint32_t i) {
  if (s.layout == SfLayout::kLinear) {
    const uint32_t at = u.index * kScaleUnit + i;
    return {at / s.columns, at % s.columns};
  }
  const uint32_t slot = i / 4;
  const uint32_t row = s.layout == SfLayout::k8x4 ? slot : slot % 4 * 32 + slot / 4;
  return {u.row + row, u.column + i % 4};
}

}  // namespace flashinfer
