// SPDX-License-Identifier: Apache-2.0
// The next token of each row of logits: the largest, or drawn with a seed of the request's own.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <flashinfer/flashinfer.h>

namespace llm {

struct Sampling {
  double temperature = 0;  // 0: greedy
  int64_t top_k = 0;       // 0: off
  double top_p = 1;
  int64_t seed = 0;  // of request 0; request i has seed + i
};

class Sampler {
 public:
  /// A rejection sampler may use up to 32 numbers a draw; the offset leaves each draw its own.
  static constexpr int64_t kNumbersPerDraw = 32;

  explicit Sampler(const Sampling& sampling) : sampling_(sampling) {}
  int64_t seed_of(int64_t request) const { return sampling_.seed + request; }
  static int64_t offset_of(int64_t drawn) { return kNumbersPerDraw * drawn; }
  /// `logits` f32 [rows, vocabulary]; request and number of earlier tokens of each row give its random numbers, so that
  /// a draw depends on nothing else.
  std::vector<int32_t> next(const flashinfer::TensorView& logits, std::span<const int64_t> request,
                            std::span<const int64_t> drawn);
  /// The same on the logits' device, without a wait: seeds and offsets i64 [rows] there (greedy: unread), tokens i32
  /// [rows], made when absent.
  flashinfer::Tensor draw(const flashinfer::TensorView& logits, const flashinfer::TensorView& seeds,
                          const flashinfer::TensorView& offsets,
                          const std::optional<flashinfer::TensorView>& tokens) const;

 private:
  Sampling sampling_;
  std::vector<int64_t> seeds_, offsets_;
};

}  // namespace llm
