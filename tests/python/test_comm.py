# SPDX-License-Identifier: Apache-2.0
"""flashinfer.comm between processes: back ends, workspaces, allreduce_fusion."""
import inspect
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings

import pytest
import rank_checks
import torch

import flashinfer
import flashinfer.comm as comm

RANKS = 2
TOKENS, HIDDEN = 5, 64


def inputs(rank, dtype=torch.bfloat16):
    return torch.randn(TOKENS, HIDDEN, generator=torch.Generator().manual_seed(rank)).to(dtype)


def summed(dtype=torch.bfloat16):
    total = inputs(0, dtype).float()
    for r in range(1, RANKS):
        total = (total + inputs(r, dtype).float()).to(dtype).float()
    return total.to(dtype)


# ---- what each rank checks; `backend` is a ShmBackend of all ranks ----
def check_backend(backend, rank):
    assert (backend.Get_rank(), backend.Get_size()) == (rank, RANKS)
    assert backend.allgather({"rank": rank}) == tuple({"rank": r} for r in range(RANKS))
    assert backend.bcast([rank], 1) == [1]
    backend.barrier()
    part = backend.Split(0, -rank)
    assert part.allgather(rank) == tuple(reversed(range(RANKS)))
    assert backend.Split(rank, 0).Get_size() == 1


def check_allreduce(backend, rank):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        workspace = comm.create_allreduce_fusion_workspace(world_size=RANKS, rank=rank, max_token_num=TOKENS, hidden_dim=HIDDEN, dtype=dtype,
                                                           comm_backend=backend)
        assert isinstance(workspace, comm.TRTLLMAllReduceFusionWorkspace) and isinstance(workspace, comm.AllReduceFusionWorkspace)
        assert (workspace.backend, workspace.world_size, workspace.rank) == ("trtllm", RANKS, rank)
        x = inputs(rank, dtype)
        assert torch.equal(comm.allreduce_fusion(x, workspace, 0), summed(dtype))
        out = torch.empty_like(x)
        result = comm.allreduce_fusion(input=x, workspace=workspace, pattern=comm.AllReduceFusionPattern.kAllReduce, output=out, use_oneshot=True)
        assert result is out and torch.equal(out, summed(dtype))
        workspace.destroy()
        workspace.destroy()


def check_fused(backend, rank):
    size = comm.MNNVLAllReduceFusionWorkspace.get_required_buffer_size_bytes(RANKS, TOKENS, HIDDEN, torch.bfloat16)
    assert size == RANKS * TOKENS * HIDDEN * 2
    with_mnnvl = comm.create_allreduce_fusion_workspace("mnnvl", RANKS, rank, TOKENS, HIDDEN, torch.bfloat16, comm_backend=backend)
    residual, gamma = inputs(9), inputs(8)[0].contiguous()
    h = torch.empty_like(residual)
    n = comm.allreduce_fusion(inputs(rank), with_mnnvl, 1, residual_in=residual, rms_gamma=gamma, residual_out=h, rms_eps=1e-5)
    want = (summed().float() + residual.float()).bfloat16()
    assert torch.equal(h, want)
    scale = torch.rsqrt(want.double().square().mean(-1, keepdim=True) + 1e-5)
    torch.testing.assert_close(n.double(), want.double() * scale * gamma.double(), rtol=1 / 128, atol=0)
    codes = torch.empty(TOKENS, HIDDEN, dtype=torch.float8_e4m3fn)
    out = torch.empty_like(n)
    args = dict(residual_in=residual, rms_gamma=gamma, rms_eps=1e-5, scale_factor=0.5)
    assert comm.allreduce_fusion(inputs(rank), with_mnnvl, 4, norm_out=out, quant_out=codes, **args) is out
    assert torch.equal(out, n)
    assert torch.equal(codes.float(), (n.float() / 0.5).clamp(-448, 448).to(torch.float8_e4m3fn).float())
    fresh = comm.allreduce_fusion(inputs(rank), with_mnnvl, 2, **args)
    assert torch.equal(fresh.view(torch.uint8), codes.view(torch.uint8))
    with_mnnvl.destroy()


