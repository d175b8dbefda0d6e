# SPDX-License-Identifier: Apache-2.0
"""What programs ask about devices, dtypes and shapes. On a machine without a GPU the questions have answers."""
import enum
import functools
import logging
import math

from ._devices import (CVT_RS_SUPPORTED_ARCHES, cvt_rs_supported_arches_text, determine_gemm_backend, device_support_pdl,
                       get_compute_capability, get_cuda_python_version, get_default_generators, get_device_index,
                       get_device_name, get_device_properties, get_device_sm_count, get_globaltimer_kernel,
                       get_gpu_memory_bandwidth, get_shared_bytes_per_block_optin,
                       has_cuda_cudart, has_flashinfer_jit_cache, is_confidential_compute, is_cvt_rs_supported,
                       is_sm100a_supported, is_sm100f_supported, is_sm110a_supported, is_sm120a_supported,
                       is_sm120f_supported, is_sm121a_supported, is_sm12x_supported, is_sm90a_supported, _is_cuda, version_at_least)  # noqa: F401
from ._layouts import FP4Tensor, get_shuffle_block_size, get_shuffle_matrix_a_row_indices, get_shuffle_matrix_sf_a_row_indices  # noqa: F401
from ._support import (BackendSupportedError, GPUArchitectureError, LibraryError, backend_requirement, experimental_backend,  # noqa: F401
                       supported_compute_capability)


class PosEncodingMode(enum.Enum):
    NONE = 0
    ROPE_LLAMA = 1
    ALIBI = 2


class MaskMode(enum.Enum):
    NON_CAUSAL = 0
    CAUSAL = 1
    CUSTOM = 2
    MULTIITEMSCORING = 3


class TensorLayout(enum.Enum):
    NHD = 0
    HND = 1


class LogLevel(enum.Enum):
    TRACE = 0
    DEBUG = 1
    INFO = 2
    WARN = 3
    ERROR = 4
    CRITICAL = 5


log_level_map = {level.name.lower(): level for level in LogLevel}
_PYTHON_LEVELS = {"trace": 5, "warn": logging.WARNING}
LSE_BASES, LSE_LAYOUTS = ("log2", "ln"), ("NH", "HN")
ln2, log2e = math.log(2), 1 / math.log(2)


def set_log_level(lvl_str):
    """The least level, a name of LogLevel in any case, of what the package's Python loggers (`flashinfer` and below) pass on. What is
    logged of calls is set by FLASHINFER_LOGLEVEL (docs/recorder.md).

    Raises:
        ValueError: no such level
    """
    name = str(lvl_str).lower()
    if name not in log_level_map:
        raise ValueError(f"set_log_level: level is {lvl_str!r}, but must be one of {', '.join(log_level_map)}")
    logging.getLogger("flashinfer").setLevel(_PYTHON_LEVELS.get(name) or getattr(logging, name.upper()))


# ---- attention and products ----
def is_fa3_backend_supported(pos_encoding_mode, use_fp16_qk_reductions, use_custom_mask, dtype_q, dtype_kv):
    """Whether the kernels for compute capability 9.0 take such a call (they exist for GPUs only)."""
    def value(x):
        return getattr(x, "value", x)

    kv_is_fp8 = str(dtype_kv).removeprefix("torch.").startswith("float8")
    q_is_fp8 = str(dtype_q).removeprefix("torch.").startswith("float8")
    return not use_custom_mask and value(pos_encoding_mode) == PosEncodingMode.NONE.value and not use_fp16_qk_reductions \
        and q_is_fp8 == kv_is_fp8


def is_fa3_prefill_head_dim_supported(head_dim_qk, head_dim_vo):
    """Whether the kernels for compute capability 9.0 exist for these head dims."""
    return (head_dim_qk, head_dim_vo) in ((64, 64), (128, 128), (256, 256), (192, 128))


def determine_attention_backend(device, pos_encoding_mode, use_fp16_qk_reductions, use_custom_mask, dtype_q, dtype_kv, *,
                                head_dim_qk=None, head_dim_vo=None):
    """What `backend="auto"` means for attention: "cpu" off the GPU, "fa3" where its kernels take the call, else "fa2"."""
    if not _is_cuda(device):
        return "cpu"
    dims = head_dim_qk is None or is_fa3_prefill_head_dim_supported(head_dim_qk, head_dim_vo)
    fa3 = dims and is_fa3_backend_supported(pos_encoding_mode, use_fp16_qk_reductions, use_custom_mask, dtype_q, dtype_kv)
    return "fa3" if fa3 and is_sm90a_supported(device) else "fa2"


