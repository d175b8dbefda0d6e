# SPDX-License-Identifier: Apache-2.0
"""The last product of a language model in training, with its loss, in chunks of tokens: no tensor of more than chunk_size rows has the size of
the vocabulary. Sums and gradients are float32, each rounded once."""

_IGNORED = -100


def _checked(who, X, W, labels, chunk_size, deterministic, backend):
    import torch

    tokens, hidden = X.shape if X.dim() == 2 else (0, 0)
    for name, x, dtype, shape in (("X", X, torch.bfloat16, (tokens, hidden)), ("W", W, torch.bfloat16, (W.shape[0], hidden)),
                                  ("labels", labels, torch.int64, (tokens,))):
        if x.dtype != dtype or tuple(x.shape) != shape:
            raise ValueError(f"{who}: {name} is {x.dtype} of shape {tuple(x.shape)}, but must be {dtype} {list(shape)}")
    if chunk_size < 1 or not deterministic or backend != "cake":
        raise ValueError(f"{who}: chunk_size is {chunk_size}, deterministic {deterministic} and backend {backend!r}, but must be at least 1, True and 'cake'")
    seen = labels[labels != _IGNORED]
    if seen.numel() and not 0 <= int(seen.min()) <= int(seen.max()) < W.shape[0]:
        raise ValueError(f"{who}: labels are within [{int(seen.min())}, {int(seen.max())}], but must be within [0, {W.shape[0] - 1}], or {_IGNORED}: ignored")


def _chunks(X, labels, chunk_size):
    """Indices of the rows that are not ignored, chunk by chunk."""
    return (labels != _IGNORED).nonzero()[:, 0].split(chunk_size)


def _log_probabilities(x, W, labels):
    """f32 log-softmax of a chunk's logits, and its elements at the labels."""
    from . import mm_bf16

    z = mm_bf16(x, W.t(), out_dtype=x.float().dtype).log_softmax(1)
    return z, z.gather(1, labels[:, None])[:, 0]


def _add_gradients(z, labels, slope, x, W, rows, dX, dW):
    """Of slope * logp, with z the log-softmax: it becomes the gradient of the logits."""
    dz = z.exp_().neg_()
    dz[range(len(rows)), labels] += 1
    dz *= slope[:, None]
    if dX is not None:
        dX[rows] = (dz @ W.float()).to(dX.dtype)
    if dW is not None:
        dW += dz.t() @ x.float()


def _functions():
    """The two torch.autograd functions, made when torch is there."""
    import torch

    class LogProbability(torch.autograd.Function):
        @staticmethod
        def forward(ctx, X, W, labels, chunk_size):
            ctx.save_for_backward(X, W, labels)
            ctx.chunk_size = chunk_size
            logp = torch.zeros(len(X), dtype=torch.float32, device=X.device)
            for rows in _chunks(X, labels, chunk_size):
                logp[rows] = _log_probabilities(X[rows], W, labels[rows])[1]
            return logp

        @staticmethod
        def backward(ctx, slope):
            X, W, labels = ctx.saved_tensors
            dX = torch.zeros_like(X) if ctx.needs_input_grad[0] else None
            dW = torch.zeros(W.shape, dtype=torch.float32, device=W.device) if ctx.needs_input_grad[1] else None
            for rows in _chunks(X, labels, ctx.chunk_size):
                x = X[rows]
                _add_gradients(_log_probabilities(x, W, labels[rows])[0], labels[rows], slope[rows], x, W, rows, dX, dW)
            return dX, None if dW is None else dW.to(W.dtype), None, None

    class Loss(torch.autograd.Function):
        @staticmethod
        def forward(ctx, X, W, labels, chunk_size, of_rows):
            loss, logp = torch.zeros((), dtype=torch.float32, device=X.device), torch.zeros(len(X), dtype=torch.float32, device=X.device)
            ctx.dX = torch.zeros(X.shape, dtype=torch.float32, device=X.device) if ctx.needs_input_grad[0] else None
            ctx.dW = torch.zeros(W.shape, dtype=torch.float32, device=W.device) if ctx.needs_input_grad[1] else None
            for rows in _chunks(X, labels, chunk_size):
                x = X[rows]
                z, logp[rows] = _log_probabilities(x, W, labels[rows])
                values, slope = of_rows(logp[rows], rows)
                loss += values.sum()
                if ctx.dX is not None or ctx.dW is not None:
                    _add_gradients(z, labels[rows], slope, x, W, rows, ctx.dX, ctx.dW)
            ctx.mark_non_differentiable(logp)
            return loss, logp

        @staticmethod
        def backward(ctx, given, _):
            return (*(None if d is None else (d * given).to(torch.bfloat16) for d in (ctx.dX, ctx.dW)), None, None, None)

    return LogProbability, Loss


