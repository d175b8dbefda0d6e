# SPDX-License-Identifier: Apache-2.0
"""What FlashInfer's modules for single GPU generations have and this library computes by its ops, and values and types of theirs that programs
name without such a GPU."""
import dataclasses
import time
import typing


class CudnnCaptureUnsafeError(RuntimeError):
    """FlashInfer's error of a cuDNN call that a CUDA graph cannot capture; nothing here raises it."""


class CudnnWorkspaceTooSmallInCaptureError(CudnnCaptureUnsafeError):
    """As its base."""


class CudnnPlanBuildInCaptureError(CudnnCaptureUnsafeError):
    """As its base."""


GatedActMxfp8Outputs = typing.Tuple["torch.Tensor", "torch.Tensor", "torch.Tensor", "torch.Tensor"]  # noqa: F821: values, values by columns, their scales


@dataclasses.dataclass
class MoEInputs:
    """The tensors of one call of a runner of FlashInfer's."""

    output: typing.Any
    routing_logits: typing.Any
    topk_ids: typing.Any
    expert_weights: typing.Any
    hidden_states: typing.Any
    hidden_states_scale: typing.Any
    gemm1_lora_delta: typing.Any
    per_token_scale: typing.Any


MoeRunnerInputs = MoEInputs


def checkCudaErrors(result):
    """What a function of cuda-python returned behind its status: nothing, the one value, or a tuple.

    Raises:
        RuntimeError: the status is an error
    """
    status, *values = result
    code = getattr(status, "value", status)
    if code:
        raise RuntimeError(f"CUDA error code={code}({getattr(status, 'name', 'unknown')})")
    return None if not values else values[0] if len(values) == 1 else tuple(values)


def get_sm_count_constraint(major, minor):
    """(least number, multiple) of multiprocessors of a green context on a GPU of that compute capability, as CUDA's driver API documents them.

    Raises:
        ValueError: a capability before 6.0
    """
    if major < 6:
        raise ValueError(f"get_sm_count_constraint: the compute capability is {major}.{minor}, but must be at least 6.0")
    return {6: (1, 1), 7: (2, 2), 8: (4, 2)}.get(major, (8, 8))


def delay_kernel(stream_delay_micro_secs):
    """Keeps the current CUDA stream, or without a GPU the calling thread, busy for so many microseconds.

    Raises:
        ValueError: a negative number
    """
    import torch

    if stream_delay_micro_secs < 0:
        raise ValueError(f"delay_kernel: stream_delay_micro_secs is {stream_delay_micro_secs}, but must be at least 0")
    if torch.cuda.is_available():
        hertz = torch.cuda.clock_rate() * 1e6
        torch.cuda._sleep(int(stream_delay_micro_secs * 1e-6 * hertz))
        return
    end = time.perf_counter_ns() + int(stream_delay_micro_secs * 1000)
    while time.perf_counter_ns() < end:
        pass


def trtllm_low_latency_gemm(A, B, global_scale, out):
    """out = global_scale * A @ B, of B as `prepare_low_latency_gemm_weights` lays it out: `mm_fp8` into `out`.

    Args:
        A: float8_e4m3fn [m, k]
        B: float8_e4m3fn [k / 128, n, 128]
        global_scale: float32, one element
        out: bfloat16 [m, n]
    """
    from . import mm_fp8

    mm_fp8(A, B, global_scale, out=out)


def _pair(who, name, given):
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise TypeError(f"{who}: {name} is {type(given).__name__}, but must be a pair of values and scales")
    return given


