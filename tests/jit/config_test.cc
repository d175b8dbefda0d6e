// SPDX-License-Identifier: Apache-2.0
// A Config whose visit() does not name every member does not become a kernel.
#include <gtest/gtest.h>

#include "flashinfer/jit/request.h"

namespace flashinfer::jit {
namespace {

struct Members {
  DType dtype;
  unsigned char gemma;
  short group;
  int threads;
};
struct Complete : Members {
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype), v("gemma", gemma), v("group", group), v("threads", threads);
  }
};
struct Forgotten : Members {
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype), v("gemma", gemma), v("threads", threads);
  }
};
struct Twice : Members {  // the sizes add up all the same
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype), v("gemma", dtype), v("group", group), v("threads", threads);
  }
};
template <class Config>
concept IsAccepted = requires(const Config& c) { detail::members(c); };
static_assert(IsAccepted<Complete> && !IsAccepted<Forgotten> && !IsAccepted<Twice>);

TEST(Config, MembersAreListedInTheirOrder) {
  const auto list = detail::members(Complete{{DType::kBF16, 1, 8, 128}});
  EXPECT_EQ(detail::config_braces(list), "{dtype=bfloat16,gemma=1,group=8,threads=128}");
}

}  // namespace
}  // namespace flashinfer::jit
