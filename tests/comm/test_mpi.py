# SPDX-License-Identifier: Apache-2.0
"""`mpirun -np 4 pytest tests/comm/`: every rank runs these tests, with mpi4py or without."""
import pytest
import torch

import flashinfer.comm as comm

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


def test_an_argument_that_is_wrong_on_one_rank(backend, workspace):
    last = backend.Get_size() - 1
    wrong = backend.Get_rank() == last
    with pytest.raises(ValueError if wrong or last == 0 else RuntimeError, match="Workspace validation failed"):
        comm.allreduce_fusion(inputs(0, 65 if wrong else 8), workspace, 0)
    assert torch.equal(comm.allreduce_fusion(inputs(backend.Get_rank(), 8), workspace, 0), summed(last + 1, 8))
