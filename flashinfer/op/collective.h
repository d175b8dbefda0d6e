// SPDX-License-Identifier: Apache-2.0
// Collective calls (Op::is_collective) that throw on this rank while the other ranks wait for it.
#pragma once
#include <string>

#include "flashinfer/op/observer.h"

#pragma GCC visibility push(default)

namespace flashinfer::op {

/// Tells the other ranks of `workspace` that this one leaves the call that they make or will make, and why.
using Abandon = void (*)(const Object& workspace, const std::string& reason);
/// For the workspaces with a state of that type. Called by their constructors, as often as they like.
void on_abandoned(const StateType& type, Abandon abandon);

namespace detail {
/// Calls the Abandon of each workspace among the arguments. Never throws.
void abandon(const Op& op, const void* block, const std::exception& error) noexcept;
void abandon(const Passed& passed, const std::exception& error) noexcept;
}  // namespace detail
}  // namespace flashinfer::op

#pragma GCC visibility pop
