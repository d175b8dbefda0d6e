# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's prepared calls of KDA prefill: tensors and lengths are checked once, and `launch()` runs `recurrent_kda` on them."""
from ._kda import KDAPrefillPlanCache, _check_tokens


class _PreparedPrefill:
    def __init__(self, function, run):
        self._function, self._run = function, run

    def launch(self):
        """Reads the inputs as they are now and writes the output, the final states and the checkpoints."""
        if self._run is None:
            raise RuntimeError(f"{self._function}: launch was called after close")
        self._run()

    def close(self):
        """Lets the tensors go; `launch` is an error from then on."""
        self._run = None


def _starts(function, q, cu_seqlens, sequence_lengths):
    """The first token of each sequence and the end of the last one."""
    if cu_seqlens is None:
        if sequence_lengths is not None and list(sequence_lengths) != [q.shape[1]] * q.shape[0]:
            raise ValueError(f"{function}: sequence_lengths is {list(sequence_lengths)}, but q has {q.shape[0]} rows of {q.shape[1]} tokens")
        return [q.shape[1] * i for i in range(q.shape[0] + 1)]
    starts = cu_seqlens.tolist()
    if sequence_lengths is None:
        raise ValueError(f"{function}: sequence_lengths is required with cu_seqlens")
    if q.shape[0] != 1 or starts[:1] != [0] or starts[-1] != q.shape[1]:
        raise ValueError(f"{function}: cu_seqlens is {starts}, but must go from 0 to the tokens of q, which is {tuple(q.shape)} and must have one row")
    lengths = [b - a for a, b in zip(starts, starts[1:])]
    if list(sequence_lengths) != lengths or min(lengths, default=0) < 0:
        raise ValueError(f"{function}: sequence_lengths is {list(sequence_lengths)}, but cu_seqlens gives {lengths}")
    return starts


def _check_states(function, name, states, count, v, k, indexed):
    import torch

    if states is None:
        return
    if states.dtype != torch.float32:
        raise TypeError(f"{function}: {name} is {states.dtype}, but must be float32")
    shape = (v.shape[2], v.shape[3], k.shape[3])
    if states.dim() != 4 or tuple(states.shape[1:]) != shape or not indexed and states.shape[0] < count:
        least = "slots" if indexed else f">= {count}"
        raise ValueError(f"{function}: {name} has shape {tuple(states.shape)}, but must be ({least}, {', '.join(map(str, shape))})")


