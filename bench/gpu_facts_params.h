// SPDX-License-Identifier: Apache-2.0
// The kernels of gpu_facts.cc. Freestanding.
#pragma once
#include <stdint.h>

namespace gpu_facts {

/// `element`: of products: 0 bf16, 1 f16, 2 e4m3.
struct Config {
  int threads, element;
  static constexpr const char* kName = "gpu_facts::Config";
  template <class V>
  constexpr void visit(V&& v) const {
    v("threads", threads);
    v("element", element);
  }
  friend constexpr bool operator==(const Config&, const Config&) = default;
};

struct FunctionsParams {
  const float *x, *positive;                // [n]
  float *exp2, *tanh, *log2, *rcp, *rsqrt;  // [n]: exp2 and tanh of x, the others of positive
  int64_t n;
};
struct CodesParams {
  const float* x;                                       // [n]
  uint16_t *bf16, *f16;                                 // [n]
  uint8_t *e4m3, *e5m2, *int8, *e2m1;                   // [n]
  float *from_f16, *from_e4m3, *from_e5m2, *from_e2m1;  // of all codes: [65536], [256], [256], [16]
  int64_t n;
};
/// d = a b + c of each block's 16 x 8 tile. A row of a, or column of b, is 32 bytes: 16 elements of 16 bits or 32 of 8.
struct ProductParams {
  const char *a, *b;  // [tiles, 16, 32] bytes, [tiles, 8, 32] bytes
  const float* c;     // [tiles, 16, 8]
  float* d;           // [tiles, 16, 8]
  float* d_of_rows;   // [tiles, 16, 8]: with b read from row-major memory, 16-bit elements only
  char* stored;       // [tiles, 16, 32] bytes: a, after load_matrix4 and store_matrix4
};

}  // namespace gpu_facts
