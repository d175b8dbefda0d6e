// SPDX-License-Identifier: Apache-2.0
// XXH3 in streaming form. Private to formats/.
#pragma once
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>  // AVX-512 or AVX2 where the machine has it: 44 GB/s instead of the baseline's 20
#else
#include <xxhash.h>
#define XXH3_64bits_update_dispatch XXH3_64bits_update
#endif

#include <memory>

namespace flashinfer::formats {

class Xxh3 {
 public:
  Xxh3() : state_(XXH3_createState()) { XXH3_64bits_reset(state_.get()); }
  void add(const void* data, size_t bytes) { XXH3_64bits_update_dispatch(state_.get(), data, bytes); }
  uint64_t digest() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct Free {
    void operator()(XXH3_state_t* s) const { XXH3_freeState(s); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

}  // namespace flashinfer::formats
