# SPDX-License-Identifier: Apache-2.0
"""The flight recorder from Python: record a program, inspect its recording, replay it, and find a forged result.

    python examples/python/recorder.py [FOLDER]
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

import torch

import flashinfer
from flashinfer.api_logging import replay_from_dump, replay_sequence


# ---- the program that is recorded: nothing in it refers to the recorder ----
def fp8_bmm():
    """A batched product of fp8 matrices; b is column-major, as weights are kept."""
    a, a_scale = to_fp8(torch.randn(4, 48, 64))
    b, b_scale = to_fp8(torch.randn(4, 80, 64))
    out = torch.empty(4, 48, 80, dtype=torch.bfloat16)
    return flashinfer.bmm_fp8(a, b.transpose(-2, -1), a_scale, b_scale, torch.bfloat16, out, backend="cublas")


def to_fp8(x):
    """Values, and the scale that gives them back: x ~ values * scale."""
    scale = x.abs().max() / torch.finfo(torch.float8_e4m3fn).max
    return (x / scale).to(torch.float8_e4m3fn), scale.reshape(1).float()


def decode_step():
    """One step of batch decode over a paged cache: three requests of 7, 16 and 33 tokens in pages of 16."""
    heads, kv_heads, dim, page_size = 8, 2, 64, 16
    lengths = torch.tensor([7, 16, 33])
    pages = (lengths + page_size - 1) // page_size
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), pages.cumsum(0)]).int()
    indices = torch.randperm(int(pages.sum())).int()
    last_page_len = ((lengths - 1) % page_size + 1).int()
    cache = torch.randn(int(pages.sum()), 2, page_size, kv_heads, dim, dtype=torch.bfloat16)
    query = torch.randn(3, heads, dim, dtype=torch.bfloat16)

    workspace = torch.empty(16 << 20, dtype=torch.uint8)
    decode = flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper(workspace, "NHD")
    decode.plan(indptr, indices, last_page_len, heads, kv_heads, dim, page_size, data_type=torch.bfloat16, q_data_type=torch.bfloat16)
    return decode.run(query, cache, return_lse=True)


# ---- looking at a recording ----
def dump_of(folder, name):
    """The folder of the first recorded call of that function."""
    return sorted(glob.glob(os.path.join(folder, f"*_{name}_call*")))[0]


def show(dump):
    """A recorded call is lines of JSON about it, and tensors that torch.load reads."""
    with open(os.path.join(dump, "metadata.jsonl")) as f:
        last = json.loads(f.readlines()[-1])
    print(f"{last['function_name']}: {last['execution_status']}, run by {last['backend']}")
    for key, tensor in torch.load(os.path.join(dump, "inputs.pt")).items():
        print(f"    {key}: {tuple(tensor.shape)} {tensor.dtype}, strides {tensor.stride()}")


def forge(dump):
    """Changes one element of a recorded result, as a faulty machine would have."""
    path = os.path.join(dump, "outputs.pt")
    outputs = torch.load(path)
    outputs["result"].view(-1)[5] += 1.0
    torch.save(outputs, path)


def replay(folder):
    """Every recorded call again, in order; methods on the object that their constructor made."""
    for r in replay_sequence(folder, device="cpu"):
        verdict = r["error"] if r.get("error") else "match" if r["comparison_match"] else "MISMATCH"
        print(f"    {os.path.basename(r['dump_dir']).split('_', 4)[-1]}: {verdict}")


def main(folder):
    # The environment turns recording on. FLASHINFER_LOGLEVEL=3 would log the arguments; 10 also records them.
    subprocess.run([sys.executable, __file__, "--program"], check=True,
                   env={**os.environ, "FLASHINFER_LOGLEVEL": "10", "FLASHINFER_DUMP_DIR": folder,
                        "FLASHINFER_LOGDEST": os.path.join(folder, "log.txt")})
    print("== what was recorded")
    show(dump_of(folder, "bmm_fp8"))
    show(dump_of(folder, "BatchDecodeWithPagedKVCacheWrapper.run"))

    print("== one call: its arguments, passed again")
    dump = replay_from_dump(dump_of(folder, "bmm_fp8"), compare_outputs=True, device="cpu", run=False)
    again = flashinfer.bmm_fp8(*dump["args"], **dump["kwargs"])
    print("    the recorded bits:", torch.equal(again, dump["expected_tensors"]["result"]))

    print("== the session")
    replay(folder)
    print("== the session, with one element of the product's result forged")
    forge(dump_of(folder, "bmm_fp8"))
    replay(folder)
    print(f"The command line does the same: flashinfer replay --dir {folder}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--program"]:
        torch.manual_seed(0)
        fp8_bmm()
        decode_step()
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="flashinfer-recording-"))
