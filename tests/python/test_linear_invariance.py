# SPDX-License-Identifier: Apache-2.0
"""Results of linear attention's prefill do not depend on the number of threads, on the other sequences of a call, or on where a sequence is cut
into calls: to the bit where it is cut at a border of chunks, within rounding elsewhere. States are f32, so that a cut rounds nothing."""
import pytest
import torch

import flashinfer
from flashinfer import gdn_prefill, kda, mamba

H, HV, K, V = 2, 4, 64, 32  # query and value heads, widths
LENGTHS = (64, 131, 1, 70)


def rows(tokens, *shape, dtype=torch.bfloat16):
    return torch.randn(tokens, *shape).to(dtype)


def starts(*lengths):
    return torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32)


class Delta:
    """A function over packed sequences, by name and the first axes' tokens of its tensors; states [sequences, HV, V, K]."""

    def __init__(self, function, chunk, tensors, updates=1, **options):
        self.function, self.chunk, self.tensors, self.updates, self.options = function, chunk, tensors, updates, options

    def inputs(self, tokens):
        return self.tensors(tokens)

    def part(self, x, begin, end):
        n = lambda name: self.updates if name in ("k", "v", "beta") else 1
        return {name: t[begin * n(name):end * n(name)] for name, t in x.items()}

    def states(self, count):
        return torch.randn(count, HV, V, K)

    def run(self, x, lengths, states):
        return self.function(**x, initial_state=states.clone(), output_final_state=True, cu_seqlens=starts(*lengths), use_qk_l2norm_in_kernel=True, **self.options)


class Kimi(Delta):
    def run(self, x, lengths, states):
        states = states.clone()
        return self.function(**x, cu_seqlens=starts(*lengths), state=states, **self.options), states


class Scan(Delta):
    def inputs(self, tokens):
        return dict(x=rows(tokens, HV, V), dt=torch.rand(tokens, HV), B=rows(tokens, H, K), C=rows(tokens, H, K), z=rows(tokens, HV, V))

    def run(self, x, lengths, states):
        out, states = self.function(**{n: t[None] for n, t in x.items()}, A=-torch.arange(1.0, HV + 1), D=torch.ones(HV), cu_seqlens=starts(*lengths),
                                    initial_states=states, state_dtype=torch.float32, **self.options)
        return out[0], states


class Convolution(Delta):
    """`channels_last`: the channels of a token are side by side in memory."""

    def inputs(self, tokens):
        return dict(x=rows(tokens, 40))

    def states(self, count):
        return torch.randn(count, 40, 3).bfloat16()

    def run(self, x, lengths, states):
        states, weight = states.clone(), torch.linspace(-1, 1, 160).view(40, 4).bfloat16()
        x = x["x"].t() if self.options["channels_last"] else x["x"].t().contiguous()
        out = self.function(x, weight, query_start_loc=starts(*lengths), conv_states=states, has_initial_state=torch.ones(len(lengths), dtype=torch.bool))
        return out.t(), states


def rule(tokens):
    return dict(q=rows(tokens, H, K), k=rows(tokens, H, K), v=rows(tokens, HV, V), g=0.9 + 0.1 * torch.rand(tokens, HV), beta=torch.rand(tokens, HV))


def rule2(tokens):
    return dict(rule(tokens), g=-torch.rand(tokens, HV, K), beta=torch.rand(tokens, HV, K).bfloat16(), w=rows(tokens, HV, V))


def product(tokens):
    more = rule(2 * tokens)
    return dict(rule(tokens), k=more["k"], v=more["v"], beta=more["beta"])


def kimi(tokens):
    return dict(q=rows(tokens, H, K), k=rows(tokens, H, K), v=rows(tokens, HV, V), g=-rows(tokens, HV, K).abs(), beta=torch.rand(tokens, HV).bfloat16())


# And the tokens at whose multiples a cut changes no bit.
OPS = {
    "chunk_gated_delta_rule": Delta(gdn_prefill.chunk_gated_delta_rule, 64, rule),
    "chunk_gated_delta_rule2": Delta(flashinfer.chunk_gated_delta_rule2, 16, rule2),
    "chunk_gated_delta_product": Delta(flashinfer.chunk_gated_delta_product, 32, product, updates=2, num_householder=2),
    "kda_recurrence": Kimi(kda.kda_recurrence, 16, kimi, use_qk_l2norm=True),
    "ssd_chunk_scan": Scan(mamba.ssd_chunk_scan, 64, None, dt_softplus=True),
    "causal_conv1d_fn": Convolution(mamba.causal_conv1d_fn, 1, None, channels_last=False),
    "causal_conv1d_fn, channels last": Convolution(mamba.causal_conv1d_fn, 1, None, channels_last=True),
}


def made(op):
    torch.manual_seed(0)
    return op.inputs(sum(LENGTHS)), op.states(len(LENGTHS))


@pytest.mark.parametrize("name", OPS)
def test_threads_change_no_bit(name):
    op = OPS[name]
    x, states = made(op)
    results = []
    for threads in (1, 2, 3, 8):
        with flashinfer.num_threads(threads):
            results.append(op.run(x, LENGTHS, states))
    for out, final in results[1:]:
        assert out.equal(results[0][0]) and final.equal(results[0][1])


@pytest.mark.parametrize("name", OPS)
def test_other_sequences_change_no_bit(name):
    op = OPS[name]
    x, states = made(op)
    out, final = op.run(x, LENGTHS, states)
    begin = 0
    for i, n in enumerate(LENGTHS):
        alone, state = op.run(op.part(x, begin, begin + n), (n,), states[i:i + 1])
        assert alone.equal(out[begin:begin + n]) and state[0].equal(final[i]), i
        begin += n


@pytest.mark.parametrize("name", OPS)
def test_cuts_at_borders_of_chunks_change_no_bit(name):
    op, tokens = OPS[name], 200
    torch.manual_seed(0)
    x, states = op.inputs(tokens), op.states(1)
    out, final = op.run(x, (tokens,), states)

    def in_parts(*cuts):
        state, parts = states, []
        for begin, end in zip((0, *cuts), (*cuts, tokens)):
            y, state = op.run(op.part(x, begin, end), (end - begin,), state)
            parts.append(y)
        return torch.cat(parts), state

    for cuts in ((op.chunk,), (128,), (64, 128, 192)):
        y, state = in_parts(*cuts)
        assert y.equal(out) and state.equal(final), cuts
    y, state = in_parts(7, 50, 149)  # elsewhere: within rounding
    torch.testing.assert_close(y.float(), out.float(), rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(state.float(), final.float(), rtol=2e-2, atol=2e-2)
