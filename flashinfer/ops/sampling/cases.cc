// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/sampling/cases.h"

namespace flashinfer::ops::sampling {
namespace {
constexpr op::Case kSoftmax[] = {
    {"decode", "logits=f32:8x49152:normal(0,3) temperature=0.7", "cpu", op::kAot | op::kBench},
    {"bf16", "logits=bf16:3x8193:normal(0,3)", "cpu", op::kAot},
    {"f16", "logits=f16:3x111:normal(0,3) temperature=f32:[0.5,1,2]", "cpu", op::kAot},
    {"zero_temperature", "logits=f32:3x500 temperature=f32:[0,1,0]"},
    {"zero_scalar", "logits=f32:2x15 temperature=0.0"},
    {"tiny_temperature", "logits=f32:2x111 temperature=1e-6"},
    {"f64_temperature", "logits=f32:2x111 temperature=f64:[1.5,3]"},
    {"masked", "logits=f32:2x500:const(-inf)"},
    {"one", "logits=bf16:99x1"},
    {"two", "logits=f32:3x2"},
    {"strided", "logits=f32:5x111^pad9 out=f32:5x111^pad5"},
    {"large_values", "logits=f32:3x500:normal(0,1e30)"},
    {"one_long_row", "logits=f32:1x70001:normal(0,3) temperature=0.7"},
    {"masked_block", "logits=f32:2x1024:const(-inf)"},
    {"nan", "logits=f32:2x2000:nan"},
    {"no_rows", "logits=f32:0x111"},
    {"no_tokens", "logits=f32:3x0"},
};
constexpr op::Case kSampling[] = {
    {"batch", "probs=f32:9x49152:probs seed=42 offset=0", "cpu", op::kAot},
    {"bf16", "probs=bf16:5x8193:probs seed=7 offset=12 return_valid=True", "cpu", op::kAot},
    {"f16", "probs=f16:5x111:probs seed=7 offset=13", "cpu", op::kAot},
    {"indices", "probs=f32:3x500:probs indices=i64:[2,2,0,1,2] seed=1 offset=4"},
    {"own_seeds", "probs=f32:4x111:probs seed=i64:[5,6,5,7] offset=i64:[0,0,0,8]"},
    {"one_seed_tensor", "probs=f32:4x111:probs seed=u64:[5] offset=u64:[0,4,8,12]"},
    {"generator", "probs=f32:4x111:probs generator=gen(99,3)"},
    {"nothing_positive", "probs=f32:4x111:const(0) seed=1 offset=0 return_valid=True"},
    {"nan", "probs=f32:4x111:nan seed=1 offset=0 return_valid=True"},
    {"below_one", "probs=f32:6x2000:const(0.0001) seed=1 offset=0"},
    {"negative_ignored", "probs=f32:6x200:normal(0,0.1) seed=1 offset=0"},
    {"one_token", "probs=f32:3x1:const(1) seed=1 offset=0"},
    {"one_long_row", "probs=f32:1x70001:probs seed=42 offset=0"},
    {"strided", "probs=f32:5x111:probs^pad9 seed=1 offset=2"},
    {"no_rows", "probs=f32:0x111 seed=1 offset=2 return_valid=True"},
};
constexpr op::Case kTopKTopP[] = {
    {"batch", "probs=f32:9x49152:probs top_k=50 top_p=0.9 seed=42 offset=0", "cpu", op::kAot},
    {"joint", "probs=f32:9x8193:probs top_k=50 top_p=0.01 filter_apply_order='joint' seed=42 offset=0"},
    {"joint_p", "probs=f32:9x500:probs top_k=500 top_p=0.3 filter_apply_order='joint' seed=3 offset=0"},
    {"bf16", "probs=bf16:5x500:probs top_k=20 top_p=0.5 seed=7 offset=12 return_valid=True", "cpu", op::kAot},
    {"f16", "probs=f16:5x111:probs top_k=5 top_p=0.8 seed=7 offset=12", "cpu", op::kAot},
    {"k_off", "probs=f32:5x500:probs top_k=0 top_p=0.5 seed=7 offset=12"},
    {"p_off", "probs=f32:5x500:probs top_k=7 top_p=1.0 seed=7 offset=12"},
    {"both_off", "probs=f32:5x500:probs top_k=-1 top_p=1.0 seed=7 offset=12 filter_apply_order='joint'"},
    {"argmax", "probs=f32:5x500:randint(0,9) top_k=3 top_p=0.0 seed=7 offset=12"},
    {"one", "probs=f32:5x500:probs top_k=1 top_p=0.9 seed=7 offset=12"},
    {"per_row", "probs=f32:4x500:probs top_k=i32:[1,5,500,0] top_p=f32:[0.9,0.1,0.5,0] seed=i64:[1,2,3,4] "
                "offset=i64:[0,0,4,0]"},
    {"thresholds_of_mapped_row", "probs=f32:3x500:probs top_k=i64:[1,5,500] top_p=f32:[0.9,0.1,0.5] "
                                 "indices=i32:[2,0,1,1] seed=5 offset=0"},
    {"generator", "probs=f32:4x111:probs top_k=9 top_p=0.9 generator=gen(99,3)"},
    {"nan", "probs=f32:4x111:nan top_k=9 top_p=0.9 seed=1 offset=0 return_valid=True"},
    {"nothing_positive", "probs=f32:4x111:const(0) top_k=9 top_p=0.9 seed=1 offset=0 return_valid=True"},
    {"one_long_row", "probs=f32:1x70001:probs top_k=64 top_p=0.8 seed=42 offset=0", "cpu", op::kBench},
    {"large_k", "probs=f32:5x20000:probs top_k=9000 top_p=0.5 seed=42 offset=0"},
    {"large_k_joint", "probs=f32:5x20000:probs top_k=900 top_p=0.5 seed=42 offset=0 filter_apply_order='joint'"},
    {"ties", "probs=f32:20x64:const(0.015625) top_k=3 top_p=0.9 seed=1 offset=0"},
    {"ties_joint", "probs=f32:20x64:const(0.015625) top_k=3 top_p=0.9 seed=1 offset=0 filter_apply_order='joint'"},
    {"no_rows", "probs=f32:0x111 top_k=9 top_p=0.9 seed=1 offset=0"},
};
}  // namespace
std::span<const op::Case> softmax_cases() { return kSoftmax; }
std::span<const op::Case> sampling_cases() { return kSampling; }
std::span<const op::Case> top_k_top_p_cases() { return kTopKTopP; }
}  // namespace flashinfer::ops::sampling
