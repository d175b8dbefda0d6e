// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/quantization/cases.h"

namespace flashinfer::ops::quantization {
namespace {
constexpr op::Case kPackBits[] = {
    {"big", "x=bool:1000", "cpu", op::kAot},
    {"little", "x=bool:1003 bitorder='little'", "cpu", op::kAot},
    {"any_value_but_0", "x=u8:777:randint(0,3)"},
    {"high_bits", "x=u8:777:randint(0,256) bitorder='little'"},
    {"seven", "x=bool:7:const(1)"},
    {"one", "x=bool:1:const(1) bitorder='little'"},
    {"nothing", "x=bool:0"},
    {"many", "x=bool:1000001"},
    {"bench", "x=bool:268435456", "cpu", op::kBench},
};
constexpr op::Case kSegments[] = {
    {"awkward", "x=bool:100 indptr=i32:[0,1,9,9,25,100]"},
    {"little_int64", "x=u8:100:randint(0,3) indptr=i64:[0,0,64,65,100] bitorder='little'"},
    {"empty_ends", "x=bool:5:const(1) indptr=i32:[0,0,0,5,5]"},
    {"no_segments", "x=bool:0 indptr=i32:[0]"},
    {"nothing_in_them", "x=bool:0 indptr=i32:[0,0,0]"},
    {"many", "x=bool:1000003 indptr=i32:[0,7,500000,500001,1000003]"},
    {"bench", "x=bool:268435455 indptr=i32:[0,100000001,100000003,268435455]", "cpu", op::kBench},
};
constexpr op::Case kQuantize[] = {
    {"bf16", "input=bf16:5x64 global_scale=f32:[0.01]", "cpu", op::kAot},
    {"f16_strided", "input=f16:5x48^pad16 global_scale=f32:[1]", "cpu", op::kAot},
    {"tiny", "input=bf16:3x32:normal(0,1e-5) global_scale=f32:[0.001]"},
    {"saturates", "input=bf16:3x32:normal(0,1e6) global_scale=f32:[0.001]"},
    {"one_block", "input=bf16:1x16 global_scale=f32:[0.001]"},
    {"long", "input=bf16:2x4112 global_scale=f32:[0.25]"},
    {"nothing", "input=bf16:0x64 global_scale=f32:[1]"},
    {"many_rows", "input=bf16:1500x128 global_scale=f32:[0.037]"},
};
constexpr op::Case kDequantize[] = {
    {"bf16", "fp4_data=u8:5x32:randint(0,256) block_scales=u8:5x4:randint(0,127) global_scale=f32:[0.01]", "cpu", op::kAot},
    {"f16", "fp4_data=fp4x2:5x24:randint(0,256)^pad8 block_scales=e4m3:5x3^pad5 global_scale=f32:[0.5] output_dtype=float16"},
    {"f32_long", "fp4_data=u8:2x2056:randint(0,256) block_scales=u8:2x257:randint(0,127) global_scale=f32:[1] output_dtype=float32"},
    {"nan_scale", "fp4_data=u8:2x16:randint(0,256) block_scales=u8:2x2:const(127) global_scale=f32:[1]"},
    {"nothing", "fp4_data=u8:0x16 block_scales=u8:0x2 global_scale=f32:[1]"},
    {"many_rows", "fp4_data=u8:3000x64:randint(0,256) block_scales=e4m3:3000x8 global_scale=f32:[1.7]"},
};
constexpr op::Case kPaged[] = {
    {"nhd", "paged_kv_cache=u8:6x2x4x3x32:randint(0,256) kv_cache_sf=e4m3:6x2x4x3x4 block_tables=i32:3x3:randint(0,6) "
            "seq_lens=i32:[11,0,5] k_scale=f32:[0.01] v_scale=f32:[2.5] output_k=bf16:3x12x3x64 output_v=bf16:3x12x3x64", "cpu", op::kAot},
    {"hnd_pair", "paged_kv_cache=(u8:6x3x4x96:randint(0,256),u8:6x3x4x64:randint(0,256)) kv_cache_sf=(e4m3:6x3x4x12,e4m3:6x3x4x8) "
                 "block_tables=i64:2x3:randint(0,6) seq_lens=i64:[12,1] k_scale=1 v_scale=0.3 output_k=f16:2x12x3x192 "
                 "output_v=f16:2x12x3x128 kv_layout='HND'"},
    {"strided", "paged_kv_cache=u8:6x2x4x3x32:randint(0,256)^perm(0,2,1,3,4) kv_cache_sf=e4m3:6x2x4x3x4^pad4 "
                "block_tables=i32:2x3:randint(0,6) seq_lens=i32:[7,12] k_scale=0.5 v_scale=0.3 output_k=f32:2x13x3x64^pad64 "
                "output_v=f32:2x13x3x64^perm(0,2,1,3)"},
    {"pages_past_the_lengths_are_not_looked_at", "paged_kv_cache=u8:2x2x4x1x32:randint(0,256) kv_cache_sf=e4m3:2x2x4x1x4 "
     "block_tables=i32:1x4:const(1) seq_lens=i32:[3] k_scale=1 v_scale=1 output_k=bf16:1x4x1x64 output_v=bf16:1x4x1x64"},
    {"no_requests", "paged_kv_cache=u8:2x2x4x1x32 kv_cache_sf=e4m3:2x2x4x1x4 block_tables=i32:0x4 seq_lens=i32:[] k_scale=1 v_scale=1 "
                    "output_k=bf16:0x4x1x64 output_v=bf16:0x4x1x64"},
};
constexpr op::Case kQuantizePaged[] = {
    {"hnd", "k_cache=bf16:3x2x8x64 v_cache=bf16:3x2x8x64", "cpu", op::kAot},
    {"nhd_f16", "k_cache=f16:3x4x2x128 v_cache=f16:3x4x2x128 kv_layout='NHD'", "cpu", op::kAot},
    {"given_scales", "k_cache=bf16:2x3x16x192 v_cache=bf16:2x3x16x192 k_global_sf=f32:[100] v_global_sf=f32:[3]"},
    {"strided", "k_cache=bf16:3x8x2x64^pad64 v_cache=bf16:3x8x2x64^perm(0,2,1,3) kv_layout='NHD'"},
    {"zeros", "k_cache=bf16:1x2x4x64:const(0) v_cache=bf16:1x2x4x64:const(-0.0)"},
    {"no_pages", "k_cache=bf16:0x2x8x64 v_cache=bf16:0x2x8x64"},
    {"many_pages", "k_cache=bf16:64x4x16x128 v_cache=bf16:64x4x16x128"},
};
}  // namespace
std::span<const op::Case> packbits_cases() { return kPackBits; }
std::span<const op::Case> segment_packbits_cases() { return kSegments; }
std::span<const op::Case> kv_quantize_cases() { return kQuantize; }
std::span<const op::Case> kv_dequantize_cases() { return kDequantize; }
std::span<const op::Case> kv_dequantize_paged_cases() { return kPaged; }
std::span<const op::Case> quantize_paged_cases() { return kQuantizePaged; }
}  // namespace flashinfer::ops::quantization
