# SPDX-License-Identifier: Apache-2.0
"""flashinfer.moe_ep: values against FlashInfer's own package, layers over four processes against all experts in double precision."""
import subprocess
import sys
import uuid

import pytest
import rank_checks
import torch
from conftest import ROOT, environment

import flashinfer.comm as comm
import flashinfer.fused_moe as fm
import flashinfer.moe_ep as m

RANKS, EXPERTS, TOP_K, HIDDEN, INTER, MOST = 4, 8, 3, 128, 128, 9
LOCAL = EXPERTS // RANKS
SIZES = m.FleetParams(EXPERTS, MOST, HIDDEN, layout=m.EpLayout.RANK_MAJOR)


def weights():
    g = torch.Generator().manual_seed(99)
    return ((torch.randn(EXPERTS, 2 * INTER, HIDDEN, generator=g) / HIDDEN ** 0.5).bfloat16(),
            (torch.randn(EXPERTS, HIDDEN, INTER, generator=g) / INTER ** 0.5).bfloat16())


def inputs(rank):
    g = torch.Generator().manual_seed(rank)
    tokens = MOST - 3 * rank  # none on the last rank
    ids = torch.stack([torch.randperm(EXPERTS, generator=g)[:TOP_K] for _ in range(tokens)]) if tokens else torch.zeros(0, TOP_K, dtype=torch.int64)
    return m.MoEEpTensors(torch.randn(tokens, HIDDEN, generator=g).bfloat16(), ids, torch.rand(tokens, TOP_K, generator=g))


def expected(t):
    """All experts, in double precision."""
    w13, w2 = (w.double() for w in weights())
    out = torch.zeros(t.hidden_states.shape, dtype=torch.float64)
    for i, x in enumerate(t.hidden_states.double()):
        for e, s in zip(t.topk_ids[i], t.topk_weights[i].double()):
            linear, gate = (w13[e] @ x).chunk(2)
            out[i] += s * (w2[e] @ (torch.nn.functional.silu(gate) * linear))
    return out


def made(backend, rank, kernel=None, **more):
    w13, w2 = (w[rank * LOCAL:(rank + 1) * LOCAL] for w in weights())
    return m.MoEEpLayer(m.BootstrapConfig(RANKS, rank), SIZES, m.MoEWeightPack(w13, w2),
                        backend=m.SplitConfig(comm=m.NVLinkOneSidedConfig(comm_backend=backend, **more), kernel=kernel or m.IdentityConfig()))


def fused(rank, backend=fm.CutlassBf16Config):
    return m.FusedMoeKernelConfig(fm.MoEConfig(fm.RoutingConfig(EXPERTS, TOP_K), fm.QuantConfig(), fm.ExpertConfig(INTER, rank * LOCAL, LOCAL), backend=(backend(),)))


# ---- what each rank checks ----
def check_experts_of_all_ranks(backend, rank):
    for kind in (fm.CutlassBf16Config, fm.TrtllmBf16Config):
        layer, t = made(backend, rank, fused(rank, kind)), inputs(rank)
        want = expected(t)
        for _ in range(2):
            got = layer(t)
            assert got.dtype == torch.bfloat16
            torch.testing.assert_close(got.double(), want, rtol=2e-2, atol=2e-2)
        t.output = torch.empty_like(got)
        assert layer(t) is t.output and torch.equal(t.output, got)
        layer.destroy()
        with pytest.raises(m.MoEEpConfigError, match="has been destroyed"):
            layer(t)


