// SPDX-License-Identifier: Apache-2.0
// Loads and stores of 1 to 16 bytes in one instruction, with cache hints. Plain accesses (p[i]) are as good for single
// elements of up to 8 bytes. Addresses are multiples of the size; 16 bytes a lane are 512 bytes a warp, four full lines
// of 128.
#pragma once
#include "flashinfer/kernels/cuda/cu.h"

namespace flashinfer::cu {

/// kOnce: not read again soon (loads: no allocation in L1; stores: first to be evicted). kKeep: will be read again.
enum class Hint : unsigned char { kKeep, kOnce };

/// N elements moved together, in registers.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T v[N];
  FI_GLOBAL_FN T& operator[](int i) { return v[i]; }
  FI_GLOBAL_FN const T& operator[](int i) const { return v[i]; }
};
struct alignas(16) Words {
  uint32_t w[4];
};

#if defined(__CUDACC__)
namespace detail {
template <int kBytes, Hint H>
FI_CU void load_global(const void* p, uint32_t* w) {
#define FI_LOAD(op)                                                                         \
  if constexpr (kBytes == 16)                                                               \
    asm volatile(op ".v4.u32 {%0,%1,%2,%3}, [%4];"                                          \
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])                           \
                 : "l"(p)                                                                   \
                 : "memory");                                                               \
  else if constexpr (kBytes == 8)                                                           \
    asm volatile(op ".v2.u32 {%0,%1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "l"(p) : "memory"); \
  else                                                                                      \
    asm volatile(op ".u32 %0, [%1];" : "=r"(w[0]) : "l"(p) : "memory")
  if constexpr (H == Hint::kOnce) {
    FI_LOAD("ld.global.L1::no_allocate");
  } else {
    FI_LOAD("ld.global");
  }
#undef FI_LOAD
}
template <int kBytes, Hint H>
FI_CU void store_global(void* p, const uint32_t* w) {
#define FI_STORE(op)                                                                                                 \
  if constexpr (kBytes == 16)                                                                                        \
    asm volatile(op ".v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]) : "memory"); \
  else if constexpr (kBytes == 8)                                                                                    \
    asm volatile(op ".v2.u32 [%0], {%1,%2};" ::"l"(p), "r"(w[0]), "r"(w[1]) : "memory");                             \
  else                                                                                                               \
    asm volatile(op ".u32 [%0], %1;" ::"l"(p), "r"(w[0]) : "memory")
  if constexpr (H == Hint::kOnce) {
    FI_STORE("st.global.cs");
  } else {
    FI_STORE("st.global");
  }
#undef FI_STORE
}
}  // namespace detail
#endif

/// N elements from global memory.
template <int N, Hint H = Hint::kKeep, class T>
FI_CU Pack<T, N> load(const T* p) {
  Pack<T, N> x;
#if defined(__CUDACC__)
  if constexpr (sizeof(T) * N >= 4)
    detail::load_global<sizeof(T) * N, H>(p, reinterpret_cast<uint32_t*>(x.v));
  else
    x = *reinterpret_cast<const Pack<T, N>*>(p);
#else
  emu::api->access(p, sizeof(x), emu::kRead | emu::kGlobal, FI_EMU_PC);
  __builtin_memcpy(&x, p, sizeof(x));
#endif
  return x;
}
/// N elements from global memory if `in_range`, else zeros. Predicated, not a branch, so that consecutive loads are in
/// flight together. 8 or 16 bytes.
template <int N, Hint H = Hint::kKeep, class T>
FI_CU Pack<T, N> load_if(bool in_range, const T* p) {
  static_assert(sizeof(T) * N == 16 || sizeof(T) * N == 8);
  Pack<T, N> x{};
#if defined(__CUDACC__)
  uint32_t* w = reinterpret_cast<uint32_t*>(x.v);
  const int32_t yes = in_range;
#define FI_LOAD_IF(op)                                                                                        \
  if constexpr (sizeof(T) * N == 16)                                                                          \
    asm volatile("{\n .reg .pred yes;\n setp.ne.s32 yes, %5, 0;\n @yes " op ".v4.u32 {%0,%1,%2,%3}, [%4];\n}" \
                 : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3])                                             \
                 : "l"(p), "r"(yes)                                                                           \
                 : "memory");                                                                                 \
  else                                                                                                        \
    asm volatile("{\n .reg .pred yes;\n setp.ne.s32 yes, %3, 0;\n @yes " op ".v2.u32 {%0,%1}, [%2];\n}"       \
                 : "+r"(w[0]), "+r"(w[1])                                                                     \
                 : "l"(p), "r"(yes)                                                                           \
                 : "memory")
  if constexpr (H == Hint::kOnce) {
    FI_LOAD_IF("ld.global.L1::no_allocate");
  } else {
    FI_LOAD_IF("ld.global");
  }
