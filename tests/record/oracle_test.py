# SPDX-License-Identifier: Apache-2.0
"""The log and the dumps of the same calls, made by the Python library (its public decorator) and by ours, side by side.

Run without arguments it is the test; with `calls` it makes the calls with the Python library. tests/record/tool/values.cc makes
the same calls in the same order.
"""
import collections
import enum
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = os.environ.get("FLASHINFER_BUILD_DIR", "build/release")


def make_calls():
    import torch
    from flashinfer.api_logging import flashinfer_api as api

    class Color(enum.Enum):
        RED = "r"

    class Lev(enum.IntEnum):
        A = 4

    P = collections.namedtuple("P", "x y")

    @api
    def f(a, b, *, c=1e-5, d=None, e="NHD", g=True):
        return a

    @api
    def rt(*xs, **kw):
        return xs

    @api
    def one(x):
        return x

    @api
    def none():
        return None

    @api
    def lst(x):
        return [x, 1]

    @api
    def fail(x):
        raise ValueError("no")

    class FooWrapper:
        @api
        def __init__(self, ws, layout="NHD"):
            pass

        @api
        def run(self, q, *, out=None):
            return q

    t = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    inf = float("inf")
    f(t, t.t(), c=2.0)
    rt(None, 1, 2.5, True, "it's", 'q"', Color.RED, Lev.A, [], (), {}, [1, [2]], (1,), P(1, 2), {"k": t, 3: [t]}, torch.float16,
       torch.device("cpu"), complex(1, 2), inf, float("nan"), -inf, object, b"x")
    rt(k=torch.zeros(0, 3), g=torch.tensor([1, 2, 3], dtype=torch.int32), h=torch.tensor([True]),
       b=torch.tensor([1.5, float("nan"), inf], dtype=torch.bfloat16))
    one(torch.ones(2, 2))
    none()
    lst(t)
    one((t, 2, (t,)))
    one({"a": t, "b": 1})
    try:
        fail(t)
    except ValueError:
        pass
    FooWrapper(torch.zeros(4, dtype=torch.uint8)).run(t)
    one(torch.tensor(3.5))
    one(torch.zeros(3, dtype=torch.float8_e4m3fn))
    one(torch.zeros(4, 8)[:, :2])
    one(torch.tensor([2**40, -1]))
    one(torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True))
    one(torch.tensor([1, 2], dtype=torch.uint16))
    one("n\u00e9\n\x01\u4e2d")
    one(1e22)
    one(-0.0)
    one(1.1444091796875e-05)
    one(torch.device("cuda:1"))
    deep = 1
    for _ in range(10):
        deep = [deep]
    one(deep)
    many, state = [], 1
    for _ in range(100003):
        state = (state * 1664525 + 1013904223) % 2**32
        many.append((state >> 8) / 16777216.0 - 0.25)
    one(torch.tensor(many))
    one(torch.tensor(many).half())
    one(torch.tensor(many).to(torch.float8_e5m2))


