// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/mla/packed_rows.h"

#include <cmath>
#include <cstring>

#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/common/rows.h"

namespace flashinfer::mla {
namespace {
constexpr int64_t kScales = kPackedLatent / kScaleGroup, kWidth = kPackedLatent + kPackedRope;
}  // namespace

PackedRows::PackedRows(Plan& p, const TensorView& rows) : rows_(rows) {
  std::vector<int32_t> place(static_cast<size_t>(rows.size(0)), -1);
  const int64_t n = p.kv_indptr.data_as<int32_t>()[p.batch_size];
  Tensor places = Tensor::empty({n}, DType::kI32);
  for (int64_t i = 0; i < n; ++i) {
    const int32_t token = p.kv_indices.data_as<int32_t>()[i];
    int32_t& at = place[static_cast<size_t>(token)];
    if (at < 0) at = static_cast<int32_t>(used_.size()), used_.push_back(token);
    places.data_as<int32_t>()[i] = at;
  }
  p.kv_indices = places;
  p.max_page = static_cast<int64_t>(used_.size()) - 1;
  values_ = Tensor::empty({static_cast<int64_t>(used_.size()), 1, kWidth}, DType::kBF16);
}

void PackedRows::unpack() const {
  const auto n = static_cast<int64_t>(used_.size());
  ops::for_rows(n, ops::rows_per_task(n, 3 * kWidth), [&](int64_t i) {
    const uint8_t* row = rows_.data_as<uint8_t>() + used_[static_cast<size_t>(i)] * rows_.stride(0);
    bf16_t* to = values_.data_as<bf16_t>() + i * kWidth;
    float scales[kScales];
    std::memcpy(scales, row + kPackedLatent, sizeof scales);
    for (int64_t d = 0; d < kPackedLatent; ++d) {
      e4m3_t code;
      code.bits = row[d];
      to[d] = static_cast<bf16_t>(static_cast<float>(code) * scales[d / kScaleGroup]);
    }
    std::memcpy(to + kPackedLatent, row + kPackedLatent + sizeof scales, 2 * kPackedRope);
  });
}

void PackedRows::unpack_reference() const {
  for (size_t i = 0; i < used_.size(); ++i) {
    const uint8_t* row = rows_.data_as<uint8_t>() + used_[i] * rows_.stride(0);
    const auto put = [&](int64_t d, double x) { ref::put(values_.view(), {static_cast<int64_t>(i), 0, d}, x); };
    for (int d = 0; d < 512; ++d) {
      const int code = row[d], exponent = code >> 3 & 15, fraction = code & 7;
      double x = exponent ? std::ldexp(8 + fraction, exponent - 10) : std::ldexp(fraction, -9);
      if (exponent == 15 && fraction == 7) x = NAN;
      float scale;
      std::memcpy(&scale, row + 512 + d / 128 * 4, 4);
      put(d, (code & 128 ? -x : x) * static_cast<double>(scale));
    }
    for (int d = 0; d < 64; ++d) {
      const uint32_t bits = static_cast<uint32_t>(row[528 + 2 * d] | row[529 + 2 * d] << 8) << 16;
      float x;
      std::memcpy(&x, &bits, 4);
      put(512 + d, static_cast<double>(x));
    }
  }
}

}  // namespace flashinfer::mla
