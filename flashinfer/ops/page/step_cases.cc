// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/page/cases.h"

namespace flashinfer::ops::page {
namespace {
constexpr op::Case kGather[] = {
    {"embedding", "input=bf16:100x576 indices=i32:[7,0,99,7]", "cpu", op::kAot},
    {"padding", "input=f16:5x64 indices=i32:[-1,4,-1]"},
    {"f32_int64", "input=f32:9x33 indices=i64:[8,1]"},
    {"odd_width", "input=bf16:6x7 indices=i32:[5,2,2]"},
    {"fp8", "input=e4m3:6x48 indices=i32:[3,3]"},
    {"fp8_odd", "input=e5m2:6x5 indices=i32:[3,1]"},
    {"strided", "input=bf16:9x128^pad8 indices=i32:[8,0] out=bf16:2x128^pad24"},
    {"many_rows", "input=bf16:50x64 indices=i32:300:const(49)"},
    {"no_rows", "input=bf16:5x64 indices=i32:[]"},
    {"no_table", "input=bf16:0x64 indices=i32:[-1]"},
    {"no_width", "input=bf16:5x0 indices=i32:[1]"},
    {"bench", "input=bf16:32768x4096 indices=i32:8192:perm", "cpu", op::kBench},
};
constexpr op::Case kAdvance[] = {
    {"batch", "seq_lens=i32:[5,1,90] max_seq_len=100 offsets=i64:[0,64,32]", "cpu", op::kAot},
    {"no_request", "seq_lens=i32:[0,7] max_seq_len=100"},
    {"full", "seq_lens=i32:[16,15,17] max_seq_len=16 offsets=i64:[1,2,3] offset_step=8"},
    {"one", "seq_lens=i32:[1] max_seq_len=2"},
    {"many", "seq_lens=i32:300:range(0) max_seq_len=200 offsets=i64:300:range(5)"},
    {"no_slots", "seq_lens=i32:[] max_seq_len=4"},
};
}  // namespace
std::span<const op::Case> gather_rows_cases() { return kGather; }
std::span<const op::Case> advance_cases() { return kAdvance; }
}  // namespace flashinfer::ops::page
