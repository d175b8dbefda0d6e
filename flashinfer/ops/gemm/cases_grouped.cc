// SPDX-License-Identifier: Apache-2.0
// Groups of none, one, a few and many rows; rows of no group at both ends.
#include "flashinfer/ops/gemm/cases.h"

namespace flashinfer::ops::gemm {
namespace {
constexpr op::Case kBf16[] = {
    {"uneven", "a=bf16:31x70 b=bf16:4x33x70 m_indptr=i32:[0,3,3,20,31]", "cpu", op::kAot, -1, 1e-3},
    {"rows_of_none", "a=bf16:12x64 b=bf16:2x20x64 m_indptr=i32:[2,3,11] out_dtype=float32", "cpu", 0, 1e-5, 1e-3},
    {"none", "a=bf16:0x64 b=bf16:2x20x64 m_indptr=i32:[0,0,0]"},
};
constexpr op::Case kFp8[] = {
    {"uneven", "a=e4m3:31x70 b=e4m3:4x33x70 m_indptr=i32:[0,3,3,20,31] alpha=f32:1:const(0.5)", "cpu", 0, -1, 1e-3},
    {"e5m2", "a=e4m3:9x64 b=e5m2:2x16x64 m_indptr=i32:[0,9,9] out_dtype=float16", "cpu", 0, -1, 2e-3},
};
constexpr op::Case kMxfp8[] = {
    {"uneven", "a=e4m3:31x96 b=e4m3:3x33x96 a_descale=u8:128x4:randint(122,128) b_descale=u8:3x128x4:randint(122,128) "
               "m_indptr=i32:[0,1,20,31]", "cpu", 0, -1, 1e-2},
};
constexpr op::Case kFp4[] = {
    {"nvfp4", "a=u8:31x48:randint(0,256) b=u8:3x33x48:randint(0,256) a_descale=e4m3:128x8:uniform(0.1,1) "
              "b_descale=e4m3:3x128x8:uniform(0.1,1) m_indptr=i32:[0,1,20,31] alpha=f32:1:const(0.5)", "cpu", 0, -1, 1e-2},
    {"mxfp4", "a=u8:9x64:randint(0,256) b=u8:2x17x64:randint(0,256) a_descale=u8:512:randint(122,128) b_descale=u8:1024:randint(122,128) "
              "m_indptr=i32:[0,8,9] block_size=32 out_dtype=float16", "cpu", 0, -1, 1e-2},
};
constexpr op::Case kGroupwise[] = {
    {"mn_major", "a=e4m3:31x300 b=e4m3:3x140x300 a_scale=f32:3x31:uniform(0.01,0.1) b_scale=f32:3x3x2:uniform(0.01,0.1) "
                 "m_indptr=i32:[0,1,20,31]", "cpu", 0, -1, 1e-4},
    {"k_major", "a=e4m3:9x256 b=e4m3:2x20x256 a_scale=f32:9x2:uniform(0.1,1) b_scale=f32:2x1x2:uniform(0.1,1) m_indptr=i32:[0,0,8] "
                "scale_major_mode='K' out_dtype=float16", "cpu", 0, -1, 1e-2},
};
constexpr op::Case kDeep[] = {
    {"rows", "a=e4m3:7x256 b=e4m3:3x20x256 a_scale=f32:7x2:uniform(0.01,0.1) b_scale=f32:3x1x2:uniform(0.01,0.1) "
             "m_indices=i32:[2,2,-1,0,0,1,2]", "cpu", 0, -1, 1e-4},
};
constexpr op::Case kContiguous[] = {
    {"two", "a=e4m3:150x128 b=e4m3:3x20x128 a_scale=f32:150x1:uniform(0.01,0.1) b_scale=f32:3x1x1:uniform(0.01,0.1) "
            "m_indices=i32:150:const(1)", "cpu", 0, -1, 1e-4},
    {"none", "a=e4m3:0x128 b=e4m3:3x20x128 a_scale=f32:0x1 b_scale=f32:3x1x1 m_indices=i32:0"},
};
constexpr op::Case kMasked[] = {
    {"uneven", "a=e4m3:3x10x256 b=e4m3:3x33x256 a_scale=f32:3x10x2:uniform(0.01,0.1) b_scale=f32:3x1x2:uniform(0.01,0.1) "
               "masked_m=i32:[10,0,3] expected_m=4", "cpu", 0, -1, 1e-4},
};
constexpr op::Case kMxfp4[] = {
    {"uneven", "a=e4m3:31x128 b=u8:3x33x64:randint(0,256) a_scale=u8:384x4:randint(122,128) b_scale=u8:3x128x4:randint(122,128) "
               "m_indptr=i32:[0,4,4,31]", "cpu", 0, -1, 1e-2},
    {"e5m2", "a=e5m2:9x64 b=u8:1x16x32:randint(0,256) a_scale=u8:128x4:randint(122,128) b_scale=u8:1x128x4:randint(122,128) "
             "m_indptr=i32:[0,9] out_dtype=float16", "cpu", 0, -1, 2e-2},
};
constexpr op::Case kNvfp4[] = {
    {"uneven", "a=u8:31x64:randint(0,256) b=u8:3x33x64:randint(0,256) a_scale=e4m3:384x8:uniform(0.1,1) b_scale=e4m3:3x128x8:uniform(0.1,1) "
               "m_indptr=i32:[0,4,4,31] alpha=f32:3:uniform(0.5,1)", "cpu", 0, -1, 1e-2},
};
constexpr op::Case kSegment[] = {
    {"lens", "init.float_workspace_buffer=u8:64 x=bf16:31x70 weights=bf16:2x33x70 batch_size=4 weight_column_major=True "
             "seg_lens=i64:[3,0,17,11] weight_indices=i64:[1,0,1,0]", "cpu", 0, -1, 1e-3},
    {"indptr_row_major", "init.float_workspace_buffer=u8:64 x=bf16:20x64 weights=bf16:2x64x40 batch_size=2 weight_column_major=False "
                         "seg_indptr=i32:[0,1,20]", "cpu", 0, -1, 1e-3},
    {"f16", "init.float_workspace_buffer=u8:64 x=f16:5x64 weights=f16:1x64x16 batch_size=1 weight_column_major=False seg_lens=i32:[5]",
     "cpu", 0, -1, 1e-3},
};
constexpr op::Case kMaskedScaled[] = {
    {"nvfp4", "a=u8:3x10x32:randint(0,256) b=u8:3x33x32:randint(0,256) a_scale=e4m3:3x1x1x2x256:uniform(0.1,1) "
              "b_scale=e4m3:3x1x1x2x256:uniform(0.1,1) masked_m=i32:[10,0,3] block_scale_type='nvfp4'", "cpu", 0, -1, 1e-2},
    {"mxfp8", "a=e4m3:2x130x96 b=e4m3:2x17x96 a_scale=u8:2x2x1x2x256:randint(122,128) b_scale=u8:2x1x1x2x256:randint(122,128) "
              "masked_m=i32:[130,1] block_scale_type='mxfp8' out_dtype=float32", "cpu", 0, -1, 1e-2},
    {"mixed", "a=e4m3:2x5x64 b=u8:2x17x32:randint(0,256) a_scale=u8:1024:randint(122,128) b_scale=u8:1024:randint(122,128) "
              "masked_m=i32:[4,5] block_scale_type='mixed' out_dtype=float16", "cpu", 0, -1, 2e-2},
};
constexpr op::Case kRaggedScaled[] = {
    {"nvfp4", "a=u8:384x32:randint(0,256) b=u8:3x33x32:randint(0,256) a_scale=e4m3:3x1x2x256:uniform(0.1,1) b_scale=e4m3:3x1x1x2x256:uniform(0.1,1) "
              "m_indptr=i32:[0,128,128,256] max_m=128 block_scale_type='nvfp4' a_global_scale=f32:[0.5] b_global_scale=f32:3:uniform(0.5,1)",
     "cpu", 0, -1, 1e-3},
    {"mxfp4", "a=u8:128x32:randint(0,256) b=u8:1x17x32:randint(0,256) a_scale=u8:512:randint(122,128) b_scale=u8:512:randint(122,128) "
              "m_indptr=i32:[0,128] max_m=200 block_scale_type='mxfp4'", "cpu", 0, -1, 1e-3},
};
constexpr op::Case kRaggedBlocks[] = {
    {"two", "a=e4m3:260x256 b=e4m3:2x140x256 a_scale=f32:260x2:uniform(0.01,0.1) b_scale=f32:2x2x2:uniform(0.01,0.1) m_indptr=i32:[0,128,256] "
            "max_m=128", "cpu", 0, -1, 1e-4},
    {"unaligned", "a=e4m3:9x128 b=e4m3:2x20x128 a_scale=f32:9x1:uniform(0.01,0.1) b_scale=f32:2x1x1:uniform(0.01,0.1) m_indptr=i32:[0,1,9] "
                  "max_m=8 segment_alignment=1 out_dtype=float32", "cpu", 0, 1e-5, 1e-4},
};
constexpr op::Case kNtMasked[] = {
    {"nvfp4", "lhs=(u8:10x32x3:randint(0,256)^perm(2,0,1),e4m3:32x4x1x4x1x3:uniform(0.1,1)^perm(5,2,4,0,1,3)) "
              "rhs=(u8:33x32x3:randint(0,256)^perm(2,0,1),e4m3:32x4x1x4x1x3:uniform(0.1,1)^perm(5,2,4,0,1,3)) out=bf16:10x33x3^perm(2,0,1) "
              "masked_m=i32:[10,0,3] ab_dtype='float4_e2m1fn' sf_dtype='float8_e4m3fn' c_dtype='bfloat16' sf_vec_size=16 "
              "alpha=f32:1x1x3:uniform(0.5,1) alpha_dtype='float32'", "cpu", 0, -1, 1e-2},
    {"mxfp8", "lhs=(e4m3:130x96x2^perm(2,0,1),u8:32x4x2x4x1x2:randint(122,128)^perm(5,2,4,0,1,3)) "
              "rhs=(e4m3:17x96x2^perm(2,0,1),u8:32x4x1x4x1x2:randint(122,128)^perm(5,2,4,0,1,3)) out=f32:130x17x2^perm(2,0,1) "
              "masked_m=i32:[130,1] ab_dtype='float8_e4m3fn' sf_dtype='float8_e8m0fnu' c_dtype='float32' sf_vec_size=32", "cpu", 0, -1, 1e-2},
};
}  // namespace
std::span<const op::Case> grouped_gemm_nt_masked_cases() { return kNtMasked; }
std::span<const op::Case> masked_scaled_bmm_cases() { return kMaskedScaled; }
std::span<const op::Case> ragged_scaled_bmm_cases() { return kRaggedScaled; }
std::span<const op::Case> ragged_block_scaled_bmm_cases() { return kRaggedBlocks; }
std::span<const op::Case> grouped_mm_bf16_cases() { return kBf16; }
std::span<const op::Case> grouped_mm_fp8_cases() { return kFp8; }
std::span<const op::Case> grouped_mm_mxfp8_cases() { return kMxfp8; }
std::span<const op::Case> grouped_mm_fp4_cases() { return kFp4; }
std::span<const op::Case> group_gemm_fp8_groupwise_cases() { return kGroupwise; }
std::span<const op::Case> group_deepgemm_fp8_cases() { return kDeep; }
std::span<const op::Case> group_gemm_fp8_contiguous_cases() { return kContiguous; }
std::span<const op::Case> batch_deepgemm_fp8_cases() { return kMasked; }
std::span<const op::Case> group_gemm_mxfp4_cases() { return kMxfp4; }
std::span<const op::Case> group_gemm_nvfp4_cases() { return kNvfp4; }
std::span<const op::Case> segment_cases() { return kSegment; }
}  // namespace flashinfer::ops::gemm
