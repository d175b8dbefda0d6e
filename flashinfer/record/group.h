// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "flashinfer/formats/json.h"
#include "flashinfer/op/observer.h"

namespace flashinfer::record {

/// `group` of a collective call's record (kGroup): the ranks, and what makes the workspace among `args` again. Null
/// when no argument says it.
formats::Json group_of(const std::vector<op::Arg>& args);

}  // namespace flashinfer::record
