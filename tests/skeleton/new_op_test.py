# SPDX-License-Identifier: Apache-2.0
"""tools/new_op.sh in a copy of the tree: with no other edit the new op is built, passes its rows on the CPU and the emulator, and is a
function of the Python package. The copy takes the objects of this build whose source and command are the same (by the launcher
below), so that little more than the new folder is compiled."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy  # tests with it run under the Python of the checkout's environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["FLASHINFER_BUILD_DIR"])
NAME = "scale_rows"

# Called in place of the compiler with its command; copies the object of BUILD when that is what the command would make.
LAUNCHER = """#!/usr/bin/env python3
import os, shutil, sys
root, build, scratch, here = {root!r}, {build!r}, {scratch!r}, {here!r}
command = sys.argv[1:]
value = lambda flag: command[command.index(flag) + 1] if flag in command else None
source, out, deps = value("-c"), value("-o"), value("-MF")
def same():
    if not source or not out or any(scratch in a for a in command if a.startswith("-D")):
        return False
    theirs = build + source[len(here):] if source.startswith(here) else root + source[len(scratch):]
    if not os.path.exists(os.path.join(build, out)) or not os.path.exists(theirs):
        return False
    with open(source) as ours, open(theirs) as other:
        return ours.read().replace(here, build).replace(scratch, root) == other.read()
if same():
    shutil.copyfile(os.path.join(build, out), out)  # a link would share its time of change, by which the build knows its objects
    if deps:
        with open(deps, "w") as file:
            file.write(out + ": " + source + "\\n")
else:
    with open(os.path.join(scratch, "compiled"), "a") as log:
        log.write((source or " ".join(command)) + "\\n")
    os.execvp(command[0], command)
"""

CALL = f"""
import numpy, flashinfer
x = numpy.array([[1, -4, 2], [0, 0, 0]], dtype=numpy.float32)
numpy.testing.assert_array_equal(flashinfer.{NAME}(x, peak=2), [[0.5, -2, 1], [0, 0, 0]])
assert "largest magnitude" in flashinfer.{NAME}.__doc__, flashinfer.{NAME}.__doc__
"""


def tree(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts}


class NewOp(unittest.TestCase):
    def run_there(self, *command, **environment):
        result = subprocess.run([str(c) for c in command], cwd=self.scratch, env={**os.environ, **environment}, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(0, result.returncode, f"{command}\n{result.stdout[-8000:]}")
        return result.stdout

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=BUILD, prefix="new-op-")
        self.addCleanup(folder.cleanup)
        self.scratch = pathlib.Path(folder.name)
        for part in ("cmake", "flashinfer", "python", "tools"):
            shutil.copytree(ROOT / part, self.scratch / part, ignore=shutil.ignore_patterns("__pycache__"))
        (self.scratch / "bench").mkdir()
        for file in ("CMakeLists.txt", "version.txt", "bench/peers.py"):
            shutil.copy(ROOT / file, self.scratch / file)
        self.build = self.scratch / "build"

    def test_is_one_folder(self):
        before = tree(self.scratch)
        self.run_there("tools/new_op.sh", NAME)
        after = tree(self.scratch)
        self.assertEqual({}, {p: None for p in before if after.get(p) != before[p]})
        added = set(after) - set(before)
        self.assertTrue(all(p.startswith(f"flashinfer/ops/{NAME}/") for p in added), added)
        self.assertIn(f"flashinfer/ops/{NAME}/kernels/cuda/{NAME}.cuh", added)
        self.assertEqual([], [p for p in added if b"skeleton" in after[p].lower()])

        launcher = self.scratch / "launcher"
        launcher.write_text(LAUNCHER.format(root=str(ROOT), build=str(BUILD), scratch=str(self.scratch), here=str(self.build)))
        launcher.chmod(0o755)
        cache = (BUILD / "CMakeCache.txt").read_text()
        keep = [f"-D{line}" for line in cache.splitlines()
                if line.startswith(("CMAKE_BUILD_TYPE:", "CMAKE_CXX_COMPILER:", "CMAKE_C_COMPILER:", "TVM_FFI_CONFIG:", "FLASHINFER_"))]
        self.run_there("cmake", "-S", ".", "-B", self.build, "-G", "Ninja", *keep, "-DBUILD_TESTING=OFF",
                       f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}", f"-DCMAKE_C_COMPILER_LAUNCHER={launcher}")
        self.run_there("cmake", "--build", self.build, "--target", "flashinfer_cli", "flashinfer_tvm_ffi")
        compiled = (self.scratch / "compiled").read_text()
        self.assertIn(f"/ops/{NAME}/op.cc", compiled)
        print(compiled, file=sys.stderr)

        for device in ((), ("--device", "emu")):
            text = self.run_there(self.build / "bin/flashinfer", "cases", NAME, *device)
            self.assertRegex(text, r"\b1[0-9] passed, 0 failed")
        self.run_there(sys.executable, "-c", CALL, PYTHONPATH=self.scratch / "python", FLASHINFER_BUILD_DIR=str(self.build),
                       PYTHONDONTWRITEBYTECODE="1")

    def test_rejects_names_that_are_illegal_or_taken(self):
        shutil.copytree(ROOT / "docs", self.scratch / "docs")
        for name in ("", "Scale", "2rows", "scale-rows", "scale__rows", "skeleton", "norm", "rmsnorm", "cpu", "template"):
            result = subprocess.run(["tools/new_op.sh", name], cwd=self.scratch, capture_output=True, text=True)
            self.assertNotEqual(0, result.returncode, name)
            self.assertTrue(result.stderr, name)


if __name__ == "__main__":
    unittest.main()