def check_numbers_that_are_special(backend, rank):
    """Zeros with a sign, infinities and NaN: the same bytes on all ranks, in one shot and two, and no zero with a sign."""
    numbers = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1.0, -1.0, 1e-40])
    pairs = torch.cartesian_prod(numbers, numbers)  # of the two ranks
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        workspace = comm.TRTLLMAllReduceFusionWorkspace(RANKS, rank, TOKENS, HIDDEN, dtype, backend)
        both = pairs.to(dtype).T[:, None].expand(2, TOKENS, HIDDEN)
        one = comm.allreduce_fusion(both[rank].contiguous(), workspace, 0, use_oneshot=True)
        want = (both[0].float() + both[1].float()).to(dtype)
        torch.testing.assert_close(one, want, rtol=0, atol=0, equal_nan=True)
        assert not (torch.signbit(one) & (one == 0)).any()
        for shots in (True, False):
            for pattern in (0, 1):
                more = dict(residual_in=both[0].contiguous(), rms_gamma=torch.ones(HIDDEN, dtype=dtype)) if pattern else {}
                got = comm.allreduce_fusion(both[rank].contiguous(), workspace, pattern, use_oneshot=shots, **more)
                words = got.view(torch.int32 if dtype == torch.float32 else torch.int16).tolist()
                assert backend.allgather(words) == (words,) * RANKS
                assert pattern or torch.equal(got.view(torch.uint8), one.view(torch.uint8))
        workspace.destroy()


def check_two_workspaces_in_turn(backend, rank):
    """A thousand calls, with none to all of the tokens."""
    made = [comm.TRTLLMAllReduceFusionWorkspace(RANKS, rank, 40, HIDDEN, torch.float32, backend) for _ in range(2)]
    for i in range(1000):
        x = torch.arange(i * 7 % 41 * HIDDEN, dtype=torch.float32).view(-1, HIDDEN)
        assert torch.equal(comm.allreduce_fusion(x * (rank + 1) + i, made[i % 3 % 2], 0), 3 * x + 2 * i)
    for workspace in made:
        workspace.destroy()


