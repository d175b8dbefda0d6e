# SPDX-License-Identifier: Apache-2.0
"""The table of flags: one line each, `name type default`, then the words it may be, then `| help`. `required` and `flag` (no value) stand
for defaults; of the types, `words` and `ints` take several."""

SHARED = """
no_cuda_graph flag - | time without CUDA graphs
use_cupti flag - | deprecated: CUPTI is used unless --use_cuda_events is given
use_cuda_events flag - | time by CUDA events, not by CUPTI
refcheck flag - | compare with a reference before timing
allow_output_mismatch flag - | report differences of the reference check and go on
random_seed int 42
output_path str - | CSV file of the results
autotune_cache str - | file of tactics: read, and with --autotune also written
case_tag str - | a text for the column case_tag
generate_repro_command flag - | print the command of this case and store it
repro_command str = | written by --generate_repro_command
enable_pdl flag - | programmatic dependent launch, where the function has it
device str auto auto cpu cuda | where the tensors are (auto: a GPU if torch has one)
peers words - torch onednn zentorch llama.cpp ik_llama.cpp | other libraries that compute the same, timed in the same run
warm_cache flag - | calls find their arguments in the caches, which are not flushed between them
trace_out str - | append a trace of flashinfer-bench for each row, evaluated against the reference, to this file
extra_columns flag - | columns of this library's own at the end of the CSV file
"""

