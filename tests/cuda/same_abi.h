// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

namespace flashinfer {

/// Same number of arguments, each of the same size and kind (pointer or not): what the calling convention sees.
template <class A, class B>
constexpr bool kSameSlot = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
template <class A, class B>
constexpr bool kSameAbi = false;
template <class R, class... A, class S, class... B>
constexpr bool kSameAbi<R (*)(A...), S (*)(B...)> = [] {
  if constexpr (sizeof...(A) != sizeof...(B))
    return false;
  else
    return kSameSlot<R, S> && (kSameSlot<A, B> && ...);
}();

}  // namespace flashinfer
