# SPDX-License-Identifier: Apache-2.0
"""What programs ask about devices, dtypes and shapes. On a machine without a GPU the questions have answers; only
`get_compute_capability` of something that is no GPU is an error."""
import enum
import functools
import sys


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


# ---- devices ----
def _is_cuda(device):
    return str(device).partition(":")[0] == "cuda"


def get_compute_capability(device):
    """(major, minor) of a GPU.

    Raises:
        ValueError: the device is no GPU, or torch sees none
    """
    if not _is_cuda(device):
        raise ValueError(f"get_compute_capability: device must be a cuda device, but is {device}")
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        raise ValueError(f"get_compute_capability: device is {device}, but this program sees no GPU")
    return torch.cuda.get_device_capability(device)


def _capability(device):
    try:
        return tuple(get_compute_capability(device))
    except ValueError:
        return None


def _cuda_version_at_least(version):
    torch = sys.modules.get("torch")
    found = getattr(getattr(torch, "version", None), "cuda", None)
    return found is not None and version_at_least(found, version)


def _make_question(name, capabilities, cuda):
    def question(device):
        return _capability(device) in capabilities and _cuda_version_at_least(cuda)

    question.__name__ = question.__qualname__ = name
    which = ", ".join(f"{major}.{minor}" for major, minor in capabilities)
    question.__doc__ = f"True on a GPU of compute capability {which} with CUDA {cuda} or newer; False elsewhere, never an error."
    return question


is_sm90a_supported = _make_question("is_sm90a_supported", ((9, 0),), "12.3")
is_sm100a_supported = _make_question("is_sm100a_supported", ((10, 0), (10, 3)), "12.8")
is_sm100f_supported = _make_question("is_sm100f_supported", ((10, 0), (10, 3)), "12.9")
is_sm110a_supported = _make_question("is_sm110a_supported", ((11, 0),), "13.0")
is_sm120a_supported = _make_question("is_sm120a_supported", ((12, 0),), "12.8")
is_sm120f_supported = _make_question("is_sm120f_supported", ((12, 0),), "12.9")
is_sm121a_supported = _make_question("is_sm121a_supported", ((12, 1),), "12.9")
is_sm12x_supported = _make_question("is_sm12x_supported", ((12, 0), (12, 1)), "12.8")


def device_support_pdl(device):
    """True where kernels may start before those they depend on have ended (compute capability 9.0 and newer)."""
    return (_capability(device) or (0, 0)) >= (9, 0)


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


def version_at_least(version, base_version):
    def numbers(text):
        return tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in str(text).partition("+")[0].split(".")[:3])

    return numbers(version) >= numbers(base_version)


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
    if lse_base not in ("log2", "ln"):
        raise ValueError(f"lse_base is {lse_base!r}, but must be one of 'log2', 'ln'")


def check_lse_layout(lse_layout):
    if lse_layout not in ("NH", "HN"):
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
