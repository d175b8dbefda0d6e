#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/try_wheel.py WHEEL [--op OP,OP] [--isa ISA]: installs a wheel into an environment of its own and runs it as another user who has no
compiler, no network and a home that cannot be written: imports it, and runs the rows of the case tables whose kernels are precompiled.

Run as root, it becomes the Unix user `nobody` (setpriv) and drops the network (unshare -n), where the machine allows that; otherwise it runs as the user
who calls it, and says so."""
import argparse
import contextlib
import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import venv

PACKAGES = ("apache-tvm-ffi", "click", "typing-extensions", "numpy")  # what an index would install, and arrays
NOBODY = 65534
PROGRAM = """
import os, socket
import numpy as np
import flashinfer
assert flashinfer.__file__.startswith({prefix!r}), flashinfer.__file__
x = np.full((2, 4096), 3, np.float16)
print(flashinfer.rmsnorm(x, np.full(4096, 0.5, np.float16)).max(), "uid", os.getuid(), "home", "writable" if os.access(os.environ["HOME"], os.W_OK) else "read-only")
try:
    socket.create_connection(("192.0.2.1", 9), timeout=0.2)
    print("network")
except OSError as e:
    print("no network" if e.errno == 101 else "network")
"""


def run(command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@contextlib.contextmanager
def environment(wheel):
    """A folder that every user can read, with the environment in `venv` and an empty `home` without write permission."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="try-wheel-"))
    try:
        root.chmod(0o755)
        venv.create(root / "venv", with_pip=False, symlinks=True)
        site = next((root / "venv").glob("lib/python*/site-packages"))
        for name in PACKAGES:
            distribution = importlib.metadata.distribution(name)
            for top in {f.parts[0] for f in distribution.files if not f.parts[0].startswith("..")} - {"__pycache__"}:
                source = pathlib.Path(distribution.locate_file(top))
                shutil.copytree(source, site / top, ignore=shutil.ignore_patterns("tests", "__pycache__", "*.pyi")) if source.is_dir() else shutil.copy(source, site)
        old = os.umask(0o022)
        run([sys.executable, "-m", "pip", "--python", root / "venv/bin/python", "install", "--no-index", "--disable-pip-version-check", "--no-compile", wheel])
        os.umask(old)
        (root / "home").mkdir()
        (root / "home").chmod(0o555)
        yield root
    finally:
        shutil.rmtree(root)


def as_another():
    """The words before a command that take rights and network away, as far as this user can."""
    words = []
    if os.geteuid() == 0 and shutil.which("unshare") and subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode == 0:
        words += [shutil.which("unshare"), "-n"]
    if os.geteuid() == 0 and shutil.which("setpriv"):
        words += [shutil.which("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return words


def run_bare(root, command, isa="native"):
    """The output of `command`, below venv/bin, run by another user."""
    variables = {"PATH": str(root / "venv/bin"), "HOME": str(root / "home"), "PYTHONDONTWRITEBYTECODE": "1", "FLASHINFER_CPU_ISA": isa}
    return run([*as_another(), root / "venv/bin" / command[0], *command[1:]], env=variables, cwd="/")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--op", type=lambda text: text.split(","), default=[""], help="rows of these ops alone")
    parser.add_argument("--isa", default="native", help="the level of x86-64 whose kernels run (docs/jit.md)")
    o = parser.parse_args()
    with environment(o.wheel) as root:
        print(run_bare(root, ["python", "-c", PROGRAM.format(prefix=str(root))]), end="")
        for op in o.op:
            text = run_bare(root, ["flashinfer", "cases", "--precompiled", *([op] if op else [])], o.isa)
            print(f"{op or 'all ops'}, {o.isa}: {text.splitlines()[-1]}", flush=True)


if __name__ == "__main__":
    main()
