// SPDX-License-Identifier: Apache-2.0
// The empty kernel of call_path.cc. Freestanding.
#pragma once

namespace bench_empty {

struct Config {
  int threads;
  static constexpr const char* kName = "bench_empty::Config";
  template <class V>
  constexpr void visit(V&& v) const {
    v("threads", threads);
  }
  friend constexpr bool operator==(const Config&, const Config&) = default;
};
struct Params {
  const void *input, *weight;
  void* out;
  double eps;
};

}  // namespace bench_empty
