// SPDX-License-Identifier: Apache-2.0
// What trace definitions say of the ops beyond their tables (op/trace.h).
#include "flashinfer/op/trace.h"

namespace flashinfer::ops::quantization {
namespace {
constexpr char kNvfp4KvDequantizePagedHndAxes[] =
    "batch_size(b) max_seq_len(max_len) num_heads(hkv)=h k_head_dim(dk)=dk v_head_dim(dv)=dv "
    "k_packed_dim v_packed_dim k_scale_dim v_scale_dim num_pages page_size=ps "
    "block_table_stride(max_pages) scalar";

constexpr op::TraceEntry kOneInput = {.op = "", .op_type = "quantization"};
constexpr op::TraceEntry kMatrix = {.op = "", .op_type = "quantization", .axes = "M(m) K(k)=k"};

constexpr op::TraceEntry kTraces[] = {
    {.op = "packbits", .op_type = "quantization", .axes = "N(n)", .prefix = "packbits"},
    {.op = "segment_packbits", .op_type = "quantization", .axes = "N(n)", .prefix = "segment_packbits"},
    {.op = "nvfp4_kv_quantize",
     .op_type = "quantize_fp4",
     .axes = "M(m) K(16*blocks)=k K_div_2 K_div_16 scalar",
     .inputs = "input global_scale[scalar]",
     .outputs = "x_q[M K_div_2]:uint8 sf[M K_div_16]:float8_e4m3fn",
     .prefix = "nvfp4_kv_quantize",
     .tags = "status:verified quantization:fp4",
     .api = "flashinfer.quantization.fp4_quantization.nvfp4_kv_quantize"},
    {.op = "nvfp4_quantize_into", .op_type = "quantization", .axes = "M(m)", .prefix = "nvfp4_quantize_into"},
    {.op = "nvfp4_kv_dequantize", .op_type = "quantization", .axes = "M(m) blocks", .prefix = "nvfp4_kv_dequantize"},
    {.op = "nvfp4_kv_dequantize_paged",
     .op_type = "dequantize_fp4",
     .axes = kNvfp4KvDequantizePagedHndAxes,
     .inputs = "paged_k_cache<paged_kv_cache.0[num_pages num_heads page_size k_packed_dim] "
               "paged_v_cache<paged_kv_cache.1[num_pages num_heads page_size v_packed_dim] "
               "k_scales<kv_cache_sf.0[num_pages num_heads page_size k_scale_dim] v_scales<kv_cache_sf.1[num_pages "
               "num_heads page_size v_scale_dim] block_tables:int32 seq_lens:int32 k_scale[scalar]:float32 "
               "v_scale[scalar]:float32 output_k output_v",
     .outputs = "output_k[batch_size max_seq_len num_heads k_head_dim]@output_k output_v[batch_size max_seq_len "
                "num_heads v_head_dim]@output_v",
     .prefix = "nvfp4_kv_dequantize_paged_hnd",
     .tags = "status:verified quantization:fp4",
     .constraints = "k_head_dim == k_packed_dim * 2; v_head_dim == v_packed_dim * 2; k_head_dim == k_scale_dim * 16; "
                    "v_head_dim == v_scale_dim * 16; block_table_stride * page_size >= max_seq_len; scalar == 1",
     .when = "kv_layout=HND",
     .api = "flashinfer.quantization.fp4_quantization.nvfp4_kv_dequantize_paged"},
    {.op = "nvfp4_kv_dequantize_paged",
     .op_type = "dequantize_fp4",
     .axes = kNvfp4KvDequantizePagedHndAxes,
     .inputs = "paged_k_cache<paged_kv_cache.0[num_pages page_size num_heads k_packed_dim] "
               "paged_v_cache<paged_kv_cache.1[num_pages page_size num_heads v_packed_dim] "
               "k_scales<kv_cache_sf.0[num_pages page_size num_heads k_scale_dim] v_scales<kv_cache_sf.1[num_pages "
               "page_size num_heads v_scale_dim] block_tables:int32 seq_lens:int32 k_scale[scalar]:float32 "
               "v_scale[scalar]:float32 output_k output_v",
     .outputs = "output_k[batch_size max_seq_len num_heads k_head_dim]@output_k output_v[batch_size max_seq_len "
                "num_heads v_head_dim]@output_v",
     .prefix = "nvfp4_kv_dequantize_paged",
     .tags = "status:verified quantization:fp4",
     .constraints = "k_head_dim == k_packed_dim * 2; v_head_dim == v_packed_dim * 2; k_head_dim == k_scale_dim * 16; "
                    "v_head_dim == v_scale_dim * 16; block_table_stride * page_size >= max_seq_len; scalar == 1",
     .api = "flashinfer.quantization.fp4_quantization.nvfp4_kv_dequantize_paged"},
    {.op = "nvfp4_quantize_paged_kv_cache",
     .op_type = "quantization",
     .axes = "p x y head_dim(d)=d",
     .prefix = "nvfp4_quantize_paged_kv_cache"},
    {.op = "fp4_quantize",
     .op_type = "quantization",
     .axes = "M K=k K_packed num_scale_elems one",
     .inputs = "input[M K] global_scale[one] sf_vec_size",
     .outputs = "quantized[M K_packed]:uint8 scales[num_scale_elems]:uint8",
     .prefix = "fp4_quantize",
     .tags = "status:verified quantization:fp4",
     .constraints = "K_packed == K // 2",
     .api = "flashinfer.quantization.fp4_quantization.fp4_quantize"},
    {.op = "nvfp4_quantize",
     .op_type = "quantization",
     .axes = "M K=k K_packed num_scale_elems one",
     .inputs = "a[M K] a_global_sf[one]:float32 sf_vec_size",
     .outputs = "quantized[M K_packed]:uint8 scales[num_scale_elems]:uint8",
     .prefix = "nvfp4_quantize",
     .tags = "status:verified quantization:nvfp4",
     .constraints = "K_packed == K // 2",
     .api = "flashinfer.quantization.fp4_quantization.nvfp4_quantize"},
    kOneInput.of("make_nvfp4_global_scale", "make_nvfp4_global_scale"),
    {.op = "nvfp4_batched_quantize",
     .op_type = "quantization",
     .axes = "batch_size(b) M(m) K(k)=k",
     .prefix = "nvfp4_batched_quantize"},
    {.op = "mxfp4_quantize",
     .op_type = "quantization",
     .axes = "M K=k K_packed num_scale_elems one",
     .inputs = "a[M K]",
     .outputs = "quantized[M K_packed]:uint8 scales[num_scale_elems]:uint8",
     .prefix = "mxfp4_quantize",
     .tags = "status:verified quantization:mxfp4",
     .constraints = "K_packed == K // 2",
     .api = "flashinfer.quantization.fp4_quantization.mxfp4_quantize"},
    {.op = "mxfp8_quantize",
     .op_type = "quantization",
     .axes = "M K=k num_scale_elems",
     .inputs = "input[M K]",
     .outputs = "quantized[M K]:float8_e4m3fn scales[num_scale_elems]:uint8",
     .prefix = "mxfp8_quantize",
     .tags = "status:verified quantization:mxfp8",
     .api = "flashinfer.quantization.fp8_quantization.mxfp8_quantize"},
    {.op = "mxfp8_grouped_quantize",
     .op_type = "quantization",
     .axes = "B(b) M(m) K(k)=k padded_K rm rk m32 m4 k4",
     .inputs = "a mask",
     .outputs = "x_q[M padded_K B]:float8_e4m3fn sf[m32 m4 rm k4 rk B]:uint8",
     .prefix = "mxfp8_grouped_quantize",
     .tags = "status:verified quantization:mxfp8",
     .constraints =
         "padded_K == ((K + 127) // 128) * 128; rm == (M + 127) // 128; rk == padded_K // 128; m32 == 32; m4 "
         "== 4; k4 == 4",
     .api = "flashinfer.quantization.fp8_quantization.mxfp8_grouped_quantize"},
    kMatrix.of("mxfp8_dequantize_host", "mxfp8_dequantize_host"),
    {.op = "e2m1_and_ufp8sf_scale_to_float",
     .op_type = "quantization",
     .axes = "M(m) half=k2",
     .prefix = "e2m1_and_ufp8sf_scale_to_float"},
    {.op = "mxfp4_dequantize", .op_type = "quantization", .axes = "M(m) half=k2", .prefix = "mxfp4_dequantize"},
    {.op = "mxfp4_dequantize_host",
     .op_type = "quantization",
     .axes = "M(m) half=k2 groups=groups",
     .prefix = "mxfp4_dequantize_host"},
    kOneInput.of("nvfp4_block_scale_interleave", "nvfp4_block_scale_interleave"),
    kMatrix.of("shuffle_matrix_a", "shuffle_matrix_a"),
    {.op = "shuffle_matrix_sf_a", .op_type = "quantization", .axes = "M(m) c", .prefix = "shuffle_matrix_sf_a"},
    kMatrix.of("reorder_rows_for_gated_act_gemm", "reorder_rows_for_gated_act_gemm"),
    kMatrix.of("convert_to_block_layout", "convert_to_block_layout"),
    {.op = "silu_and_mul_nvfp4_quantize",
     .op_type = "quantization",
     .axes = "M K_doubled=k K_packed num_scale_elems one",
     .inputs = "input[M K_doubled] global_scale[one] sf_vec_size",
     .outputs = "x_q[M K_packed]:uint8 sf[num_scale_elems]:uint8",
     .prefix = "silu_and_mul_nvfp4_quantize",
     .tags = "status:verified fused quantization:nvfp4",
     .constraints = "K_packed == K_doubled // 4",
     .api = "flashinfer.quantization.fp4_quantization.silu_and_mul_nvfp4_quantize"},
    {.op = "scaled_fp4_grouped_quantize",
     .op_type = "quantization",
     .axes = "batch_size(b) M(m) K(k)=k",
     .prefix = "scaled_fp4_grouped_quantize"},
    {.op = "silu_and_mul_scaled_nvfp4_experts_quantize",
     .op_type = "activation_quantize",
     .axes = "B(b) M(m) K_doubled(k) K_div_2 K_div_block_size scalar",
     .inputs = "a mask[B M K_doubled]? a_global_sf[scalar]",
     .outputs = "a_fp4[B M K_div_2]:uint8 a_sf[B M K_div_block_size]:float8_e4m3fn",
     .prefix = "silu_and_mul_scaled_nvfp4_experts_quantize",
     .tags = "status:verified fused quantize:fp4 moe"},
    kOneInput.of("per_token_group_quant_8bit", "per_token_group_quant_8bit"),
    kOneInput.of("per_tensor_quant_fp8", "per_tensor_quant_fp8"),
    {.op = "silu_and_mul_mxfp8_quantize",
     .op_type = "activation_quantize",
     .axes = "M(m) K_doubled(n)=K_doubled K O O_div_32 SF zero",
     .inputs = "gated_input rowwise:bool! colwise:bool!",
     .outputs = "row_output[M O]:float8_e4m3fn col_output[zero]:float8_e4m3fn row_scales[M O_div_32]:float8_e8m0fnu "
                "col_scales[zero]:float8_e8m0fnu",
     .prefix = "silu_and_mul_mxfp8_forward_row",
     .tags = "status:verified fused quantization:mxfp8",
     .constraints =
         "K_doubled == 2 * K; M % 128 == 0; K % 128 == 0; O_div_32 == O // 32; SF == M * O // 32; zero == 0; "
         "O == K; rowwise == 1; colwise == 0",
     .when = "rowwise=1 colwise=0",
     .api = "flashinfer.gated_act_mxfp8.silu_and_mul_mxfp8_quantize"},
    {.op = "silu_and_mul_mxfp8_quantize",
     .op_type = "activation_quantize",
     .axes = "M(m) K_doubled(n)=K_doubled K O O_div_32 SF zero",
     .inputs = "gated_input rowwise:bool! colwise:bool!",
     .outputs = "row_output[zero]:float8_e4m3fn col_output[M O]:float8_e4m3fn row_scales[zero]:float8_e8m0fnu "
                "col_scales[SF]:float8_e8m0fnu",
     .prefix = "silu_and_mul_mxfp8_forward_col",
     .tags = "status:verified fused quantization:mxfp8",
     .constraints =
         "K_doubled == 2 * K; M % 128 == 0; K % 128 == 0; O_div_32 == O // 32; SF == M * O // 32; zero == 0; "
         "O == K; rowwise == 0; colwise == 1",
     .when = "rowwise=0 colwise=1",
     .api = "flashinfer.gated_act_mxfp8.silu_and_mul_mxfp8_quantize"},
    {.op = "silu_and_mul_mxfp8_quantize",
     .op_type = "activation_quantize",
     .axes = "M(m) K_doubled(n)=K_doubled K O O_div_32 SF zero",
     .inputs = "gated_input rowwise:bool! colwise:bool!",
     .outputs = "row_output[M O]:float8_e4m3fn col_output[M O]:float8_e4m3fn row_scales[M O_div_32]:float8_e8m0fnu "
                "col_scales[SF]:float8_e8m0fnu",
     .prefix = "silu_and_mul_mxfp8_forward_both",
     .tags = "status:verified fused quantization:mxfp8",
     .constraints =
         "K_doubled == 2 * K; M % 128 == 0; K % 128 == 0; O_div_32 == O // 32; SF == M * O // 32; zero == 0; "
         "O == K; rowwise == 1; colwise == 1",
     .when = "rowwise=1 colwise=1",
     .api = "flashinfer.gated_act_mxfp8.silu_and_mul_mxfp8_quantize"},
    {.op = "silu_and_mul_mxfp8_quantize_backward",
     .op_type = "activation_quantize",
     .axes = "M(m) K_doubled(n)=K_doubled K(k) O O_div_32 SF zero",
     .inputs = "gated_input rowwise:bool! colwise:bool! grad_output",
     .outputs = "row_output[M O]:float8_e4m3fn col_output[zero]:float8_e4m3fn row_scales[M O_div_32]:float8_e8m0fnu "
                "col_scales[zero]:float8_e8m0fnu",
     .prefix = "silu_and_mul_mxfp8_backward_row",
     .tags = "status:verified fused quantization:mxfp8",
     .constraints =
         "K_doubled == 2 * K; M % 128 == 0; K % 128 == 0; O_div_32 == O // 32; SF == M * O // 32; zero == 0; "
         "O == K_doubled; rowwise == 1; colwise == 0",
     .when = "rowwise=1 colwise=0",
     .api = "flashinfer.gated_act_mxfp8.silu_and_mul_mxfp8_quantize_backward"},
    {.op = "silu_and_mul_mxfp8_quantize_backward",
     .op_type = "activation_quantize",
     .axes = "M(m) K_doubled(n)=K_doubled K(k) O O_div_32 SF zero",
     .inputs = "gated_input rowwise:bool! colwise:bool! grad_output",
     .outputs = "row_output[zero]:float8_e4m3fn col_output[M O]:float8_e4m3fn row_scales[zero]:float8_e8m0fnu "
                "col_scales[SF]:float8_e8m0fnu",
     .prefix = "silu_and_mul_mxfp8_backward_col",
     .tags = "status:verified fused quantization:mxfp8",
     .constraints =
         "K_doubled == 2 * K; M % 128 == 0; K % 128 == 0; O_div_32 == O // 32; SF == M * O // 32; zero == 0; "
         "O == K_doubled; rowwise == 0; colwise == 1",
     .when = "rowwise=0 colwise=1",
     .api = "flashinfer.gated_act_mxfp8.silu_and_mul_mxfp8_quantize_backward"},
    {.op = "silu_and_mul_mxfp8_quantize_backward",
     .op_type = "activation_quantize",
     .axes = "M(m) K_doubled(n)=K_doubled K(k) O O_div_32 SF zero",
     .inputs = "gated_input rowwise:bool! colwise:bool! grad_output",
     .outputs = "row_output[M O]:float8_e4m3fn col_output[M O]:float8_e4m3fn row_scales[M O_div_32]:float8_e8m0fnu "
                "col_scales[SF]:float8_e8m0fnu",
     .prefix = "silu_and_mul_mxfp8_backward_both",
     .tags = "status:verified fused quantization:mxfp8",
     .constraints =
         "K_doubled == 2 * K; M % 128 == 0; K % 128 == 0; O_div_32 == O // 32; SF == M * O // 32; zero == 0; "
         "O == K_doubled; rowwise == 1; colwise == 1",
     .when = "rowwise=1 colwise=1",
     .api = "flashinfer.gated_act_mxfp8.silu_and_mul_mxfp8_quantize_backward"},
    {.op = "nvfp4_quantize_smooth",
     .op_type = "quantize_nvfp4_smooth",
     .axes = "M(m) N(k)=N N_half SF",
     .inputs = "x pre_quant_scale global_scale[1]",
     .outputs = "xq[M N_half]:uint8 sf[SF]:uint8",
     .tags = "quantization:fp4",
     .constraints = "N_half == N // 2; SF == ((M + 127) // 128) * 128 * ((N // 16 + 3) // 4) * 4",
     .api = "flashinfer.gemm.gemm_svdquant.nvfp4_quantize_smooth"},
    {.op = "trtllm_sage_attention_quantize",
     .op_type = "quantization",
     .axes = "total_q(n) num_qo_heads(h)=h head_dim(d)=d total_kv(m) num_kv_heads(g)=kv",
     .prefix = "trtllm_sage_attention_quantize"},
};
}  // namespace
extern const std::span<const op::TraceEntry> traces;
constinit const std::span<const op::TraceEntry> traces = kTraces;
}  // namespace flashinfer::ops::quantization
