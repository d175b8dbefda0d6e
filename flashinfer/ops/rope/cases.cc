// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/rope/cases.h"

namespace flashinfer::ops::rope {
namespace {
constexpr op::Case kRope[] = {
    {"batch", "q=bf16:7x9x64 k=bf16:7x3x64 indptr=i32:[0,3,3,7] offsets=i32:[10,5,0] rope_theta=1e5", "cpu", op::kAot},
    {"interleaved", "q=bf16:7x4x128 k=bf16:7x1x128 indptr=i32:[0,3,7] offsets=i32:[0,900] "
                    "interleave=True", "cpu", op::kAot},
    {"f32", "q=f32:5x2x64 k=f32:5x2x64 indptr=i64:[0,5] offsets=i64:[1000000]", "cpu", op::kAot},
    {"f16", "q=f16:5x2x256 k=f16:5x1x256 indptr=i32:[0,1,5] offsets=i64:[131071,7] rope_scale=4.0", "cpu", op::kAot},
    {"no_tokens", "q=bf16:0x9x64 k=bf16:0x3x64 indptr=i32:[0,0] offsets=i32:[4]"},
    {"no_requests", "q=bf16:0x9x64 k=bf16:0x3x64 indptr=i32:[0] offsets=i32:[]"},
    {"long_prefill", "q=bf16:99x9x64 k=bf16:99x3x64 indptr=i32:[0,1,98,99] offsets=i32:[5,0,2000]"},
};
constexpr op::Case kPosIds[] = {
    {"decode", "q=bf16:1x9x64 k=bf16:1x3x64 pos_ids=i32:[77] rope_theta=1e5", "cpu", op::kAot | op::kBench},
    {"decode_8", "q=bf16:8x9x64 k=bf16:8x3x64 pos_ids=i64:[0,1,2,500,31,32,8191,3] rope_theta=1e5"},
    {"far", "q=f32:4x2x128 k=f32:4x1x128 pos_ids=i32:[1000000,1048575,999999,2000000000]", "cpu", op::kAot},
    {"negative", "q=f32:2x2x64 k=f32:2x1x64 pos_ids=i32:[-1,-4000]"},
    {"interleaved", "q=f32:3x2x96 k=f32:3x1x96 pos_ids=i32:[1,20,300] interleave=True", "cpu", op::kAot},
    {"interleaved_f16", "q=f16:3x2x80 k=f16:3x2x80 pos_ids=i32:[1,20,300] interleave=True", "cpu", op::kAot},
    {"partial", "q=bf16:3x2x96 k=bf16:3x1x96 pos_ids=i32:[1,20,300] rotary_dim=50"},
    {"partial_interleaved", "q=bf16:3x2x96 k=bf16:3x1x96 pos_ids=i32:[1,20,300] rotary_dim=50 interleave=True"},
    {"smallest", "q=f16:2x1x2 k=f16:2x1x2 pos_ids=i32:[3,5]", "cpu", op::kAot},
    {"strided", "q=bf16:5x4x64^pad16 k=bf16:5x2x64^pad80 pos_ids=i32:[0,1,2,3,4]"},
    {"head_major", "q=bf16:5x4x64^perm(1,0,2) k=bf16:5x2x64^perm(1,0,2) pos_ids=i32:[0,1,2,3,4]"},
    {"huge_head", "q=bf16:2x1x1100 k=bf16:2x1x1100 pos_ids=i32:[3,50000]"},
    {"no_tokens", "q=bf16:0x9x64 k=bf16:0x3x64 pos_ids=i32:[]"},
    {"bench", "q=bf16:8192x32x128 k=bf16:8192x8x128 pos_ids=i32:8192:range(0)", "cpu", op::kBench},
};
constexpr op::Case kLlama31[] = {
    {"batch", "q=bf16:7x8x128 k=bf16:7x2x128 indptr=i32:[0,3,3,7] offsets=i32:[10,5,131000]", "cpu", op::kAot},
    {"f16_interleaved", "q=f16:4x2x64 k=f16:4x1x64 indptr=i32:[0,4] offsets=i32:[70] interleave=True", "cpu", op::kAot},
    {"no_tokens", "q=bf16:0x9x64 k=bf16:0x3x64 indptr=i32:[0,0] offsets=i32:[4]"},
};
constexpr op::Case kLlama31PosIds[] = {
    {"decode", "q=bf16:2x32x128 k=bf16:2x8x128 pos_ids=i32:[77,130000]", "cpu", op::kAot},
    {"other_factors", "q=f32:3x2x64 k=f32:3x1x64 pos_ids=i64:[1,20,30000] rope_scale=32.0 low_freq_factor=2.0 "
                      "high_freq_factor=3.0 "
                      "old_context_len=4096", "cpu", op::kAot},
    {"partial", "q=f16:3x2x96 k=f16:3x1x96 pos_ids=i32:[1,20,300] rotary_dim=32"},
};
constexpr op::Case kCache[] = {
    {"neox", "positions=i32:[0,99,3,3] query=bf16:4x576 key=bf16:4x192 head_size=64 "
             "cos_sin_cache=f32:100x64:uniform(-1,1)", "cpu",
     op::kAot},
    {"interleaved", "positions=i64:[0,99,3] query=f16:3x222 key=f16:3x111 head_size=111 "
                    "cos_sin_cache=f32:100x64:uniform(-1,1) "
                    "is_neox=False", "cpu", op::kAot},
    {"f32_partial", "positions=i64:[7] query=f32:1x500 key=f32:1x100 head_size=100 "
                    "cos_sin_cache=f32:8x30:uniform(-1,1)", "cpu",
     op::kAot},
    {"strided", "positions=i32:[5,4,3] query=bf16:3x256^pad64 key=bf16:3x128^pad32 head_size=64 "
                "cos_sin_cache=f32:8x64:uniform(-1,1)^pad4"},
    {"no_tokens", "positions=i32:[] query=bf16:0x128 key=bf16:0x64 head_size=64 cos_sin_cache=f32:8x64"},
};
}  // namespace
std::span<const op::Case> rope_cases() { return kRope; }
std::span<const op::Case> pos_ids_cases() { return kPosIds; }
std::span<const op::Case> llama31_cases() { return kLlama31; }
std::span<const op::Case> llama31_pos_ids_cases() { return kLlama31PosIds; }
std::span<const op::Case> cache_cases() { return kCache; }
}  // namespace flashinfer::ops::rope
