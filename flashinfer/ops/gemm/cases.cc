// SPDX-License-Identifier: Apache-2.0
// Sums of k products of normals are about sqrt(k) large and cancel: absolute tolerances are f32 rounding errors.
#include "flashinfer/ops/gemm/cases.h"

namespace flashinfer::ops::gemm {
namespace {
constexpr op::Case kMm[] = {
    {"decode_one", "a=bf16:1x576 b=bf16:576x576^t", "cpu", op::kAot, -1, 1e-3},
    {"decode_batch", "a=bf16:8x1536 b=bf16:1536x576^t", "cpu", 0, -1, 1e-3},
    {"row_major", "a=bf16:8x64 b=bf16:64x192", "cpu", 0, -1, 1e-3},
    {"m2", "a=bf16:2x576 b=bf16:576x192^t", "cpu", 0, -1, 1e-3},
    {"m3_row_major_odd", "a=bf16:3x31 b=bf16:31x17", "cpu", 0, -1, 1e-3},
    {"m7_bias", "a=bf16:7x130 b=bf16:130x33^t bias=bf16:33", "cpu", 0, -1, 1e-3},
    {"m17_tail", "a=bf16:17x64 b=bf16:64x15^t", "cpu", 0, -1, 1e-3},
    {"m64_odd_k", "a=bf16:64x577 b=bf16:577x49^t", "cpu", 0, -1, 1e-3},
    {"m129", "a=bf16:129x576 b=bf16:576x100^t bias=bf16:100", "cpu", op::kAot, -1, 1e-3},
    {"blocks_of_k", "a=bf16:40x1536 b=bf16:1536x64", "cpu", 0, -1, 1e-3},
    {"many_rows_blocks_of_k", "a=bf16:300x520 b=bf16:520x20^t", "cpu", 0, -1, 1e-3},
    {"a_strided", "a=bf16:9x66^t b=bf16:66x48^t", "cpu", 0, -1, 1e-3},
    {"a_padded", "a=bf16:12x64^pad8 b=bf16:64x48^pad8", "cpu", 0, -1, 1e-3},
    {"k1", "a=bf16:5x1 b=bf16:1x16"},
    {"k2", "a=bf16:1x2 b=bf16:2x1"},
    {"k3", "a=bf16:11x3 b=bf16:3x50^t"},
    {"f32_out", "a=bf16:33x576 b=bf16:576x65^t out_dtype=float32", "cpu", op::kAot, 1e-5, 1e-3},
    {"f32_bias", "a=bf16:1x576 b=bf16:576x65^t bias=bf16:65 out_dtype=float32", "cpu", 0, 1e-5, 1e-3},
    {"f16_out", "a=bf16:6x200 b=bf16:200x40^t out_dtype=float16", "cpu", op::kAot, -1, 1e-3},
    {"f32_given", "a=bf16:9x64 b=bf16:64x40 out=f32:9x40 out_dtype=float32", "cpu", 0, 1e-5, 1e-3},
    {"packed_one", "a=bf16:1x576 b=bf16:12x289x32:packed(576,192)", "cpu", op::kAot, -1, 1e-3},
    {"packed_batch", "a=bf16:8x1536 b=bf16:36x769x32:packed(1536,576)", "cpu", op::kAot, -1, 1e-3},
    {"packed_ragged", "a=bf16:19x31 b=bf16:2x17x32:packed(31,17) bias=bf16:17", "cpu", 0, -1, 1e-3},
    {"packed_rows", "a=bf16:130x64 b=bf16:7x33x32:packed(64,100) out_dtype=float32", "cpu", op::kAot, 1e-5, 1e-3},
    {"packed_f16", "a=bf16:3x64 b=bf16:7x33x32:packed(64,97) out_dtype=float16", "cpu", op::kAot, -1, 1e-3},
    {"no_rows", "a=bf16:0x576 b=bf16:576x64^t"},
    {"no_columns", "a=bf16:4x64 b=bf16:64x0"},
    {"no_k", "a=bf16:3x0 b=bf16:0x20"},
    {"no_k_bias", "a=bf16:12x0 b=bf16:0x20 bias=bf16:20"},
    {"backend_of_gpu", "a=bf16:2x64 b=bf16:64x16^t backend='cutlass'", "cpu", 0, -1, 1e-3},
    {"bench_prefill", "a=bf16:512x4096 b=bf16:4096x14336^t", "cpu", op::kBench, -1, 5e-3},
    {"bench_decode", "a=bf16:1x4096 b=bf16:4096x14336^t", "cpu", op::kBench, -1, 5e-3},
    {"bench_prefill_packed", "a=bf16:512x4096 b=bf16:896x2049x32:packed(4096,14336)", "cpu", op::kBench, -1, 5e-3},
    {"bench_decode_packed", "a=bf16:1x4096 b=bf16:896x2049x32:packed(4096,14336)", "cpu", op::kBench, -1, 5e-3},
};
constexpr op::Case kBmm[] = {
    {"small", "A=bf16:3x5x64 B=bf16:3x64x48^t", "cpu", op::kAot, -1, 1e-3},
    {"row_major", "A=bf16:2x33x130 B=bf16:2x130x17", "cpu", 0, -1, 1e-3},
    {"one_row", "A=bf16:4x1x576 B=bf16:4x576x64^t out_dtype=float32", "cpu", 0, 1e-5, 1e-3},
    {"heads_outer", "A=bf16:4x20x64^perm(1,0,2) B=bf16:4x64x20^perm(2,0,1) out_dtype=float16", "cpu", 0, -1, 1e-3},
    {"odd_k", "A=bf16:2x9x31 B=bf16:2x31x16", "cpu", 0, -1, 1e-3},
    {"no_batch", "A=bf16:0x4x64 B=bf16:0x64x16"},
    {"no_k", "A=bf16:2x4x0 B=bf16:2x0x16"},
    {"bench", "A=bf16:16x512x128 B=bf16:16x128x512^t", "cpu", op::kBench, -1, 1e-3},
};
constexpr op::Case kFp8[] = {
    {"e4m3", "A=e4m3:2x16x64 B=e4m3:2x64x48^t A_scale=f32:1:const(0.5) B_scale=f32:1:const(0.25) dtype=bfloat16", "cpu",
     op::kAot, -1, 1e-3},
    {"e5m2_a", "A=e5m2:1x9x100 B=e4m3:1x100x33 A_scale=f32::const(2) B_scale=f32::const(0.125) dtype=float16", "cpu",
     op::kAot, -1, 1e-3},
    {"e5m2_b", "A=e4m3:3x1x576 B=e5m2:3x576x20^t A_scale=f32:1:const(1) B_scale=f32:1:const(0.1) dtype=bfloat16", "cpu",
     op::kAot, -1, 1e-3},
    {"eight_rows", "A=e4m3:2x8x64 B=e4m3:2x64x17^t A_scale=f32:1:const(0.5) B_scale=f32:1:const(0.25) dtype=bfloat16", "cpu", 0, -1, 1e-3},
    {"odd", "A=e4m3:2x7x31 B=e5m2:2x31x17 A_scale=f32:1:const(0.3) B_scale=f32:1:const(3) dtype=float16", "cpu",
     op::kAot, -1, 1e-3},
    {"no_k", "A=e4m3:2x7x0 B=e4m3:2x0x17 A_scale=f32:1:const(1) B_scale=f32:1:const(1) dtype=float16"},
    {"bench",
     "A=e4m3:1x512x4096 B=e4m3:1x4096x4096^t A_scale=f32:1:const(0.01) B_scale=f32:1:const(0.01) dtype=bfloat16", "cpu",
     op::kBench, -1, 1e-3},
};
constexpr op::Case kPrepare[] = {
    {"weight", "b=bf16:576x192^t", "cpu", op::kAot},
    {"row_major", "b=bf16:64x40"},
    {"ragged", "b=bf16:31x17^t"},
    {"ragged_row_major", "b=bf16:33x50"},
    {"one", "b=bf16:1x1"},
    {"strided", "b=bf16:100x36^pad8"},
    {"no_columns", "b=bf16:64x0"},
    {"no_k", "b=bf16:0x20"},
    {"bench", "b=bf16:4096x4096^t", "cpu", op::kBench},
};
}  // namespace
std::span<const op::Case> mm_bf16_cases() { return kMm; }
std::span<const op::Case> bmm_bf16_cases() { return kBmm; }
std::span<const op::Case> bmm_fp8_cases() { return kFp8; }
std::span<const op::Case> prepare_mm_weights_cases() { return kPrepare; }
}  // namespace flashinfer::ops::gemm
