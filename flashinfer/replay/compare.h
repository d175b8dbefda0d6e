// SPDX-License-Identifier: Apache-2.0
// Compares a call's results and written arguments with the recorded ones, or those of two recordings.
#pragma once
#include <optional>

#include "flashinfer/replay/inputs.h"
#include "flashinfer/replay/replay.h"

#pragma GCC visibility push(default)

namespace flashinfer::replay {

struct Tolerances {
  std::optional<double> rtol, atol;  // the user's; absent: the op's, else the dtype's
  const op::Op* op = nullptr;
  bool bitwise = false;
  const char* other = "was recorded";  // ends the sentences: "result is 3, but 4 was recorded"
};

/// Largest differences of finite elements, within the tolerances or not.
struct Largest {
  double abs = 0, rel = 0;
};
/// Nothing when they agree: same shape and element type; floats within the tolerance with NaN equal to NaN in the same
/// place, everything else exactly. `largest`, if given, grows to the tensors' differences.
std::optional<Difference> compare_tensors(const std::string& key, const TensorView& have, const TensorView& want,
                                          const Tolerances& tolerances, Largest* largest = nullptr);

struct Comparison {
  int compared = 0;  // tensors and plain values in the dump
  Largest largest;
  std::vector<Difference> differences;
  std::vector<std::string> notes;
};
/// `result` is the return value, `arguments` the tensors after the call by key, `self` the receiver of a method (or
/// null); `stored` and `values` the recorded outputs (output_metadata), `details` the recorded tensor_details.
Comparison compare_outputs(const op::Value& result, const Tensors& arguments, const op::Object* self,
                           const std::vector<formats::StoredTensor>& stored, const Json& values, const Json& details,
                           const Tolerances& tolerances);

/// The recorded outputs of two calls, of one recording or two: what `want` has is looked for in `have`, and results
/// that only `have` has are noted. ValueError: damaged files.
Comparison compare_recorded(const Session& have_session, const Call& have, const Session& want_session,
                            const Call& want, const Tolerances& tolerances);

}  // namespace flashinfer::replay

#pragma GCC visibility pop
