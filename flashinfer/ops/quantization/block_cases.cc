// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/quantization/cases.h"

namespace flashinfer::ops::quantization {
namespace {
constexpr op::Case kFp4[] = {
    {"nvfp4", "input=bf16:3x64 global_scale=f32:[700]", "cpu", op::kAot},
    {"odd_rows", "input=bf16:131x80 global_scale=f32:[500]"},
    {"f16_linear", "input=f16:7x1040 global_scale=f32:[600] is_sf_swizzled_layout=False", "cpu", op::kAot},
    {"8x4", "input=bf16:9x176 global_scale=f32:[600] is_sf_8x4_layout=True"},
    {"inversed", "input=bf16:5x32 global_scale=f32:[0.0015] is_global_scale_inversed=True"},
    {"no_global_scale", "input=f16:4x2x48"},
    {"e4m3_32", "input=bf16:5x96 global_scale=f32:[100] sf_vec_size=32"},
    {"power_32", "input=bf16:33x96 sf_vec_size=32 sf_use_ue8m0=True is_sf_swizzled_layout=False global_scale=f32:[3]"},
    {"e4m3_input", "input=e4m3:17x64 global_scale=f32:[6]"},
    {"four_over_six", "input=bf16:17x96 global_scale=f32:[700] nvfp4_4over6=1"},
    {"zeros", "input=bf16:3x32:const(0) global_scale=f32:[448]"},
    {"scale_too_small", "input=bf16:3x32:const(1e-6) global_scale=f32:[1]"},
    {"saturating", "input=bf16:3x32 global_scale=f32:[1e6]"},
    {"nan", "input=bf16:2x16:nan global_scale=f32:[448]"},
    {"infinity", "input=f16:2x16:const(inf) global_scale=f32:[448]"},
    {"rows_strided", "input=bf16:3x5x48^perm(1,0,2) global_scale=f32:[448]"},
    {"no_rows", "input=bf16:0x64 global_scale=f32:[448]"},
    {"no_columns", "input=bf16:3x0 global_scale=f32:[448]"},
    {"bench", "input=bf16:16384x4096 global_scale=f32:[600]", "cpu", op::kBench},
    {"bench_linear", "input=bf16:16384x4096 global_scale=f32:[600] is_sf_swizzled_layout=False", "cpu", op::kBench},
};
constexpr op::Case kNvfp4[] = {
    {"one_scale", "a=bf16:130x64 a_global_sf=f32:[600]", "cpu", op::kAot},
    {"number", "a=f16:5x64 a_global_sf=600.0 sfLayout=2"},
    {"row_scales", "a=bf16:5x64 a_global_sf=f32:5:uniform(100,900) sfLayout=1"},
    {"shuffled", "a=bf16:256x96 a_global_sf=f32:[600] do_shuffle=True"},
    {"per_token", "a=bf16:131x2048:normal(0,3) a_global_sf=f32:[0.0003720238] per_token_activation=True"},
    {"per_token_scaled", "a=f16:3x48 a_global_sf=0.0003720238 per_token_activation=True out_scale=f32:[2.5]"},
    {"four_over_six", "a=bf16:130x2096:normal(0,3) a_global_sf=f32:[600] nvfp4_4over6=1", "cpu", op::kAot},
    {"four_over_six_f16_mse", "a=f16:5x64 a_global_sf=600.0 sfLayout=2 nvfp4_4over6=5", "cpu", op::kAot},
    {"four_over_six_fast", "a=bf16:256x96 a_global_sf=f32:[600] do_shuffle=True nvfp4_4over6=17"},
    {"four_over_six_fast_mse", "a=bf16:5x64 a_global_sf=f32:5:uniform(100,900) sfLayout=1 nvfp4_4over6=21"},
    {"four_over_six_token", "a=bf16:131x528:normal(0,3) a_global_sf=0.0006510417 per_token_activation=True nvfp4_4over6=3"},
    {"four_over_six_token_mse", "a=f16:9x48 a_global_sf=0.0003720238 per_token_activation=True nvfp4_4over6=5"},
    {"four_over_six_zeros", "a=bf16:3x48:const(0) a_global_sf=600.0 nvfp4_4over6=1"},
    {"four_over_six_tiny", "a=bf16:3x48:normal(0,1e-5) a_global_sf=1.0 nvfp4_4over6=1"},
    {"four_over_six_nan", "a=bf16:3x48:nan a_global_sf=600.0 nvfp4_4over6=1"},
    {"four_over_six_infinity", "a=bf16:3x48:const(inf) a_global_sf=600.0 nvfp4_4over6=1"},
    {"per_token_zeros", "a=bf16:3x48:const(0) a_global_sf=0.0003720238 per_token_activation=True sfLayout=2"},
    {"e4m3", "a=e4m3:9x32 a_global_sf=f32:[6]"},
};
constexpr op::Case kBatched[] = {
    {"one_scale", "a=bf16:3x5x80 a_global_sf=f32:[600]", "cpu", op::kAot},
    {"scales", "a=f16:2x130x64 a_global_sf=f32:[600,30]"},
    {"strided", "a=bf16:3x5x32^perm(1,0,2) a_global_sf=f32:[600]"},
    {"four_over_six", "a=bf16:3x5x80 a_global_sf=f32:[600,30,200] nvfp4_4over6=1"},
    {"none", "a=bf16:0x5x32 a_global_sf=f32:[600]"},
};
constexpr op::Case kInto[] = {
    {"heads", "input=f32:5x3x48 global_scale=300 data=u8:5x3x24 scale=e4m3:256x12 scale_start_index=125", "cpu", op::kAot},
    {"bf16", "input=bf16:130x96 global_scale=700 data=u8:130x48 scale=e4m3:256x8", "cpu", op::kAot},
    {"f16_heads_first", "input=f16:3x5x32^perm(1,0,2) global_scale=0.5 data=u8:3x5x16^perm(1,0,2) scale=e4m3:128x12 scale_start_index=7"},
    {"nan", "input=f32:2x16:nan global_scale=448 data=u8:2x8 scale=e4m3:128x4 scale_start_index=126"},
    {"none", "input=f32:0x32 global_scale=448 data=u8:0x16 scale=e4m3:128x4"},
};
constexpr op::Case kMxfp4[] = {
    {"bf16", "a=bf16:130x96", "cpu", op::kAot},
    {"f16_8x4", "a=f16:9x1056 sfLayout=1"},
    {"linear_3d", "a=bf16:2x3x64 sfLayout=2"},
    {"tiny", "a=bf16:3x32:normal(0,1e-38)"},
    {"huge", "a=bf16:3x32:normal(0,1e38)"},
    {"subnormal", "a=bf16:2x64:normal(0,3e-39)"},
    {"zeros", "a=bf16:2x32:const(0)"},
    {"nan", "a=f16:2x32:nan"},
    {"bench", "a=bf16:16384x4096", "cpu", op::kBench},
};
constexpr op::Case kMxfp8[] = {
    {"bf16", "input=bf16:130x96", "cpu", op::kAot},
    {"f16_linear", "input=f16:7x1056 is_sf_swizzled_layout=False", "cpu", op::kAot},
    {"f32_8x4", "input=f32:9x64 sf_swizzle_layout=1", "cpu", op::kAot},
    {"padded_columns", "input=bf16:5x96 alignment=128"},
    {"padded_linear", "input=bf16:5x32 alignment=64 sf_swizzle_layout=2"},
    {"rank_3", "input=bf16:2x3x64"},
    {"tiny", "input=f32:3x64:normal(0,1e-37)"},
    {"below", "input=f32:2x64:normal(0,1e-40)"},
    {"huge", "input=bf16:3x64:normal(0,1e37)"},
    {"infinity", "input=f16:2x32:const(inf)"},
    {"nan", "input=bf16:2x32:nan"},
    {"no_rows", "input=bf16:0x64"},
    {"bench", "input=bf16:16384x4096", "cpu", op::kBench},
};
constexpr op::Case kGlobalScale[] = {
    {"bf16", "input_tensor=bf16:131x100:normal(0,3) per_token_activation=False"},
    {"strided", "input_tensor=f16:2x3x33^pad5 per_token_activation=False"},
    {"tiny", "input_tensor=f32:3x7:normal(0,1e-38) per_token_activation=False"},
    {"zeros", "input_tensor=bf16:3x16:const(0) per_token_activation=False"},
    {"nan", "input_tensor=bf16:3x16:nan per_token_activation=False"},
    {"infinity", "input_tensor=f32:32:const(inf) per_token_activation=False"},
    {"given", "input_tensor=bf16:0x16 per_token_activation=False global_scale=2.5"},
    {"per_token", "input_tensor=bf16:3x16 per_token_activation=True"},
    {"four_over_six", "input_tensor=bf16:13x16 per_token_activation=False nvfp4_4over6_config=3"},
    {"four_over_six_token", "input_tensor=bf16:3x16 per_token_activation=True nvfp4_4over6_config=7"},
};
constexpr op::Case kMxfp8Dequantize[] = {
    {"tiles", "input=e4m3:130x96 scale_tensor=u8:1024:randint(100,150)", "cpu", op::kAot},
    {"linear", "input=e4m3:3x64 scale_tensor=u8:6:randint(0,256) is_sf_swizzled_layout=False"},
    {"8x4", "input=u8:9x160:randint(0,126) scale_tensor=u8:128:randint(120,130) sf_swizzle_layout=1"},
};
constexpr op::Case kFp4ToFloat[] = {
    {"e4m3", "e2m1_tensor=u8:130x40:randint(0,256) ufp8_scale_tensor=u8:2048:randint(0,127) global_scale_tensor=f32:[0.013]", "cpu", op::kAot},
    {"powers", "e2m1_tensor=u8:9x48:randint(0,256) ufp8_scale_tensor=u8:64:randint(100,150) sf_vec_size=32 ufp8_type=0 is_sf_8x4_layout=True", "cpu", op::kAot},
    {"linear", "e2m1_tensor=u8:3x16:randint(0,256) ufp8_scale_tensor=e4m3:6:uniform(0.01,400) is_sf_swizzled_layout=False"},
    {"no_rows", "e2m1_tensor=u8:0x16 ufp8_scale_tensor=u8:0"},
};
constexpr op::Case kMxfp4Dequantize[] = {
    {"tiles", "a_fp4=u8:130x48:randint(0,256) a_sf=u8:256x4:randint(0,256)"},
    {"8x4", "a_fp4=u8:9x48:randint(0,256) a_sf=u8:64:randint(100,140) sfLayout=1"},
    {"linear", "a_fp4=u8:9x48:randint(0,256) a_sf=u8:9x3:randint(100,140) sfLayout=2"},
};
constexpr op::Case kMxfp4DequantizeHost[] = {
    {"by_32", "weight=u8:5x48:randint(0,256) scale=u8:5x3:randint(100,140)"},
    {"by_16", "weight=u8:5x48:randint(0,256) scale=u8:5x6:randint(100,140)^t group_size=16"},
    {"by_64", "weight=u8:5x64:randint(0,256) scale=u8:5x2:randint(100,140) group_size=64"},
};
constexpr op::Case kInterleave[] = {
    {"one", "unswizzled_sf=u8:1x1"},
    {"odd", "unswizzled_sf=u8:130x9:randint(0,256)"},
    {"experts_bf16", "unswizzled_sf=bf16:3x7x6"},
    {"no_experts", "unswizzled_sf=u8:0x7x6"},
};
constexpr op::Case kShuffle[] = {
    {"by_32", "input_tensor=u8:64x48:randint(0,256) epilogue_tile_m=128"},
    {"by_16", "input_tensor=bf16:48x10 epilogue_tile_m=64"},
};
constexpr op::Case kShuffleScales[] = {
    {"by_32", "input_tensor=u8:256x6:randint(0,256) epilogue_tile_m=128"},
    {"by_16", "input_tensor=e4m3:128x4 epilogue_tile_m=64 num_elts_per_sf=32"},
};
constexpr op::Case kReorder[] = {
    {"bf16", "x=bf16:10x7"},
    {"none", "x=f32:0x7"},
};
constexpr op::Case kBlockLayout[] = {
    {"bf16", "input_tensor=bf16:6x12 blockK=4"},
    {"bytes", "input_tensor=u8:3x256:randint(0,256) blockK=128"},
};
constexpr op::Case kSiluFp4[] = {
    {"tiles", "input=bf16:131x160 global_scale=f32:[600]", "cpu", op::kAot},
    {"linear_f16", "input=f16:2x3x2112 global_scale=f32:[600] is_sf_swizzled_layout=False", "cpu", op::kAot},
    {"8x4", "input=bf16:9x64^pad3 global_scale=f32:[600] is_sf_8x4_layout=True"},
    {"four_over_six", "input=bf16:9x128 global_scale=f32:[600] nvfp4_4over6=1"},
    {"bench", "input=bf16:16384x8192 global_scale=f32:[600]", "cpu", op::kBench},
};
constexpr op::Case kGroupedFp4[] = {
    {"experts", "a=bf16:3x7x80 mask=i32:[7,0,3] a_global_sf=f32:[600,50,400]"},
    {"one_scale", "a=f16:2x130x32 mask=i32:[1,129] a_global_sf=f32:[600]"},
    {"four_over_six", "a=bf16:3x7x80 mask=i32:[7,0,3] a_global_sf=f32:[600,50,400] nvfp4_4over6=7"},
};
constexpr op::Case kSiluExpertsFp4[] = {
    {"experts", "a=bf16:3x7x160 mask=i32:[7,0,3] a_global_sf=f32:[600,50,400]"},
    {"strided", "a=f16:2x5x64^pad4 mask=i32:[1,5] a_global_sf=f32:[600]"},
    {"four_over_six", "a=bf16:2x7x160 mask=i32:[7,3] a_global_sf=f32:[600,400] nvfp4_4over6=1"},
};
constexpr op::Case kGroup8[] = {
    {"e4m3", "x=bf16:5x384 group_size=128", "cpu", op::kAot},
    {"columns", "x=bf16:5x384 group_size=128 column_major_scales=True"},
    {"aligned_power", "x=f16:2x3x256 group_size=64 column_major_scales=True scale_tma_aligned=True scale_ue8m0=True", "cpu", op::kAot},
    {"int8", "x=f32:3x111 group_size=37 dst_dtype=int8", "cpu", op::kAot},
    {"e5m2_token", "x=bf16:7x100^pad4 group_size=100 dst_dtype=float8_e5m2"},
    {"zeros", "x=bf16:2x64:const(0) group_size=32"},
    {"nan", "x=bf16:2x64:nan group_size=32"},
    {"no_rows", "x=bf16:0x64 group_size=32"},
    {"bench", "x=bf16:16384x4096 group_size=128", "cpu", op::kBench},
};
constexpr op::Case kTensor8[] = {
    {"dynamic", "x=bf16:5x100", "cpu", op::kAot},
    {"given", "x=f32:3x7x33 scale=f32:[0.01]", "cpu", op::kAot},
    {"e5m2", "x=f16:40x128^pad3 dst_dtype=float8_e5m2"},
    {"large", "x=bf16:300x1000:normal(0,100)"},
    {"zeros", "x=bf16:2x64:const(0)"},
    {"bench", "x=bf16:16384x4096", "cpu", op::kBench},
    {"bench_given", "x=bf16:16384x4096 scale=f32:[0.01]", "cpu", op::kBench},
};
constexpr op::Case kSage[] = {
    {"int8", "query=bf16:37x4x128 key=bf16:50x2x128 value=bf16:50x2x128", "cpu", op::kAot},
    {"fp8", "query=f16:9x3x64 key=f16:7x1x64 value=f16:7x1x64 q_block_size=4 k_block_size=4 qk_quant_dtype=float8_e4m3fn", "cpu"},
    {"odd_dim", "query=bf16:5x2x37 key=bf16:33x2x37 value=bf16:33x2x37 q_block_size=16 k_block_size=1", "cpu"},
    {"zeros", "query=bf16:5x2x64:const(0) key=bf16:3x2x64 value=bf16:3x2x64:const(0)", "cpu"},
    {"requests", "query=bf16:21x2x64 key=bf16:23x1x64:randint(-9,15) value=bf16:23x1x64 q_block_size=4 "
     "cum_seq_lens_q=i32:[0,5,5,21] cum_seq_lens_kv=i32:[0,17,18,23] smooth_k=True", "cpu"},
    {"smooth_fp8", "query=f16:5x2x40 key=f16:300x2x40:randint(-9,15) value=f16:300x2x40 qk_quant_dtype=float8_e4m3fn smooth_k=True", "cpu"},
    {"nothing", "query=bf16:0x2x64 key=bf16:0x1x64 value=bf16:0x1x64", "cpu"},
};
}  // namespace
std::span<const op::Case> fp4_cases() { return kFp4; }
std::span<const op::Case> nvfp4_cases() { return kNvfp4; }
std::span<const op::Case> batched_cases() { return kBatched; }
std::span<const op::Case> global_scale_cases() { return kGlobalScale; }
std::span<const op::Case> mxfp4_cases() { return kMxfp4; }
std::span<const op::Case> into_cases() { return kInto; }
std::span<const op::Case> mxfp8_cases() { return kMxfp8; }
std::span<const op::Case> mxfp8_dequantize_cases() { return kMxfp8Dequantize; }
std::span<const op::Case> fp4_to_float_cases() { return kFp4ToFloat; }
std::span<const op::Case> mxfp4_dequantize_cases() { return kMxfp4Dequantize; }
std::span<const op::Case> mxfp4_dequantize_host_cases() { return kMxfp4DequantizeHost; }
std::span<const op::Case> interleave_cases() { return kInterleave; }
std::span<const op::Case> shuffle_cases() { return kShuffle; }
std::span<const op::Case> shuffle_scales_cases() { return kShuffleScales; }
std::span<const op::Case> reorder_cases() { return kReorder; }
std::span<const op::Case> block_layout_cases() { return kBlockLayout; }
std::span<const op::Case> silu_fp4_cases() { return kSiluFp4; }
std::span<const op::Case> grouped_fp4_cases() { return kGroupedFp4; }
std::span<const op::Case> silu_experts_fp4_cases() { return kSiluExpertsFp4; }
std::span<const op::Case> group8_cases() { return kGroup8; }
std::span<const op::Case> sage_cases() { return kSage; }
std::span<const op::Case> tensor8_cases() { return kTensor8; }
}  // namespace flashinfer::ops::quantization
