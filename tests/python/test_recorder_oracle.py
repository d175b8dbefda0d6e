# SPDX-License-Identifier: Apache-2.0
"""One script of calls with every kind of value (oracle/calls.py) under FlashInfer's own recorder and under ours, compared line by
line, key by key and bit by bit. What differs on purpose is in DELIBERATE, with the reason."""
import json
import math
import os
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import ROOT, environment

HERE = pathlib.Path(__file__).parent
LEVELS = (1, 3, 5, 10)


def has_oracle():
    done = subprocess.run([sys.executable, "-c", "import flashinfer; print(flashinfer.__file__)"], env=environment("theirs"),
                          cwd="/", capture_output=True, text=True)
    return done.returncode == 0 and str(ROOT / "python") not in done.stdout


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """{(who, level): folder with `log` and `dumps`}"""
    assert has_oracle(), "FlashInfer's Python package is not installed beside torch: tools/setup.sh test"
    folders, waiting = {}, []
    for level in LEVELS:
        for who in ("theirs", "ours"):
            folder = folders[who, level] = tmp_path_factory.mktemp(f"{who}{level}")
            env = environment(who, FLASHINFER_LOGLEVEL=level, FLASHINFER_LOGDEST=folder / "log", FLASHINFER_DUMP_DIR=folder / "dumps")
            waiting.append(subprocess.Popen([sys.executable, str(HERE / "oracle" / "calls.py")], env=env, stdout=subprocess.DEVNULL,
                                            stderr=subprocess.PIPE, text=True))
        for process in waiting:
            _, errors = process.communicate(timeout=300)
            assert process.returncode == 0, errors
        waiting.clear()
    return folders


# ---- text ----
MASKS = [
    (r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\]", "[time]"),
    (r"0x[0-9a-f]+", "0x"),
    (r"\S*dumps/\d{8}_\d{6}_\d{3}_pid\d+_", "dumps/"),
    (r"FlashInfer version: .*", "FlashInfer version: V"),
    (r"FlashInfer \S+ \(commit \w+\)", "FlashInfer V (commit C)"),
]

# Calls whose records differ on purpose, by function.
DELIBERATE_CALLS = {
    "generator": "The state of a generator is kept, as a tensor: without it random outputs cannot be replayed.",
    "fp4": "The tensors inside an FP4Tensor are kept.",
    "unreadable": "A tensor without memory or of more than 8 dimensions is described, not read: no statistics, nothing stored.",
}
# And text, by pattern.
DELIBERATE_TEXT = {
    r"Failed to build api_log_stats kernel.*\n": "That kernel, for CUDA graphs, is not built at import here, so it cannot fail.",
}
STATISTICS = re.compile(r" *(min|max|mean|nan_count|inf_count)=.*\n| *\[statistics error: .*\n")
SIZES = re.compile(r"(Dumped (?:in|out)puts to: \S*_(?:%s)_\S* \().*\)" % "|".join(DELIBERATE_CALLS))


def masked(path, who):
    text = path.read_text(encoding="utf-8")
    for pattern in DELIBERATE_TEXT if who == "theirs" else ():
        text = re.sub(pattern, "", text)
    calls = re.split(r"(?=API Call: )", SIZES.sub(r"\1...)", text))
    text = "".join(STATISTICS.sub("", c) if c.startswith("API Call: unreadable\n") else c for c in calls)
    return mask_text(text).split("\n")


def mask_text(text):
    for pattern, replacement in MASKS:
        text = re.sub(pattern, replacement, text)
    return text


def mean_differs(a, b):
    """torch adds in float32, in an order of its own; ours in one order on every machine."""
    if "mean=" not in a or "mean=" not in b:
        return True
    x, y = (float(line.split("=")[1]) for line in (a, b))
    return abs(x - y) > 2e-6 + 1e-6 * abs(x)


@pytest.mark.parametrize("level", LEVELS)
def test_text(runs, level):
    theirs, ours = (masked(runs[who, level] / "log", who) for who in ("theirs", "ours"))
    assert len(theirs) > 80
    for i, (a, b) in enumerate(zip(theirs, ours)):
        if a != b and mean_differs(a, b):
            before = "\n".join(theirs[max(0, i - 8):i])
            pytest.fail(f"line {i + 1}, after\n{before}\ntheirs: {a}\n  ours: {b}")
    assert len(theirs) == len(ours)


# ---- records ----
def records(folder):
    out = []
    for line in (folder / "dumps" / "session.jsonl").read_text(encoding="ascii").splitlines():
        record = json.loads(line)
        if record["execution_status"] != "failed":  # theirs has no such record
            out.append((record, line))
    return out


