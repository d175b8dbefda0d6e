// SPDX-License-Identifier: Apache-2.0
#include "vec_entry-inl.h"

namespace flashinfer::test {
FI_VEC_ENTRY(kVecBf16, "bf16");
}
