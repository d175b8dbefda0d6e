#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures this checkout against another commit, in turns, and fails where a row of a case table became slower by more than a limit.

    make bench-compare BASE=main                                  # every op's rows for bench
    make bench-compare BASE=HEAD~3 OPS="rmsnorm mm_bf16"

The other commit is built in build/bench-base. A round runs `flashinfer bench` of both builds for an op, the order changing from round to
round; a row's ratio is the median of its rounds, this build's time over the other's. A row beyond the limit is measured again with three
times the rounds before it counts."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}")
    return done.stdout


def build_base(commit):
    """The build folder of `commit`, in a worktree of its own."""
    sha = run("git", "-C", ROOT, "rev-parse", "--verify", f"{commit}^{{commit}}", capture_output=True).strip()
    tree = ROOT / "build/bench-base"
    if not (tree / ".git").exists():
        run("git", "-C", ROOT, "worktree", "add", "--detach", "--force", tree, sha)
    run("git", "-C", tree, "checkout", "--quiet", "--detach", sha)
    run("cmake", "--preset", "release", cwd=tree, stdout=subprocess.DEVNULL)
    run("cmake", "--build", tree / "build/release", "--target", "flashinfer_cli")
    return tree / "build/release", sha[:12]


def ops_of(build):
    """The ops that have rows for bench."""
    rows = json.loads(run(build / "bin/flashinfer", "bench", "--op", "all", "--seconds", "0", "--json", capture_output=True))
    return list(dict.fromkeys(r["op"] for r in rows))


def measure(build, op, seconds, may_fail):
    """{case: seconds}; nothing where the other commit's build, `may_fail`, does not have the op."""
    command = [str(build / "bin/flashinfer"), "bench", "--op", op, "--seconds", str(seconds), "--json"]
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode and not may_fail:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return {r["case"]: r["median_s"] for r in json.loads(done.stdout)} if done.returncode == 0 else {}


def ratios(ours, base, op, rounds, seconds):
    """{case: this build's time over the base's, the median of `rounds`}."""
    found = {}
    for i in range(rounds):
        sides = [("ours", ours), ("base", base)]
        times = {name: measure(build, op, seconds, name == "base") for name, build in (sides if i % 2 else sides[::-1])}
        for case in times["ours"].keys() & times["base"].keys():
            found.setdefault(case, []).append(times["ours"][case] / times["base"][case])
    return {case: statistics.median(values) for case, values in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("base", nargs="?", help="the commit to compare with")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="this checkout's build")
    parser.add_argument("--base-build", type=pathlib.Path, help="a build of the other commit, in place of building it")
    parser.add_argument("--ops", nargs="*", help="these ops alone")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="time for each row, build and round")
    parser.add_argument("--limit", type=float, default=1.05, help="the ratio of times that fails")
    o = parser.parse_args()
    if o.base is None and o.base_build is None:
        parser.error("a commit, or --base-build, is needed")
    base, name = (o.base_build, str(o.base_build)) if o.base_build else build_base(o.base)
    print(f"time over that of {name}, {o.rounds} rounds; more than {o.limit} fails", flush=True)
    slower, compared = [], 0
    for op in o.ops or ops_of(o.build):
        found = ratios(o.build, base, op, o.rounds, o.seconds)
        if any(r > o.limit for r in found.values()):
            again = ratios(o.build, base, op, 3 * o.rounds, o.seconds)
            found = {case: again.get(case, r) if r > o.limit else r for case, r in found.items()}
        for case, ratio in sorted(found.items()):
            compared += 1
            slow = ratio > o.limit
            print(f"{op:50} {case:20} {ratio:6.3f}{'  SLOWER' if slow else ''}", flush=True)
            if slow:
                slower.append(f"{op} {case}: {ratio:.3f}")
        if not found:
            print(f"{op:50} not in both builds", flush=True)
    if not compared:
        sys.exit("no row is in both builds")
    if slower:
        sys.exit(f"{len(slower)} of {compared} rows are slower than {o.limit} times the base: " + "; ".join(slower))
    print(f"{compared} rows, none slower than {o.limit} times the base")


if __name__ == "__main__":
    main()
