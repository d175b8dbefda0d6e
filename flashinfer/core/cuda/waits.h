// SPDX-License-Identifier: Apache-2.0
// What the library's waits for a GPU look for beside the driver's errors.
#pragma once

namespace flashinfer::cuda {

/// Calls check(index) after each synchronize() and each copy to the host of cuda:`index`, which throw what it throws;
/// one function in a process.
void on_wait(void (*check)(int index));
/// After a wait.
void waited(int index);

}  // namespace flashinfer::cuda
