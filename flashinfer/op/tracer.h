// SPDX-License-Identifier: Apache-2.0
// A second observer, beside the log and the recorder: it sees each call of the library before it is checked.
#pragma once
#include "flashinfer/op/observer.h"

#pragma GCC visibility push(default)

namespace flashinfer::op {

/// Installs `tracer` (null: none), which lives until the program ends. Its after() and failed() are not called. Calls
/// without tracer and observer cost what they did: both share one pointer.
void set_tracer(Observer* tracer);
/// The observer that set_observer() installed: the log and the recorder, without the tracer.
Observer* main_observer();

/// Called with start_observing(), and before an observer is installed; trace/ defines it and installs its tracer, once,
/// if the environment says so.
void start_tracing();

}  // namespace flashinfer::op

#pragma GCC visibility pop