def completed(folder):
    return [r for r in records(folder) if r[0]["execution_status"] == "completed"]


def strict(value):
    """Non-finite numbers as strict JSON has them."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"type": "float", "value": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    if isinstance(value, dict):
        return {k: strict(v) for k, v in value.items()}
    return [strict(v) for v in value] if isinstance(value, list) else value


def check_value(theirs, ours, where):
    if isinstance(theirs, dict) and "repr" in theirs:
        assert ours["type"] == theirs["type"], where  # ours may say more: seed and state, the parts of a complex number
        assert mask_text(ours["repr"]) == mask_text(theirs["repr"]), where
    elif isinstance(theirs, dict):
        assert list(ours)[:len(theirs)] == list(theirs), where
        for k, v in theirs.items():
            check_value(v, ours[k], f"{where}.{k}")
    elif isinstance(theirs, list):
        assert len(theirs) == len(ours), where
        for i, v in enumerate(theirs):
            check_value(v, ours[i], f"{where}[{i}]")
    elif isinstance(theirs, int) and not -(2**63) <= theirs < 2**63:
        assert ours == {"type": "int", "repr": str(theirs)}, where  # JSON's readers agree on 64 bits and no more
    else:
        assert (type(theirs), theirs) == (type(ours), ours), where


def test_records(runs):
    theirs, ours = records(runs["theirs", 10]), records(runs["ours", 10])
    assert len(theirs) == len(ours) > 120
    for (a, _), (b, line) in zip(theirs, ours):
        where = f"{a['function_name']} {a['call_sequence']} {a['execution_status']}"
        assert list(b)[:len(a)] == list(a), where
        if a["function_name"] in DELIBERATE_CALLS:
            continue
        for key in ("function_name", "module", "call_sequence", "tensor_info", "tensor_format", "function_signature",
                    "execution_status", "graph_capture"):
            if (a["function_name"], key) != ("changing_default", "function_signature"):  # ours is the one of the definition
                assert mask_text(str(a[key])) == mask_text(str(b[key])), f"{where} {key}"
        for key in ("input_metadata", "output_metadata"):
            check_value(strict(a[key]), b[key], f"{where} {key}")
        assert ("self_id" in a) == ("self_id" in b), where
        assert {k: b["versions"][k] for k in ("torch", "python")} == {k: a["versions"][k] for k in ("torch", "python")}, where
        assert list(a["tensor_details"]) == list(b["tensor_details"]), where
        for key, detail in a["tensor_details"].items():
            assert list(b["tensor_details"][key])[:4] == list(detail), where
            assert {k: b["tensor_details"][key][k] for k in detail} == detail, f"{where} {key}"
        folder = r".*/dumps/\d{8}_\d{6}_\d{3}_pid\d+_" + re.escape(a["function_name"]) + r"_call\d{4}"
        assert re.fullmatch(folder, b["dump_dir"])
        assert json.dumps(b) == line  # separators, escapes and numbers of Python's json
        assert pathlib.Path(b["dump_dir"], "metadata.jsonl").is_file()


def same_bits(x, y):
    import torch

    x, y = x.detach().contiguous(), y.detach().contiguous()
    return torch.equal(x.flatten().view(torch.uint8), y.flatten().view(torch.uint8))


def test_tensor_files(runs):
    import torch

    files = 0
    for (a, _), (b, _) in zip(completed(runs["theirs", 10]), completed(runs["ours", 10])):
        for name in () if a["function_name"] in DELIBERATE_CALLS else ("inputs.pt", "outputs.pt"):
            there, here = (os.path.join(r["dump_dir"], name) for r in (a, b))
            assert os.path.exists(there) == os.path.exists(here), here
            if not os.path.exists(there):
                continue
            files += 1
            want, got = torch.load(there), torch.load(here, weights_only=True)
            assert list(want) == list(got)
            for key, x in want.items():
                y = got[key]
                if b["tensor_details"][key].get("stored") == "bytes":
                    y = y.view(x.dtype).squeeze(-1)
                assert (x.dtype, x.shape, x.requires_grad) == (y.dtype, y.shape, y.requires_grad), (here, key)
                assert same_bits(x, y), (here, key)
    assert files > 60


def test_a_call_that_raised(runs):
    """Theirs leaves no trace of it; ours says what was raised."""
    last = [json.loads(line) for line in (runs["ours", 10] / "dumps" / "session.jsonl").read_text().splitlines()]
    failed = [r for r in last if r["execution_status"] == "failed"]
    assert [(r["function_name"], r["error"]) for r in failed] == [("fail", {"type": "ValueError", "message": "no"})]