def chunked_lm_head_logprob(X, W, labels, *, chunk_size=4096, deterministic=True, backend="cake", compact_rows=None, fuse_dw_cast=None):
    """logp[t] = z[t, labels[t]] - logsumexp(z[t]) of z = X @ W.T; 0 where the label is -100. Its gradient computes the logits again.

    Args:
        X: bfloat16 [tokens, hidden]; W: bfloat16 [vocabulary, hidden]
        labels: int64 [tokens]
        chunk_size: rows of logits in memory at once
        deterministic, backend: True, "cake"; compact_rows, fuse_dw_cast: of GPU kernels, nothing here

    Returns:
        float32 [tokens]

    Raises:
        ValueError: shapes, dtypes or labels other than these
    """
    _checked("chunked_lm_head_logprob", X, W, labels, chunk_size, deterministic, backend)
    return _functions()[0].apply(X, W, labels, chunk_size)


def chunked_lm_head_loss(X, W, labels, *, objective="ce", loss_div=None, infer_logp=None, loss_weights=None, chunk_size=4096, return_logp=False,
                         grad_weight_dtype=None, deterministic=True, backend="cake", compact_rows=None, fuse_dw_cast=None):
    """A loss of `chunked_lm_head_logprob`'s logp, with gradients of X and W that the forward pass computes already.

    Args:
        objective: "ce": -sum(logp) / loss_div; "policy": -sum(loss_weights * min(exp(logp - infer_logp), 2)), without a gradient above 2; rows whose
            label is -100 do not count
        loss_div: positive, for "ce"
        infer_logp, loss_weights: float32 [tokens], for "policy"
        return_logp: also return logp, without a gradient
        grad_weight_dtype: torch.bfloat16, W's
        others: as there

    Returns:
        float32 scalar, or (it, float32 [tokens])

    Raises:
        ValueError: shapes, dtypes, labels or values other than these
    """
    import torch

    who = "chunked_lm_head_loss"
    _checked(who, X, W, labels, chunk_size, deterministic, backend)
    if grad_weight_dtype not in (None, torch.bfloat16):
        raise ValueError(f"{who}: grad_weight_dtype is {grad_weight_dtype}, but must be W's, torch.bfloat16")
    if objective == "ce":
        if loss_div is None or not loss_div > 0:
            raise ValueError(f"{who}: loss_div is {loss_div}, but must be positive for objective 'ce'")

        def of_rows(logp, rows):
            return -logp / loss_div, torch.full_like(logp, -1 / loss_div)
    elif objective == "policy":
        for name, x in (("infer_logp", infer_logp), ("loss_weights", loss_weights)):
            if x is None or x.dtype != torch.float32 or x.shape != labels.shape:
                raise ValueError(f"{who}: {name} must be torch.float32 {list(labels.shape)} for objective 'policy'")

        def of_rows(logp, rows):
            ratio = (logp - infer_logp[rows]).exp()
            return -loss_weights[rows] * ratio.clamp(max=2), torch.where(ratio <= 2, -loss_weights[rows] * ratio, 0.0)
    else:
        raise ValueError(f"{who}: objective is {objective!r}, but must be 'ce' or 'policy'")
    loss, logp = _functions()[1].apply(X, W, labels, chunk_size, of_rows)
    return (loss, logp) if return_logp else loss
