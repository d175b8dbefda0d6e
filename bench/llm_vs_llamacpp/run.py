#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py [--model FILE] [--threads 2] [--rounds 3] [--exact] [--install]: our language-model program beside llama.cpp and ik_llama.cpp on the
same GGUF file; a library that the interpreter does not have is an empty column.

All multiply activations as blocks of 8-bit integers; with --exact ours takes them as bf16. They are measured in turns, so that a busy
neighbour hits all; the ratios are medians over the rounds. --install builds llama-cpp-python from source into .cache/ (some six minutes
on two cores), which is then used in place of --python."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / ".cache/venv-llamacpp"
PACKAGE = "llama-cpp-python==0.3.36"
LIBRARIES = {"llama.cpp": "llama_cpp", "ik_llama.cpp": "ik_llama_cpp"}
GOALS = {"prefill_512": 3.0, "decode_alone": 2.0, "decode_batch_8": 3.0}  # over llama.cpp
NAMES = {"prefill_512": "prefill of 512 tokens", "decode_alone": "decode alone", "decode_batch_8": "decode, batch of 8"}


def has(python, package):
    return subprocess.run([python, "-c", f"import {package}"], capture_output=True).returncode == 0


def install():
    python = VENV / "bin/python"
    if not python.exists():
        venv.create(VENV, with_pip=True)
    if not has(python, "llama_cpp"):
        print(f"building {PACKAGE} from source: some minutes", file=sys.stderr)
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", PACKAGE], check=True)


def measured(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed: {done.stderr.strip() or done.stdout.strip()}")
    return json.loads(done.stdout[done.stdout.index("{"):])


def row(key, found):
    """What one line of the table says; the others' rates and our ratio to each are None where the library is not there."""
    ours = statistics.median(r[key] for r in found["ours"])
    others = {name: statistics.median(r[key] for r in found[name]) if found[name] else None for name in LIBRARIES}
    ratios = {name: statistics.median(a[key] / b[key] for a, b in zip(found["ours"], found[name])) if found[name] else None for name in LIBRARIES}
    return {"what": NAMES[key], "ours": ours, **others, "ratios": ratios, "goal": GOALS[key]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default=ROOT / "models/SmolLM2-135M-Instruct.Q4_1.gguf")
    parser.add_argument("--program", default=ROOT / "build/release/examples/llm")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the libraries")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--exact", action="store_true", help="activations as bf16 on our side")
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.install:
        install()
    pythons = [p for p in (VENV / "bin/python", args.python) if pathlib.Path(p).exists()]
    of = {name: next((p for p in pythons if has(p, package)), None) for name, package in LIBRARIES.items()}
    found = {"ours": [], **{name: [] for name in LIBRARIES}}
    for i in range(args.rounds):
        print(f"round {i + 1} of {args.rounds}", file=sys.stderr)
        found["ours"].append(measured([args.program, "--bench", "--json", "--threads", args.threads, "--model", args.model] +
                                      ["--exact"] * args.exact))
        for name, python in of.items():
            if python:
                found[name].append(measured([python, pathlib.Path(__file__).with_name("measure.py"), LIBRARIES[name], args.model, args.threads]))
    rows = [row(key, found) for key in GOALS]
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'tokens/s, ' + str(args.threads) + ' threads':<26}{'ours':>8}" + "".join(f"{n:>14}{'ratio':>7}" for n in LIBRARIES) + f"{'goal':>6}")
    for r in rows:
        line = f"{r['what']:<26}{r['ours']:8.0f}"
        for name in LIBRARIES:
            line += f"{r[name]:14.0f}{r['ratios'][name]:7.2f}" if r[name] else f"{'':21}"
        print(f"{line}{r['goal']:6.1f}")


if __name__ == "__main__":
    main()
