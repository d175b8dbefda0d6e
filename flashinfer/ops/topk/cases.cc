// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/topk/cases.h"

namespace flashinfer::ops::topk {
namespace {
constexpr op::Case kTopK[] = {
    {"greedy", "input=f32:8x49152 k=1", "cpu", op::kAot | op::kBench},
    {"greedy_bf16_ties", "input=bf16:3x49152:randint(0,9) k=1", "cpu", op::kAot},
    {"greedy_largest_index", "input=f16:3x5000:randint(0,9) k=1 tie_break=2", "cpu", op::kAot},
    {"greedy_all_equal", "input=f32:2x111:const(3) k=1"},
    {"greedy_all_masked", "input=f32:2x9000:const(-inf) k=1"},
    {"greedy_nan", "input=f32:2x111:nan k=1"},
    {"sorted", "input=f32:3x49152 k=50 sorted=True", "cpu", op::kBench},
    {"by_position", "input=bf16:3x8193 k=7"},
    {"ties", "input=f32:4x5000:randint(0,7) k=100 sorted=True deterministic=True tie_break=1"},
    {"ties_larger", "input=f16:4x5000:randint(0,7) k=100 sorted=True tie_break=2"},
    {"large_k", "input=f32:2x5000 k=2500 sorted=True"},
    {"all", "input=bf16:3x111 k=111 sorted=True"},
    {"masked", "input=f32:2x500:const(-inf) k=20 sorted=True"},
    {"one", "input=f32:99x1 k=1 sorted=True"},
    {"two_of_two", "input=f32:3x2 k=2"},
    {"strided", "input=f32:5x576^pad9 k=5 sorted=True"},
    {"no_rows", "input=f32:0x576 k=5"},
};
}  // namespace
std::span<const op::Case> top_k_cases() { return kTopK; }
}  // namespace flashinfer::ops::topk
