// SPDX-License-Identifier: Apache-2.0
// Planted bugs of local memory that only the guarded form of a kernel shows: pointers that walk, that functions get
// which are not inlined, or that outlive their variable.
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "kernels.h"

#define FI_NOT_INLINED __attribute__((noinline)) inline

namespace flashinfer::cu {

/// A number that the compiler does not know: 8.
FI_GLOBAL_FN int eight(const P& p) { return static_cast<int>(p.n / 125); }

template <bool kBug>
FI_GLOBAL_FN void walking_pointer(const P& p) {
  float x[8];
  for (int i = 0; i < 8; ++i) x[i] = p.in[8 * thread_x() + i];
  float sum = 0;
  for (const float *at = x, *end = x + eight(p); kBug ? at <= end : at < end; ++at) sum += *at;
  p.out[thread_x()] = sum;
}
template <bool kBug>
FI_GLOBAL_FN void walking_by_number(const P& p) {
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const float* at = x;
  float sum = 0;
  for (int i = 0, n = eight(p) + (kBug ? 1 : 0); i < n; ++i) sum += *at++;
  p.out[thread_x()] = sum;
}
template <bool kBug>
FI_GLOBAL_FN void walking_store(const P& p) {
  float x[8];
  float* at = x;
  for (int i = 0, n = eight(p); i < (kBug ? n + 1 : n); ++i) *at++ = p.in[i];
  p.out[thread_x()] = x[thread_x() % 8];
}
template <bool kBug>
FI_GLOBAL_FN void walking_back(const P& p) {
  float x[8];
  for (int i = 0; i < 8; ++i) x[i] = p.in[i];
  float sum = 0;
  for (const float* at = x + eight(p); at-- > (kBug ? x - 1 : x);) sum += *at;
  p.out[thread_x()] = sum;
}
/// Past the end of one array lies another one.
template <bool kBug>
FI_GLOBAL_FN void into_the_next(const P& p) {
  float x[8], y[8];
  for (int i = 0; i < 8; ++i) x[i] = p.in[i], y[i] = p.in[i + 8];
  float sum = 0;
  const float *a = x, *b = y;
  for (int i = 0, n = eight(p); i < n + (kBug ? 1 : 0); ++i) sum += *a++;
  for (int i = 0, n = eight(p); i < n; ++i) sum -= *b++;
  p.out[thread_x()] = sum;
}
FI_NOT_INLINED float sum_of(const float* x, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i];
  return sum;
}
template <bool kBug>
FI_GLOBAL_FN void given_to_function(const P& p) {
  float x[8];
  for (int i = 0; i < 8; ++i) x[i] = p.in[i];
  p.out[thread_x()] = sum_of(x, kBug ? 9 : 8);
}
FI_NOT_INLINED void fill(float* x, int n, float value) {
  for (int i = 0; i < n; ++i) x[i] = value;
}
template <bool kBug>
FI_GLOBAL_FN void filled_by_function(const P& p) {
  float x[8];
  fill(x, kBug ? 9 : 8, p.in[0]);
  p.out[thread_x()] = x[thread_x() % 8];
}
FI_NOT_INLINED float by_index(const float* x, uint32_t i) { return x[i]; }
template <bool kBug>
FI_GLOBAL_FN void index_in_function(const P& p) {
  float x[4] = {p.in[0], p.in[1], p.in[2], p.in[3]};
  p.out[thread_x()] = by_index(x, thread_x() % (kBug ? 5 : 4));
}
struct Sums {
  float of[6];
};
FI_NOT_INLINED void add_to(Sums& s, int i, float x) { s.of[i] += x; }
FI_NOT_INLINED void add_at(float* of, int i, float x) { of[i] += x; }
template <bool kBug>
FI_GLOBAL_FN void struct_in_function(const P& p) {
  Sums s = {};
  for (int i = 0; i < 6; ++i) add_to(s, i, p.in[i]);
  add_at(s.of, kBug ? 6 : 5, p.in[7]);
  p.out[thread_x()] = s.of[thread_x() % 6];
}
/// The last of 16 bytes are past the end: a wide access by a pointer.
FI_NOT_INLINED Pack<float, 4> four_of(const float* x) { return *reinterpret_cast<const Pack<float, 4>*>(x); }
template <bool kBug>
FI_GLOBAL_FN void wide_in_function(const P& p) {
  alignas(16) float x[8];
  for (int i = 0; i < 8; ++i) x[i] = p.in[i];
  const Pack<float, 4> y = four_of(x + (kBug ? 5 : 4));
  p.out[thread_x()] = y[0] + y[3];
}
template <bool kBug>
FI_GLOBAL_FN void bytes_in_function(const P& p) {
  uint8_t x[13];
  uint8_t* at = x;
  for (int i = 0, n = eight(p) + (kBug ? 6 : 5); i < n; ++i) *at++ = static_cast<uint8_t>(i);
  p.out[thread_x()] = x[thread_x() % 13];
}
template <bool kBug>
FI_GLOBAL_FN void copied_to(const P& p) {
  float x[8];
  memcpy(x, p.in, (eight(p) + (kBug ? 1 : 0)) * sizeof(float));
  p.out[thread_x()] = x[thread_x() % 8];
}
/// The variable is gone when its pointer is used.
template <bool kBug>
FI_GLOBAL_FN void block_has_ended(const P& p) {
  float outer[4] = {1, 2, 3, 4};
  const float* at = outer;
  for (int i = 0; i < eight(p); ++i) {
    float x[4] = {p.in[i], p.in[i + 1], p.in[i + 2], p.in[i + 3]};
    fill(x, 2, 1.0f);
    if (i == 3 && kBug) at = x;
    outer[i % 4] += sum_of(x, 4);
  }
  p.out[thread_x()] = sum_of(at, 4);
}
FI_NOT_INLINED const float* same(const float* x) {
  const float* volatile y = x;
  return y;
}
FI_NOT_INLINED const float* made_by(const P& p) {
  float x[4] = {p.in[0], p.in[1], p.in[2], p.in[3]};
  fill(x, 4, 2.0f);
  return same(x);
}
template <bool kBug>
FI_GLOBAL_FN void function_has_returned(const P& p) {
  float x[4] = {1, 2, 3, 4};
  fill(x, 4, 3.0f);
  const float* const at = kBug ? made_by(p) : same(x);
  p.out[thread_x()] = at[thread_x() % 4];
}
/// What the run of the guarded form writes is taken back: `in` is added to once.
template <bool kBug>
FI_GLOBAL_FN void added_in_place(const P& p) {
  float x[8];
  for (int i = 0; i < 8; ++i) x[i] = p.in[8 * thread_x() + i];
  float sum = 0;
  for (const float *at = x, *end = x + eight(p); kBug ? at <= end : at < end; ++at) sum += *at;
  input(p)[8 * thread_x()] += sum;
  atomic_add(p.counter, 1u);
  p.out[thread_x()] = sum;
}
/// Runs of which all is taken back print nothing: the guarded one, and those in other orders that the atomic asks for.
template <bool kBug>
FI_GLOBAL_FN void printing(const P& p) {
  if (thread_x() != 0) return;
  atomic_add(p.counter, 1u);
  printf("block %u: %.1f\n", block_x(), static_cast<double>(p.n));
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float sum = 0;
  for (const float *at = x, *end = x + eight(p); kBug ? at <= end : at < end; ++at) sum += *at;
  p.out[block_x()] = sum;
}
}  // namespace flashinfer::cu

using namespace flashinfer;
#define PAIR(name)                                               \
  FI_CUDA_ENTRY_NAMED(bug_##name, PlantedParams, cu::name<true>) \
  FI_CUDA_ENTRY_NAMED(right_##name, PlantedParams, cu::name<false>)
// clang-format off
PAIR(walking_pointer) PAIR(walking_by_number) PAIR(walking_store) PAIR(walking_back) PAIR(into_the_next)
PAIR(given_to_function) PAIR(filled_by_function) PAIR(index_in_function) PAIR(struct_in_function) PAIR(wide_in_function)
PAIR(bytes_in_function) PAIR(copied_to) PAIR(block_has_ended) PAIR(function_has_returned) PAIR(added_in_place)
PAIR(printing)
