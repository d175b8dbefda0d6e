# SPDX-License-Identifier: Apache-2.0
"""`mpirun -np 4 pytest tests/comm/`: every rank runs these tests, with mpi4py or without."""
import pathlib
import time

import pytest
import torch

import flashinfer.comm as comm
from flashinfer.comm import mixed_comm, trtllm_mnnvl_ar

HIDDEN = 64


@pytest.fixture(scope="module")
def backend():
    try:
        return comm.comm_backend.MPIBackend()
    except ImportError:
        pytest.skip("needs mpirun or mpi4py")


@pytest.fixture
def workspace(backend):
    w = comm.create_allreduce_fusion_workspace(world_size=backend.Get_size(), rank=backend.Get_rank(), max_token_num=64, hidden_dim=HIDDEN,
                                               dtype=torch.bfloat16, comm_backend=backend)
    yield w
    w.destroy()


def inputs(rank, tokens):
    return torch.randint(-8, 9, (tokens, HIDDEN), generator=torch.Generator().manual_seed(rank)).bfloat16()


def summed(size, tokens):
    return sum(inputs(r, tokens).float() for r in range(size)).bfloat16()  # of small integers: exact


def test_backend(backend):
    rank, size = backend.Get_rank(), backend.Get_size()
    assert backend.allgather([rank]) == tuple([r] for r in range(size)) and backend.bcast(rank, size - 1) == size - 1
    backend.barrier()
    part = backend.Split(rank % 2, -rank)
    assert part.allgather(rank) == tuple(r for r in reversed(range(size)) if r % 2 == rank % 2)


def test_mpi_barrier(backend, tmp_path):
    """No rank returns before all ranks have entered the barrier."""
    rank, size = backend.Get_rank(), backend.Get_size()
    folder = pathlib.Path(backend.bcast(str(tmp_path), 0))
    time.sleep(0.1 * (rank == size - 1))
    (folder / str(rank)).touch()
    trtllm_mnnvl_ar.mpi_barrier()
    assert len(list(folder.iterdir())) == size
    trtllm_mnnvl_ar.mpi_barrier()  # the folder stays until all have looked


@pytest.mark.parametrize("tokens", [1, 64])
@pytest.mark.parametrize("oneshot", [True, False, None])
def test_allreduce(backend, workspace, tokens, oneshot):
    if oneshot is False and tokens <= backend.Get_size():
        pytest.skip("two shots need more tokens than ranks")
    assert torch.equal(comm.allreduce_fusion(inputs(backend.Get_rank(), tokens), workspace, 0, use_oneshot=oneshot), summed(backend.Get_size(), tokens))


def test_norm(backend, workspace):
    residual, gamma = inputs(99, 8), torch.ones(HIDDEN, dtype=torch.bfloat16)
    h = torch.empty_like(residual)
    n = comm.allreduce_fusion(inputs(backend.Get_rank(), 8), workspace, 1, residual_in=residual, rms_gamma=gamma, residual_out=h)
    want = (summed(backend.Get_size(), 8).float() + residual.float()).bfloat16()
    assert torch.equal(h, want)
    torch.testing.assert_close(n.float(), want.float() * torch.rsqrt(want.float().square().mean(-1, keepdim=True) + 1e-6), rtol=1 / 64, atol=0)


def blocks(rank, size):
    """Of [size * 2, HIDDEN], what each rank passes."""
    return inputs(rank, 2 * size)


def test_reduce_scatter(backend, workspace):
    rank, size = backend.Get_rank(), backend.Get_size()
    got = comm.reduce_scatter(blocks(rank, size).view(size, -1), workspace)
    assert torch.equal(got.flatten(), sum(blocks(r, size).float() for r in range(size)).bfloat16().view(size, -1)[rank])


def test_all_gather(backend, workspace):
    rank, size = backend.Get_rank(), backend.Get_size()
    got = comm.all_gather(inputs(rank, 5)[:, :rank + 1].contiguous(), workspace, list(range(1, size + 1)))
    assert torch.equal(got, torch.cat([inputs(r, 5)[:, :r + 1] for r in range(size)], 1))


