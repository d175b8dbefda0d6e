# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's functions of Kimi delta attention, on the op `kda_recurrence`, which takes packed tokens and slots. Index arrays on a GPU are never read
by the host, so that steps can be captured into a graph: checks of their contents are for arrays on the CPU. Checkpoints alone need lengths on the host."""

_BACKENDS = ("auto", "cute-dsl", "cute-dsl-persistent", "tirx", "ptx", "cake", "small-bh", "cudnn")
_MAX_VERIFY = 16  # tokens of a call that leaves the states as they are


class RecurrentKDAPrefillWorkspace:
    """Scratch memory of FlashInfer's kernels; nothing here."""

    def __init__(self, device):
        self.device = device


class KDAPrefillPlanCache:
    """FlashInfer keeps schedules of its GPU kernels in it; nothing here."""

    def __init__(self, capacity=64, max_bytes=None):
        if capacity < 1:
            raise ValueError(f"KDAPrefillPlanCache: capacity is {capacity}, but must be at least 1")
        self.capacity, self.max_bytes = capacity, max_bytes


def _readable(indices):
    """Whether the host may look at an index array."""
    return indices.device.type == "cpu"


def _check_tokens(function, q, k, v, g, beta):
    import torch

    tensors = (("q", q), ("k", k), ("v", v), ("g", g), ("beta", beta))
    for name, x in tensors:
        if x.dtype != torch.bfloat16 and any(y.dtype != torch.float32 for _, y in tensors):
            raise TypeError(f"{function}: {name} is {x.dtype}, but must be bfloat16 (or q, k, v, g and beta all float32)")
    if q.dim() != 4 or v.dim() != 4:
        raise ValueError(f"{function}: q and v have shapes {tuple(q.shape)} and {tuple(v.shape)}, but must be [batch, tokens, heads, width]")
    batch, tokens, heads, width = q.shape
    value_heads = v.shape[2]
    if v.shape[3] != width:
        raise ValueError(f"{function}: v has width {v.shape[3]}, but must have that of q and k, {width}")
    if value_heads % heads:
        raise ValueError(f"{function}: v has {value_heads} heads, but must have a multiple of the {heads} heads of q")
    for name, x, shape in (("k", k, q.shape), ("v", v, (batch, tokens, value_heads, width)), ("g", g, (batch, tokens, value_heads, width)),
                           ("beta", beta, (batch, tokens, value_heads))):
        if tuple(x.shape) != tuple(shape):
            raise ValueError(f"{function}: {name} has shape {tuple(x.shape)}, but must be {tuple(shape)}")


def _draft_slots(function, indices, num_spec_tokens, num_accepted_tokens, starts, tokens, packed):
    """The slot that each sequence starts from and the slot for the state after each of `tokens` tokens."""
    import torch

    if num_spec_tokens < 1:
        raise ValueError(f"{function}: num_spec_tokens must be >= 1, but is {num_spec_tokens}")
    count, device = starts.numel() - 1, starts.device
    if indices is None:
        if packed:
            raise ValueError(f"{function}: ssm_state_indices is required with num_spec_tokens and cu_seqlens")
        if tokens != count * (1 + num_spec_tokens):
            raise ValueError(f"{function}: q has {tokens // max(count, 1)} tokens, but must have 1+num_spec_tokens, {1 + num_spec_tokens}, without "
                             "ssm_state_indices")
        indices = torch.arange(tokens, device=device).view(count, 1 + num_spec_tokens)  # the states after each row's tokens follow each other
    if indices.dim() != 2 or indices.shape[1] != 1 + num_spec_tokens or indices.shape[0] != count:
        raise ValueError(f"{function}: ssm_state_indices has shape {tuple(indices.shape)}, but must be 2D, ({count}, {1 + num_spec_tokens}): its columns "
                         "must equal 1+num_spec_tokens")
    columns, slots, lengths = indices.shape[1], indices.to(torch.int64).flatten(), starts.diff()
    if count and _readable(starts) and int(lengths.max()) > columns:
        raise ValueError(f"{function}: a sequence has {int(lengths.max())} tokens, more than 1+num_spec_tokens, {columns}")
    if not count:
        return slots, torch.full((tokens,), -1, dtype=torch.int64, device=device)
    first = torch.arange(count, device=device) * columns  # of a sequence's slots
    begin = first
    if num_accepted_tokens is not None:
        begin = first + (num_accepted_tokens.to(torch.int64) - 1).clamp(0, num_spec_tokens)
    token = torch.arange(tokens, device=device)
    sequence = torch.searchsorted(starts[1:].contiguous(), token, right=True).clamp(max=count - 1)
    position = token - starts.index_select(0, sequence)  # behind the last sequence, at least its length
    after = slots.index_select(0, sequence * columns + position.clamp(0, columns - 1))
    return slots.index_select(0, begin), torch.where(position < lengths.index_select(0, sequence), after, -1)