def check_identity(backend, rank):
    """Each rank that has an expert of a token returns the token."""
    layer, t = made(backend, rank), inputs(rank)
    ranks = torch.tensor([len(set((ids // LOCAL).tolist())) for ids in t.topk_ids]).view(-1, 1)
    torch.testing.assert_close(layer(t), (t.hidden_states.float() * ranks).bfloat16())


def check_communication(backend, rank):
    """The rows and routing that arrive, the buffer of the combine, a step of fewer tokens."""
    params = m.MoEEpCommParams(EXPERTS, TOP_K, MOST, HIDDEN, invalid_expert_id=77)
    c = m.create_communication(m.BootstrapConfig(RANKS, rank), params, m.NVLinkOneSidedConfig(comm_backend=backend, eplb_stats_num_experts=2))
    t = inputs(rank)
    got = c.dispatch(t.hidden_states, t.topk_ids, t.topk_weights, hidden_states_scale=t.topk_weights[:, :1], eplb_local_stats=torch.tensor([rank, 5], dtype=torch.int32))
    assert got.eplb_gathered_stats.tolist() == [[r, 5] for r in range(RANKS)] and got.tokens_per_rank == MOST
    for source in range(RANKS):
        s = inputs(source)
        here = ((s.topk_ids // LOCAL) == rank).any(1)
        rows = slice(source * MOST, source * MOST + int(here.sum()))
        assert torch.equal(got.hidden_states[rows], s.hidden_states[here]) and torch.equal(got.topk_ids[rows], s.topk_ids[here].int())
        assert torch.equal(got.topk_weights[rows], s.topk_weights[here]) and torch.equal(got.hidden_states_scale[rows], s.topk_weights[here, :1])
        assert (got.topk_ids[rows.stop:(source + 1) * MOST] == 77).all()
    buffer = c.get_combine_input_buffer(torch.bfloat16)
    assert buffer.shape == (RANKS * MOST, HIDDEN)
    buffer.copy_(got.hidden_states)
    first = c.combine(buffer)
    got = c.dispatch(t.hidden_states, t.topk_ids, t.topk_weights)
    assert got.eplb_gathered_stats is None and torch.equal(c.combine(got.hidden_states.clone().view(RANKS, MOST, HIDDEN)), first)
    for message, change in ((r"max_tokens_per_rank is 10", dict(max_tokens_per_rank=MOST + 1)), ("active_rank_mask needs", dict(active_rank_mask=torch.zeros(1)))):
        with pytest.raises(ValueError, match=message):
            c.dispatch(t.hidden_states, t.topk_ids, **change)
    with pytest.raises(ValueError, match=r"topk_ids has shape"):
        c.dispatch(t.hidden_states, t.topk_ids[:, :1])


reports, test_between_processes = rank_checks.tests(globals(), "fork", RANKS)


# ---- one process ----
def test_values_are_flashinfers():
    lines = []
    for who in ("ours", "theirs"):
        done = subprocess.run([sys.executable, "-W", "ignore", str(ROOT / "tests/python/oracle/moe_ep.py")], env=environment(who), cwd="/", capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        lines.append(done.stdout.splitlines())
    assert len(lines[1]) > 75 and [(a, b) for a, b in zip(*lines) if a != b] == [] and len(lines[0]) == len(lines[1])


class Doubling(m.Handle):
    """A transport of one rank: combine returns twice what it is given."""

    def dispatch(self, params):
        return m.DispatchOutput(params.x[0], lambda: len(params.x[0]))

    def combine(self, params):
        return m.CombineOutput(params.x[0] * 2)

    def complete(self):
        pass


class OneRank(m.Fleet):
    def __init__(self, bootstrap, params, algo_knobs=()):
        self.knobs = algo_knobs

    def create_handle(self, params, algo_knobs=()):
        return Doubling()

    def update_topology(self, bootstrap, algo_knobs=()):
        pass

    def destroy(self):
        self.knobs = None


def test_transports_of_the_user():
    name = uuid.uuid4().hex
    m.register_fleet(name)(OneRank)
    x = torch.randn(5, HIDDEN)
    t = m.MoEEpTensors(x, torch.zeros(5, 1, dtype=torch.int64), torch.ones(5, 1))
    one, all_weights = m.BootstrapConfig(1, 0), m.dummy_moe_weights(num_local_experts=EXPERTS, hidden=HIDDEN)
    layer = m.MoEEpLayer(one, SIZES, all_weights, fleet_knobs=[m.FleetAlgoKnobNumChannelsPerRank(3)], backend=name)
    assert torch.equal(layer(t), 2 * x) and isinstance(layer, torch.nn.Module)
    # Of a group of torch.distributed that is not initialised, FlashInfer's tests match these words.
    from flashinfer.moe_ep.core.bootstrap_utils import validate_bootstrap_world_size

    grouped = m.BootstrapConfig(1, 0, process_group=object())
    for call in (lambda: m.MoEEpLayer(grouped, SIZES, all_weights, backend=name), lambda: validate_bootstrap_world_size(grouped)):
        with pytest.raises(m.MoEEpConfigError, match="process_group is set but torch.distributed is not initialized"):
            call()
    with pytest.raises(m.MoEEpNotBuiltError, match="NVLinkOneSidedConfig"):
        m.MoEEpLayer(one, SIZES, all_weights)(t)
    for error, message, change in ((NotImplementedError, "MegaConfig", dict(backend=m.MegaConfig(None))),
                                   (m.MoEEpConfigError, "fleet_knobs are of Fleet", dict(backend="nvlink_one_sided", fleet_knobs=[m.FleetAlgoKnobRdmaBufferSize(1)])),
                                   (m.MoEEpConfigError, "moe_config has local_num_experts 2", dict(backend=m.SplitConfig(comm=name, kernel=fused(0)))),
                                   (NotImplementedError, "takes quantised tokens", dict(backend=m.SplitConfig(comm=name, kernel=m.FusedMoeKernelConfig(fm.MoEConfig(
                                       fm.RoutingConfig(EXPERTS, 1), fm.QuantConfig(fm.QuantFormat.NVFP4, fm.QuantFormat.NVFP4), fm.ExpertConfig(INTER), backend=(fm.TrtllmFp4Config(),))))))):
        with pytest.raises(error, match=message):
            m.MoEEpLayer(one, SIZES, all_weights, **change)
    assert comm.MoeAlltoAll is not None and m.available_communication_backends() == ["nvlink_one_sided"]
