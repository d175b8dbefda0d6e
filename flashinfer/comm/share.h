// SPDX-License-Identifier: Apache-2.0
// A window as a tensor, for ops that take their shared memory as an argument.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "flashinfer/comm/window.h"
#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer::comm {

/// Memory that the ranks of a group share, as [size, bytes] u8: row r is rank r's (Window::of), its stride that of the
/// mapping. Collective; `transport` and errors as Group::window. The memory is there as long as the tensor or a copy of
/// it lives.
Tensor share(const std::shared_ptr<Group>& group, int64_t bytes, const std::string& transport = {});

/// The window of a tensor of share() by the address of its first element; null when it is of no such tensor.
std::shared_ptr<Window> window_at(const void* first);
/// The id of that window, for recordings: the same on all ranks, and of no other window. Empty: there is no window.
std::string share_id(const void* first);

}  // namespace flashinfer::comm

#pragma GCC visibility pop
