# SPDX-License-Identifier: Apache-2.0
"""Profiles that FlashInfer's GPU kernels write into a buffer, as traces that ui.perfetto.dev opens. Kernels of this library write none.

The first uint64 holds two int32: how many blocks and groups there are. Each other one that is not 0 is an event: a tag in the low 32 bits,
nanoseconds in the high ones, which start again every 4.3 s.
"""
import enum
import json
import os

_WRAP = 1 << 32


class EventType(enum.Enum):
    """The last two bits of a tag."""

    kBegin = 0
    kEnd = 1
    kInstant = 2


_PHASES = {EventType.kBegin.value: "B", EventType.kEnd.value: "E", EventType.kInstant.value: "i"}


def decode_tag(tag, num_blocks, num_groups):
    """(block, group, event, type of event, multiprocessor) of a tag: bits 0-1 the type, 2-11 the event, 12-23 block * num_groups + group,
    24-31 the multiprocessor.

    Raises:
        ValueError: num_groups is less than 1
    """
    if num_groups < 1:
        raise ValueError(f"decode_tag: num_groups is {num_groups}, but must be at least 1")
    block, group = divmod(tag >> 12 & 0xFFF, num_groups)
    return block, group, tag >> 2 & 0x3FF, tag & 3, tag >> 24 & 0xFF


def _events(words, num_blocks, num_groups, names):
    """Of each entry: (nanoseconds, event of the trace)."""
    for word in words:
        block, group, event, kind, multiprocessor = decode_tag(word % _WRAP, num_blocks, num_groups)
        if event >= len(names):
            raise ValueError(f"export_to_perfetto_trace: a tag names event {event}, but event_names has {len(names)}")
        if kind not in _PHASES:
            raise ValueError(f"export_to_perfetto_trace: a tag has type {kind}, but must have 0, 1 or 2")
        made = {"name": names[event], "ph": _PHASES[kind], "pid": multiprocessor, "tid": block * num_groups + group}
        yield word // _WRAP, made | ({"s": "t"} if made["ph"] == "i" else {})


def export_to_perfetto_trace(profiler_buffer, event_names, file_name):
    """Writes a profile as JSON trace events: a process for each multiprocessor, a thread for each block and group.

    Args:
        profiler_buffer: uint64, one dimension
        event_names: names by number
        file_name: written over when it is there

    Raises:
        ValueError: a buffer of another form, a tag with an unknown event or type
    """
    import torch

    if profiler_buffer.dtype != torch.uint64 or profiler_buffer.dim() != 1 or not profiler_buffer.numel():
        raise ValueError(f"export_to_perfetto_trace: profiler_buffer is {profiler_buffer.dtype} of shape {tuple(profiler_buffer.shape)}, but must be "
                         "torch.uint64 [n], n at least 1")
    head, *words = profiler_buffer.cpu().tolist()
    num_blocks, num_groups = head % _WRAP, head // _WRAP
    found = list(_events([word for word in words if word], num_blocks, num_groups, event_names))
    late = max((ns for ns, _ in found), default=0)
    trace, named = [], set()
    for ns, event in found:
        ns += _WRAP if late - ns > _WRAP // 2 else 0  # of two times further apart than that, the clock started again between them
        process, thread = event["pid"], event["tid"]
        block, group = divmod(thread, num_groups)
        for key, kind, text in ((process, "process_name", f"SM_{process:03d}"), ((process, thread), "thread_name", f"blk{block}_g{group}")):
            if key not in named:
                named.add(key)
                trace.append({"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": text}})
        trace.append(event | {"ts": ns / 1000})
    with open(os.fspath(file_name), "w", encoding="utf-8") as file:
        json.dump({"displayTimeUnit": "ns", "traceEvents": trace}, file)