def is_cutlass_backend_supported(pos_encoding_mode, use_fp16_qk_reductions, use_custom_mask, dtype_q, dtype_kv):
    """Whether attention without rotation, 16-bit products, masks and 8-bit elements is asked for, all that CUTLASS kernels compute."""
    def is_8_bit(dtype):
        return str(dtype).removeprefix("torch.").startswith("float8")

    return not use_custom_mask and getattr(pos_encoding_mode, "value", pos_encoding_mode) == PosEncodingMode.NONE.value \
        and not use_fp16_qk_reductions and not is_8_bit(dtype_q) and not is_8_bit(dtype_kv)


# ---- numbers ----
def ceil_div(x, y):
    return (x + y - 1) // y


def round_up(x, y):
    return ceil_div(x, y) * y


def supports_rmsnorm_sigmoid_gate(dtype, head_dim, device=None):
    """Whether `rmsnorm_sigmoid_gate` has a kernel for rows of `head_dim` elements: any number of bfloat16, float16 or float32 on the CPU."""
    kind = str(dtype).rpartition(".")[2]
    return kind in ("bfloat16", "float16", "float32") and head_dim > 0 and (device is None or str(device).partition(":")[0] == "cpu")


def _takes(name, *arguments):
    """Whether the table of the op `name` takes these leading arguments, all of them on the CPU."""
    from . import _native

    if any(_is_cuda(x.device) for x in arguments if hasattr(x, "device")):
        return False
    try:
        _native.function("python.infer." + name)(*arguments)
    except (TypeError, ValueError):
        return False
    return True


def supports_gated_residual_rmsnorm(branch, residual, weight, alpha, beta):
    """Whether `gated_residual_rmsnorm` takes these tensors: any number of columns on the CPU."""
    return _takes("gated_residual_rmsnorm", branch, residual, weight, alpha, beta)


def supports_gated_residual_next_rmsnorm(branch, residual, next_weight, alpha, beta, *, post_weight=None):
    """Whether `gated_residual_next_rmsnorm` takes these tensors: any number of columns on the CPU; alpha may be a number."""
    column = beta if isinstance(alpha, (int, float)) else alpha
    return _takes("gated_residual_rmsnorm", branch, residual, post_weight, column, beta) and _takes(
        "gated_residual_next_rmsnorm", branch, residual, next_weight, alpha, beta)


def next_positive_power_of_2(x):
    """The smallest power of two that is at least x; 1 for x < 1."""
    return 1 if x < 1 else 1 << (x - 1).bit_length()


def last_positive_power_of_2(x):
    """The largest power of two that is at most x; 0 for 0."""
    return 0 if x < 1 else 1 << (x.bit_length() - 1)


_ceil_pow2 = next_positive_power_of_2