def run(command, folder, level):
    """The log of a run and the folder of its dumps."""
    log = os.path.join(folder, "log")
    env = dict(os.environ, FLASHINFER_LOGLEVEL=str(level), FLASHINFER_LOGDEST=log, FLASHINFER_DUMP_DIR=os.path.join(folder, "dumps"))
    subprocess.run(command, check=True, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    with open(log, encoding="utf-8") as file:
        return file.read()


MASKS = [
    (r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\]", "[time]"),
    (r"0x[0-9a-f]+", "0x"),
    (r"\S*dumps/\d{8}_\d{6}_\d{3}_pid\d+_", "dumps/"),
    (r"FlashInfer version: .*", "FlashInfer version: V"),
    (r"FlashInfer \S+ \(commit \w+\)", "FlashInfer V (commit C)"),
    (r"PyTorch version: .*", "PyTorch version: V"),
    (r"Failed to build api_log_stats kernel.*\n", ""),  # a GPU thing that a machine without one cannot have
    (r"__main__\.|make_calls\.<locals>\.", ""),
]


def masked(text):
    for pattern, replacement in MASKS:
        text = re.sub(pattern, replacement, text)
    return text.split("\n")


def tagged(value):
    """Python's non-finite literals as strict JSON has them."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"type": "float", "value": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    if isinstance(value, dict):
        return {k: tagged(v) for k, v in value.items()}
    if isinstance(value, list):
        return [tagged(v) for v in value]
    return value


def records(folder):
    out = []
    with open(os.path.join(folder, "dumps", "session.jsonl"), encoding="ascii") as file:
        for line in file:
            record = json.loads(line)
            if record["execution_status"] != "failed":  # upstream does not tell
                out.append((record, line))
    return out


class Oracle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folders, cls.logs = {}, {}
        cls.root = tempfile.TemporaryDirectory()
        commands = {"theirs": [sys.executable, os.path.abspath(__file__), "calls"], "ours": [os.path.join(BUILD, "bin", "record_values")]}
        for who, command in commands.items():
            for level in (1, 3, 5, 10):
                folder = os.path.join(cls.root.name, f"{who}{level}")
                os.mkdir(folder)
                cls.folders[who, level] = folder
                cls.logs[who, level] = run(command, folder, level)

    @classmethod
    def tearDownClass(cls):
        cls.root.cleanup()

    def compare_text(self, level):
        theirs, ours = masked(self.logs["theirs", level]), masked(self.logs["ours", level])
        self.assertGreater(len(theirs), 30)
        for i, (a, b) in enumerate(zip(theirs, ours)):
            if a != b and "mean=" in a:  # torch adds in float32, in its own order
                x, y = float(a.split("=")[1]), float(b.split("=")[1])
                self.assertAlmostEqual(x, y, delta=2e-6 + 1e-6 * abs(x), msg=f"line {i}")
                continue
            self.assertEqual(a, b, f"line {i}, after\n" + "\n".join(theirs[max(0, i - 6):i]))
        self.assertEqual(len(theirs), len(ours))

    def test_level_1(self):
        self.compare_text(1)

    def test_level_3(self):
        self.compare_text(3)

    def test_level_5(self):
        self.compare_text(5)

    def test_level_10(self):
        self.compare_text(10)

    def check_value(self, theirs, ours, where):
        if isinstance(theirs, dict) and "type" in theirs and "repr" in theirs:  # ours may say more
            self.assertEqual(ours["type"], theirs["type"], where)
            self.assertEqual(masked(ours["repr"]), masked(theirs["repr"]), where)
        elif isinstance(theirs, dict):
            self.assertEqual(list(theirs), list(ours), where)
            for k, v in theirs.items():
                self.check_value(v, ours[k], f"{where}.{k}")
        elif isinstance(theirs, list):
            self.assertEqual(len(theirs), len(ours), where)
            for i, v in enumerate(theirs):
                self.check_value(v, ours[i], f"{where}[{i}]")
        else:
            self.assertEqual((type(theirs), theirs), (type(ours), ours), where)

    def test_records(self):
        theirs, ours = records(self.folders["theirs", 10]), records(self.folders["ours", 10])
        self.assertEqual(len(theirs), len(ours))
        for (a, _), (b, line) in zip(theirs, ours):
            where = f"{a['function_name']} {a['call_sequence']} {a['execution_status']}"
            self.assertEqual(list(a), list(b)[:len(a)], where)
            for key in ("function_name", "module", "call_sequence", "tensor_info", "tensor_format", "function_signature",
                        "execution_status", "graph_capture"):
                self.assertEqual(a[key], b[key], f"{where} {key}")
            for key in ("input_metadata", "output_metadata"):
                self.check_value(tagged(a[key]), b[key], f"{where} {key}")
            self.assertEqual(list(a["tensor_details"]), list(b["tensor_details"]), where)
            for key, detail in a["tensor_details"].items():
                self.assertEqual(list(detail), list(b["tensor_details"][key])[:4], where)
                self.assertEqual(detail, {k: b["tensor_details"][key][k] for k in detail}, f"{where} {key}")
            self.assertTrue(re.fullmatch(r".*/dumps/\d{8}_\d{6}_\d{3}_pid\d+_" + re.escape(a["function_name"]) + r"_call\d{4}",
                                         b["dump_dir"]), b["dump_dir"])
            self.assertEqual(json.dumps(b), line.rstrip("\n"))  # the separators, escapes and numbers of Python's json
            self.assertTrue(os.path.isfile(os.path.join(b["dump_dir"], "metadata.jsonl")))

    def test_tensor_files(self):
        import torch
        theirs, ours = records(self.folders["theirs", 10]), records(self.folders["ours", 10])
        files = 0
        for (a, _), (b, _) in zip(theirs, ours):
            for name in ("inputs.pt", "outputs.pt"):
                there, here = (os.path.join(r["dump_dir"], name) for r in (a, b))
                self.assertEqual(os.path.exists(there), os.path.exists(here), here)
                if not os.path.exists(there):
                    continue
                files += 1
                want, got = torch.load(there), torch.load(here, weights_only=True)
                self.assertEqual(list(want), list(got))
                for key in want:
                    x, y = want[key], got[key]
                    self.assertEqual((x.dtype, x.shape, x.requires_grad), (y.dtype, y.shape, y.requires_grad), key)
                    if not x.is_contiguous() and x.numel() * 2 > x.untyped_storage().nbytes() // x.element_size():
                        self.assertEqual(x.stride(), y.stride(), key)
                    self.assertTrue(torch.equal(x.detach().contiguous().view(torch.uint8) if x.dim() else x,
                                                y.detach().contiguous().view(torch.uint8) if y.dim() else y), key)
        self.assertGreater(files, 40)


if __name__ == "__main__":
    if sys.argv[1:] == ["calls"]:
        make_calls()
    else:
        unittest.main()
