// SPDX-License-Identifier: Apache-2.0
// One recorded call, run again.
#pragma once
#include "flashinfer/replay/replay.h"
#include "flashinfer/replay/session.h"

namespace flashinfer::replay {

/// Never throws: errors become the result's outcome and message.
CallResult run_call(const Session& session, const Call& call, const Options& options);

}  // namespace flashinfer::replay
