# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/python and the code of docs/python.md run and say what they should."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


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


def test_code_of_the_manual():
    text = (ROOT / "docs/python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) >= 4
    program = "\n".join(blocks)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_manual_names_what_exists():
    text = (ROOT / "docs/python.md").read_text()
    for path in re.findall(r"`((?:docs|examples|tests|tools)/[\w./]+)`", text):
        assert (ROOT / path).exists(), path