def _prepare(function, q, k, v, g, beta, A_log, dt_bias, out, initial_state, final_state, scale, lower_bound, cu_seqlens, sequence_lengths,
             state_indices, checkpoints, checkpoint_types, beta_is_logit):
    import torch

    from ._kda import recurrent_kda

    if not beta_is_logit and beta.dtype != torch.float32:
        raise TypeError(f"{function}: beta is {beta.dtype}, but must be float32 without beta_is_logit")
    # g and beta may have memory for more tokens. Activated betas are rounded to the inputs' dtype when they are read.
    g, beta = g[:, :q.shape[1]], beta[:, :q.shape[1]]
    _check_tokens(function, q, k, v, g, beta if beta_is_logit else beta.to(q.dtype))
    starts = _starts(function, q, cu_seqlens, sequence_lengths)
    count, indexed = len(starts) - 1, state_indices is not None
    _check_states(function, "initial_state", initial_state, count, v, k, indexed)
    _check_states(function, "final_state", final_state, count, v, k, indexed)
    if indexed and (state_indices.numel() != count or initial_state is None and final_state is None):
        raise ValueError(f"{function}: state_indices has {state_indices.numel()} elements, but must have {count} and come with initial_state or final_state")
    if out.shape != v.shape or out.dtype != v.dtype:
        raise ValueError(f"{function}: out is {out.dtype} {tuple(out.shape)}, but must be {v.dtype} {tuple(v.shape)}")
    states, cu_starts, every = checkpoints
    if every and states is not None and states.dtype not in checkpoint_types:
        raise TypeError(f"{function}: state_checkpoints is {states.dtype}, but must be {' or '.join(map(str, checkpoint_types))}")
    starts, rows = torch.tensor(starts, device=q.device), state_indices.clone() if indexed else torch.arange(count, device=q.device)
    in_place = initial_state is not None and final_state is not None and initial_state.data_ptr() == final_state.data_ptr()

    def run():
        packed = [x.reshape(1, -1, *x.shape[2:]) for x in (q, k, v, g, beta if beta_is_logit else beta.to(q.dtype))]
        state, source = final_state, None if in_place else initial_state
        if final_state is None:
            state, source = None if initial_state is None else initial_state.clone(), None
        elif initial_state is None:
            state[rows.long()[rows >= 0]] = 0
        wide = states if not every or states is None or states.dtype == torch.float32 else torch.empty(states.shape, dtype=torch.float32, device=states.device)
        result = recurrent_kda(*packed, A_log=A_log, dt_bias=dt_bias, scale=scale, initial_state=state, use_gate_in_kernel=True,
                               lower_bound=lower_bound, cu_seqlens=starts, ssm_state_indices=None if state is None else rows,
                               initial_state_source=source, initial_state_indices=None if source is None else rows, beta_is_logit=beta_is_logit,
                               state_checkpoints=wide, checkpoint_cu_starts=cu_starts, checkpoint_every_n_tokens=every)
        out.copy_(result[0].view(out.shape))
        if wide is not states:
            for first, last in zip(cu_starts.tolist(), cu_starts.tolist()[1:]):
                states[first:last] = wide[first:last]

    return _PreparedPrefill(function, run)


def prepare_bf16_kda_prefill(q, k, v, g, beta, *, A_log, dt_bias, out, initial_state=None, final_state=None, scale=None, lower_bound=-5.0,
                             cu_seqlens=None, sequence_lengths=None, state_indices=None, state_checkpoints=None, checkpoint_cu_starts=None,
                             checkpoint_every_n_tokens=0, beta_is_logit=True, plan_cache=None):
    """recurrent_kda with gates in the kernel, checked now and run by `launch()` of what it returns, as often as wanted: q, k, v and out
    [batch, tokens, heads, width], with cu_seqlens one row and the same lengths in `sequence_lengths`; states in float32, at the rows of
    `state_indices` or the first ones, read from initial_state (None: zeros) and stored in final_state, which may be the same tensor; checkpoints
    bfloat16 or float32. Tensors are read at `launch()`. `plan_cache` has nothing to keep here."""
    import torch

    if plan_cache is not None and not isinstance(plan_cache, KDAPrefillPlanCache):
        raise TypeError(f"prepare_bf16_kda_prefill: plan_cache is {type(plan_cache).__name__}, but must be a KDAPrefillPlanCache")
    return _prepare("prepare_bf16_kda_prefill", q, k, v, g, beta, A_log, dt_bias, out, initial_state, final_state, scale, lower_bound, cu_seqlens,
                    sequence_lengths, state_indices, (state_checkpoints, checkpoint_cu_starts, checkpoint_every_n_tokens),
                    (torch.bfloat16, torch.float32), beta_is_logit)


def prepare_tf32_kda_prefill(q, k, v, g, beta, *, A_log, dt_bias, out, initial_state=None, final_state=None, scale=None, lower_bound=-5.0,
                             cu_seqlens=None, sequence_lengths=None, state_indices=None, state_checkpoints=None, checkpoint_cu_starts=None,
                             checkpoint_every_n_tokens=0, beta_is_logit=True):
    """prepare_bf16_kda_prefill with checkpoints in bfloat16 only; the arithmetic is the same here, in float32."""
    import torch

    return _prepare("prepare_tf32_kda_prefill", q, k, v, g, beta, A_log, dt_bias, out, initial_state, final_state, scale, lower_bound, cu_seqlens,
                    sequence_lengths, state_indices, (state_checkpoints, checkpoint_cu_starts, checkpoint_every_n_tokens), (torch.bfloat16,),
                    beta_is_logit)
