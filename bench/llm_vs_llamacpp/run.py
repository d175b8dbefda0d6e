#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py [--model FILE] [--threads 2] [--rounds 3] [--exact]: our language-model program against llama.cpp on the same GGUF file.

Both multiply activations as blocks of 8-bit integers; with --exact ours takes them as bf16. They are measured in turns, so that a
busy neighbour hits both; the ratios are medians over the rounds. The first run
builds llama-cpp-python from source into .cache/ (some six minutes on two cores)."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / ".cache/venv-llamacpp"
PACKAGE = "llama-cpp-python==0.3.36"
GOALS = {"prefill_512": 3.0, "decode_alone": 2.0, "decode_batch_8": 3.0}
NAMES = {"prefill_512": "prefill of 512 tokens", "decode_alone": "decode alone", "decode_batch_8": "decode, batch of 8"}


def python_with_llama_cpp():
    python = VENV / "bin/python"
    if not python.exists():
        venv.create(VENV, with_pip=True)
    if subprocess.run([python, "-c", "import llama_cpp"], capture_output=True).returncode != 0:
        print(f"building {PACKAGE} from source: some minutes", file=sys.stderr)
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", PACKAGE], check=True)
    return python


def measured(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed: {done.stderr.strip() or done.stdout.strip()}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default=ROOT / "models/SmolLM2-135M-Instruct.Q4_1.gguf")
    parser.add_argument("--program", default=ROOT / "build/release/examples/llm")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--exact", action="store_true", help="activations as bf16 on our side")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    python = python_with_llama_cpp()
    ours, theirs = [], []
    for i in range(args.rounds):
        print(f"round {i + 1} of {args.rounds}", file=sys.stderr)
        ours.append(measured([args.program, "--bench", "--json", "--threads", args.threads, "--model", args.model] +
                             ["--exact"] * args.exact))
        theirs.append(measured([python, pathlib.Path(__file__).with_name("measure.py"), args.model, args.threads]))
    rows = []
    for key, goal in GOALS.items():
        rows.append({"what": NAMES[key], "ours": statistics.median(r[key] for r in ours),
                     "llama.cpp": statistics.median(r[key] for r in theirs), "goal": goal,
                     "ratio": statistics.median(a[key] / b[key] for a, b in zip(ours, theirs))})
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'tokens/s, ' + str(args.threads) + ' threads':<26}{'ours':>8}{'llama.cpp':>12}{'ratio':>8}{'goal':>8}")
    for r in rows:
        print(f"{r['what']:<26}{r['ours']:8.0f}{r['llama.cpp']:12.0f}{r['ratio']:8.2f}{r['goal']:8.1f}")


if __name__ == "__main__":
    main()
