# SPDX-License-Identifier: Apache-2.0
"""How much work attention is: operations, bytes, and both per second."""
from .. import _op


def _default_dtype():
    """bfloat16 that prints as torch's, whether torch is there or not."""
    return _op.Literal("torch.bfloat16")


def _numbers(lengths):
    return [int(n) for n in lengths]


def _flops(rows, causal, head_dim_qk, head_dim_vo, num_qo_heads):
    """Two operations for each of q k^T and p v, per query head and pair of positions; rows are (queries, keys)."""
    pairs = 0
    for queries, keys in rows:
        if causal and queries > keys:
            raise ValueError(f"qo_seqlen is {queries}, but must not be above kv_seqlen {keys} for causal attention")
        # Twice the pairs below the diagonal, counted as the area: q * (2 kv - q).
        pairs += queries * (2 * keys - queries) if causal else 2 * queries * keys
    return pairs * num_qo_heads * (head_dim_qk + head_dim_vo)


def _item_bytes(dtype):
    name = str(dtype).removeprefix("torch.").removeprefix("<class 'numpy.").removesuffix("'>")
    bits = {"float4_e2m1fn_x2": 8, "bool": 8}.get(name) or next(
        (n for n in (64, 32, 16, 8) if name.endswith(str(n)) or name.startswith(f"float{n}_")), None)
    if bits is None:
        raise TypeError(f"element type {dtype} is not known")
    return bits // 8


def _bytes(queries, keys, head_dim_qk, head_dim_vo, num_qo_heads, num_kv_heads, q_dtype, k_dtype, v_dtype, o_dtype):
    return (queries * num_qo_heads * (head_dim_qk * _item_bytes(q_dtype) + head_dim_vo * _item_bytes(o_dtype))
            + keys * num_kv_heads * (head_dim_qk * _item_bytes(k_dtype) + head_dim_vo * _item_bytes(v_dtype)))


def attention_flops(batch_size, qo_seqlen, kv_seqlen, head_dim_qk, head_dim_vo, num_qo_heads, causal):
    """Operations of attention over `batch_size` equal requests; the causal half is counted as area."""
    return _flops([(qo_seqlen, kv_seqlen)] * batch_size, causal, head_dim_qk, head_dim_vo, num_qo_heads)


def attention_flops_with_actual_seq_lens(actual_seq_lens_q, actual_seq_lens_kv, head_dim_qk, head_dim_vo, num_qo_heads, causal):
    """attention_flops for requests of the given lengths (tensors or lists)."""
    return _flops(zip(_numbers(actual_seq_lens_q), _numbers(actual_seq_lens_kv)), causal, head_dim_qk, head_dim_vo, num_qo_heads)


def attention_tflops_per_sec(batch_size, qo_seqlen, kv_seqlen, head_dim_qk, head_dim_vo, num_qo_heads, causal, time):
    """attention_flops in `time` milliseconds, as 1e12 operations per second."""
    return attention_flops(batch_size, qo_seqlen, kv_seqlen, head_dim_qk, head_dim_vo, num_qo_heads, causal) / time / 1e9


def attention_tflops_per_sec_with_actual_seq_lens(actual_seq_lens_q, actual_seq_lens_kv, head_dim_qk, head_dim_vo, num_qo_heads, causal, ms):
    """The same for requests of the given lengths."""
    return attention_flops_with_actual_seq_lens(actual_seq_lens_q, actual_seq_lens_kv, head_dim_qk, head_dim_vo, num_qo_heads, causal) / ms / 1e9


def attention_tb_per_sec(batch_size, qo_seqlen, kv_seqlen, head_dim_qk, head_dim_vo, num_qo_heads, num_kv_heads, time,
                         q_dtype=_default_dtype(), k_dtype=_default_dtype(), v_dtype=_default_dtype(), o_dtype=_default_dtype()):
    """Bytes of q, k, v and the output, each once, in `time` milliseconds, as 1e12 bytes per second."""
    return _bytes(batch_size * qo_seqlen, batch_size * kv_seqlen, head_dim_qk, head_dim_vo, num_qo_heads, num_kv_heads, q_dtype, k_dtype,
                  v_dtype, o_dtype) / time / 1e9


def attention_tb_per_sec_with_actual_seq_lens(actual_seq_lens_q, actual_seq_lens_kv, head_dim_qk, head_dim_vo, num_qo_heads, num_kv_heads,
                                              time, q_dtype=_default_dtype(), k_dtype=_default_dtype(), v_dtype=_default_dtype(),
                                              o_dtype=_default_dtype()):
    """The same for requests of the given lengths."""
    return _bytes(sum(_numbers(actual_seq_lens_q)), sum(_numbers(actual_seq_lens_kv)), head_dim_qk, head_dim_vo, num_qo_heads, num_kv_heads,
                  q_dtype, k_dtype, v_dtype, o_dtype) / time / 1e9
