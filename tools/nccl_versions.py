#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens NVIDIA's libnccl of several versions: each must have every name that the library calls, and its numbers.

    tools/nccl_versions.py nvidia-nccl-cu12==2.18.3 nvidia-nccl-cu13      # make nccl-versions: the newest for CUDA 12 and 13

Each wheel (200 to 400 MB) is installed into a temporary folder. Needs the target comm_tests and a package index; no GPU, no driver.
The exit status is 1 when a version failed.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile

TEST = "Nccl.TheRealLibraryHasAllNames"
HEADER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "flashinfer/comm/nccl.h")


def install(requirement, folder):
    """The folder of the wheel of `requirement`, installed below `folder`."""
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--disable-pip-version-check", "--target", folder, requirement],
                   check=True)
    return os.path.join(folder, "nvidia/nccl")


def numbers(path, prefix):
    """The enumerators of a header, without their prefix and in lower case."""
    with open(path, encoding="utf-8") as file:
        found = re.findall(rf"\b{prefix}([A-Z]\w*)\s*=\s*(\d+)\b", file.read())
    return {name.lower(): int(value) for name, value in found}


def wrong_numbers(theirs):
    """Those of flashinfer/comm/nccl.h that the wheel's header gives another value, or does not have."""
    known = numbers(theirs, "nccl")
    return [f"{name} is {value}, but {known.get(name)} in {theirs}" for name, value in numbers(HEADER, "k").items() if known.get(name) != value]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("requirements", nargs="*", default=["nvidia-nccl-cu12", "nvidia-nccl-cu13"])
    parser.add_argument("--build", default="build/release", help="the build folder")
    a = parser.parse_args()
    program = os.path.join(a.build, "bin", "comm_tests")
    if not os.path.exists(program):
        parser.error(f"{program} is missing: cmake --build {a.build} --target comm_tests")
    failed = []
    for requirement in a.requirements:
        with tempfile.TemporaryDirectory(prefix="flashinfer-nccl-") as folder:
            wheel = install(requirement, folder)
            library, = glob.glob(os.path.join(wheel, "lib/libnccl.so.*"))
            wrong = wrong_numbers(os.path.join(wheel, "include/nccl.h"))
            run = subprocess.run([program, "--gtest_filter=" + TEST, "--gtest_brief=1"], env={**os.environ, "FLASHINFER_TEST_NCCL": library},
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        ok = run.returncode == 0 and not wrong
        print(run.stdout if run.returncode else "", *wrong, f"{requirement}: {'ok' if ok else 'FAILED'}", sep="\n", flush=True)
        if not ok:
            failed.append(requirement)
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
