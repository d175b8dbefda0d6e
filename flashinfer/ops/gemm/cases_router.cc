// SPDX-License-Identifier: Apache-2.0
// One shape each is all there is; one row and the most rows in turn, as the reference takes its time.
#include "flashinfer/ops/gemm/cases.h"

namespace flashinfer::ops::gemm {
namespace {
constexpr op::Case kK6144_N256[] = {{"rows_1", "mat_a=bf16:1x6144 mat_b=bf16:6144x256^t out=f32:1x256", "cpu", 0, 1e-4, 2e-3}};
constexpr op::Case kK7168_N128[] = {{"rows_3", "mat_a=bf16:3x7168 mat_b=bf16:7168x128^t out=bf16:3x128", "cpu", 0, -1, 2e-3}};
constexpr op::Case kK7168_N256[] = {{"rows_16", "mat_a=bf16:16x7168 mat_b=bf16:7168x256^t out=f32:16x256", "cpu", 0, 1e-4, 2e-3}};
constexpr op::Case kK7168_N256_bf16[] = {{"rows_2", "mat_a=bf16:2x7168 mat_b=bf16:7168x256^t out=bf16:2x256", "cpu", 0, -1, 2e-3}};
constexpr op::Case kK7168_N384[] = {{"rows_1", "mat_a=bf16:1x7168 mat_b=bf16:7168x384^t out=f32:1x384", "cpu", 0, 1e-4, 2e-3}};
constexpr op::Case kK7168_N384_bf16[] = {{"rows_1", "mat_a=bf16:1x7168 mat_b=bf16:7168x384^t out=bf16:1x384", "cpu", 0, -1, 2e-3}};
constexpr op::Case kK7168_N896[] = {{"rows_1", "mat_a=bf16:1x7168 mat_b=bf16:7168x896^t out=f32:1x896", "cpu", 0, 1e-4, 2e-3}};
constexpr op::Case kK7168_N896_bf16[] = {{"rows_1", "mat_a=bf16:1x7168 mat_b=bf16:7168x896^t out=bf16:1x896", "cpu", 0, -1, 2e-3}};
constexpr op::Case kTiny[] = {
    {"bias", "input=bf16:3x128 weight=bf16:48x128 out=bf16:3x48 bias=bf16:48", "cpu", 0, -1, 1e-3},
    {"depth_of_8", "input=bf16:2x360 weight=bf16:32x360 out=bf16:2x32 bias=bf16:32", "cpu", 0, -1, 1e-3},
    {"plain", "input=bf16:8x64 weight=bf16:16x64 out=bf16:8x16", "cpu", 0, -1, 1e-3},
};
constexpr op::Case kPrepare[] = {
    {"weight", "w=e4m3:96x256 permutation_indices_cache=None"},
    {"padded", "w=e4m3:32x128^pad8 permutation_indices_cache=None"},
};
}  // namespace
std::span<const op::Case> mm_M1_16_K6144_N256_cases() { return kK6144_N256; }
std::span<const op::Case> mm_M1_16_K7168_N128_cases() { return kK7168_N128; }
std::span<const op::Case> mm_M1_16_K7168_N256_cases() { return kK7168_N256; }
std::span<const op::Case> mm_M1_16_K7168_N256_bf16_cases() { return kK7168_N256_bf16; }
std::span<const op::Case> mm_M1_16_K7168_N384_cases() { return kK7168_N384; }
std::span<const op::Case> mm_M1_16_K7168_N384_bf16_cases() { return kK7168_N384_bf16; }
std::span<const op::Case> mm_M1_16_K7168_N896_cases() { return kK7168_N896; }
std::span<const op::Case> mm_M1_16_K7168_N896_bf16_cases() { return kK7168_N896_bf16; }
std::span<const op::Case> tinygemm_cases() { return kTiny; }
std::span<const op::Case> prepare_low_latency_cases() { return kPrepare; }
}  // namespace flashinfer::ops::gemm