_ATTENTION = "fa2 fa2_tc fa3 auto cudnn cudnn-native cutlass trtllm-gen trtllm-native trtllm-fmha-v2 trtllm-gen-native cute-dsl prims-ts prims_ts"
_MOE = """
num_tokens int required
hidden_size int required
num_experts int required
top_k int required
input_dtype str bfloat16
"""
_NP = """
np int - | processes to start on this machine where mpirun, srun or torchrun did not start this one (2)
"""
_HEADS = """
num_q_heads int 16
num_k_heads int 16
num_v_heads int 32
"""
FAMILY = {
    "attention": f"""
backends words fa2 {_ATTENTION}
page_size int 0
batch_size int required
s_qo int 1
s_kv int required
num_qo_heads int required
num_kv_heads int required
head_dim_qk int -
head_dim_vo int -
head_dim_ckv int -
head_dim_kpe int -
q_dtype str bfloat16
kv_dtype str bfloat16
out_dtype str -
causal flag -
spec_dec_mask str causal causal full
random_actual_seq_len flag -
autotune flag -
mla_is_var_seq str - true false auto
mla_cute_dsl_impl str - auto modular monolithic
""",
    "gemm": """
batch_size int 1
m int required
n int required
k int required
tile_size int 128
group_size int 1
scale_major_mode str MN MN K
input_dtype str fp8_e4m3
mat2_dtype str fp8_e4m3
out_dtype str bfloat16
mma_sm int 1 1 2
backends words cudnn cudnn cublas trtllm cutlass tgv cublaslt cute-dsl b12x auto tinygemm cutile trtllm_low_latency
use_128x4_sf_layout flag -
use_nvfp4 flag -
autotune flag -
bias flag -
""",
    "moe": _MOE + """
intermediate_size int required
backends words trtllm trtllm cutlass cute-dsl b12x unified cuda
n_group int -
topk_group int -
routed_scaling_factor float 2.5
local_expert_offset int 0
local_num_experts int -
routing_method str deepseek_v3 renormalize deepseek_v3 llama4 renormalize_naive topk
use_shuffled_weight flag -
weight_layout int 0 0 1 2
use_routing_bias flag -
use_routing_scales_on_input flag -
weight_dtype str bfloat16
activation-type activation Swiglu
autotune flag -
fp4_mode str nvfp4 nvfp4 mxfp4_mxfp8 mxfp4_bf16
use_functional_api flag -
b12x_quant_mode str nvfp4 nvfp4 w4a16
cutlass_variant str base base fp8 nvfp4
quantized_input flag -
tp_size int 1
tp_rank int 0
ep_size int 1
ep_rank int 0
rank int 32
num_loras int 8
num_slices int 1
""",
    "moe_comm": _MOE + """
quant_dtype str - fp8 nvfp4 fp8_block_scale
real_math flag -
intermediate_size int -
max_num_tokens int -
validate flag -
nvtx flag -
per_phase_timing flag -
use_lora flag -
""" + _NP,
    "allreduce_comm": """
num_tokens int 64
hidden_size int 4096
input_dtype str bfloat16 bfloat16 float16
ar_backend str auto auto trtllm mnnvl
pattern str allreduce allreduce ar_residual_rmsnorm ar_residual_rmsnorm_dynamic_fp8
validate flag -
""" + _NP,
    "mixed_comm": """
local_bs_list ints required
hidden_size int required
dtype str required float16 bfloat16
local_tp_size int required
local_dp_size int required
inter_tp_size int 1
inter_dp_size int 1
node_id int 0
dist_init_method str tcp://localhost:29501
""" + _NP,
    "norm": """
batch_size int required
hidden_size int required
num_heads int -
input_dtype str bfloat16
eps float 1e-6
scale float 1.0
out_dtype str fp8_e4m3 fp8_e4m3 fp8_e5m2 nvfp4 mxfp4
backends words cuda cuda cute-dsl
use_global_scale flag -
dit_mode str gate_residual_gamma_beta gate_residual_gamma_beta gate_residual_scale_shift residual_scale_shift
is_sf_swizzled_layout flag -
output_both_sf_layouts flag -
ppf int 5
pph int 12
ppw int 32
""",
    "quantization": """
m int required
k int required
input_dtype str bfloat16 bfloat16 float16
is_sf_swizzled_layout flag -
no_sf_swizzled_layout unset is_sf_swizzled_layout
alignment int 32
backends words cuda cuda cute-dsl
batch_size int -
global_scale float 1.0
sf_layout str 128x4 128x4 8x4 linear
do_shuffle flag -
sf_vec_size int 16
per_token_activation flag -
""",
    "sampling": """
batch_size int required
vocab_size int required
input_dtype str float32 float32 float16 bfloat16
top_k int 50
top_p float 0.9
min_p float 0.1
temperature float 1.0
filter_apply_order str top_k_first top_k_first joint
num_speculate_tokens int 5
max_len int 4096
num_rows int -
backends words cuda cuda
""",
    "topk_varlen": """
backends words radix radix gvr radix_cutlass
batch_size int required
max_seq_len int required
input_dtype str float32 float32 float16 bfloat16
top_k int 512
""",
    "rope": """
batch_size int required
seq_len int required
num_qo_heads int required
num_kv_heads int required
head_dim int required
rotary_dim int -
no_rope_dim int 0
input_dtype str float16 float16 bfloat16
quant_dtype str fp8_e4m3 fp8_e4m3 fp8_e5m2
rope_scale float 1.0
rope_theta float 1e4
interleave flag -
page_size int 16
kv_layout str NHD NHD HND
low_freq_factor float 1.0
high_freq_factor float 4.0
old_context_len int 8192
backends words cuda cuda
""",
    "mamba": """
batch_size int required
nheads int required
dim int required
dstate int required
ngroups int 8
cache_steps int 0
input_dtype str bfloat16 bfloat16
state_dtype str bfloat16 bfloat16 float16 float32
weight_dtype str float32 bfloat16 float32
has_z flag -
dt_softplus flag -
varlen flag -
algorithm str auto auto simple vertical horizontal
backends words flashinfer flashinfer triton
""",
    "gdn": "batch_size int required" + _HEADS + """
head_size int 128
input_dtype str bfloat16 bfloat16 float16
state_dtype str float32 float32 bfloat16
state_layout str pretranspose pretranspose nontranspose
pool_mode str single single split
seq_len int -
s_qo int 2048
update_state flag -
cache_intermediate_states flag -
no_qk_l2norm flag -
backends words flashinfer flashinfer triton fla
""",
    "kda": """
batch_size int required
s_qo int required
num_q_heads int 16
head_size int 128
input_dtype str bfloat16 bfloat16
state_dtype str bfloat16 bfloat16
packed flag -
offsets_dtype str int32 int32 int64
has_initial_state flag -
lower_bound float -5.0
backends words flashinfer flashinfer fla
""",
    "sparse_attention": """
backends words cudsl cudsl
batch_size int 1
s_qo int 4096
s_kv int 4096
num_qo_heads int 64
num_kv_heads int 4
head_dim int 128
topk int 16
max_k_tiles int -
causal pair yes
q_dtype str bfloat16
kv_dtype str bfloat16
kv_layout str flat flat paged packed
""",
}
