// SPDX-License-Identifier: Apache-2.0
// Few forms, awkward extents: each type of B is one kernel whatever its scales and layouts are.
#include "flashinfer/ops/gemm/cases.h"

namespace flashinfer::ops::gemm {
namespace {
constexpr op::Case kMmFp8[] = {
    {"plain", "a=e4m3:9x100 b=e4m3:33x100 alpha=f32:1:const(0.25)", "cpu", op::kAot, -1, 1e-3},
    {"e5m2_a", "a=e5m2:3x64 b=e4m3:20x64", "cpu", 0, -1, 2e-3},
    {"low_latency", "a=e4m3:17x256 b=e4m3:2x96x128 alpha=f32::const(0.1)", "cpu", 0, -1, 1e-3},
    {"low_latency_one", "a=e4m3:1x128 b=e4m3:1x32x128", "cpu", 0, -1, 1e-3},
    {"no_rows", "a=e4m3:0x128 b=e4m3:1x32x128"},
    {"packed", "a=e4m3:1x331 b=e4m3:7x89x64:packed(331,104)", "cpu", op::kAot, -1, 2e-3},
    {"packed_many", "a=e4m3:19x700 b=e4m3:3x177x64:packed(700,33) alpha=f32::const(0.1)", "cpu", 0, -1, 2e-3},
    {"packed_no_k", "a=e4m3:2x0 b=e4m3:2x1x64:packed(0,17)"},
    {"no_k", "a=e4m3:4x0 b=e4m3:20x0"},
    {"large_tiles", "a=e4m3:1024x96 b=e4m3:1000x96 alpha=f32::const(0.1)", "cpu", 0, -1, 1e-3},
    {"bench_one", "a=e4m3:1x4096 b=e4m3:14336x4096", "cpu", op::kBench, -1, 5e-3},
    {"bench", "a=e4m3:512x4096 b=e4m3:4096x4096", "cpu", op::kBench, -1, 5e-3},
};
constexpr op::Case kMmMxfp8[] = {
    {"small", "a=e4m3:5x96 b=e4m3:96x40^t a_descale=u8:512:randint(120,130) b_descale=u8:512:randint(120,130)", "cpu", op::kAot, -1, 1e-2},
    {"8x4", "a=e4m3:9x160 b=e4m3:160x130^t a_descale=u8:128:randint(122,130) b_descale=u8:2048:randint(120,128) use_8x4_sf_layout=True "
            "out_dtype=float16", "cpu", 0, -1, 1e-2},
    {"shuffled", "a=e4m3:9x128 b=e4m3:128x160^t a_descale=u8:512:randint(122,130) b_descale=u8:1024:randint(120,128) backend='trtllm'", "cpu", op::kAot, -1, 1e-2},
    {"shuffled_rows", "a=e4m3:33x160 b=e4m3:160x96^t a_descale=u8:1024:randint(122,130) b_descale=u8:1024:randint(120,128) backend='trtllm'", "cpu", 0, -1, 1e-2},
    {"shuffled_large", "a=e4m3:1024x96 b=e4m3:96x992^t a_descale=u8:4096:randint(122,130) b_descale=u8:4096:randint(120,128) backend='trtllm'", "cpu", 0, -1, 1e-2},
    {"rows", "a=e4m3:133x128 b=e4m3:128x17^t a_descale=u8:1024:randint(122,130) b_descale=u8:512:randint(120,128)", "cpu", 0, -1, 1e-2},
    {"packed", "a=e4m3:1x160 b=e4m3:4x41x64:packed(160,52) a_descale=u8:1024:randint(120,130) b_descale=u8:4x8x16:randint(110,130)", "cpu", op::kAot, -1,
     1e-2},
    {"packed_many", "a=e4m3:11x672 b=e4m3:3x169x64:packed(672,33) a_descale=u8:3072:randint(120,130) b_descale=u8:3x24x16:randint(110,130)", "cpu", 0, -1,
     1e-2},
    {"no_rows", "a=e4m3:0x64 b=e4m3:64x16^t a_descale=u8:0 b_descale=u8:512:randint(120,130)"},
};
constexpr op::Case kBmmMxfp8[] = {
    {"small", "A=e4m3:3x5x96 B=e4m3:3x96x40^t A_scale=u8:1536:randint(120,130) B_scale=u8:1536:randint(120,130) dtype=bfloat16", "cpu", 0,
     -1, 1e-2},
    {"f16", "A=e4m3:2x1x64 B=e4m3:2x64x16^t A_scale=u8:2x128x4:randint(122,128) B_scale=u8:2x128x4:randint(122,128) dtype=float16", "cpu",
     0, -1, 1e-2},
};
constexpr op::Case kMmFp4[] = {
    {"nvfp4", "a=u8:9x64:randint(0,256) b=u8:64x40:randint(0,256)^t a_descale=e4m3:128x8:uniform(0.1,1) b_descale=e4m3:8x128:uniform(0.1,1)^t "
              "alpha=f32:1:const(0.125)", "cpu", op::kAot, -1, 1e-2},
    {"one_row", "a=u8:1x24:randint(0,256) b=u8:24x130:randint(0,256)^t a_descale=e4m3:512:uniform(0.1,1) b_descale=e4m3:1024:uniform(0.1,1) "
                "out_dtype=float16", "cpu", 0, -1, 1e-2},
    {"8x4", "a=u8:20x72:randint(0,256) b=u8:72x16:randint(0,256)^t a_descale=e4m3:24x12:uniform(0.1,1) b_descale=e4m3:128x12:uniform(0.1,1) "
            "use_8x4_sf_layout=True", "cpu", 0, -1, 1e-2},
    {"shuffled", "a=u8:9x64:randint(0,256) b=u8:64x64:randint(0,256)^t a_descale=e4m3:128x8:uniform(0.1,1) b_descale=e4m3:8x128:uniform(0.1,1)^t "
                 "alpha=f32:1:const(0.125) backend='trtllm'", "cpu", op::kAot, -1, 1e-2},
    {"shuffled_rows", "a=u8:40x48:randint(0,256) b=u8:48x160:randint(0,256)^t a_descale=u8:128x4:randint(122,128) b_descale=u8:256x4:randint(122,128) "
                      "block_size=32 use_nvfp4=False backend='trtllm'", "cpu", 0, -1, 1e-2},
    {"shuffled_large", "a=u8:1024x24:randint(0,256) b=u8:24x992:randint(0,256)^t a_descale=e4m3:1024x4:uniform(0.1,1) b_descale=e4m3:1024x4:uniform(0.1,1) "
                       "backend='trtllm'", "cpu", 0, -1, 1e-2},
    {"mxfp4", "a=u8:12x80:randint(0,256) b=u8:80x33:randint(0,256)^t a_descale=u8:128x8:randint(122,128) b_descale=u8:128x8:randint(122,128) "
              "block_size=32 use_nvfp4=False", "cpu", 0, -1, 1e-2},
    {"packed", "a=u8:1x72:randint(0,256) b=u8:3x21x64:packed(144,40) a_descale=e4m3:1536:uniform(0.1,1) b_descale=e4m3:3x12x16:uniform(0.1,1) "
               "alpha=f32:1:const(0.125)", "cpu", op::kAot, -1, 1e-2},
    {"packed_mxfp4", "a=u8:21x80:randint(0,256) b=u8:2x21x64:packed(160,17) a_descale=u8:128x8:randint(122,128) b_descale=u8:2x8x16:randint(122,128) "
                     "block_size=32 use_nvfp4=False", "cpu", op::kAot, -1, 1e-2},
    {"bench", "a=u8:512x2048:randint(0,256) b=u8:2048x4096:randint(0,256)^t a_descale=e4m3:512x256:uniform(0.1,1) "
              "b_descale=e4m3:4096x256:uniform(0.1,1)", "cpu", op::kBench, -1, 1e-1},
};
constexpr op::Case kGroupwise[] = {
    {"k_major", "a=e4m3:9x384 b=e4m3:200x384 a_scale=f32:9x3:uniform(0.01,0.1) b_scale=f32:2x3:uniform(0.01,0.1) scale_major_mode='K'", "cpu",
     op::kAot, -1, 1e-4},
    {"mn_major", "a=e4m3:130x300 b=e4m3:40x300 a_scale=f32:3x130:uniform(0.01,0.1) b_scale=f32:3x1:uniform(0.01,0.1) scale_major_mode='MN' "
                 "out_dtype=float16", "cpu", 0, -1, 1e-4},
    {"fine", "a=e4m3:3x96 b=e4m3:20x96 a_scale=f32:2x3:uniform(0.1,1) b_scale=f32:5x3:uniform(0.1,1) scale_major_mode='K' "
             "scale_granularity_mnk=(2,4,32)", "cpu", 0, -1, 1e-3},
    {"trtllm", "a=e4m3:3x256 b=e4m3:129x256 a_scale=f32:3x2:uniform(0.1,1)^t b_scale=f32:2x2:uniform(0.1,1) backend='trtllm'", "cpu", 0, -1,
     1e-3},
    {"packed", "a=e4m3:1x384 b=e4m3:13x97x64:packed(384,200) a_scale=f32:1x3:uniform(0.01,0.1) b_scale=f32:2x3:uniform(0.01,0.1) scale_major_mode='K'",
     "cpu", op::kAot, -1, 1e-4},
    {"packed_many", "a=e4m3:9x300 b=e4m3:3x81x64:packed(300,40) a_scale=f32:9x3:uniform(0.1,1) b_scale=f32:40x3:uniform(0.1,1) scale_major_mode='K' "
                    "scale_granularity_mnk=(1,1,128)", "cpu", 0, -1, 1e-3},
    {"odd_blocks", "a=e4m3:3x60 b=e4m3:5x60 a_scale=f32:3x2:uniform(0.1,1) b_scale=f32:5x2:uniform(0.1,1) scale_major_mode='K' "
                   "scale_granularity_mnk=(1,1,48)", "reference"},
    {"no_k", "a=e4m3:3x0 b=e4m3:5x0 a_scale=f32:3x0 b_scale=f32:1x0 scale_major_mode='K'"},
    {"bench", "a=e4m3:512x4096 b=e4m3:4096x4096 a_scale=f32:512x32:uniform(0.01,0.1) b_scale=f32:32x32:uniform(0.01,0.1) scale_major_mode='K'",
     "cpu", op::kBench, -1, 1e-2},
};
constexpr op::Case kBlockscaled[] = {
    {"mn_major", "a=e4m3:130x256 b=e4m3:40x256 a_scale=f32:2x2:uniform(0.01,0.1) b_scale=f32:2x1:uniform(0.01,0.1)", "cpu", 0, -1, 1e-4},
    {"k_major", "a=e4m3:5x200 b=e4m3:200x200 a_scale=f32:1x2:uniform(0.1,1) b_scale=f32:2x2:uniform(0.1,1) scale_major_mode='K'", "cpu", 0,
     -1, 1e-3},
};
constexpr op::Case kPrepare[] = {
    {"e4m3", "b=e4m3:33x101"},
    {"mxfp8", "b=e4m3:2x20x160 b_descale=u8:2048:randint(0,256)"},
    {"nvfp4", "b=u8:130x40:randint(0,256) b_descale=e4m3:2048:uniform(0.1,1)"},
    {"mxfp4", "b=u8:3x17x48:randint(0,256)^pad8 b_descale=u8:3x17x3:randint(0,256) block_size=32 is_sf_swizzled_layout=False"},
    {"none", "b=e4m3:0x64 b_descale=u8:0"},
    {"no_k", "b=u8:17x0"},
};
}  // namespace
std::span<const op::Case> prepare_quantized_cases() { return kPrepare; }
std::span<const op::Case> mm_fp8_cases() { return kMmFp8; }
std::span<const op::Case> mm_mxfp8_cases() { return kMmMxfp8; }
std::span<const op::Case> bmm_mxfp8_cases() { return kBmmMxfp8; }
std::span<const op::Case> mm_fp4_cases() { return kMmFp4; }
std::span<const op::Case> groupwise_cases() { return kGroupwise; }
std::span<const op::Case> blockscaled_cases() { return kBlockscaled; }
}  // namespace flashinfer::ops::gemm
