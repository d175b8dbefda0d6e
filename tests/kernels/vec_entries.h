// SPDX-License-Identifier: Apache-2.0
// The copies of the vector functions that this machine can run.
#pragma once
#include <vector>

#include "isa.h"
#include "vec_entry.h"

namespace flashinfer::test {

inline std::vector<const VecEntry*> vec_entries() {
  std::vector<const VecEntry*> list = {&kVecPortable};
  if (has_isa(Isa::kV3)) list.push_back(&kVecV3);
  if (has_isa(Isa::kV4)) list.push_back(&kVecV4);
  if (has_isa(Isa::kBf16)) list.push_back(&kVecBf16);
  return list;
}

}  // namespace flashinfer::test
