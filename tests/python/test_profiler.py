# SPDX-License-Identifier: Apache-2.0
"""flashinfer.profiler: a buffer of tags as a trace."""
import json

import pytest
import torch

from flashinfer.profiler import EventType, decode_tag, export_to_perfetto_trace

BLOCKS, GROUPS = 3, 2


def word(ns, block, group, event, kind, multiprocessor):
    return ns << 32 | multiprocessor << 24 | (block * GROUPS + group) << 12 | event << 2 | kind.value


def buffer(*words):
    """uint64, of Python's integers of 64 bits."""
    return torch.tensor([w - (w >> 63 << 64) for w in (GROUPS << 32 | BLOCKS, *words)]).view(torch.uint64)


def test_a_tag_has_five_parts():
    tag = word(0, 2, 1, 1023, EventType.kInstant, 255)
    assert decode_tag(tag, BLOCKS, GROUPS) == (2, 1, 1023, 2, 255) and decode_tag(0, BLOCKS, GROUPS) == (0, 0, 0, 0, 0)
    with pytest.raises(ValueError, match="num_groups is 0"):
        decode_tag(tag, BLOCKS, 0)


def test_a_trace_has_a_slice_for_each_pair(tmp_path):
    made = buffer(word(1500, 0, 0, 0, EventType.kBegin, 7), word(1700, 1, 1, 1, EventType.kInstant, 9), 0, word(2500, 0, 0, 0, EventType.kEnd, 7))
    export_to_perfetto_trace(made, ["load", "done"], tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M"}
    assert names == {("process_name", 7, 0): "SM_007", ("thread_name", 7, 0): "blk0_g0", ("process_name", 9, 3): "SM_009", ("thread_name", 9, 3): "blk1_g1"}
    assert [e for e in events if e["ph"] != "M"] == [{"name": "load", "ph": "B", "pid": 7, "tid": 0, "ts": 1.5},
                                                     {"name": "done", "ph": "i", "pid": 9, "tid": 3, "s": "t", "ts": 1.7},
                                                     {"name": "load", "ph": "E", "pid": 7, "tid": 0, "ts": 2.5}]


def test_a_clock_that_starts_again(tmp_path):
    export_to_perfetto_trace(buffer(word(0xFFFFFF00, 0, 0, 0, EventType.kBegin, 0), word(0x100, 0, 0, 0, EventType.kEnd, 0)), ["a"], tmp_path / "t")
    begin, end = (e["ts"] for e in json.loads((tmp_path / "t").read_text())["traceEvents"] if e["ph"] != "M")
    assert end - begin == pytest.approx(0.512)


def test_errors_name_the_value(tmp_path):
    with pytest.raises(ValueError, match="torch.int64 of shape"):
        export_to_perfetto_trace(torch.zeros(2, dtype=torch.int64), [], tmp_path / "t")
    with pytest.raises(ValueError, match="names event 4, but event_names has 1"):
        export_to_perfetto_trace(buffer(word(1, 0, 0, 4, EventType.kBegin, 0)), ["a"], tmp_path / "t")
    assert not (tmp_path / "t").exists()
