# SPDX-License-Identifier: Apache-2.0
"""Trace definitions of the functions of Kimi delta attention that are Python over the op `kda_recurrence` (docs/trace.md). The text of a definition
imports `math`, `torch` and `F` before its reference."""
from .trace import Const, Scalar, Tensor, TraceTemplate, Var


def reference(q, k, v, g, beta, A_log=None, dt_bias=None, initial_state=None, initial_state_source=None, initial_state_indices=None, cu_seqlens=None,
              ssm_state_indices=None, state_checkpoints=None, checkpoint_cu_starts=None, correction_cache=None, kg_cache=None, scale=None,
              output_final_state=False, use_qk_l2norm_in_kernel=True, use_gate_in_kernel=False, lower_bound=None, num_spec_tokens=None,
              beta_is_logit=False, disable_state_update=False, checkpoint_every_n_tokens=0):
    if num_spec_tokens is not None or disable_state_update or checkpoint_every_n_tokens:
        raise NotImplementedError("draft tokens and checkpoints have no reference")
    batch, tokens, heads, width = q.shape
    value_heads = v.shape[2]
    shared = value_heads // heads
    if use_gate_in_kernel:
        rate = A_log.reshape(-1).double().exp()[:, None]
        x = g.double() + (0 if dt_bias is None else dt_bias.reshape(heads, width).double().repeat_interleave(shared, 0))
        rate = rate.repeat_interleave(shared, 0)
        decay = -rate * F.softplus(x, threshold=1000.0) if lower_bound is None else lower_bound * torch.sigmoid(rate * x)
    else:
        decay = g.double()
    strength = torch.sigmoid(beta.double()) if beta_is_logit else beta.double()
    q, k = (x.double().repeat_interleave(shared, 2) for x in (q, k))
    if use_qk_l2norm_in_kernel:
        q, k = (x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6) for x in (q, k))
    flat = lambda x: x.flatten(0, 1)
    starts = list(range(0, batch * tokens + 1, tokens)) if cu_seqlens is None else cu_seqlens.tolist()
    slots = list(range(len(starts) - 1)) if ssm_state_indices is None else ssm_state_indices.tolist()
    reads = slots if initial_state_indices is None else initial_state_indices.tolist()
    source = initial_state if initial_state_source is None else initial_state_source
    q, k, x, decay, strength = flat(q), flat(k), flat(v).double(), flat(decay), flat(strength)
    out = torch.zeros_like(flat(v))
    states = initial_state
    if states is None:
        states = torch.zeros(len(slots), value_heads, width, width, dtype=v.dtype if source is None else source.dtype, device=v.device)
    for i, slot in enumerate(slots):
        if slot < 0 or starts[i] == starts[i + 1]:
            continue
        state = (states[slot] if source is None else source[reads[i]]).double()
        for t in range(starts[i], starts[i + 1]):
            state = state * decay[t, :, None, :].exp()
            change = strength[t, :, None] * (x[t] - torch.einsum("hvk,hk->hv", state, k[t]))
            state = state + change[:, :, None] * k[t, :, None, :]
            out[t] = (torch.einsum("hvk,hk->hv", state, q[t]) * (width ** -0.5 if scale is None else scale)).to(out.dtype)
        states[slot] = state.to(states.dtype)
    return out.view_as(v), states if output_final_state else None


_HEADS = {"num_q_heads": Const("Heads of q and k.", abbrev="q"), "num_v_heads": Const("Heads of v.", abbrev="v"),
          "head_dim": Const("Width of queries, keys and values.", abbrev="d")}
_STATE = ["state_pool_size", "num_v_heads", "head_dim", "head_dim"]