def _checkpoints(function, every, states, cu_starts, indices, starts, tokens, initial, slots):
    """The row of `states` for the state after each token, and (row, initial state or None) of those that begin with the initial states."""
    import torch

    if every % 16 or every < 0:
        raise ValueError(f"{function}: checkpoint_every_n_tokens is {every}, but must be a multiple of 32 (or 16)")
    if states is None or cu_starts is None:
        raise ValueError(f"{function}: state_checkpoints and checkpoint_cu_starts must both be provided with checkpoint_every_n_tokens")
    if initial is not None and states.dtype != initial.dtype:
        raise ValueError(f"{function}: state_checkpoints is {states.dtype}, but must have the dtype of initial_state, {initial.dtype}")
    first, spans = cu_starts.tolist(), list(zip(starts.tolist(), starts.tolist()[1:]))
    if len(first) != len(spans) + 1:
        raise ValueError(f"{function}: checkpoint_cu_starts has {len(first)} elements, but must have {len(spans) + 1}")
    skipped = 0 if indices is None else 1  # with indices, there is no row for the initial state
    counts = [(e - b) // every if skipped else -(-(e - b) // every) for b, e in spans]
    rows, what = (states.shape[0], "state_checkpoints") if indices is None else (indices.numel(), "checkpoint_state_indices")
    needed = max((first[i] + count for i, count in enumerate(counts)), default=0)
    if needed > rows or min(first, default=0) < 0:
        raise ValueError(f"{function}: {what} has {rows} rows, but the checkpoints of checkpoint_cu_starts go from {min(first)} to {needed}")
    for i, count in enumerate(counts):
        if first[i + 1] - first[i] < count:
            raise ValueError(f"{function}: checkpoint_cu_starts[{i + 1}] is {first[i + 1]}, but sequence {i} has {count} checkpoints from row {first[i]} on")
    to = list(range(rows)) if indices is None else indices.tolist()
    if any(row >= states.shape[0] for row in to):
        raise ValueError(f"{function}: checkpoint_state_indices has {max(to)}, but state_checkpoints has {states.shape[0]} rows")
    after, begins = torch.full((tokens,), -1, dtype=torch.int64), []  # filled on the host
    for i, ((begin, _), count) in enumerate(zip(spans, counts)):
        if count and not skipped:
            slot = i if slots is None else int(slots[i])
            begins.append((first[i], None if initial is None or slot < 0 else initial[slot].clone()))
        for j in range(1 - skipped, count):
            after[begin + (j + skipped) * every - 1] = to[first[i] + j]
    return after.to(starts.device), begins


def _run(function, q, k, v, g, beta, A_log, dt_bias, scale, initial_state, output_final_state, l2norm, use_gate, lower_bound, cu_seqlens,
         ssm_state_indices, num_spec_tokens, num_accepted_tokens, output, source, source_indices, beta_is_logit, disable_state_update,
         caches, several_tokens, checkpoints=(0, None, None, None)):
    import torch

    from . import kda

    _check_tokens(function, q, k, v, g, beta)
    batch, tokens, heads, width = q.shape
    if (source is None) != (source_indices is None):
        raise ValueError(f"{function}: initial_state_source and initial_state_indices must be given together")
    if use_gate and A_log is None:
        raise ValueError(f"{function}: A_log is None, but use_gate_in_kernel is True")
    if lower_bound is not None and not use_gate:
        raise ValueError(f"{function}: lower_bound is {lower_bound}, but use_gate_in_kernel is False")
    if cu_seqlens is not None and batch != 1:
        raise ValueError(f"{function}: q has {batch} rows, but must have one with cu_seqlens")
    if cu_seqlens is None and tokens != 1 and num_spec_tokens is None and not several_tokens and not disable_state_update:
        raise ValueError(f"{function}: q has {tokens} tokens, but must have one without cu_seqlens and num_spec_tokens")
    starts = cu_seqlens.to(torch.int64) if cu_seqlens is not None else torch.arange(batch + 1, device=q.device) * tokens
    count, total = starts.numel() - 1, batch * tokens
    may_be_padded = cu_seqlens is None or num_spec_tokens is not None or disable_state_update or ssm_state_indices is not None
    if not may_be_padded and starts.numel() and _readable(starts) and int(starts[-1]) < total:
        raise ValueError(f"{function}: cu_seqlens ends at {int(starts[-1])}, but q has {total} tokens: only draft tokens, and batches with ssm_state_indices, may "
                         "be padded")
    if disable_state_update:
        if not l2norm or output_final_state or num_accepted_tokens is not None or checkpoints[0]:
            raise ValueError(f"{function}: disable_state_update is True, which needs use_qk_l2norm_in_kernel and neither output_final_state nor "
                             "num_accepted_tokens nor checkpoints")
        if count and _readable(starts) and int(starts.diff().max()) > _MAX_VERIFY:
            raise ValueError(f"{function}: a sequence has {int(starts.diff().max())} tokens, but with disable_state_update at most {_MAX_VERIFY}")
    if any(c is not None for c in caches):
        if any(c is None for c in caches) or not disable_state_update or initial_state is None:
            raise ValueError(f"{function}: correction_cache and kg_cache must be given together, with initial_state and disable_state_update")
    if cu_seqlens is None and ssm_state_indices is None and initial_state is not None and not initial_state.is_contiguous():
        raise ValueError(f"{function}: initial_state has strides {initial_state.stride()}, but must be contiguous without ssm_state_indices")
    if initial_state is None and (output_final_state or source is not None):
        initial_state = torch.zeros(count, v.shape[2], width, width, dtype=q.dtype if source is None else source.dtype, device=q.device)
    read = ssm_state_indices
    after, states, begins = None, None, ()
    if num_spec_tokens is not None:
        read, after = _draft_slots(function, ssm_state_indices, num_spec_tokens, num_accepted_tokens, starts, total, cu_seqlens is not None)
    write = read
    if source is not None:
        write = read if read is not None else torch.arange(count, device=q.device)
        read = source_indices
    if checkpoints[0]:
        every, states, cu_starts, indices = checkpoints
        after, begins = _checkpoints(function, every, states, cu_starts, indices, starts, total, source if source is not None else initial_state, read)
    flat = lambda x: x.flatten(0, 1)
    out = torch.empty_like(v) if output is None else output
    if tuple(out.shape) != tuple(v.shape) or not out.is_contiguous():
        raise ValueError(f"{function}: output has shape {tuple(out.shape)}, but must be a contiguous {tuple(v.shape)}")
    if A_log is not None:
        A_log = A_log.reshape(-1)
    if use_gate and dt_bias is None:
        dt_bias = torch.zeros(heads, width, device=q.device)
    kda.kda_recurrence(
        flat(q), flat(k), flat(v), flat(g), flat(beta), starts, A_log=A_log if use_gate else None,
        dt_bias=dt_bias.reshape(heads, width) if use_gate else None, scale=scale, use_qk_l2norm=l2norm, use_gate=use_gate, lower_bound=lower_bound,
        beta_is_logit=beta_is_logit, state=initial_state, source=source, read_indices=read if initial_state is not None else None,
        write_indices=write if initial_state is not None else None, after_indices=after, after_states=states,
        disable_state_update=disable_state_update or num_spec_tokens is not None, correction_cache=caches[0], kg_cache=caches[1], output=flat(out))
    for row, state in begins:
        states[row] = 0 if state is None else state
    final = initial_state if output_final_state else None
    return (out, final) if states is None else (out, final, states)


def recurrent_kda(q, k, v, g, beta, A_log=None, dt_bias=None, scale=None, initial_state=None, output_final_state=False, use_qk_l2norm_in_kernel=True,
                  use_gate_in_kernel=False, lower_bound=None, cu_seqlens=None, ssm_state_indices=None, num_spec_tokens=None, num_accepted_tokens=None,
                  output=None, initial_state_source=None, initial_state_indices=None, beta_is_logit=False, seq_order=None, prefill_workspace=None,
                  state_checkpoints=None, checkpoint_cu_starts=None, checkpoint_every_n_tokens=0, checkpoint_state_indices=None, *,
                  disable_state_update=False, correction_cache=None, kg_cache=None, backend="auto"):
    """The delta rule with a decay of each key channel, over tokens [batch, tokens, heads, width] or, with cu_seqlens, sequences one after the
    other; states [slots, value heads, V, K] are updated in place. `seq_order`, `prefill_workspace` and `backend` are hints for GPUs. Returns
    the output and the states, or None; with checkpoints their tensor, too."""
    if disable_state_update and (seq_order is not None or prefill_workspace is not None):
        raise ValueError("recurrent_kda: seq_order and prefill_workspace are for prefill and must be None with disable_state_update")
    if seq_order is not None:
        import torch

        if cu_seqlens is None:
            raise ValueError("recurrent_kda: seq_order is only supported for packed sequences, but cu_seqlens is None")
        if seq_order.dtype != torch.int32 or tuple(seq_order.shape) != (len(cu_seqlens) - 1,):
            raise ValueError(f"recurrent_kda: seq_order is {seq_order.dtype} {tuple(seq_order.shape)}, but must be int32 ({len(cu_seqlens) - 1},)")
    if backend not in _BACKENDS:
        raise ValueError(f"recurrent_kda: backend must be one of {', '.join(_BACKENDS)}, but is {backend!r}")
    if not checkpoint_every_n_tokens and any(x is not None for x in (state_checkpoints, checkpoint_cu_starts, checkpoint_state_indices)):
        raise ValueError("recurrent_kda: state_checkpoints, checkpoint_cu_starts and checkpoint_state_indices must be None when "
                         "checkpoint_every_n_tokens is 0")
    return _run("recurrent_kda", q, k, v, g, beta, A_log, dt_bias, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel,
                use_gate_in_kernel, lower_bound, cu_seqlens, ssm_state_indices, num_spec_tokens, num_accepted_tokens, output, initial_state_source,
                initial_state_indices, beta_is_logit, disable_state_update, (correction_cache, kg_cache), True,
                (checkpoint_every_n_tokens, state_checkpoints, checkpoint_cu_starts, checkpoint_state_indices))


def recurrent_kda_decode(q, k, v, g, beta, A_log=None, dt_bias=None, scale=None, initial_state=None, output_final_state=False,
                         use_qk_l2norm_in_kernel=True, use_gate_in_kernel=False, lower_bound=None, cu_seqlens=None, ssm_state_indices=None,
                         num_spec_tokens=None, num_accepted_tokens=None, output=None, initial_state_source=None, initial_state_indices=None,
                         beta_is_logit=False, *, disable_state_update=False, correction_cache=None, kg_cache=None, backend=None):
    """flashinfer.kda.recurrent_kda without its arguments for prefill: one token of each row, sequences by cu_seqlens, or draft tokens."""
    if backend not in (None, "auto", "cute-dsl", "cake"):
        raise ValueError(f"recurrent_kda: backend must be None, 'auto', 'cute-dsl' or 'cake', but is {backend!r}")
    return _run("recurrent_kda", q, k, v, g, beta, A_log, dt_bias, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel,
                use_gate_in_kernel, lower_bound, cu_seqlens, ssm_state_indices, num_spec_tokens, num_accepted_tokens, output, initial_state_source,
                initial_state_indices, beta_is_logit, disable_state_update, (correction_cache, kg_cache), False)


recurrent_kda_decode.__name__ = recurrent_kda_decode.__qualname__ = "recurrent_kda"


def packed_kda_decode(mixed_qkv, raw_gate, raw_beta, A_log, dt_bias, state, state_indices, output=None):
    """A token of each row for 12 heads of 128: q, k and v [rows, 4608] side by side, the gate's argument [rows, 1536] (lower bound -5) and that
    of beta's sigmoid [rows, 12]; states [slots, 12, 128, 128] are updated in place, slot -1 gives 0. Returns the output [rows, 1, 12, 128]."""
    import torch

    from . import kda

    rows, heads, width = mixed_qkv.shape[0], 12, 128
    for name, x, shape in (("mixed_qkv", mixed_qkv, (rows, 3 * heads * width)), ("raw_gate", raw_gate, (rows, heads * width)),
                           ("raw_beta", raw_beta, (rows, heads)), ("state_indices", state_indices, (rows,)),
                           ("state", state, (state.shape[0], heads, width, width))):
        if tuple(x.shape) != shape:
            raise ValueError(f"packed_kda_decode: {name} has shape {tuple(x.shape)}, but must be {shape}")
    out = torch.empty(rows, 1, heads, width, dtype=mixed_qkv.dtype, device=mixed_qkv.device) if output is None else output
    if tuple(out.shape) != (rows, 1, heads, width):
        raise ValueError(f"packed_kda_decode: output has shape {tuple(out.shape)}, but must be {(rows, 1, heads, width)}")
    q, k, v = mixed_qkv.view(rows, 3, heads, width).unbind(1)
    kda.kda_recurrence(q, k, v, raw_gate.view(rows, heads, width), raw_beta, torch.arange(rows + 1, device=q.device), A_log=A_log.reshape(-1),
                       dt_bias=dt_bias.reshape(heads, width), use_gate=True, lower_bound=-5.0, beta_is_logit=True, state=state,
                       read_indices=state_indices, output=out[:, 0])
    return out


class RecurrentKDAPrefillWrapper:
    """recurrent_kda for batches of one shape: after the first run the numbers of sequences, of tokens and of chunks of 64 stay. Later plans write the
    lengths to the same memory of `device`, where a captured run reads them again."""

    def __init__(self, device):
        self.device, self._starts, self._fixed = device, None, None

    def plan(self, cu_seqlens, *, non_blocking=True):
        """The sequences of the next runs: [sequences + 1], not decreasing."""
        import torch

        starts = cu_seqlens.tolist()
        if not starts or starts[0] != 0 or any(b < a for a, b in zip(starts, starts[1:])):
            raise ValueError(f"RecurrentKDAPrefillWrapper.plan: cu_seqlens is {starts}, but must begin with 0 and be non-decreasing")
        shape = (len(starts) - 1, starts[-1], sum(-(-(b - a) // 64) for a, b in zip(starts, starts[1:])))
        for what, new, old in zip(("number of sequences", "total token count", "chunk count"), shape, self._fixed or shape):
            if new != old:
                raise ValueError(f"RecurrentKDAPrefillWrapper.plan: the {what} is fixed at {old} by the first run, but cu_seqlens gives {new}")
        if self._fixed:
            self._starts.copy_(cu_seqlens, non_blocking=non_blocking)
        else:
            self._starts = cu_seqlens.to(self.device, torch.int64, non_blocking=non_blocking, copy=True)
        self._planned = shape

    def run(self, *args, **kwargs):
        """recurrent_kda with the planned cu_seqlens."""
        if self._starts is None:
            raise RuntimeError("RecurrentKDAPrefillWrapper.run: plan has not been called")
        self._fixed = self._planned
        return recurrent_kda(*args, **{**kwargs, "cu_seqlens": self._starts})


def _add_definitions():
    from . import _kda_trace as traces

    recurrent_kda.fi_trace = traces.recurrent_kda_trace.build_fi_trace_fn("flashinfer.kda.recurrent_kda")
    recurrent_kda_decode.fi_trace = traces.recurrent_kda_trace.build_fi_trace_fn("flashinfer.kda_decode.recurrent_kda")
    packed_kda_decode.fi_trace = traces.packed_kda_decode_trace.build_fi_trace_fn("flashinfer.kda_decode.packed_kda_decode")


_add_definitions()
