// SPDX-License-Identifier: Apache-2.0
// What trace definitions say of the ops beyond their tables (op/trace.h).
#include "flashinfer/op/trace.h"

namespace flashinfer::ops::page {
namespace {
constexpr char kNvfp4QuantizeAppendPagedKvCacheOutputs[] =
    "paged_k_cache>paged_kv_cache[num_pages page_size num_kv_heads packed_head_dim]:uint8 "
    "paged_v_cache>paged_kv_cache[num_pages page_size num_kv_heads packed_head_dim]:uint8 "
    "k_scale_cache>kv_cache_sf[num_pages page_size num_kv_heads scale_dim]:float8_e4m3fn "
    "v_scale_cache>kv_cache_sf[num_pages page_size num_kv_heads scale_dim]:float8_e4m3fn";

constexpr op::TraceEntry kTraces[] = {
    {.op = "append_paged_kv_cache",
     .op_type = "page_append",
     .axes = "nnz_kv(nnz) num_kv_heads(hkv)=kv head_dim(dk dv)=d num_pages page_size=ps batch_size(b) "
             "batch_size_plus_1(r) num_kv_indices(n)",
     .inputs = "append_key append_value batch_indices:int32 positions:int32 paged_kv_cache[num_pages page_size "
               "num_kv_heads head_dim] kv_indices:int32 kv_indptr:int32 kv_last_page_len:int32",
     .outputs = "paged_kv_cache[num_pages page_size num_kv_heads head_dim]@append_key",
     .prefix = "append_paged_kv_cache",
     .tags = "status:verified",
     .constraints = "batch_size_plus_1 == batch_size + 1"},
    {.op = "get_batch_indices_positions",
     .op_type = "page_append",
     .axes = "s",
     .prefix = "get_batch_indices_positions"},
    {.op = "get_seq_lens", .op_type = "page_append", .axes = "batch_size(b)", .prefix = "get_seq_lens"},
    {.op = "gather_rows",
     .op_type = "gather_rows",
     .axes = "num_tokens(n) num_rows(m) hidden_size(d)=h",
     .prefix = "gather_rows"},
    {.op = "advance_decode_step", .op_type = "page_append", .axes = "batch_size(b)", .prefix = "advance_decode_step"},
    {.op = "nvfp4_quantize_append_paged_kv_cache",
     .op_type = "page_append",
     .axes = "nnz_kv(nnz) num_kv_heads(hkv)=kv head_dim(dk dv)=d packed_head_dim=pd scale_dim=sd num_pages "
             "page_size=ps batch_size(b) batch_size_plus_1(r) num_kv_indices(n)",
     .inputs = "append_key append_value batch_indices:int32 positions:int32 "
               "paged_k_cache<paged_kv_cache.0[num_pages page_size num_kv_heads packed_head_dim]:uint8 "
               "paged_v_cache<paged_kv_cache.1[num_pages page_size num_kv_heads packed_head_dim]:uint8 "
               "k_scale_cache<kv_cache_sf.0[num_pages page_size num_kv_heads scale_dim]:float8_e4m3fn "
               "v_scale_cache<kv_cache_sf.1[num_pages page_size num_kv_heads scale_dim]:float8_e4m3fn "
               "kv_indices:int32 kv_indptr:int32 kv_last_page_len:int32 k_scale:float64 v_scale:float64",
     .outputs = kNvfp4QuantizeAppendPagedKvCacheOutputs,
     .prefix = "nvfp4_quantize_append_paged_kv_cache",
     .tags = "status:verified",
     .constraints = "batch_size_plus_1 == batch_size + 1; packed_head_dim * 2 == head_dim; scale_dim * 16 == head_dim"},
    {.op = "nvfp4_quantize_append_paged_kv_cache_with_slot_mapping",
     .op_type = "page_append",
     .axes = "nnz_kv(rows nnz) num_kv_heads(hkv)=kv head_dim(dk dv)=d packed_head_dim=pd scale_dim=sd num_pages "
             "page_size=ps one=",
     .inputs = "append_key append_value slot_mapping:int32 paged_k_cache<paged_kv_cache.0[num_pages page_size "
               "num_kv_heads packed_head_dim]:uint8 paged_v_cache<paged_kv_cache.1[num_pages page_size num_kv_heads "
               "packed_head_dim]:uint8 k_scale_cache<kv_cache_sf.0[num_pages page_size num_kv_heads "
               "scale_dim]:float8_e4m3fn v_scale_cache<kv_cache_sf.1[num_pages page_size num_kv_heads "
               "scale_dim]:float8_e4m3fn k_scale[one]:float32 v_scale[one]:float32",
     .outputs = kNvfp4QuantizeAppendPagedKvCacheOutputs,
     .prefix = "nvfp4_quantize_append_paged_kv_cache_with_slot_mapping",
     .tags = "status:verified",
     .constraints = "one == 1; packed_head_dim * 2 == head_dim; scale_dim * 16 == head_dim"},
    {.op = "nvfp4_quantize_append_paged_mla_kv_cache",
     .op_type = "page_append",
     .axes = "nnz_kv(nnz) head_dim_ckv(dc)=ckv head_dim_kpe(dr)=kpe packed_head_dim_ckv(db)=pd "
             "scale_dim_ckv(ds)=sd num_pages(p) page_size(ps)=ps batch_size(b) batch_size_plus_1(r) "
             "num_kv_indices(n)",
     .inputs = "append_ckv append_kpe batch_indices:int32 positions:int32 ckv_cache:uint8 "
               "ckv_sf_cache:float8_e4m3fn kpe_cache kv_indices:int32 kv_indptr:int32 kv_last_page_len:int32 "
               "ckv_scale:float64 kpe_scale:float64",
     .outputs = "ckv_cache[num_pages page_size packed_head_dim_ckv]:uint8 ckv_sf_cache[num_pages page_size "
                "scale_dim_ckv]:float8_e4m3fn kpe_cache[num_pages page_size head_dim_kpe]:float8_e4m3fn",
     .prefix = "nvfp4_quantize_append_paged_mla_kv_cache",
     .tags = "status:verified",
     .constraints =
         "batch_size_plus_1 == batch_size + 1; packed_head_dim_ckv * 2 == head_dim_ckv; scale_dim_ckv * 16 == "
         "head_dim_ckv"},
};
}  // namespace
extern const std::span<const op::TraceEntry> traces;
constinit const std::span<const op::TraceEntry> traces = kTraces;
}  // namespace flashinfer::ops::page