#undef FI_LOAD_IF
#else
  if (!in_range) return x;
  emu::api->access(p, sizeof(x), emu::kRead | emu::kGlobal, FI_EMU_PC);
  __builtin_memcpy(&x, p, sizeof(x));
#endif
  return x;
}
/// Optimization barrier: values computed from x before it are recomputed after it instead of being kept in registers.
template <class T, int N>
FI_CU void forget(Pack<T, N>& x) {
#if defined(__CUDACC__)
#pragma unroll
  for (int i = 0; i < N * static_cast<int>(sizeof(T)) / 4; ++i)
    asm volatile("" : "+r"(reinterpret_cast<uint32_t*>(x.v)[i]));
#else
  (void)x;
#endif
}
/// The same of a pointer, to be compared: a load from the result is generic.
template <class T>
FI_CU T* forget(T* p) {
#if defined(__CUDACC__)
  asm volatile("" : "+l"(p));
#endif
  return p;
}
/// N elements to global memory.
template <Hint H = Hint::kKeep, class T, int N>
FI_CU void store(T* p, Pack<T, N> x) {
#if defined(__CUDACC__)
  if constexpr (sizeof(T) * N >= 4)
    detail::store_global<sizeof(T) * N, H>(p, reinterpret_cast<const uint32_t*>(x.v));
  else
    *reinterpret_cast<Pack<T, N>*>(p) = x;
#else
  emu::api->access(p, sizeof(x), emu::kWrite | emu::kGlobal, FI_EMU_PC);
  __builtin_memcpy(static_cast<void*>(p), &x, sizeof(x));
#endif
}
/// The same for shared memory: ordinary accesses, as one instruction.
template <int N, class T>
FI_CU Pack<T, N> load_shared(const T* p) {
#if defined(__CUDACC__)
  return *reinterpret_cast<const Pack<T, N>*>(p);
#else
  Pack<T, N> x;
  emu::api->access(p, sizeof(x), emu::kRead, FI_EMU_PC);
  __builtin_memcpy(&x, p, sizeof(x));
  return x;
#endif
}
template <class T, int N>
FI_CU void store_shared(T* p, Pack<T, N> x) {
#if defined(__CUDACC__)
  *reinterpret_cast<Pack<T, N>*>(p) = x;
#else
  emu::api->access(p, sizeof(x), emu::kWrite, FI_EMU_PC);
  __builtin_memcpy(static_cast<void*>(p), &x, sizeof(x));
#endif
}

/// The same address, known to the compiler to be of shared, or global, memory. A function that is not inlined cannot
/// see where its pointers come from, and its accesses would be generic ones, which are slower.
template <class T>
FI_CU T* in_shared(T* p) {
#if defined(__CUDACC__)
  size_t at;  // an instruction that the compiler does not see through: two conversions would cancel out
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(at) : "l"(p));
  return static_cast<T*>(__cvta_shared_to_generic(at));
#else
  emu::api->space(p, 1, FI_EMU_PC);
  return p;
#endif
}
template <class T>
FI_CU T* in_global(T* p) {
#if defined(__CUDACC__)
  size_t at;  // an instruction that the compiler does not see through: two conversions would cancel out
  asm("cvta.to.global.u64 %0, %1;" : "=l"(at) : "l"(p));
  return static_cast<T*>(__cvta_global_to_generic(at));
#else
  emu::api->space(p, 0, FI_EMU_PC);
  return p;
#endif
}

}  // namespace flashinfer::cu
