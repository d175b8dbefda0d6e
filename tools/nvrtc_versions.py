#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every CUDA kernel of the case tables with several versions of NVRTC; a spilled register is a failure.

    tools/nvrtc_versions.py 12.4 12.6 12.9 13.0 newest      # make nvrtc-versions: these

Each version's wheel is installed into a virtual environment of its own in a temporary folder. Needs the targets
device_tests and emu_tests, and a package index; no GPU, no driver. A version takes minutes a target on one core:
--arch chooses the targets, --tests the programs. The exit status is 1 when a version failed.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile
import time

PROGRAMS = {"device_tests": "Gpus.*WithoutSpills", "emu_tests": "NvrtcKernels.*"}


def requirement(version):
    """The wheel of a version; those for CUDA 12 have a suffix."""
    if version == "newest":
        return "nvidia-cuda-nvrtc"
    name = "nvidia-cuda-nvrtc-cu12" if version.startswith("12.") else "nvidia-cuda-nvrtc"
    return f"{name}=={version}" if version.count(".") > 1 else f"{name}=={version}.*"


def install(version, folder):
    """The path of libnvrtc of this version, installed below `folder`."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([os.path.join(folder, "bin", "python"), "-m", "pip", "install", "-q", "--no-deps", "--disable-pip-version-check",
                    requirement(version)], check=True)
    found = glob.glob(os.path.join(folder, "lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.*"))
    found = [path for path in found if "alt" not in os.path.basename(path)]
    if len(found) != 1:
        sys.exit(f"{requirement(version)}: {len(found)} files libnvrtc.so.* in {folder}, but one was expected")
    return found[0]


def describe(path):
    """Its version, and the numbers of the architectures that it knows. A process of its own: libraries of several versions do not mix."""
    code = ("import ctypes, sys; l = ctypes.CDLL(sys.argv[1]); a, b, n = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()\n"
            "l.nvrtcVersion(ctypes.byref(a), ctypes.byref(b)); l.nvrtcGetNumSupportedArchs(ctypes.byref(n))\n"
            "known = (ctypes.c_int * n.value)(); l.nvrtcGetSupportedArchs(known); print(f'{a.value}.{b.value}', *known)")
    text = subprocess.run([sys.executable, "-c", code, path], check=True, capture_output=True, text=True).stdout.split()
    return text[0], {int(number) for number in text[1:]}


def known_targets(wanted, known):
    """Of "8.0 9.0a 10.0a" those whose architecture is known."""
    number = lambda target: int(target.rstrip("af").replace(".", ""))
    return [target for target in wanted.split() if number(target) in known]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("versions", nargs="*", default=["12.4", "12.6", "12.9", "13.0", "newest"])
    parser.add_argument("--build", default="build/release", help="the build folder")
    parser.add_argument("--arch", default="7.5 8.0 9.0a 10.0a 12.0a", help="targets; those that a version does not know are left out")
    parser.add_argument("--tests", default=" ".join(PROGRAMS), help="which of " + ", ".join(PROGRAMS))
    a = parser.parse_args()
    for program in a.tests.split():
        if program not in PROGRAMS or not os.path.exists(os.path.join(a.build, "bin", program)):
            parser.error(f"{program} is no test program of {a.build}: cmake --build {a.build} --target {' '.join(PROGRAMS)}")
    failed = []
    for version in a.versions:
        with tempfile.TemporaryDirectory(prefix="flashinfer-nvrtc-") as folder:
            path = install(version, os.path.join(folder, "venv"))
            number, known = describe(path)
            targets = known_targets(a.arch, known)
            env = {**os.environ, "FLASHINFER_NVRTC": path, "FLASHINFER_CUDA_ARCH_LIST": " ".join(targets),
                   "FLASHINFER_WORKSPACE_BASE": folder}
            for program in a.tests.split():
                start = time.monotonic()
                run = subprocess.run([os.path.join(a.build, "bin", program), "--gtest_filter=" + PROGRAMS[program], "--gtest_brief=1"],
                                     env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                print(run.stdout, end="")
                print(f"NVRTC {number}, {program}, {' '.join(targets)}: {'ok' if run.returncode == 0 else 'FAILED'}, "
                      f"{time.monotonic() - start:.0f} s", flush=True)
                if run.returncode != 0:
                    failed.append(f"{number} {program}")
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