def calculate_tile_tokens_dim(num_tokens, num_experts, top_k, max_tile_tokens_dim=128):
    """The rows of a tile of grouped products: a power of two that holds 1.3 times the tokens of an average expert, from 8 up to
    `max_tile_tokens_dim`."""
    return min(max(next_positive_power_of_2(int(num_tokens * top_k // num_experts * 1.3)), 8), max_tile_tokens_dim)


def get_trtllm_gen_multi_ctas_kv_counter_bytes(batch_size, num_qo_heads, sm_count):
    """Bytes of int32 counters, one for each request and head, at least one a multiprocessor, a multiple of 8 of them."""
    return round_up(max(batch_size * num_qo_heads, sm_count), 8) * 4


# ---- tensors (with torch) ----
def canonicalize_torch_dtype(dtype):
    """A torch.dtype, or the name of one, as torch.dtype.

    Raises:
        TypeError: neither
        AttributeError: torch has no dtype of that name
    """
    import torch

    if isinstance(dtype, str):
        return getattr(torch, dtype)
    if isinstance(dtype, torch.dtype):
        return dtype
    raise TypeError(f"dtype must be a string or torch.dtype, but is {type(dtype).__name__}")


def get_native_fp4_dtype():
    """torch's dtype of two 4-bit floats a byte; uint8 in versions of torch that have none."""
    import torch

    return getattr(torch, "float4_e2m1fn_x2", torch.uint8)


def _get_range_buf(seq_len, device):
    """int32 [0, 1, ..., seq_len - 1]."""
    import torch

    return torch.arange(seq_len, dtype=torch.int32, device=device)


_cache_buf = {}


def _get_cache_buf(name, num_bytes, device, zero_init=False):
    """The uint8 buffer of that name on that device, kept in `_cache_buf`: at least `num_bytes` long, made anew when it is too short."""
    import torch

    key = name, device
    if key not in _cache_buf or _cache_buf[key].numel() < num_bytes:
        _cache_buf[key] = (torch.zeros if zero_init else torch.empty)(num_bytes, dtype=torch.uint8, device=device)
    return _cache_buf[key]


def _check_kv_layout(kv_layout):
    """KeyError unless it is the name of a TensorLayout."""
    if not hasattr(TensorLayout, kv_layout):
        raise KeyError(f"Invalid kv_layout {kv_layout}")


def _check_pos_encoding_mode(pos_encoding_mode):
    """KeyError unless it is the name of a PosEncodingMode."""
    if not hasattr(PosEncodingMode, pos_encoding_mode):
        raise KeyError(f"Invalid pos_encoding_mode {pos_encoding_mode}")


def _with_head(x, kv_layout, rank):
    """A view of `rank` dimensions: where it has one less, it gets one of extent 1, third from last for NHD, second from last for HND."""
    if x.dim() not in (rank - 1, rank):
        raise ValueError(f"x must be {rank - 1}D or {rank}D")
    if x.dim() == rank:
        return x
    _check_kv_layout(kv_layout)
    return x.unsqueeze(-3 if kv_layout == "NHD" else -2)


def _expand_4d(x, kv_layout):
    """Keys or values of three or four dimensions as of four."""
    return _with_head(x, kv_layout, 4)


def _expand_5d(x, kv_layout):
    """A cache [pages, 2, ...] of four or five dimensions as of five."""
    return _with_head(x, kv_layout, 5)


def _unpack_paged_kv_cache(paged_kv_cache, kv_layout):
    """(keys, values), views of four dimensions, of a cache [pages, 2, ...] or of a tuple of both.

    Raises:
        KeyError: neither a tensor nor a tuple; no known layout where one is needed
        ValueError: another rank, or a tuple of another length
    """
    import torch

    if isinstance(paged_kv_cache, tuple):
        keys, values = paged_kv_cache
        return _expand_4d(keys, kv_layout), _expand_4d(values, kv_layout)
    if not isinstance(paged_kv_cache, torch.Tensor):
        raise KeyError(f"Unrecognized paged_kv_cache type {type(paged_kv_cache)}, expect a single tensor or a tuple of tensor.")
    return _expand_5d(paged_kv_cache, kv_layout).unbind(1)


def prepare_jit_additional_args(jit_additional_tensor_names, known_bufs, user_args):
    """The further arguments of a custom attention variant in its order: tensors that the wrapper has under a name, then those of the
    caller, None where there are too few; what is left of the caller's are scalars, which follow."""
    left = list(user_args)
    tensors = [known_bufs[name] if name in known_bufs else left.pop(0) if left else None for name in jit_additional_tensor_names]
    return tensors + left


def is_float8(x):
    return str(x.dtype).removeprefix("torch.") in ("float8_e4m3fn", "float8_e5m2")


def get_indptr(x):
    """Lengths -> where each begins: [3, 0, 4] -> [0, 3, 3, 7] (int64)."""
    import torch

    x = x.to(torch.int64)
    return torch.nn.functional.pad(x.cumsum(0), (1, 0))


@functools.lru_cache(maxsize=64)
def _alibi_slopes(n_heads):
    n = 1 << (n_heads.bit_length() - 1)
    slopes = [2.0 ** (-8.0 * i / n) for i in range(1, n + 1)]
    return slopes + [2.0 ** (-4.0 * i / n) for i in range(1, 2 * (n_heads - n), 2)]


def get_alibi_slopes(n_heads, device=None):
    """ALiBi's slope of each head, float32 [n_heads]: 2^(-8i/n) for the first n = 2^floor(log2 n_heads), then 2^(-4i/n), i odd."""
    import torch

    return torch.tensor(_alibi_slopes(n_heads), dtype=torch.float32, device=device)


def check_lse_base(lse_base):
    if lse_base not in LSE_BASES:
        raise ValueError(f"lse_base is {lse_base!r}, but must be one of 'log2', 'ln'")


def check_lse_layout(lse_layout):
    if lse_layout not in LSE_LAYOUTS:
        raise ValueError(f"lse_layout is {lse_layout!r}, but must be one of 'NH', 'HN'")


def check_shape_dtype_device(x, expected_shape, expected_dtype, expected_device, name):
    """ValueError that names `name` unless x is as expected; None: anything."""
    if expected_shape is not None and tuple(x.shape) != tuple(expected_shape):
        raise ValueError(f"Invalid shape of {name}: expected {tuple(expected_shape)}, got {tuple(x.shape)}")
    if expected_dtype is not None and x.dtype != expected_dtype:
        raise ValueError(f"Invalid dtype of {name}: expected {expected_dtype}, got {x.dtype}")
    if expected_device is not None and x.device != expected_device:
        raise ValueError(f"Invalid device of {name}: expected {expected_device}, got {x.device}")


def register_custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None):
    """`torch.library.custom_op`, for programs that define ops of their own beside these."""
    import torch

    return torch.library.custom_op(name, fn, mutates_args=mutates_args, device_types=device_types, schema=schema)


def register_fake_op(name, fn=None):
    """`torch.library.register_fake`."""
    import torch

    return torch.library.register_fake(name, fn)
