// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/page/cases.h"

namespace flashinfer::ops::page {
namespace {
// Requests of 3, 0 and 2 pages; request 0 appends two tokens across a page border, request 2 one, one is padding.
#define FI_TABLE "kv_indices=i32:[5,1,3,0,2] kv_indptr=i32:[0,3,3,5] "
#define FI_TOKENS "batch_indices=i32:[0,0,-1,2] "
constexpr op::Case kAppend[] = {
    {"nhd", "append_key=bf16:4x3x64 append_value=bf16:4x3x64 " FI_TOKENS "positions=i32:[3,4,99,5] paged_kv_cache=bf16:6x2x4x3x64 " FI_TABLE
            "kv_last_page_len=i32:[1,1,2]"},
    {"hnd", "append_key=f16:4x3x64 append_value=f16:4x3x64 " FI_TOKENS "positions=i32:[3,4,99,5] paged_kv_cache=f16:6x2x3x4x64 " FI_TABLE
            "kv_last_page_len=i32:[1,1,2] kv_layout='HND'"},
    {"pair_dims_differ", "append_key=bf16:4x3x192 append_value=bf16:4x3x128 " FI_TOKENS
                         "positions=i32:[3,4,99,5] paged_kv_cache=(bf16:6x4x3x192,bf16:6x4x3x128) " FI_TABLE "kv_last_page_len=i32:[1,1,2]"},
    {"page_of_one", "append_key=f32:4x2x80 append_value=f32:4x2x80 " FI_TOKENS "positions=i32:[0,2,99,1] paged_kv_cache=f32:6x2x2x80 " FI_TABLE
                    "kv_last_page_len=i32:[1,1,1]"},
    {"page_of_one_pair_hnd", "append_key=f32:4x2x80 append_value=f32:4x2x80 " FI_TOKENS
                             "positions=i32:[0,2,99,1] paged_kv_cache=(f32:6x2x80,f32:6x2x80) " FI_TABLE
                             "kv_last_page_len=i32:[1,1,1] kv_layout='HND'"},
    {"page_of_five_int64", "append_key=bf16:4x1x96 append_value=bf16:4x1x96 batch_indices=i64:[0,0,-1,2] positions=i64:[14,10,99,9] "
                           "paged_kv_cache=bf16:6x2x5x1x96 kv_indices=i64:[5,1,3,0,2] kv_indptr=i64:[0,3,3,5] kv_last_page_len=i64:[5,1,5]"},
    {"strided", "append_key=bf16:4x3x64^pad128 append_value=bf16:4x3x64^perm(1,0,2) " FI_TOKENS
                "positions=i32:[3,4,99,5] paged_kv_cache=bf16:6x2x4x3x64^perm(0,2,1,3,4) " FI_TABLE "kv_last_page_len=i32:[1,1,2]"},
    {"fp8", "append_key=e4m3:4x3x64 append_value=e4m3:4x3x64 " FI_TOKENS "positions=i32:[3,4,99,5] paged_kv_cache=e4m3:6x2x4x3x64 " FI_TABLE
            "kv_last_page_len=i32:[1,1,2]"},
    {"nothing", "append_key=bf16:0x3x64 append_value=bf16:0x3x64 batch_indices=i32:[] positions=i32:[] paged_kv_cache=bf16:6x2x4x3x64 " FI_TABLE
                "kv_last_page_len=i32:[1,1,2]"},
    {"many_tokens", "append_key=bf16:640x8x128 append_value=bf16:640x8x128 batch_indices=i32:640:const(0) positions=i32:640:range(0) "
                    "paged_kv_cache=bf16:40x2x16x8x128 kv_indices=i32:40:perm kv_indptr=i32:[0,40] kv_last_page_len=i32:[16]"},
    {"bench", "append_key=bf16:8192x8x128 append_value=bf16:8192x8x128 batch_indices=i32:8192:const(0) positions=i32:8192:range(0) "
              "paged_kv_cache=bf16:512x2x16x8x128 kv_indices=i32:512:perm kv_indptr=i32:[0,512] kv_last_page_len=i32:[16]",
     "cpu", op::kBench},
};
#undef FI_TABLE
#undef FI_TOKENS
constexpr op::Case kPositions[] = {
    {"batch", "append_indptr=i32:[0,3,3,4] seq_lens=i32:[10,7,1] nnz=4"},
    {"padded", "append_indptr=i32:[0,3,3,4] seq_lens=i32:[10,7,1] nnz=7"},
    {"int64", "append_indptr=i64:[0,2] seq_lens=i64:[2] nnz=2"},
    {"no_requests", "append_indptr=i32:[0] seq_lens=i32:[] nnz=2"},
    {"no_tokens", "append_indptr=i32:[0,0] seq_lens=i32:[5] nnz=0"},
};
constexpr op::Case kSeqLens[] = {
    {"batch", "kv_indptr=i32:[0,3,3,4] kv_last_page_len=i32:[1,0,16] page_size=16"},
    {"page_of_one", "kv_indptr=i64:[0,3,7] kv_last_page_len=i64:[1,1] page_size=1"},
    {"empty_with_length", "kv_indptr=i32:[0,0] kv_last_page_len=i32:[4] page_size=8"},
    {"no_requests", "kv_indptr=i32:[0] kv_last_page_len=i32:[] page_size=16"},
};
}  // namespace
std::span<const op::Case> append_cases() { return kAppend; }
std::span<const op::Case> batch_indices_cases() { return kPositions; }
std::span<const op::Case> seq_lens_cases() { return kSeqLens; }
}  // namespace flashinfer::ops::page
