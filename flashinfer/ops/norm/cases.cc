// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/norm/cases.h"

namespace flashinfer::ops::norm {
namespace {
constexpr op::Case kRmsNorm[] = {
    {"decode", "input=bf16:1x576 weight=bf16:576 eps=1e-5", "cpu", op::kAot},
    {"one_element", "input=f32:3x1 weight=f32:1"},
    {"odd_width", "input=f16:5x111 weight=f16:111", "cpu", op::kAot},
    {"f32", "input=f32:2x500 weight=f32:500 eps=1e-5", "cpu", op::kAot},
    {"heads", "input=bf16:7x9x64 weight=bf16:64"},
    {"in_place", "input=bf16:4x128 weight=bf16:128 out=@input"},
    {"no_rows", "input=bf16:0x576 weight=bf16:576"},
    {"wide", "input=bf16:99x8193 weight=bf16:8193"},
    {"bench", "input=bf16:16384x4096 weight=bf16:4096", "cpu", op::kBench},
};
}  // namespace
std::span<const op::Case> rmsnorm_cases() { return kRmsNorm; }
}  // namespace flashinfer::ops::norm
