// SPDX-License-Identifier: Apache-2.0
// The bytes of a view are low + sum of x_i * step_i + u with 0 <= x_i <= last_i and u inside an element. With those of
// b written from their highest one down, a and b share a byte when
//   sum of x_i * step_i (dimensions of a and of b, and bytes inside an element) = highest byte of b - lowest byte of a
// has a solution. That is a bounded Diophantine equation: hard in general, easy where large steps exceed what small
// ones reach, as in tensors.
#include "flashinfer/op/overlap.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "flashinfer/core/int_math.h"

namespace flashinfer::op {
namespace {

constexpr int64_t kFar = int64_t{1} << 61;  // bytes; a longer span is no memory
constexpr int kMaxSteps = 1 << 16;

/// Lowest and highest byte.
struct Range {
  intptr_t low = 0, high = -1;
  bool far = false;
};
Range range_of(const TensorView& t) {
  int64_t low = 0, high = 0;
  bool far = false;
  for (int i = 0; i < t.rank(); ++i) {
    if (t.size(i) == 0) return {};
    int64_t reach;
    far |= __builtin_mul_overflow(t.size(i) - 1, t.stride(i), &reach) || reach > kFar / 128 || reach < -kFar / 128;
    if (far) reach = 0;
    (reach < 0 ? low : high) += reach;
  }
  const auto p = reinterpret_cast<intptr_t>(t.data());
  return {p + low * t.item_size(), p + (high + 1) * t.item_size() - 1, far};
}

struct Term {
  int64_t step, last;
};
/// Terms with different steps, and whether they add up to a target.
class Sum {
 public:
  void add(int64_t step, int64_t last) {
    if (step == 0 || last == 0) return;
    int i = count_;
    for (; i > 0 && term_[static_cast<size_t>(i - 1)].step >= step; --i)
      if (term_[static_cast<size_t>(i - 1)].step == step) {
        term_[static_cast<size_t>(i - 1)].last += last;
        return;
      }
    std::copy_backward(term_.begin() + i, term_.begin() + count_, term_.begin() + count_ + 1);
    term_[static_cast<size_t>(i)] = {step, last};
    ++count_;
  }
  bool reaches(int64_t target) {
    int small = 0;  // the least steps, whose sums are all multiples of one number up to a bound
    for (; small < count_; ++small) {
      const Term& t = term_[static_cast<size_t>(small)];
      if (small && (t.step % unit_[0] || t.step > bound_[0] + unit_[0])) break;
      if (!small) unit_[0] = t.step;
      bound_[0] += t.step * t.last;
    }
    std::copy(term_.begin() + small, term_.begin() + count_, term_.begin());
    count_ -= small;
    for (size_t i = 0; i < static_cast<size_t>(count_); ++i) {
      bound_[i + 1] = bound_[i] + term_[i].step * term_[i].last;
      unit_[i + 1] = std::gcd(unit_[i], term_[i].step);
    }
    return search(static_cast<size_t>(count_), target);
  }

 private:
  /// With the small terms and the first n others.
  bool search(size_t n, int64_t target) {
    if (target < 0 || target > bound_[n] || (unit_[n] ? target % unit_[n] : target)) return false;
    if (n == 0) return true;
    const Term& t = term_[n - 1];
    const int64_t rest = target - bound_[n - 1], least = rest > 0 ? ceil_div(rest, t.step) : 0;
    int64_t x = std::min(t.last, target / t.step), period = 1;
    if (const int64_t unit = unit_[n - 1]) {  // only every `period`-th x leaves a multiple of it
      period = unit / std::gcd(unit, t.step);
      for (int64_t i = 0; i < period && x >= least && (target - x * t.step) % unit; ++i, --x)
        if (++steps_ > kMaxSteps) return true;
    }
    for (; x >= least; x -= period)
      if (++steps_ > kMaxSteps || search(n - 1, target - x * t.step)) return true;
    return false;
  }

  std::array<Term, 2 * TensorView::kMaxRank + 1> term_;
  std::array<int64_t, 2 * TensorView::kMaxRank + 2> bound_{}, unit_{};  // of the sums of the first terms
  int count_ = 0, steps_ = 0;
};

/// Slices of one row-major buffer (q, k, v of a fused projection, K and V planes of a stacked pool): periodic in the
/// same outer step, each row shorter than the step.
bool are_slices(const TensorView& a, const Range& ra, const TensorView& b, const Range& rb) {
  for (int d = 0; d < a.rank() && d < b.rank(); ++d) {
    const int64_t step = a.stride(d) * a.item_size();
    if (step <= 0 || step != b.stride(d) * b.item_size()) continue;
    const int64_t wa = ra.high - ra.low + 1 - (a.size(d) - 1) * step,
                  wb = rb.high - rb.low + 1 - (b.size(d) - 1) * step;
    if (wa <= 0 || wb <= 0 || wa > step || wb > step) continue;
    const int64_t shift = ((rb.low - ra.low) % step + step) % step;
    if (shift >= wa && shift + wb <= step) return true;
  }
  return false;
}

}  // namespace

bool overlap(const TensorView& a, const TensorView& b) {
  const Range ra = range_of(a), rb = range_of(b);
  if (ra.high < ra.low || rb.high < rb.low) return false;  // empty
  if (ra.far || rb.far) return true;
  if (ra.high < rb.low || rb.high < ra.low) return false;
  if (are_slices(a, ra, b, rb)) return false;
  Sum sum;
  for (const TensorView* t : {&a, &b})
    for (int i = 0; i < t->rank(); ++i) sum.add(std::abs(t->stride(i)) * t->item_size(), t->size(i) - 1);
  sum.add(1, a.item_size() + b.item_size() - 2);
  return sum.reaches(rb.high - ra.low);
}

}  // namespace flashinfer::op
