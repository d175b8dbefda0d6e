# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/python and the code of docs/python.md and of the README run and say what they should."""
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARTIFACT = {"kernel.cc", "compile_command.sh"}  # of the compiled kernels' folders


def run(path, *args):
    done = subprocess.run([sys.executable, ROOT / path, *args], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_is_tested():
    assert {p.name for p in (ROOT / "examples/python").glob("*.py")} == {"recorder.py", "serve_step.py"}


def test_serve_step():
    assert "decode: (2, 8, 64) as torch computes it" in run("examples/python/serve_step.py")


def test_recorder(tmp_path):
    text = run("examples/python/recorder.py", tmp_path)
    assert "arg_1: (4, 64, 80) torch.float8_e4m3fn, strides (5120, 1, 64)" in text
    assert "the recorded bits: True" in text
    whole, forged = text.split("== the session\n")[1].split("forged\n")
    assert re.findall(r": (.*)", whole) == ["match"] * 4
    assert forged.count(": match") == 3
    assert re.search(r"bmm_fp8_call0001: .*(MISMATCH|changed)", forged)
    command = subprocess.run([sys.executable, "-m", "flashinfer", "replay", "--dir", tmp_path], capture_output=True, text=True)
    assert command.returncode == 1
    assert "Summary: 3 passed, 1 failed/mismatch" in command.stdout


@pytest.mark.parametrize("page, least", [("docs/python.md", 4), ("docs/jit.md", 2), ("README.md", 1)])
def test_code_of_the_manual(page, least):
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    assert len(blocks) >= least
    program = "\n".join(blocks)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", [str(p.relative_to(ROOT)) for p in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))])
def test_the_manual_names_what_exists(page):
    text = (ROOT / page).read_text()
    for path in re.findall(r"`((?:docs|examples|tests|tools|flashinfer|bench|cmake|fuzz)/[\w./]+)`", text):
        assert (ROOT / path).exists(), path
    files = {p.name for folder in ("flashinfer", "python", "tests", "bench", "benchmarks", "tools", "examples", "cmake", "integrations") for p in (ROOT / folder).rglob("*.*")}
    for path in re.findall(r"`([\w./-]+\.(?:h|cc|cuh|py|sh|cmake))`", text):
        assert path.rsplit("/", 1)[-1] in files | ARTIFACT, path
    for path in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (ROOT / page).parent.joinpath(path).exists(), path
