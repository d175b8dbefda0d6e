// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/msa/cases.h"

namespace flashinfer::ops::msa {
namespace {
#define FI_SEQ "cu_seqlens_q=i32:[0,3,3,5] "
#define FI_FLAT FI_SEQ "cu_seqlens_k=i32:[0,300,301,520] "
#define FI_PAGED FI_SEQ "page_table=i32:3x4:perm seqused_k=i32:[300,1,512] "
#define FI_NVFP4 "=u8:520x2x64:randint(0,256) "
#define FI_SCALE "=u8:1152x8:randint(32,72) "

constexpr op::Case kScore[] = {
    {"flat", "q=bf16:5x4x128 k=bf16:520x2x128 " FI_FLAT, "cpu", op::kAot},
    {"paged", "q=f16:5x4x128 k=f16:12x2x128x128 " FI_PAGED, "cpu"},
    {"not_causal", "q=f32:5x4x128 k=f32:520x1x128 " FI_FLAT "causal=False max_k_tiles=6 max_seqlen_q=3", "cpu"},
    {"all_heads", "q=bf16:5x40x128 k=bf16:520x2x128 " FI_FLAT "reduce_heads=True", "cpu"},
    {"fp8_keys", "q=bf16:5x3x128 k=e4m3:520x1x128 " FI_FLAT, "cpu"},
    {"fp8", "q=e4m3:5x2x128 k=e4m3:12x2x128x128 " FI_PAGED "q_offset=i32:[100,0,400]", "cpu"},
    {"offset", "q=bf16:5x2x128 k=bf16:520x2x128 " FI_FLAT "q_offset=-1", "cpu"},
    {"strided", "q=bf16:5x4x128^pad8 k=bf16:12x2x128x128^perm(0,2,1,3) " FI_PAGED "output=f32:4x4x5^pad8", "cpu"},
    {"bench", "q=bf16:1x4x128 k=bf16:65536x1x128 cu_seqlens_q=i32:[0,1] cu_seqlens_k=i32:[0,65536]", "cpu", op::kBench},
};
constexpr op::Case kScoreFp4[] = {
    {"flat", "q_fp4=u8:5x4x64:randint(0,256) k_fp4" FI_NVFP4 "q_scale=u8:1024:randint(32,72) k_scale" FI_SCALE
             "q_global_scale=0.5 k_global_scale=0.25 " FI_FLAT, "cpu"},
    {"paged", "q_fp4=u8:5x4x64:randint(0,256) k_fp4=u8:12x1x128x64:randint(0,256) q_scale=u8:128x8:randint(32,72) "
              "k_scale=u8:1536x8:randint(32,72) q_global_scale=1 k_global_scale=2 " FI_PAGED "reduce_heads=True", "cpu"},
};
constexpr op::Case kSelect[] = {
    {"decode", "max_score=f32:4x40x3 topk=16", "cpu"},
    {"forced", "max_score=f32:2x40x19 topk=16 num_valid_pages=33 force_begin_blocks=2 force_end_blocks=3", "cpu"},
    {"each_row", "max_score=f32:2x40x5 topk=16 num_valid_pages=i32:[1,50,-3,17,40] force_begin_blocks=1 force_end_blocks=2", "cpu"},
    {"few_blocks", "max_score=f32:3x5x4 topk=8", "cpu"},
    {"equal_scores", "max_score=f32:1x40x4:const(1) topk=16 force_end_blocks=1", "cpu"},
    {"strided", "max_score=f32:2x40x6^perm(2,0,1) topk=4 output=i32:6x2x4^pad8", "cpu"},
    {"nothing", "max_score=f32:2x0x3 topk=16", "cpu"},
    {"bench", "max_score=f32:4x512x1024 topk=16", "cpu", op::kBench},
};
#define FI_LISTS "q2k_indices=i32:2x5x4:randint(-1,6) "
constexpr op::Case kAttention[] = {
    {"flat", "q=bf16:5x4x128 k=bf16:520x2x128 v=bf16:520x2x128 " FI_LISTS FI_FLAT, "cpu", op::kAot},
    {"causal", "q=f16:5x4x128 k=f16:520x2x128 v=f16:520x2x128 " FI_LISTS FI_FLAT "causal=True return_softmax_lse=True", "cpu"},
    {"paged", "q=bf16:5x6x128 k=bf16:12x2x128x128 v=bf16:12x2x128x128 " FI_LISTS FI_PAGED "causal=True softmax_scale=0.2", "cpu"},
    {"temperature", "q=f32:5x2x128 k=f32:520x2x128 v=f32:520x2x128 " FI_LISTS FI_FLAT
                    "return_temperature_lse=True lse_temperature_scale=0.7", "cpu"},
    {"many_heads", "q=bf16:5x40x128 k=bf16:520x2x128 v=bf16:520x2x128 " FI_LISTS FI_FLAT "return_softmax_lse=True", "cpu"},
    {"fp8", "q=e4m3:5x4x128 k=e4m3:520x2x128 v=e4m3:520x2x128 " FI_LISTS FI_FLAT "k_global_scale=0.5 v_global_scale=2", "cpu"},
    {"fp8_keys", "q=bf16:5x4x128 k=e4m3:12x2x128x128 v=e4m3:12x2x128x128 " FI_LISTS FI_PAGED "v_global_scale=0.5", "cpu"},
    {"nvfp4", "q=bf16:5x4x128 k" FI_NVFP4 "v" FI_NVFP4 "k_scale" FI_SCALE "v_scale" FI_SCALE FI_LISTS FI_FLAT
              "k_global_scale=0.05 v_global_scale=0.5 return_softmax_lse=True", "cpu"},
    {"offset", "q=f32:5x4x128 k=f32:520x2x128 v=f32:520x2x128 " FI_LISTS FI_FLAT
               "causal=True q_offset=i32:[140,-5,7] return_softmax_lse=True", "cpu"},
    {"packed_cache", "q=bf16:5x4x128 k=bf16:12x2x128x128^perm(0,2,1,3) v=bf16:12x2x128x128^pad8 " FI_LISTS FI_PAGED, "cpu"},
    {"nothing_selected", "q=bf16:5x4x128 k=bf16:520x2x128 v=bf16:520x2x128 q2k_indices=i32:2x5x4:const(-1) " FI_FLAT
                         "return_softmax_lse=True", "cpu"},
};
#define FI_STEP "cu_seqlens_k=i32:[0,300,520] seqlen_q=2 "
constexpr op::Case kDecode[] = {
    {"flat", "q=bf16:4x4x128 k=bf16:520x2x128 v=bf16:520x2x128 q2k_indices=i32:2x4x4:randint(-1,3) " FI_STEP, "cpu", op::kAot},
    {"paged", "q=f16:3x8x128 k=f16:12x1x128x128 v=f16:12x1x128x128 q2k_indices=i32:1x3x4:range(0) page_table=i32:3x4:perm "
              "seqused_k=i32:[300,1,512] return_softmax_lse=True force_fused=True", "cpu"},
    {"fp8", "q=e4m3:4x4x128 k=e4m3:520x2x128 v=e4m3:520x2x128 q2k_indices=i32:2x4x4:randint(-1,3) out=bf16:4x4x128 " FI_STEP, "cpu"},
    {"nvfp4_paged", "q=bf16:3x4x128 k=u8:12x1x128x64:randint(0,256) v=u8:12x1x128x64:randint(0,256) k_scale=u8:12288:randint(32,72) "
                    "v_scale=u8:12288:randint(32,72) k_global_scale=0.05 q2k_indices=i32:1x3x4:range(0) page_table=i32:3x4:perm "
                    "seqused_k=i32:[300,1,512]", "cpu"},
    {"bench", "q=bf16:8x64x128 k=bf16:65536x4x128 v=bf16:65536x4x128 q2k_indices=i32:4x8x16:randint(0,64) "
              "cu_seqlens_k=i32:[0,8192,16384,24576,32768,40960,49152,57344,65536]", "cpu", op::kBench},
};
}  // namespace
std::span<const op::Case> score_cases() { return kScore; }
std::span<const op::Case> score_fp4_cases() { return kScoreFp4; }
std::span<const op::Case> select_cases() { return kSelect; }
std::span<const op::Case> attention_cases() { return kAttention; }
std::span<const op::Case> decode_cases() { return kDecode; }
}  // namespace flashinfer::ops::msa
