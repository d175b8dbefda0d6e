// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/topk/cases.h"

namespace flashinfer::ops::topk {
namespace {
constexpr op::Case kTopK[] = {
    {"greedy", "input=f32:8x49152 k=1", "cpu", op::kAot | op::kBench},
    {"greedy_bf16_ties", "input=bf16:3x49152:randint(0,9) k=1", "cpu", op::kAot},
    {"greedy_largest_index", "input=f16:3x5000:randint(0,9) k=1 tie_break=2", "cpu", op::kAot},
    {"greedy_all_equal", "input=f32:2x111:const(3) k=1"},
    {"greedy_all_masked", "input=f32:2x9000:const(-inf) k=1"},
    {"greedy_nan", "input=f32:2x111:nan k=1"},
    {"sorted", "input=f32:3x49152 k=50 sorted=True", "cpu", op::kBench},
    {"by_position", "input=bf16:3x8193 k=7"},
    {"ties", "input=f32:4x5000:randint(0,7) k=100 sorted=True deterministic=True tie_break=1"},
    {"ties_larger", "input=f16:4x5000:randint(0,7) k=100 sorted=True tie_break=2"},
    {"large_k", "input=f32:2x5000 k=2500 sorted=True"},
    {"all", "input=bf16:3x111 k=111 sorted=True"},
    {"masked", "input=f32:2x500:const(-inf) k=20 sorted=True"},
    {"one", "input=f32:99x1 k=1 sorted=True"},
    {"two_of_two", "input=f32:3x2 k=2"},
    {"strided", "input=f32:5x576^pad9 k=5 sorted=True"},
    {"one_long_row", "input=f32:1x100000 k=300"},
    {"few_groups", "input=f32:3x5000 k=40"},
    {"large_k_with_ties", "input=bf16:2x20000:randint(0,50) k=9000 tie_break=2"},
    {"large_k_all_equal", "input=f32:2x5000:const(1) k=900"},
    {"no_rows", "input=f32:0x576 k=5"},
};
constexpr op::Case kPageTable[] = {
    {"scattered", "input=f32:3x9000 src_page_table=i32:3x9000:perm lengths=i32:[9000,700,5] k=64", "cpu", op::kBench},
    {"pages", "input=bf16:3x500 src_page_table=i32:2x40:perm lengths=i32:[500,64,0] k=100 row_to_batch=i32:[1,0,1] "
              "page_size=16"},
    {"windows", "input=f16:3x500 src_page_table=i32:3x40:perm lengths=i32:[400,64,3] k=30 row_starts=i32:[100,1,0] "
                "page_table_row_starts=i32:[2,0,30] page_size=16 tie_break=2"},
    {"starts_are_pages", "input=f32:2x500 src_page_table=i32:2x600:perm lengths=i64:[400,64] k=30 row_starts=i64:[100,1]"},
    {"wider_than_the_row", "input=f32:2x50 src_page_table=i32:2x50:perm lengths=i32:[50,7] k=80"},
    {"raw", "input=f32:2x500:randint(0,4) src_page_table=i32:2x500:perm lengths=i32:[499,64] k=80 "
            "out_raw_indices=i32:2x80"},
    {"strided", "input=f32:2x500^pad9 src_page_table=i32:2x500:perm^pad3 lengths=i32:[499,64] k=80"},
    {"nan", "input=f32:1x500:nan src_page_table=i32:1x500:perm lengths=i32:[499] k=80"},
    {"no_rows", "input=f32:0x50 src_page_table=i32:0x50 lengths=i32:0 k=8"},
};
constexpr op::Case kRagged[] = {
    {"long", "input=f32:3x9000 offsets=i32:[0,9000,-5] lengths=i32:[9000,700,5] k=64"},
    {"windows", "input=bf16:3x500 offsets=i64:[7,0,1000000] lengths=i64:[400,64,0] k=65 row_starts=i64:[100,1,0]"},
    {"ties", "input=f16:2x5000:randint(0,3) offsets=i32:[0,1] lengths=i32:[5000,4999] k=2048 tie_break=1"},
    {"masked", "input=f32:2x5000:const(-inf) offsets=i32:[0,1] lengths=i32:[5000,4999] k=2048"},
    {"wider_than_the_row", "input=f32:2x50 offsets=i32:[3,4] lengths=i32:[50,7] k=80"},
    {"no_rows", "input=f32:0x50 offsets=i32:0 lengths=i32:0 k=8"},
};
constexpr op::Case kVarlen[] = {
    {"bf16", "logits=bf16:6x5000 seq_lens=i32:[5000,3,4096,0,700,9999] top_k=512 return_values=True", "cpu", op::kAot | op::kTrace},
    {"rows_and_ratio", "logits=f32:6x300^pad8 seq_lens=i64:[1000,1,803] top_k=20 compress_ratio=4 next_n=2 backend='auto'"},
    {"ties_f16", "logits=f16:3x200:const(1) seq_lens=i32:[200,17,50] top_k=16 return_values=True pre_idx=i32:3x16"},
    {"more_than_width", "logits=f32:2x10 seq_lens=i32:[10,4] top_k=16 return_values=True"},
    {"no_rows", "logits=f32:0x10 seq_lens=i32:[] top_k=4"},
};
}  // namespace
std::span<const op::Case> top_k_cases() { return kTopK; }
std::span<const op::Case> page_table_cases() { return kPageTable; }
std::span<const op::Case> ragged_cases() { return kRagged; }
std::span<const op::Case> varlen_cases() { return kVarlen; }
}  // namespace flashinfer::ops::topk