def check_fused_calls_are_their_parts(backend, rank):
    """Sum, residual, norm and codes in one call have the bytes of the library's ops one after another."""
    for dtype in (torch.float16, torch.bfloat16):
        workspace = comm.TRTLLMAllReduceFusionWorkspace(RANKS, rank, TOKENS, HIDDEN, dtype, backend)
        x, residual, gamma = inputs(rank, dtype), inputs(9, dtype), inputs(8, dtype)[0].contiguous()
        h = torch.empty_like(residual)
        n = comm.allreduce_fusion(x, workspace, 1, residual_in=residual, residual_out=h, rms_gamma=gamma, rms_eps=1e-5)
        assert torch.equal(h, comm.allreduce_fusion(x, workspace, 0) + residual)
        assert torch.equal(n, flashinfer.rmsnorm(h, gamma, 1e-5))
        codes, scales = torch.empty(TOKENS, HIDDEN // 2, dtype=torch.uint8), torch.empty(128 * 4, dtype=torch.uint8)
        comm.allreduce_fusion(x, workspace, 3, residual_in=residual, rms_gamma=gamma, rms_eps=1e-5, scale_factor=3.0, quant_out=codes, scale_out=scales)
        want = flashinfer.fp4_quantize(n, torch.tensor([3.0]), 16)
        assert torch.equal(codes, want[0].view(torch.uint8)) and torch.equal(scales, want[1].view(torch.uint8).flatten())
        workspace.destroy()


def check_errors(backend, rank):
    # The rank that is wrong and the ones that are right all raise.
    with pytest.raises(ValueError, match="rank 1: world_size is 2 and rank 0, but the communicator says 2 and 1"):
        comm.create_allreduce_fusion_workspace("trtllm", RANKS, 0, TOKENS, HIDDEN, torch.float16, comm_backend=backend)
    with pytest.raises(ValueError, match="max_token_num is 0"):
        comm.create_allreduce_fusion_workspace("trtllm", RANKS, rank, 0, HIDDEN, torch.float16, comm_backend=backend)
    with pytest.raises(RuntimeError, match="rank 1: Unknown backend: nvls"):
        comm.create_allreduce_fusion_workspace("nvls" if rank == 1 else "auto", RANKS, rank, TOKENS, HIDDEN, torch.float16, comm_backend=backend)
    workspace = comm.TRTLLMAllReduceFusionWorkspace(RANKS, rank, TOKENS, HIDDEN, torch.bfloat16, backend)
    with pytest.raises(ValueError, match="Workspace validation failed"):
        comm.allreduce_fusion(inputs(rank).repeat(2, 1), workspace, 0)
    with pytest.raises(ValueError, match="contiguous"):
        comm.allreduce_fusion(inputs(rank).t(), workspace, 0)
    # An argument that is wrong on one rank is an error of all at once, and the next call works.
    for wrong, kind in ((inputs(rank).t(), ValueError), ([1, 2], TypeError)):
        with pytest.raises(kind if rank == 1 else RuntimeError, match=None if rank == 1 else f"rank 1 raised {kind.__name__}"):
            comm.allreduce_fusion(wrong if rank == 1 else inputs(rank), workspace, 0)
        assert torch.equal(comm.allreduce_fusion(inputs(rank), workspace, 0), summed())
    with pytest.raises(RuntimeError, match="calls allreduce_fusion"):
        comm.allreduce_fusion(inputs(rank)[:rank + 1], workspace, 0)
    workspace.destroy()


def check_checkpoints(backend, rank):
    made = (comm.TRTLLMAllReduceFusionWorkspace(RANKS, rank, TOKENS, HIDDEN, torch.bfloat16, backend),
            comm.MNNVLAllReduceFusionWorkspace(comm.Mapping(world_size=RANKS, rank=rank, tp_size=RANKS), TOKENS, HIDDEN, torch.bfloat16, comm_backend=backend))
    for workspace in made:
        assert workspace.is_buffer_size_sufficient(RANKS, TOKENS, HIDDEN, torch.bfloat16) and not workspace.is_buffer_size_sufficient(1, 1, HIDDEN, torch.bfloat16)
        assert torch.equal(comm.allreduce_fusion(inputs(rank), workspace, 0), summed())
        with pytest.raises(RuntimeError, match="there was no checkpoint_prepare"):
            workspace.checkpoint_restore(backend)
        workspace.checkpoint_prepare()
        workspace.checkpoint_prepare()
        with pytest.raises(RuntimeError, match="workspace has no group"):
            comm.allreduce_fusion(inputs(rank), workspace, 0)
        with pytest.raises(ValueError, match=f"rank 0: world_size is {RANKS} and rank 1, but the communicator says {RANKS} and 0"):
            workspace.checkpoint_restore(backend.Split(0, -rank))  # the ranks in another order
        workspace.checkpoint_restore(backend.Split(0, rank))
        assert torch.equal(comm.allreduce_fusion(inputs(rank), workspace, 0), summed())
        workspace.destroy()


def check_torch_distributed_splits(backend, rank):
    store = backend.bcast(tempfile.mkdtemp() if rank == 0 else None, 0)
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}/store", rank=rank, world_size=RANKS)
    try:
        every = comm.comm_backend.TorchDistBackend()
        part = every.Split(0, -rank)
        assert (part.Get_rank(), part.Get_size()) == (RANKS - 1 - rank, RANKS)
        assert part.allgather(rank) == tuple(reversed(range(RANKS))) and part.bcast(rank, 0) == RANKS - 1
        alone = every.Split(rank, 0)
        assert alone.allgather(rank) == (rank,) and alone.bcast(rank, 0) == rank
        if rank == 0:  # the others need not take part
            assert alone.Split(3, 0).allgather("a") == ("a",)
        again = every.Split(0, rank)  # though rank 0 has made one more
        assert again.allgather(rank) == tuple(range(RANKS)) and again.Split(0, -rank).Get_rank() == RANKS - 1 - rank
        every.barrier()
    finally:
        torch.distributed.destroy_process_group()


reports, test_between_processes = rank_checks.tests(globals(), "spawn", RANKS)


# ---- one process ----
def test_one_rank_needs_no_communicator():
    workspace = comm.create_allreduce_fusion_workspace(world_size=1, rank=0, max_token_num=TOKENS, hidden_dim=HIDDEN, dtype=torch.bfloat16)
    x = inputs(0)
    assert torch.equal(comm.allreduce_fusion(x, workspace, 0), x)
    workspace.destroy()
    with pytest.raises(RuntimeError, match="workspace has no group"):
        comm.allreduce_fusion(x, workspace, 0)


