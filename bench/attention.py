# SPDX-License-Identifier: Apache-2.0
"""The whole table of attention on the CPU: every row beside its limit and, where torch has the operation, beside torch, each ratio of
one turn. Takes some minutes; run it on a quiet machine.

    cmake --build build --target bench_attention_decode bench_attention_prefill bench_attention_cascade bench_mla
    .venv/bin/python bench/attention.py build/bin [--turns 5] [--only decode]
"""
import argparse
import pathlib
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bin", type=pathlib.Path, help="the build's folder of programs")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", default="", help="parts whose name contains this")
    o = parser.parse_args()
    here, turns = pathlib.Path(__file__).parent, ["--turns", str(o.turns)]
    parts = {
        "decode: share of the page sum (/pages) and of the arithmetic peaks; ratios of types, page sizes and batches; plan":
            [o.bin / "bench_attention_decode", *turns],
        "decode beside torch": [sys.executable, here / "attention_decode.py", o.bin / "bench_attention_decode", *turns],
        "prefill beside torch, 2 threads over 1": [sys.executable, here / "attention_prefill.py", o.bin / "bench_attention_prefill", *turns],
        "MLA decode beside the dot peak, the page sum and torch": [sys.executable, here / "mla_vs_torch.py", o.bin / "bench_mla", *turns],
        "cascade over batch decode": [o.bin / "bench_attention_cascade", *turns],
    }
    failed = False
    for name, command in parts.items():
        if o.only in name:
            print(f"\n== {name}", flush=True)
            failed |= subprocess.run(command, check=False).returncode != 0
    sys.exit(failed)


if __name__ == "__main__":
    main()
