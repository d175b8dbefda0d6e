# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's functions for one family of GPU kernels ("cake") that do what other functions do: attention over pages, RMSNorm with its gradients,
sampling. `enable_pdl` and workspaces are of GPU kernels; nothing here."""
import functools

from ._make import package as _package


def cake_batch_decode_with_kv_cache(*args, **kwargs):
    """`trtllm_batch_decode_with_kv_cache`"""
    return _package.exports["trtllm_batch_decode_with_kv_cache"](*args, **kwargs)


def cake_batch_context_with_kv_cache(*args, **kwargs):
    """`trtllm_batch_context_with_kv_cache`"""
    return _package.exports["trtllm_batch_context_with_kv_cache"](*args, **kwargs)


def get_dcp_spec_workspace_size_bytes(batch_size, q_len_per_req, num_qo_heads, num_split=16, *, head_dim=128):
    """Bytes of partial results of a GPU kernel, bf16 with a float32 LSE; calls here take any workspace."""
    return batch_size * q_len_per_req * num_qo_heads * num_split * (2 * head_dim + 4)


def get_dcp_spec_counter_bytes(batch_size, q_len_per_req, num_kv_heads):
    """Bytes of a GPU kernel's counters; calls here need none."""
    return batch_size * q_len_per_req * num_kv_heads * 4


# ---- RMSNorm ----
def _rows(who, **tensors):
    """ValueError unless all are bf16 [rows, hidden], as the first is."""
    import torch

    first = next(iter(tensors.values()))
    for name, t in tensors.items():
        if t is not None and (t.dtype != torch.bfloat16 or t.dim() != 2 or t.shape != first.shape):
            raise ValueError(f"{who}: {name} is {t.dtype} of shape {tuple(t.shape)}, but must be torch.bfloat16 [rows, hidden] of {tuple(first.shape)}")


def _weight(who, w, x):
    import torch

    if w.dtype != torch.bfloat16 or tuple(w.shape) != (x.shape[1],):
        raise ValueError(f"{who}: w is {w.dtype} of shape {tuple(w.shape)}, but must be torch.bfloat16 [{x.shape[1]}]")


def _into(out, value):
    return value if out is None else out.copy_(value)


def cake_rmsnorm_train_forward(x, w, eps, *, residual=None, out=None, rstd=None, residual_out=None):
    """(y, rstd), or (y, rstd, h) with h = bf16(x + residual): y = h * rstd * w, rstd float32 [rows] = 1 / sqrt(mean(h^2) + eps). bf16 [rows, hidden].

    Raises:
        ValueError: other dtypes or shapes
    """
    import torch

    _rows("cake_rmsnorm_train_forward", x=x, residual=residual, out=out, residual_out=residual_out)
    _weight("cake_rmsnorm_train_forward", w, x)
    h = x if residual is None else (x.float() + residual.float()).to(torch.bfloat16)
    scale = torch.rsqrt(h.float().square().mean(1) + eps)
    y = _into(out, (h.float() * scale[:, None] * w.float()).to(torch.bfloat16))
    return (y, _into(rstd, scale)) if residual is None else (y, _into(rstd, scale), _into(residual_out, h))


def cake_rmsnorm_train_backward(g, x, w, rstd, *, deterministic=True, g_residual=None, workspace=None, dx=None, dw=None):
    """(dx, dw) of `cake_rmsnorm_train_forward`, bf16 [rows, hidden] and float32 [hidden]: `g` is the gradient of y, `x` what was normalised, `g_residual` the
    gradient of h, which dx has added.

    Raises:
        ValueError: other dtypes or shapes; deterministic=False
    """
    import torch

    who = "cake_rmsnorm_train_backward"
    if not deterministic:
        raise ValueError(f"{who}: deterministic is False, but only True is available")
    _rows(who, x=x, g=g, g_residual=g_residual, dx=dx)
    _weight(who, w, x)
    if rstd.dtype != torch.float32 or tuple(rstd.shape) != (x.shape[0],):
        raise ValueError(f"{who}: rstd is {rstd.dtype} of shape {tuple(rstd.shape)}, but must be torch.float32 [{x.shape[0]}]")
    normed, weighted = x.float() * rstd[:, None], g.float() * w.float()
    gradient = rstd[:, None] * (weighted - normed * (weighted * normed).mean(1, keepdim=True))
    if g_residual is not None:
        gradient += g_residual.float()
    return _into(dx, gradient.to(torch.bfloat16)), _into(dw, (g.float() * normed).sum(0))


def cake_rmsnorm_train_backward_workspace_bytes(rows, hidden, device, *, residual=False):
    """0: no workspace is needed."""
    return 0


@functools.lru_cache(maxsize=None)
def _function():
    import torch

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, eps, residual=None, deterministic=True):
            y, rstd, *h = cake_rmsnorm_train_forward(x, w, eps, residual=residual)
            ctx.save_for_backward(h[0] if h else x, w, rstd)
            ctx.deterministic, ctx.residual = deterministic, bool(h)
            return (y, h[0]) if h else y

        @staticmethod
        def backward(ctx, g, g_residual=None):
            x, w, rstd = ctx.saved_tensors
            dx, dw = cake_rmsnorm_train_backward(g, x, w, rstd, deterministic=ctx.deterministic, g_residual=g_residual)
            return dx, dw.to(w.dtype), None, dx if ctx.residual else None, None

    return Function


class CakeRMSNormFunction:
    """`cake_rmsnorm` as torch.autograd's functions are called."""

    @staticmethod
    def apply(x, w, eps, residual=None, deterministic=True):
        """`cake_rmsnorm`"""
        return _function().apply(x, w, eps, residual, deterministic)


def cake_rmsnorm(x, w, eps=1e-6, residual=None, deterministic=True):
    """y, or (y, h) with `residual`, of `cake_rmsnorm_train_forward`, with gradients."""
    return CakeRMSNormFunction.apply(x, w, eps, residual, deterministic)


# ---- sampling ----
def cake_top_k_top_p_sampling_from_probs(probs, top_k, top_p, *, top_k_max=None, generator=None, philox_seed=None, philox_offset=None, out=None, renorm_out=None,
                                         workspace=None, enable_pdl=True):
    """`top_k_top_p_sampling_from_probs`, into `out` where it is given.

    Raises:
        ValueError: philox_seed without philox_offset, or the other way round
        NotImplementedError: renorm_out, workspace: `top_k` has the largest probabilities and their indices
    """
    if renorm_out is not None or workspace is not None:
        raise NotImplementedError("cake_top_k_top_p_sampling_from_probs: renorm_out and workspace are not available; flashinfer.top_k gives the candidates")
    if (philox_seed is None) != (philox_offset is None):
        raise ValueError("cake_top_k_top_p_sampling_from_probs: philox_seed and philox_offset must be given together")
    return _into(out, _package.exports["top_k_top_p_sampling_from_probs"](probs, top_k, top_p, generator=generator, seed=philox_seed, offset=philox_offset))