def test_mixed(backend):
    rank, size = backend.Get_rank(), backend.Get_size()
    handler = comm.MixedCommHandler(rank, size, rank, size, 0, 1, None, size, 1, 1, torch.bfloat16, torch.device("cpu"), comm_backend=backend)
    gathered = comm.run_mixed_comm(mixed_comm.MixedCommOp.ALLGATHER, handler, inputs(rank, 3))
    assert torch.equal(gathered, torch.cat([inputs(r, 3) for r in range(size)]))
    own = comm.run_mixed_comm(mixed_comm.MixedCommOp.REDUCESCATTER, handler, blocks(rank, size))
    assert torch.equal(own, sum(blocks(r, size).float() for r in range(size)).bfloat16()[2 * rank:2 * rank + 2])
    handler.shutdown()


def test_ulysses(backend):
    rank, size = backend.Get_rank(), backend.Get_size()
    whole = torch.randn(2, 3 * size, 2 * size, 8, generator=torch.Generator().manual_seed(5)).bfloat16()
    part, mine = whole[:, 3 * rank:3 * rank + 3].contiguous(), whole[:, :, 2 * rank:2 * rank + 2].contiguous()
    with comm.UlyssesCommunicator(backend, max_elems=part.numel(), dtype=torch.bfloat16) as ulysses:
        assert torch.equal(ulysses.scatter_heads(part), mine) and torch.equal(ulysses.gather_heads(mine), part)


def test_quantized_all_reduce(backend):
    rank, size = backend.Get_rank(), backend.Get_size()
    got = comm.quantized_all_reduce(inputs(rank, 8), backend, scale_group=64)
    torch.testing.assert_close(got.float(), summed(size, 8).float(), rtol=0.1, atol=1.0)
    assert all(bits == got.view(torch.int16).tolist() for bits in backend.allgather(got.view(torch.int16).tolist()))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_experts(backend):
    """Each expert multiplies by its rank + 1; each token has an expert of each rank."""
    rank, size = backend.Get_rank(), backend.Get_size()
    mapping = comm.Mapping(world_size=size, rank=rank, tp_size=size, moe_ep_size=size)
    a2a = comm.MoeAlltoAll(mapping, 6, size, size, hidden_size=HIDDEN, mnnvl_config=comm.mnnvl.MnnvlConfig(backend))
    for step in range(3):
        x, ids = inputs(rank, 4 + step), torch.arange(size).repeat(4 + step, 1).int()
        got = a2a.dispatch(ids, [x, ids], 6)
        for r in range(size):
            assert torch.equal(got[0][r, :4 + step], inputs(r, 4 + step))
        assert torch.equal(a2a.combine(got[0] * (rank + 1), 6), x * (size * (size + 1) // 2))


def test_contexts(backend):
    rank, size = backend.Get_rank(), backend.Get_size()
    of = lambda r, *shape: torch.randn(shape, generator=torch.Generator().manual_seed(r))
    o, stats = of(rank, 5, size, 16).bfloat16(), of(rank, 5, size, 2)
    workspace = comm.decode_cp_a2a_allocate_mnnvl_workspace(comm.Mapping(world_size=size, rank=rank, cp_size=size),
                                                            mnnvl_config=comm.mnnvl.MnnvlConfig(backend))
    got_o, got_stats = comm.decode_cp_a2a_alltoall(o, stats, workspace, rank, size)
    for r in range(size):
        assert torch.equal(got_o[:, r], of(r, 5, size, 16).bfloat16()[:, rank]) and torch.equal(got_stats[:, r], of(r, 5, size, 2)[:, rank])
    workspace = comm.decode_cp_a2a_lse_reduce_create_workspace(5, 1, size, 16, torch.bfloat16, backend)
    merged = comm.decode_cp_a2a_lse_reduce(o, stats[..., 0].contiguous(), workspace, rank, size)
    weights = torch.softmax(torch.stack([of(r, 5, size, 2)[:, rank, 0] for r in range(size)]) * torch.log(torch.tensor(2.0)), 0)
    want = sum(w[:, None] * of(r, 5, size, 16).bfloat16()[:, rank].float() for r, w in enumerate(weights))
    torch.testing.assert_close(merged.float(), want, rtol=1e-2, atol=1e-2)


def test_an_argument_that_is_wrong_on_one_rank(backend, workspace):
    last = backend.Get_size() - 1
    wrong = backend.Get_rank() == last
    with pytest.raises(ValueError if wrong or last == 0 else RuntimeError, match="Workspace validation failed"):
        comm.allreduce_fusion(inputs(0, 65 if wrong else 8), workspace, 0)
    assert torch.equal(comm.allreduce_fusion(inputs(backend.Get_rank(), 8), workspace, 0), summed(last + 1, 8))
