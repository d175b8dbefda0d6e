# SPDX-License-Identifier: Apache-2.0
"""Rows as traces of flashinfer-bench (`--trace-out FILE`): a line of JSON for each, with the definition's name, the workload, and the
library's candidate evaluated against the reference."""
import datetime
import json
import pathlib
import platform
import re
import time

import torch

import flashinfer
from flashinfer import _trace
from routines.case import mismatch


def hardware(device):
    """The device's name with underscores."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device).replace(" ", "_")
    info = pathlib.Path("/proc/cpuinfo")
    model = re.search(r"^model name\s*:\s*(.*)$", info.read_text(), re.M) if info.exists() else None
    return (model[1] if model else platform.machine()).replace(" ", "_")


def described(runner, backend):
    """({"definition", "workload"} of the one function that a call of the case is, "") or (None, why there is none)."""
    calls = _trace.of_calls(lambda: runner.once(runner.call(backend)))
    if len(calls) != 1:
        return None, f"a call of it is {len(calls)} calls of functions: {', '.join(c['function'] for c in calls) or 'none'}"
    return (None, f"{calls[0]['function']}: {calls[0]['why']}") if calls[0]["why"] else (calls[0], "")


def errors(expected, actual):
    """The largest absolute and relative difference."""
    largest = [0.0, 0.0]
    for e, a in zip(expected, actual):
        e, a = e.double(), a.double()
        off = (e - a).abs().nan_to_num(nan=0.0)  # both infinite
        if off.numel():
            largest[0] = max(largest[0], off.max().item())
            largest[1] = max(largest[1], (off[e != 0] / e[e != 0].abs()).max().item() if bool(e.any()) else 0.0)
    return largest


def evaluation(check, expected, reference_ms, actual, row, device):
    same_shapes = [t.shape for t in expected] == [t.shape for t in actual]
    passed = same_shapes and mismatch(check, expected, actual) is None
    absolute, relative = errors(expected, actual) if same_shapes else (0.0, 0.0)
    median = row["median_time"]
    return {
        "status": "PASSED" if passed else "INCORRECT_NUMERICAL" if same_shapes else "INCORRECT_SHAPE",
        "environment": {"hardware": hardware(device), "libs": {"flashinfer-cpp": flashinfer.__version__}},
        "timestamp": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "log": "",
        "correctness": {"max_relative_error": relative, "max_absolute_error": absolute, "extra": None} if same_shapes else None,
        "performance": {"latency_ms": median, "reference_latency_ms": reference_ms, "speedup_factor": reference_ms / median} if passed else None,
    }


def timed_reference(checker):
    """(the reference's outputs or None, milliseconds of its call)."""
    start = time.perf_counter()
    return checker.reference(), 1e3 * (time.perf_counter() - start)


def append(path, routine, checker, reference, outputs, rows, device):
    """`reference`: timed_reference(), None where the results are random. A case that has no line is a warning."""
    expected, reference_ms = reference or (None, 0.0)
    call, why = (None, "its results have no reference") if expected is None else described(checker.runner, rows[0]["backend"])
    if call is None:
        print(f"[WARNING] {routine} is not in --trace-out: {why}")
        return
    with open(path, "a") as f:
        for row in rows:
            f.write(json.dumps({
                "definition": call["definition"]["name"], "workload": call["workload"], "solution": f"flashinfer-cpp_{row['resolved_backend']}",
                "evaluation": evaluation(checker.check, expected, reference_ms, checker.check.view(outputs[row["backend"]]), row, device)}) + "\n")
