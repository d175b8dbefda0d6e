// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/activation/cases.h"

namespace flashinfer::ops::activation {
namespace {
constexpr op::Case kSilu[] = {
    {"decode", "input=bf16:1x3072", "cpu", op::kAot | op::kBench},
    {"f16", "input=f16:99x222", "cpu", op::kAot},
    {"f32", "input=f32:3x1000", "cpu", op::kAot},
    {"one_pair", "input=bf16:3x2"},
    {"fifteen", "input=f16:2x30"},
    {"vector", "input=f32:[1,-2,3,4]"},
    {"rank_4", "input=bf16:2x3x5x64"},
    {"strided", "input=bf16:7x222^pad5 out=bf16:7x111^pad3"},
    {"permuted", "input=f16:3x5x7x30^perm(1,0,2,3)"},
    {"far_tails", "input=f32:3x1000:normal(0,40)"},
    {"extremes", "input=f32:[-1e30,-100,-88.8,0,88.8,100,1e30,-0.0,1,1,1,1,1,1,1,1]"},
    {"no_rows", "input=bf16:0x128"},
    {"no_width", "input=bf16:3x0"},
    {"wide", "input=bf16:3x16386"},
    {"part_of_a_block", "input=bf16:2x6160"},  // aligned, and the last 256 pieces of a row are not full
    {"bench", "input=bf16:16384x8192", "cpu", op::kBench},
};
constexpr op::Case kGelu[] = {
    {"decode", "input=bf16:1x3072", "cpu", op::kAot | op::kBench},
    {"f16", "input=f16:99x222", "cpu", op::kAot},
    {"f32", "input=f32:3x1000", "cpu", op::kAot},
    {"far_tails", "input=f32:3x1000:normal(0,10)"},
    {"strided", "input=bf16:7x222^pad5"},
    {"one_pair", "input=f32:2x2"},
    {"no_rows", "input=bf16:0x128"},
    {"bench", "input=bf16:16384x8192", "cpu", op::kBench},
};
constexpr op::Case kGeluTanh[] = {
    {"decode", "input=bf16:1x3072", "cpu", op::kAot | op::kBench},
    {"f16", "input=f16:99x222", "cpu", op::kAot},
    {"f32", "input=f32:3x1000", "cpu", op::kAot},
    {"far_tails", "input=f32:3x1000:normal(0,10)"},
    {"strided", "input=bf16:7x222^pad5"},
    {"one_pair", "input=f32:2x2"},
    {"no_rows", "input=bf16:0x128"},
    {"bench", "input=bf16:16384x8192", "cpu", op::kBench},
};
}  // namespace
std::span<const op::Case> silu_cases() { return kSilu; }
std::span<const op::Case> gelu_cases() { return kGelu; }
std::span<const op::Case> gelu_tanh_cases() { return kGeluTanh; }
}  // namespace flashinfer::ops::activation
