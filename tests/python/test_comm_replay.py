# SPDX-License-Identifier: Apache-2.0
"""Recordings of the all-to-alls of four processes, replayed by `flashinfer replay`: all ranks at once, some by each of two processes, one call alone."""
import json
import os
import shutil
import subprocess
import sys

import pytest

RANKS = 4
SCRIPT = """
import sys, warnings, torch, flashinfer.comm as comm
warnings.simplefilter("ignore", DeprecationWarning)
rank, ranks, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
backend = comm.ShmBackend(name, rank, ranks)
mapping = comm.Mapping(world_size=ranks, rank=rank, tp_size=ranks, moe_ep_size=ranks)
a2a = comm.MoeAlltoAll(mapping, 6, 2, 7, hidden_size=32, mnnvl_config=comm.mnnvl.MnnvlConfig(backend), eplb_stats_num_experts=3)
g = torch.Generator().manual_seed(rank)
for step in range(2):
    tokens = 6 - (rank + 2 * step) % 4
    x, ids = torch.randn(tokens, 32, generator=g).bfloat16(), torch.randint(0, 7, (tokens, 2), generator=g).int()
    got = a2a.dispatch(ids, [x, ids], 6, invalid_token_expert_id=-1, expert_id_payload_index=1, eplb_local_stats=torch.tensor([rank, step, 1]).int())
    payload = a2a.get_combine_payload_tensor_in_workspace(6, 32, torch.bfloat16) if step else torch.empty(ranks, 6, 32).bfloat16()
    payload.copy_(got[0] * (rank + 1))
    a2a.combine(payload, 6, payload_in_workspace=bool(step))
mapping = comm.Mapping(world_size=ranks, rank=rank, cp_size=ranks)
w = comm.decode_cp_a2a_allocate_mnnvl_workspace(mapping, mnnvl_config=comm.mnnvl.MnnvlConfig(backend))
o, stats = torch.randn(3, ranks, 16, generator=g).bfloat16(), torch.randn(3, ranks, 2, generator=g)
comm.decode_cp_a2a_alltoall(o, stats, w, rank, ranks)
w = comm.decode_cp_a2a_lse_reduce_create_workspace(3, 1, ranks, 16, torch.bfloat16, backend)
comm.decode_cp_a2a_lse_reduce(o, stats[..., 0].contiguous(), w, rank, ranks)
backend.barrier()
"""
CALLS = 1 + 2 * 3 + 2  # of a rank


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    dump = tmp_path_factory.mktemp("comm") / "dump"
    environment = {**os.environ, "FLASHINFER_LOGLEVEL": "10", "FLASHINFER_DUMP_DIR": str(dump)}
    ranks = [subprocess.Popen([sys.executable, "-c", SCRIPT, str(r), str(RANKS), str(dump)], env={**environment, "RANK": str(r)}, stdout=subprocess.DEVNULL)
             for r in range(RANKS)]
    assert [r.wait(timeout=300) for r in ranks] == [0] * RANKS
    return dump


def replay(folder, **environment):
    return subprocess.Popen([sys.executable, "-m", "flashinfer", "replay", "--dir", str(folder)], env={**os.environ, **environment},
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def passed(process):
    text = process.communicate(timeout=300)[0]
    assert process.returncode == 0, text
    return text.count("Passed") + text.count("Replay passed")


def folders(dump, function, rank):
    def record(folder):
        return json.loads((folder / "metadata.jsonl").read_text().splitlines()[0])

    return sorted(f for f in dump.iterdir() if function in f.name and record(f)["group"]["rank"] == rank)


def test_all_ranks_in_one_process(recording):
    assert passed(replay(recording)) >= RANKS * CALLS


def test_the_ranks_of_two_processes(recording):
    """As mpirun starts them."""
    launched = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": recording.parent.name}
    both = [replay(recording, OMPI_COMM_WORLD_RANK=str(p), **launched) for p in range(2)]
    assert [passed(p) >= RANKS * CALLS // 2 for p in both] == [True, True]


@pytest.mark.parametrize("function", ["moe_a2a_dispatch_into", "moe_a2a_combine", "sanitize", "decode_cp_a2a_alltoall", "lse_reduce"])
def test_one_call_of_one_rank(recording, function):
    assert passed(replay(folders(recording, function, 2)[-1])) >= 1


def test_a_rank_that_is_missing(recording, tmp_path):
    shutil.copytree(recording, tmp_path / "dump")
    for folder in folders(tmp_path / "dump", "moe_a2a_combine", 1):
        shutil.rmtree(folder)
    process = replay(tmp_path / "dump")
    text = process.communicate(timeout=300)[0]
    assert process.returncode == 0 and text.count("it needs the same call of rank 1 of group") == 2 * (RANKS - 1), text