def test_a_forgotten_workspace_warns():
    workspace = comm.create_allreduce_fusion_workspace(world_size=1, rank=0, max_token_num=1, hidden_dim=16, dtype=torch.float16)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del workspace
    assert [w.category for w in caught] == [ResourceWarning]


def test_workspace_arguments():
    create = comm.create_allreduce_fusion_workspace
    with pytest.raises(RuntimeError, match="Unknown backend: nvls"):
        create("nvls")
    with pytest.raises(ValueError, match="No suitable backend found. "):
        create("mnnvl-cutedsl")
    with pytest.raises(ValueError, match="Only backend='mnnvl-cutedsl' accepts: top_k, config"):
        create("trtllm", top_k=2, config=1)
    with pytest.raises(ValueError, match="max_token_num, hidden_dim must be given"):
        create("trtllm", 1, 0, dtype=torch.float16)
    with pytest.raises(TypeError, match="workspace"):
        flashinfer.allreduce_fusion(inputs(0), None, 0)


def test_a_workspace_is_of_a_device():
    def make(device):
        return comm.create_allreduce_fusion_workspace(world_size=1, rank=0, max_token_num=4, hidden_dim=8, dtype=torch.float32, device=device)

    with pytest.raises(ValueError, match="device is 'tpu', but must be 'cpu', 'cuda:N' or 'emu'"):
        make("tpu")
    if not torch.cuda.is_available():
        with pytest.raises((NotImplementedError, ValueError, RuntimeError), match="cuda"):
            make("cuda:0")
    workspace = make("emu")
    with pytest.raises(ValueError, match="input is on cpu, but the workspace was made for emu"):
        comm.allreduce_fusion(torch.zeros(4, 8), workspace, comm.AllReduceFusionPattern.kAllReduce)
    workspace.destroy()


def test_sizes():
    assert comm.compute_fp4_swizzled_layout_sf_size(129, 5) == 256 * 8
    size = comm.MNNVLAllReduceFusionWorkspace.get_required_buffer_size_bytes
    assert size(4, 10, 1024, torch.bfloat16) == 10 * 1024 * 4 * 2
    assert size(4, 1001, 1024, torch.bfloat16) == 2 * 251 * 4 * 1024 * 2
    workspace = comm.create_allreduce_fusion_workspace(world_size=1, rank=0, max_token_num=8, hidden_dim=16, dtype=torch.float16)
    assert workspace.is_buffer_size_sufficient(1, 4, 32, torch.float16)
    assert not workspace.is_buffer_size_sufficient(1, 9, 16, torch.float16)
    assert not workspace.is_buffer_size_sufficient(2, 1, 16, torch.float16)
    workspace.destroy()


def test_mapping():
    m = comm.Mapping(world_size=16, rank=13, gpus_per_node=8, tp_size=4, pp_size=2, cp_size=2, moe_ep_size=2)
    assert (m.tp_rank, m.cp_rank, m.pp_rank, m.node_rank, m.local_rank) == (1, 1, 1, 1, 5)
    assert (m.moe_tp_size, m.moe_ep_rank, m.moe_tp_rank) == (2, 1, 0)
    assert (m.tp_group, m.cp_group, m.pp_group) == ([12, 13, 14, 15], [9, 13], [5, 13])
    assert m.pp_layers(5) == [3, 4] and comm.Mapping(world_size=2, pp_size=2).pp_layers(5) == [0, 1, 2]
    assert m.ep_experts(7) == [3, 4, 5]
    assert (m.prev_pp_rank(), m.next_pp_rank(), m.is_second_last_pp_rank(), m.get_node_rank(17), m.get_local_rank(17)) == (5, 5, False, 2, 1)
    c = comm.Mapping(world_size=8, rank=5, tp_size=4, pp_size=2, moe_cluster_size=2, moe_tp_size=2, moe_ep_size=1)
    assert (c.moe_cluster_group, c.moe_ep_group, c.moe_cluster_rank) == ([4, 5], [5], 1)
    assert comm.Mapping.from_dict(m.to_dict()) == m
    assert m.has_tp() and m.has_pp() and m.has_cp() and m.has_moe_ep() and m.has_moe_tp() and not m.has_moe_cluster() and m.is_multi_node()
    assert m.is_last_pp_rank() and not m.is_first_pp_rank() and m.moe_tp_group == [13, 15]
    with pytest.raises(ValueError, match="world_size must equal"):
        comm.Mapping(world_size=3, tp_size=2)
    with pytest.raises(ValueError, match="rank is 2"):
        comm.Mapping(world_size=2, rank=2, tp_size=2)


