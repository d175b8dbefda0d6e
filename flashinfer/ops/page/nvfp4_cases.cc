// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/page/cases.h"

namespace flashinfer::ops::page {
namespace {
// Requests of 3, 0 and 2 pages; two tokens across a page border, one of request 2, one padding. Codes and scales are compared bit for bit.
#define FI_TABLE "kv_indices=i32:[5,1,3,0,2] kv_indptr=i32:[0,3,3,5] "
#define FI_TOKENS "batch_indices=i32:[0,0,-1,2] positions=i32:[3,4,99,5] "
constexpr op::Case kAppend[] = {
    {"nhd", "append_key=bf16:4x3x64 append_value=bf16:4x3x64 " FI_TOKENS "paged_kv_cache=u8:6x2x4x3x32 kv_cache_sf=e4m3:6x2x4x3x4 " FI_TABLE
            "kv_last_page_len=i32:[1,1,2] k_scale=0.01 v_scale=0.3", "cpu", op::kAot},
    {"hnd_f16", "append_key=f16:4x3x128 append_value=f16:4x3x128 " FI_TOKENS
                "paged_kv_cache=fp4x2:6x2x3x4x64 kv_cache_sf=e4m3:6x2x3x4x8 " FI_TABLE
                "kv_last_page_len=i32:[1,1,2] k_scale=1.0 v_scale=1.0 kv_layout='HND'", "cpu", op::kAot},
    {"pair_dims_differ", "append_key=bf16:4x3x192 append_value=bf16:4x3x112 " FI_TOKENS
                         "paged_kv_cache=(u8:6x4x3x96,u8:6x4x3x56) kv_cache_sf=(u8:6x4x3x12,u8:6x4x3x7) " FI_TABLE
                         "kv_last_page_len=i32:[1,1,2] k_scale=0.037 v_scale=17.5"},
    {"page_of_one", "append_key=bf16:4x2x80 append_value=bf16:4x2x80 batch_indices=i64:[0,0,-1,2] positions=i64:[0,2,99,1] "
                    "paged_kv_cache=u8:6x2x2x40 kv_cache_sf=e4m3:6x2x2x5 kv_indices=i64:[5,1,3,0,2] kv_indptr=i64:[0,3,3,5] "
                    "kv_last_page_len=i64:[1,1,1] k_scale=0.5 v_scale=2"},
    {"strided", "append_key=f16:4x3x64^pad128 append_value=f16:4x3x64^perm(1,0,2) " FI_TOKENS
                "paged_kv_cache=u8:6x2x4x3x32^perm(0,2,1,3,4) kv_cache_sf=e4m3:6x2x4x3x4^pad12 " FI_TABLE
                "kv_last_page_len=i32:[1,1,2] k_scale=0.01 v_scale=0.02"},
    {"tiny_values", "append_key=bf16:4x3x64:normal(0,1e-6) append_value=bf16:4x3x64:normal(0,1e-30) " FI_TOKENS
                    "paged_kv_cache=u8:6x2x4x3x32 kv_cache_sf=e4m3:6x2x4x3x4 " FI_TABLE
                    "kv_last_page_len=i32:[1,1,2] k_scale=0.0001 v_scale=1"},
    {"huge_values", "append_key=bf16:4x3x64:normal(0,1e30) append_value=bf16:4x3x64:normal(0,1) " FI_TOKENS
                    "paged_kv_cache=u8:6x2x4x3x32 kv_cache_sf=e4m3:6x2x4x3x4 " FI_TABLE
                    "kv_last_page_len=i32:[1,1,2] k_scale=1e-36 v_scale=1e-36"},
    {"zeros", "append_key=bf16:4x3x64:const(0) append_value=bf16:4x3x64:const(-0.0) " FI_TOKENS
              "paged_kv_cache=u8:6x2x4x3x32 kv_cache_sf=e4m3:6x2x4x3x4 " FI_TABLE "kv_last_page_len=i32:[1,1,2] k_scale=1 v_scale=2e-38"},
    {"nan", "append_key=bf16:4x3x64:nan append_value=bf16:4x3x64:const(inf) " FI_TOKENS
            "paged_kv_cache=u8:6x2x4x3x32 kv_cache_sf=e4m3:6x2x4x3x4 " FI_TABLE "kv_last_page_len=i32:[1,1,2] k_scale=1 v_scale=1"},
    {"huge_head", "append_key=bf16:2x1x1088 append_value=bf16:2x1x1088 batch_indices=i32:[0,0] positions=i32:[0,1] "
                  "paged_kv_cache=u8:1x2x2x1x544 kv_cache_sf=e4m3:1x2x2x1x68 kv_indices=i32:[0] kv_indptr=i32:[0,1] "
                  "kv_last_page_len=i32:[2] k_scale=0.01 v_scale=0.01"},
    {"nothing", "append_key=bf16:0x3x64 append_value=bf16:0x3x64 batch_indices=i32:[] positions=i32:[] "
                "paged_kv_cache=u8:6x2x4x3x32 kv_cache_sf=e4m3:6x2x4x3x4 " FI_TABLE "kv_last_page_len=i32:[1,1,2] k_scale=1 v_scale=1"},
    {"many_tokens", "append_key=bf16:640x8x128 append_value=bf16:640x8x128 batch_indices=i32:640:const(0) positions=i32:640:range(0) "
                    "paged_kv_cache=u8:40x2x16x8x64 kv_cache_sf=e4m3:40x2x16x8x8 kv_indices=i32:40:perm kv_indptr=i32:[0,40] "
                    "kv_last_page_len=i32:[16] k_scale=0.01 v_scale=0.01"},
    {"bench", "append_key=bf16:8192x8x128 append_value=bf16:8192x8x128 batch_indices=i32:8192:const(0) positions=i32:8192:range(0) "
              "paged_kv_cache=u8:512x2x16x8x64 kv_cache_sf=e4m3:512x2x16x8x8 kv_indices=i32:512:perm kv_indptr=i32:[0,512] "
              "kv_last_page_len=i32:[16] k_scale=0.01 v_scale=0.01", "cpu", op::kBench},
};
constexpr op::Case kSlots[] = {
    {"skips", "append_key=bf16:6x3x64 append_value=bf16:6x3x64 slot_mapping=i64:[3,-1,23,24,1000000,0] paged_kv_cache=u8:6x2x4x3x32 "
              "kv_cache_sf=e4m3:6x2x4x3x4 k_scale=0.01 v_scale=0.3"},
    {"tensor_scales_hnd", "append_key=f16:5x3x96 append_value=f16:5x3x96 slot_mapping=i32:[3,7,-4] paged_kv_cache=fp4x2:6x2x3x4x48 "
                          "kv_cache_sf=u8:6x2x3x4x6 k_scale=f32:[0.02] v_scale=f32:[3.5] kv_layout='HND'"},
    {"pair", "append_key=bf16:2x1x64 append_value=bf16:2x1x32 slot_mapping=i32:[1,0] paged_kv_cache=(u8:2x1x32,u8:2x1x16) "
             "kv_cache_sf=(e4m3:2x1x4,e4m3:2x1x2) k_scale=1 v_scale=f32:[0.125]"},
    {"nothing", "append_key=bf16:3x1x64 append_value=bf16:3x1x64 slot_mapping=i32:[] paged_kv_cache=u8:2x2x4x1x32 "
                "kv_cache_sf=e4m3:2x2x4x1x4 k_scale=1 v_scale=1"},
};
constexpr op::Case kMla[] = {
    {"deepseek", "append_ckv=bf16:4x512 append_kpe=bf16:4x64:normal(0,30) " FI_TOKENS
                 "ckv_cache=u8:6x4x256 ckv_sf_cache=e4m3:6x4x32 kpe_cache=e4m3:6x4x64 " FI_TABLE
                 "kv_last_page_len=i32:[1,1,2] ckv_scale=0.02 kpe_scale=0.15"},
    {"f16_small_strided", "append_ckv=f16:4x48^pad16 append_kpe=f16:4x10^pad6 " FI_TOKENS
                          "ckv_cache=u8:6x4x24^pad40 ckv_sf_cache=u8:6x4x3^pad5 kpe_cache=e4m3:6x4x10^pad22 " FI_TABLE
                          "kv_last_page_len=i32:[1,1,2] ckv_scale=1 kpe_scale=0.001"},
    {"nothing", "append_ckv=bf16:0x512 append_kpe=bf16:0x64 batch_indices=i32:[] positions=i32:[] "
                "ckv_cache=u8:6x4x256 ckv_sf_cache=e4m3:6x4x32 kpe_cache=e4m3:6x4x64 " FI_TABLE
                "kv_last_page_len=i32:[1,1,2] ckv_scale=1 kpe_scale=1"},
};
#undef FI_TABLE
#undef FI_TOKENS
}  // namespace
std::span<const op::Case> nvfp4_append_cases() { return kAppend; }
std::span<const op::Case> nvfp4_append_slots_cases() { return kSlots; }
std::span<const op::Case> nvfp4_append_mla_cases() { return kMla; }
}  // namespace flashinfer::ops::page