recurrent_kda_trace = TraceTemplate(
    "kda",
    {"batch_size": Var("Rows of the batch; 1 with cu_seqlens."), "seq_len": Var("Tokens of a row."), **_HEADS,
     "state_pool_size": Var("Slots for states."), "source_pool_size": Var("Slots of states that are only read."),
     "num_sequences": Var("Sequences."), "num_offsets": Var("Sequences + 1."), "num_checkpoints": Var("Rows for states at checkpoints."),
     "num_checkpoint_offsets": Var("Sequences + 1."), "cached_tokens": Var("Draft tokens that the caches hold."), "kg_dim": Var("2 * head_dim.")},
    {"q": Tensor(["batch_size", "seq_len", "num_q_heads", "head_dim"]), "k": Tensor(["batch_size", "seq_len", "num_q_heads", "head_dim"]),
     "v": Tensor(["batch_size", "seq_len", "num_v_heads", "head_dim"]),
     "g": Tensor(["batch_size", "seq_len", "num_v_heads", "head_dim"], description="Log decay of each key channel, or what the gate takes."),
     "beta": Tensor(["batch_size", "seq_len", "num_v_heads"]),
     "A_log": Tensor(["num_q_heads"], optional=True), "dt_bias": Tensor(["num_q_heads", "head_dim"], optional=True),
     "initial_state": Tensor(_STATE, optional=True, description="Updated in place."),
     "initial_state_source": Tensor(["source_pool_size", *_STATE[1:]], optional=True),
     "initial_state_indices": Tensor(["num_sequences"], optional=True), "cu_seqlens": Tensor(["num_offsets"], optional=True),
     "ssm_state_indices": Tensor(["num_sequences"], optional=True, description="Slot of each sequence; negative: none."),
     "state_checkpoints": Tensor(["num_checkpoints", *_STATE[1:]], optional=True),
     "checkpoint_cu_starts": Tensor(["num_checkpoint_offsets"], optional=True),
     "correction_cache": Tensor(["source_pool_size", "num_v_heads", "cached_tokens", "head_dim"], optional=True),
     "kg_cache": Tensor(["source_pool_size", "num_v_heads", "cached_tokens", "kg_dim"], optional=True),
     "scale": Scalar("float32", optional=True), "output_final_state": Scalar("int32", optional=True),
     "use_qk_l2norm_in_kernel": Scalar("int32", optional=True), "use_gate_in_kernel": Scalar("int32", optional=True),
     "lower_bound": Scalar("float32", optional=True), "num_spec_tokens": Scalar("int32", optional=True),
     "beta_is_logit": Scalar("int32", optional=True), "disable_state_update": Scalar("int32", optional=True),
     "checkpoint_every_n_tokens": Scalar("int32", optional=True)},
    {"output": Tensor(["batch_size", "seq_len", "num_v_heads", "head_dim"], dtype_from="v"),
     "final_state": Tensor(_STATE, dtype_from="initial_state", optional=True)},
    name_prefix="recurrent_kda", reference=reference, constraints=["num_v_heads % num_q_heads == 0"], tags=["stage:prefill", "stage:decode"],
    description="The delta rule with a decay of each key channel, over tokens of rows or of sequences one after the other.")


def _packed_reference():
    def reference(mixed_qkv, raw_gate, raw_beta, A_log, dt_bias, state, state_indices, output=None):
        rows, heads, width = mixed_qkv.shape[0], raw_beta.shape[1], state.shape[-1]
        q, k, v = mixed_qkv.double().view(rows, 3, heads, width).unbind(1)
        q, k = (x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6) for x in (q, k))
        x = raw_gate.double().view(rows, heads, width) + dt_bias.reshape(heads, width).double()
        decay = -5.0 * torch.sigmoid(A_log.reshape(-1).double().exp()[:, None] * x)
        strength = torch.sigmoid(raw_beta.double())
        out = torch.zeros(rows, 1, heads, width, dtype=mixed_qkv.dtype, device=mixed_qkv.device) if output is None else output.zero_()
        for i, slot in enumerate(state_indices.tolist()):
            if slot < 0:
                continue
            s = state[slot].double() * decay[i, :, None, :].exp()
            change = strength[i, :, None] * (v[i] - torch.einsum("hvk,hk->hv", s, k[i]))
            s = s + change[:, :, None] * k[i, :, None, :]
            out[i, 0] = (torch.einsum("hvk,hk->hv", s, q[i]) * width ** -0.5).to(out.dtype)
            state[slot] = s.to(state.dtype)
        return out, state

    return reference


packed_kda_decode_trace = TraceTemplate(
    "kda",
    {"batch_size": Var("Rows, of one token each."), "singleton": Const("Tokens of a row.", abbrev="", value=1),
     "num_heads": Const("Heads.", abbrev="h", value=12), "head_dim": Const("Width of queries, keys and values.", abbrev="d", value=128),
     "mixed_width": Const("3 * num_heads * head_dim.", abbrev=""), "gate_width": Const("num_heads * head_dim.", abbrev=""),
     "state_pool_size": Var("Slots for states.")},
    {"mixed_qkv": Tensor(["batch_size", "mixed_width"], description="q, k and v, side by side."), "raw_gate": Tensor(["batch_size", "gate_width"]),
     "raw_beta": Tensor(["batch_size", "num_heads"]), "A_log": Tensor(["num_heads"]), "dt_bias": Tensor(["gate_width"]),
     "state": Tensor(["state_pool_size", "num_heads", "head_dim", "head_dim"], description="Updated in place."),
     "state_indices": Tensor(["batch_size"], description="Slot of each row; negative: none, and the output is 0."),
     "output": Tensor(["batch_size", "singleton", "num_heads", "head_dim"], optional=True)},
    {"output": Tensor(["batch_size", "singleton", "num_heads", "head_dim"], dtype_from="mixed_qkv"),
     "state": Tensor(["state_pool_size", "num_heads", "head_dim", "head_dim"], dtype_from="state")},
    name_prefix="packed_kda_decode", reference=_packed_reference(), tags=["stage:decode"],
    constraints=["mixed_width == 3 * num_heads * head_dim", "gate_width == num_heads * head_dim"],
    description="One token of each row from q, k and v side by side: the delta rule with a gate of lower bound -5.")