def m_grouped_fp8_gemm_nt_contiguous(a_fp8, b_fp8, d, m_indices, recipe=None, compiled_dims="nk"):
    """d[i] = a[i] @ b[m_indices[i]].T, by DeepGEMM's arguments: `flashinfer.gemm.group_deepgemm_fp8_nt_groupwise` into `d`.

    Args:
        a_fp8, b_fp8: pairs of float8_e4m3fn [m, k], [groups, n, k] and float32 scales, as there
        d: bfloat16 [m, n]
        m_indices: int32 [m], the group of each row
        recipe, compiled_dims: of GPU kernels; (1, 128, 128) alone
    """
    from .gemm import group_deepgemm_fp8_nt_groupwise

    who = "m_grouped_fp8_gemm_nt_contiguous"
    _check_recipe(who, recipe)
    (a, a_scale), (b, b_scale) = _pair(who, "a_fp8", a_fp8), _pair(who, "b_fp8", b_fp8)
    group_deepgemm_fp8_nt_groupwise(a, b, a_scale, b_scale, m_indices, out=d)


def m_grouped_fp8_gemm_nt_masked(a_fp8, b_fp8, d, masked_m, expected_m, recipe=None, compiled_dims="nk"):
    """d[g, i] = a[g, i] @ b[g].T for i < masked_m[g], by DeepGEMM's arguments: `flashinfer.gemm.batch_deepgemm_fp8_nt_groupwise` into `d`.

    Args:
        a_fp8, b_fp8: pairs of float8_e4m3fn [groups, m, k], [groups, n, k] and float32 scales, as there
        d: bfloat16 [groups, m, n]
        masked_m: int32 [groups]
        expected_m: a hint for GPU kernels
        recipe, compiled_dims: of GPU kernels; (1, 128, 128) alone
    """
    from .gemm import batch_deepgemm_fp8_nt_groupwise

    who = "m_grouped_fp8_gemm_nt_masked"
    _check_recipe(who, recipe)
    (a, a_scale), (b, b_scale) = _pair(who, "a_fp8", a_fp8), _pair(who, "b_fp8", b_fp8)
    batch_deepgemm_fp8_nt_groupwise(a, b, a_scale, b_scale, masked_m, expected_m, out=d)


def _check_recipe(who, recipe):
    if recipe is not None and tuple(recipe) != (1, 128, 128):
        raise ValueError(f"{who}: recipe is {tuple(recipe)}, but must be (1, 128, 128)")


def get_mma_sf_shape(m, k, num_groups=1, sf_vec_size=16):
    """Shape of `convert_sf_to_mma_layout`'s result."""
    return 32, 4, -(-m // 128), 4, -(-k // (4 * sf_vec_size)), num_groups


def convert_sf_to_mma_layout(sf, m, k, num_groups=1, sf_vec_size=16):
    """Scale factors of [num_groups, m, k] in tiles of 128x4, flat, as the view that CuTe kernels take: [32, 4, m / 128, 4, k / (4 *
    sf_vec_size), num_groups] with tiles of 512 bytes at stride 1. `convert_sf_from_mma_layout` is the inverse.

    Raises:
        ValueError: another number of scale factors
    """
    rows, columns = get_mma_sf_shape(m, k, num_groups, sf_vec_size)[2::2]
    if sf.numel() != num_groups * rows * columns * 512:
        raise ValueError(f"convert_sf_to_mma_layout: sf has {sf.numel()} scale factors, but [{num_groups}, {m}, {k}] has {num_groups * rows * columns * 512} "
                         "in tiles of 128x4")
    return sf.reshape(num_groups, rows, columns, 32, 4, 4).permute(3, 4, 1, 5, 2, 0)


def convert_sf_from_mma_layout(sf_mma, m=None, k=None, num_groups=None, sf_vec_size=16):
    """The flat tiles of 128x4 of `convert_sf_to_mma_layout`.

    Raises:
        ValueError: another shape
    """
    shape = tuple(sf_mma.shape)
    if len(shape) != 6 or shape[:2] != (32, 4) or shape[3] != 4 or m is not None and shape != get_mma_sf_shape(m, k, num_groups or 1, sf_vec_size):
        raise ValueError(f"convert_sf_from_mma_layout: sf_mma has shape {shape}, but must be [32, 4, m / 128, 4, k / (4 * sf_vec_size), groups]")
    return sf_mma.permute(5, 2, 4, 0, 1, 3).reshape(-1)