def test_torch_distributed_is_a_backend(tmp_path):
    with pytest.raises(RuntimeError, match="not initialized"):
        comm.comm_backend.TorchDistBackend()
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        backend = comm.comm_backend.TorchDistBackend()
        assert backend.allgather(3) == (3,) and backend.bcast("a", 0) == "a" and backend.Split(0, 0).Get_size() == 1
        workspace = comm.create_allreduce_fusion_workspace("trtllm", 1, 0, 4, 16, torch.float16, group=torch.distributed.group.WORLD)
        workspace.destroy()
    finally:
        torch.distributed.destroy_process_group()


def test_mpi_takes_a_communicator_of_the_program():
    class Fake:
        def Get_rank(self):
            return 0

        def Get_size(self):
            return 1

        def allgather(self, data):
            return [data]

        def bcast(self, data, root):
            return data

        def Barrier(self):
            self.waited = True

        def Split(self, color, key):
            return self

    fake = Fake()
    comm.mnnvl.MpiComm.set_mpi_comm(fake)
    backend = comm.comm_backend.MPIBackend()
    backend.barrier()
    assert fake.waited and backend.allgather(1) == (1,) and backend.Split(0, 0).Get_size() == 1


def test_a_recording_of_two_ranks_is_replayed(tmp_path):
    script = """
import sys, torch, flashinfer.comm as comm
rank = int(sys.argv[1])
w = comm.create_allreduce_fusion_workspace(world_size=2, rank=rank, max_token_num=4, hidden_dim=16, dtype=torch.float16,
                                           comm_backend=comm.ShmBackend(sys.argv[2], rank, 2))
comm.allreduce_fusion(torch.full((4, 16), 1.0 + rank, dtype=torch.float16), workspace=w, pattern=0)
out = comm.all_gather(torch.full((4, 3 + rank), 1.0 + rank), w, [3, 4])
assert out.shape == (4, 7) and out[0].tolist() == [1] * 3 + [2] * 4
w.destroy()
"""
    environment = {**os.environ, "FLASHINFER_LOGLEVEL": "10", "FLASHINFER_DUMP_DIR": str(tmp_path / "dump")}
    ranks = [subprocess.Popen([sys.executable, "-c", script, str(r), tmp_path.name], env=environment, stdout=subprocess.PIPE, text=True) for r in range(2)]
    logs = [r.communicate()[0] for r in ranks]
    assert [r.returncode for r in ranks] == [0, 0]
    assert "FlashInfer API Call: allreduce_fusion" in logs[0] and "AllReduceFusionWorkspace object at" in logs[0]
    command = [sys.executable, "-m", "flashinfer", "replay", "--dir"]
    done = subprocess.run([*command, str(tmp_path / "dump")], env=dict(os.environ), capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("Passed") >= 6, done.stdout
    rank_of = lambda folder: json.loads((folder / "metadata.jsonl").read_text().splitlines()[0]).get("group", {}).get("rank")
    for folder in (tmp_path / "dump").iterdir():  # rank 1's, but for its workspace
        if folder.is_dir() and "__init__" not in folder.name and rank_of(folder) == 1:
            shutil.rmtree(folder)
    done = subprocess.run([*command, str(tmp_path / "dump")], env=dict(os.environ), capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("it needs the same call of rank 1") == 2, done.stdout


def test_signature():
    names = list(inspect.signature(comm.allreduce_fusion).parameters)
    assert names[:6] == ["input", "workspace", "pattern", "launch_with_pdl", "trigger_completion_at_end", "output"]
    assert names[-1] == "moe_finalize_backend" and len(names) == 27
