// SPDX-License-Identifier: Apache-2.0
// What the names of this family's arguments mean, for help texts in other languages; op/glossary.cc has the names that
// several families share.
#include "flashinfer/op/glossary.h"

namespace flashinfer::ops::skeleton {
namespace {
constexpr op::Term kTerms[] = {
    {"peak", "largest magnitude of each row of the result"},
};
}  // namespace
extern const std::span<const op::Term> terms;
constinit const std::span<const op::Term> terms = kTerms;
}  // namespace flashinfer::ops::skeleton
