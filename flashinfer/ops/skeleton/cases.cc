// SPDX-License-Identifier: Apache-2.0
// Rows: a name and the arguments as text (cases/parse.h). Each is run against the reference, with guard bytes around
// every tensor, padded rows, other thread counts, on the emulator, recorded and replayed. Those tagged kAot are
// precompiled, those tagged kBench are timed.
#include "flashinfer/ops/skeleton/cases.h"

namespace flashinfer::ops::skeleton {
namespace {
constexpr op::Case kSkeleton[] = {
    {"decode", "input=bf16:1x576", "cpu", op::kAot | op::kBench},
    {"f16", "input=f16:3x4096 peak=2.5", "cpu", op::kAot},
    {"f32", "input=f32:5x500", "cpu", op::kAot},
    {"one_element", "input=bf16:3x1 peak=448"},
    {"odd_width", "input=bf16:5x111"},
    {"many_rows", "input=bf16:300x64"},
    {"wide", "input=bf16:7x8193"},
    {"strided", "input=bf16:9x128^pad8 out=bf16:9x128^pad24"},
    {"in_place", "input=bf16:4x128 out=@input"},
    {"peak_zero", "input=f32:2x64 peak=0"},
    {"all_zero", "input=bf16:2x64:const(0)"},
    {"large_values", "input=f32:3x4096:normal(0,1e30)"},
    {"no_rows", "input=bf16:0x64"},
    {"no_width", "input=bf16:3x0"},
    {"bench", "input=bf16:16384x4096", "cpu", op::kBench},
};
}  // namespace
std::span<const op::Case> skeleton_cases() { return kSkeleton; }
}  // namespace flashinfer::ops::skeleton
