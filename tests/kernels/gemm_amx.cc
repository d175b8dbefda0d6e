// SPDX-License-Identifier: Apache-2.0
// Kernels have one name on every ISA, and the linker would keep one copy for all: the namespace is renamed.
#define cpu cpu_amx
#include "gemm_entry-inl.h"

namespace flashinfer::test {
FI_GEMM_ENTRY(kGemmAmx, "amx");
}
