// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/rope/cases.h"

namespace flashinfer::ops::rope {
namespace {
// Within one step of the 8-bit type; parts that are only cast are compared bit for bit in tests/ops/rope_quantize_test.cc.
constexpr op::Case kQuantize[] = {
    {"gqa", "q_rope=bf16:4x8x64 k_rope=bf16:4x2x64 q_nope=bf16:4x8x64 k_nope=bf16:4x2x64 cos_sin_cache=f32:100x64:uniform(-1,1) "
            "pos_ids=i32:[0,99,3,3] quant_scale_q=3.5 quant_scale_kv=20", "cpu", op::kAot},
    {"mla", "q_rope=bf16:3x16x64 k_rope=bf16:3x64 q_nope=bf16:3x16x512 k_nope=bf16:3x512 cos_sin_cache=f32:100x64:uniform(-1,1) "
            "pos_ids=i64:[0,99,3] is_neox=False quant_scale_q=0.5 quant_scale_kv=700", "cpu", op::kAot},
    {"no_nope_e5m2", "q_rope=f16:3x5x96 k_rope=f16:3x5x96 q_nope=None k_nope=None cos_sin_cache=f32:10x96:uniform(-1,1) "
                     "pos_ids=i32:[9,0,5] quantize_dtype=float8_e5m2 quant_scale_kv=1e5"},
    {"awkward_widths", "q_rope=bf16:3x3x50 k_rope=bf16:3x1x50 q_nope=bf16:3x3x77 k_nope=bf16:3x1x33 "
                       "cos_sin_cache=f32:10x50:uniform(-1,1)^pad6 pos_ids=i32:[9,0,5]"},
    {"interleaved_awkward", "q_rope=f16:3x3x22 k_rope=f16:3x22 q_nope=None k_nope=f16:3x7 cos_sin_cache=f32:10x22:uniform(-1,1) "
                            "pos_ids=i32:[9,0,5] is_neox=False quantize_dtype=float8_e4m3fn"},
    {"strided", "q_rope=bf16:3x4x64^pad128 k_rope=bf16:3x2x64^perm(1,0,2) q_nope=bf16:3x4x64^pad64 k_nope=bf16:3x2x64^pad8 "
                "cos_sin_cache=f32:10x64:uniform(-1,1) pos_ids=i32:[9,0,5]"},
    {"f32", "q_rope=f32:3x4x64 k_rope=f32:3x64 q_nope=None k_nope=None cos_sin_cache=f32:10x64:uniform(-1,1) pos_ids=i32:[9,0,5]"},
    {"huge_head", "q_rope=bf16:2x1x1100 k_rope=bf16:2x1100 q_nope=bf16:2x1x3 k_nope=bf16:2x1300 "
                  "cos_sin_cache=f32:4x1100:uniform(-1,1) pos_ids=i32:[3,1]"},
    {"no_tokens", "q_rope=bf16:0x8x64 k_rope=bf16:0x2x64 q_nope=None k_nope=None cos_sin_cache=f32:100x64 pos_ids=i32:[]"},
    {"many_tokens", "q_rope=bf16:333x8x64 k_rope=bf16:333x2x64 q_nope=bf16:333x8x64 k_nope=bf16:333x2x64 "
                    "cos_sin_cache=f32:333x64:uniform(-1,1) pos_ids=i32:333:perm"},
    {"bench", "q_rope=bf16:8192x32x64 k_rope=bf16:8192x8x64 q_nope=bf16:8192x32x64 k_nope=bf16:8192x8x64 "
              "cos_sin_cache=f32:8192x64:uniform(-1,1) pos_ids=i32:8192:range(0)", "cpu", op::kBench},
};
constexpr op::Case kMla[] = {
    {"mla", "q_rope=bf16:3x16x64 k_rope=bf16:3x64 q_nope=bf16:3x16x512 k_nope=bf16:3x512 cos_sin_cache=f32:100x64:uniform(-1,1) "
            "pos_ids=i64:[0,99,3] is_neox=False quant_scale_q=0.5 quant_scale_kv=700"},
};
// Requests of 3, 0 and 2 pages of 4 tokens; two tokens across a page border, one of request 2, one padding with an id outside the table.
#define FI_TOKENS \
  "kv_indices=i32:[5,1,3,0,2] kv_indptr=i32:[0,3,3,5] batch_indices=i32:[0,0,-1,2] positions=i32:[3,4,99,5] pos_ids=i32:[3,4,-7,50] "
constexpr op::Case kAppend[] = {
    {"gqa", "q_rope=bf16:4x8x64 k_rope=bf16:4x2x64 q_nope=bf16:4x8x64 k_nope=bf16:4x2x64 v=bf16:4x2x128 "
            "cos_sin_cache=f32:100x64:uniform(-1,1) paged_kv_cache=(e4m3:6x4x2x128,e4m3:6x4x2x128) " FI_TOKENS
            "page_size=4 quant_scale_q=2 quant_scale_kv=9"},
    {"gqa_hnd_e5m2", "q_rope=f16:4x8x32 k_rope=f16:4x2x32 q_nope=f16:4x8x48 k_nope=f16:4x2x48 v=f16:4x2x56 "
                     "cos_sin_cache=f32:100x32:uniform(-1,1) paged_kv_cache=(e5m2:6x2x4x80,e5m2:6x2x4x56) " FI_TOKENS
                     "page_size=4 kv_layout='HND' is_neox=False quantize_dtype=float8_e5m2"},
    {"mha_rope_only", "q_rope=bf16:4x3x96 k_rope=bf16:4x3x96 q_nope=None k_nope=None v=bf16:4x3x96 "
                      "cos_sin_cache=f32:100x96:uniform(-1,1) paged_kv_cache=(e4m3:6x4x3x96^pad32,e4m3:6x4x3x96^perm(0,2,1,3)) " FI_TOKENS
                      "page_size=4"},
    {"mla", "q_rope=bf16:4x16x64 k_rope=bf16:4x64 q_nope=bf16:4x16x512 k_nope=bf16:4x512 v=None "
            "cos_sin_cache=f32:100x64:uniform(-1,1) paged_kv_cache=(e4m3:6x4x512,e4m3:6x4x64) " FI_TOKENS
            "page_size=4 is_neox=False quant_scale_q=0.5 quant_scale_kv=100"},
    {"page_of_one_int64", "q_rope=bf16:3x2x64 k_rope=bf16:3x1x64 q_nope=None k_nope=None v=bf16:3x1x64 "
                          "cos_sin_cache=f32:9x64:uniform(-1,1) paged_kv_cache=(e4m3:6x1x1x64,e4m3:6x1x1x64) kv_indices=i64:[5,1,3] "
                          "kv_indptr=i64:[0,2,3] batch_indices=i64:[0,1,0] positions=i64:[1,0,0] pos_ids=i64:[1,8,0] page_size=1"},
    {"no_tokens", "q_rope=bf16:0x8x64 k_rope=bf16:0x64 q_nope=bf16:0x8x512 k_nope=bf16:0x512 v=None cos_sin_cache=f32:100x64 "
                  "paged_kv_cache=(e4m3:6x4x512,e4m3:6x4x64) kv_indices=i32:[5] kv_indptr=i32:[0,1] batch_indices=i32:[] positions=i32:[] "
                  "pos_ids=i32:[] page_size=4"},
    {"many_tokens", "q_rope=bf16:320x8x64 k_rope=bf16:320x2x64 q_nope=None k_nope=None v=bf16:320x2x64 "
                    "cos_sin_cache=f32:320x64:uniform(-1,1) paged_kv_cache=(e4m3:20x16x2x64,e4m3:20x16x2x64) kv_indices=i32:20:perm "
                    "kv_indptr=i32:[0,20] batch_indices=i32:320:const(0) positions=i32:320:range(0) pos_ids=i32:320:range(0)"},
    {"bench", "q_rope=bf16:8192x32x64 k_rope=bf16:8192x8x64 q_nope=bf16:8192x32x64 k_nope=bf16:8192x8x64 v=bf16:8192x8x128 "
              "cos_sin_cache=f32:8192x64:uniform(-1,1) paged_kv_cache=(e4m3:512x16x8x128,e4m3:512x16x8x128) kv_indices=i32:512:perm "
              "kv_indptr=i32:[0,512] batch_indices=i32:8192:const(0) positions=i32:8192:range(0) pos_ids=i32:8192:range(0)",
     "cpu", op::kBench},
};
#undef FI_TOKENS
}  // namespace
std::span<const op::Case> quantize_cases() { return kQuantize; }
std::span<const op::Case> mla_quantize_cases() { return kMla; }
std::span<const op::Case> quantize_append_cases() { return kAppend; }
}  // namespace flashinfer::ops::rope
