// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/cases.h"

namespace flashinfer::ops::gemm {
namespace {
constexpr op::Case kMm[] = {
    {"q4_0", "a=bf16:5x96 b_blocks=u8:33x54:Q4_0 format='Q4_0'", "cpu", op::kAot, -1, 1e-4},
    {"q4_1", "a=bf16:1x576 b_blocks=u8:50x360:Q4_1 format='Q4_1' out_dtype=float32", "cpu", op::kAot, 1e-5, 1e-4},
    {"q8_0", "a=bf16:19x64 b_blocks=u8:17x68:Q8_0 format='Q8_0'", "cpu", op::kAot, -1, 1e-3},
    {"q4_k", "a=bf16:9x512 b_blocks=u8:20x288:Q4_K format='Q4_K' out_dtype=float32", "cpu", op::kAot, 1e-5, 1e-3},
    {"q6_k", "a=bf16:130x256 b_blocks=u8:33x210:Q6_K format='Q6_K'", "cpu", op::kAot, -1, 1e-3},
    {"panels_q4_0", "a=bf16:3x96 b_blocks=u8:3x15x64:Q4_0(96,33) format='Q4_0' out_dtype=float16", "cpu", op::kAot, -1, 1e-4},
    {"panels_q4_1", "a=bf16:1x576 b_blocks=u8:12x91x64:Q4_1(576,192) format='Q4_1' out_dtype=float32", "cpu", op::kAot, 1e-5, 1e-4},
    {"panels_q4_1_rows", "a=bf16:150x64 b_blocks=u8:4x11x64:Q4_1(64,50) format='Q4_1'", "cpu", op::kAot, -1, 1e-4},
    {"panels_q8_0", "a=bf16:8x96 b_blocks=u8:2x27x64:Q8_0(96,20) format='Q8_0'", "cpu", op::kAot, -1, 1e-3},
    {"strided", "a=bf16:12x64^t b_blocks=u8:20x40:Q4_1^pad8 format='Q4_1'", "cpu", 0, -1, 1e-4},
    {"bytes_q4_0", "a=bf16:5x96 b_blocks=u8:33x54:Q4_0 format='Q4_0' quantize_a=True", "cpu", 0, -1, 1e-4},
    {"bytes_q4_1", "a=bf16:130x576 b_blocks=u8:20x360:Q4_1 format='Q4_1' quantize_a=True out_dtype=float32", "cpu", 0, 1e-5, 1e-4},
    {"bytes_q8_0", "a=bf16:19x64 b_blocks=u8:17x68:Q8_0 format='Q8_0' quantize_a=True", "cpu", 0, -1, 1e-3},
    {"bytes_q4_k", "a=bf16:9x512 b_blocks=u8:20x288:Q4_K format='Q4_K' quantize_a=True out_dtype=float32", "cpu", 0, 1e-5, 1e-3},
    {"bytes_q6_k", "a=bf16:3x256 b_blocks=u8:33x210:Q6_K format='Q6_K' quantize_a=True", "cpu", 0, -1, 1e-3},
    {"bytes_panels_q4_0", "a=bf16:3x96 b_blocks=u8:3x15x64:Q4_0(96,33) format='Q4_0' quantize_a=True out_dtype=float16", "cpu", op::kAot, -1, 1e-4},
    {"bytes_panels_q4_1", "a=bf16:1x576 b_blocks=u8:12x91x64:Q4_1(576,192) format='Q4_1' quantize_a=True out_dtype=float32", "cpu", op::kAot,
     1e-5, 1e-4},
    {"bytes_panels_q8_0", "a=bf16:21x96 b_blocks=u8:2x27x64:Q8_0(96,20) format='Q8_0' quantize_a=True", "cpu", op::kAot, -1, 1e-3},
    {"bytes_strided", "a=bf16:12x64^t b_blocks=u8:20x40:Q4_1^pad8 format='Q4_1' quantize_a=True", "cpu", 0, -1, 1e-4},
    {"no_rows", "a=bf16:0x64 b_blocks=u8:17x68:Q8_0 format='Q8_0'"},
    {"bench_q4_1", "a=bf16:1x4096 b_blocks=u8:896x641x64:Q4_1(4096,14336) format='Q4_1'", "cpu", op::kBench, -1, 5e-3},
    {"bench_q4_1_rows", "a=bf16:512x4096 b_blocks=u8:256x641x64:Q4_1(4096,4096) format='Q4_1'", "cpu", op::kBench, -1, 5e-3},
    {"bench_q8_0", "a=bf16:1x4096 b_blocks=u8:896x1089x64:Q8_0(4096,14336) format='Q8_0'", "cpu", op::kBench, -1, 5e-3},
    {"bench_bytes_q4_1", "a=bf16:1x4096 b_blocks=u8:896x641x64:Q4_1(4096,14336) format='Q4_1' quantize_a=True", "cpu", op::kBench, -1, 5e-3},
    {"bench_bytes_q4_1_rows", "a=bf16:512x4096 b_blocks=u8:256x641x64:Q4_1(4096,4096) format='Q4_1' quantize_a=True", "cpu", op::kBench, -1, 5e-3},
    {"bench_bytes_q8_0", "a=bf16:1x4096 b_blocks=u8:896x1089x64:Q8_0(4096,14336) format='Q8_0' quantize_a=True", "cpu", op::kBench, -1, 5e-3},
    {"bench_plain", "a=bf16:1x4096 b_blocks=u8:14336x2560:Q4_1 format='Q4_1'", "cpu", op::kBench, -1, 5e-3},
};
constexpr op::Case kPrepare[] = {
    {"q4_0", "b_blocks=u8:33x54:Q4_0 format='Q4_0'"},
    {"q4_1", "b_blocks=u8:50x60:Q4_1 format='Q4_1'"},
    {"q8_0", "b_blocks=u8:16x102:Q8_0^pad8 format='Q8_0'"},
    {"no_columns", "b_blocks=u8:0x34 format='Q8_0'"},
};
constexpr op::Case kDequantize[] = {
    {"q4_0", "blocks=u8:3x54:Q4_0 format='Q4_0'", "cpu", 0, 0, 0},
    {"q4_1", "blocks=u8:3x60:Q4_1 format='Q4_1' out_dtype=bfloat16", "cpu", 0, 0, 0},
    {"q8_0", "blocks=u8:2x34:Q8_0^pad8 format='Q8_0'", "cpu", 0, 0, 0},
    {"q4_k", "blocks=u8:3x288:Q4_K format='Q4_K'", "cpu", 0, 0, 0},
    {"q6_k", "blocks=u8:3x210:Q6_K format='Q6_K'", "cpu", 0, 0, 0},
};
}  // namespace
std::span<const op::Case> mm_gguf_cases() { return kMm; }
std::span<const op::Case> prepare_gguf_weights_cases() { return kPrepare; }
std::span<const op::Case> gguf_dequantize_cases() { return kDequantize; }
}  // namespace flashinfer::ops::gemm
