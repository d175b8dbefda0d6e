# SPDX-License-Identifier: Apache-2.0
"""Timing on a GPU through torch.cuda: events, replays of a captured graph, and cold caches for both."""
from ._clock import aggregate_gpu_time_across_ranks, iterations, sleep_after_kernel_run, torch_if_loaded, warn_once

# Copies of the arguments of a captured call, and captured calls, at most: a tensor of 1 KB would need hundreds of thousands.
MOST_ROTATIONS = 1024


class Call:
    """fn with its arguments."""

    def __init__(self, fn, args, kwargs):
        self.fn, self.args, self.kwargs = fn, tuple(args), dict(kwargs or {})

    def __call__(self):
        return self.fn(*self.args, **self.kwargs)

    def tensors(self):
        """The GPU tensors among the arguments, also in lists, tuples and dictionaries."""
        return [t for t in _leaves((self.args, self.kwargs)) if t.is_cuda]

    def copies(self, count):
        """`count` calls; the first has the arguments themselves, the others copies of their GPU tensors."""
        return [self] + [Call(self.fn, _cloned(self.args), _cloned(self.kwargs)) for _ in range(count - 1)]


def _leaves(value):
    torch = torch_if_loaded()
    if isinstance(value, dict):
        value = value.values()
    elif torch is not None and isinstance(value, torch.Tensor):
        return [value]
    elif not isinstance(value, (list, tuple)):
        return []
    return [t for v in value for t in _leaves(v)]


def _cloned(value):
    torch = torch_if_loaded()
    if isinstance(value, torch.Tensor):
        return value.detach().clone() if value.is_cuda else value
    if isinstance(value, dict):
        return {k: _cloned(v) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_cloned, value))
    return type(value)(map(_cloned, value)) if isinstance(value, (list, tuple)) else value


def on_gpu(args, kwargs):
    """Whether a call is timed on a GPU: torch uses one, and the arguments, if they have tensors, have one there."""
    torch = torch_if_loaded()
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return False
    tensors = _leaves((tuple(args), dict(kwargs or {})))
    return not tensors or any(t.is_cuda for t in tensors)


def l2_bytes(device=None):
    import torch

    return int(torch.cuda.get_device_properties(torch.cuda.current_device() if device is None else device).L2_cache_size)


def rotations(tensors, device=None, least=2, cache=None):
    """How many copies of `tensors` are at least five times as large as the L2 cache (`cache` bytes): 1 when they are already; at most
    MOST_ROTATIONS."""
    size = sum(t.numel() * t.element_size() for t in tensors)
    want = 5 * (cache or l2_bytes(device))
    if size >= want or size == 0:
        return 1
    return min(MOST_ROTATIONS, max(least, -(-want // size)))


class Flush:
    """Zeroes a buffer of twice the L2 cache, in whole MiB."""

    def __init__(self):
        import torch

        self.buffer = torch.empty(2 * l2_bytes() >> 20 << 20, dtype=torch.int8, device="cuda")

    def __call__(self):
        self.buffer.zero_()


def _pair():
    import torch

    return torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)


def _estimate(one, flush, aggregate_op):
    """Milliseconds of a call, the mean of five, with the flushes between them."""
    import torch

    start, end = _pair()
    torch.cuda.synchronize()
    start.record()
    for _ in range(5):
        flush()
        one()
    end.record()
    torch.cuda.synchronize()
    return aggregate_gpu_time_across_ranks(start.elapsed_time(end) / 5, aggregate_op)


def time_events(name, call, how, flush=None, calls=1):
    """Milliseconds of each measured call() between two events, divided by `calls`."""
    import torch

    flush = (Flush() if how.cold else lambda: None) if flush is None else flush
    call()
    estimate = _estimate(call, flush, how.aggregate_op)
    dry, repeat = iterations(name, how.dry, how.repeat, estimate, how.dry_ms, how.repeat_ms)
    for _ in range(dry):
        flush()
        call()
    torch.cuda.synchronize()
    pairs = [_pair() for _ in range(repeat)]
    for start, end in pairs:
        flush()
        start.record()
        call()
        end.record()
        if how.sleep:
            sleep_after_kernel_run(estimate)
    torch.cuda.synchronize()
    return aggregate_gpu_time_across_ranks([start.elapsed_time(end) / calls for start, end in pairs], how.aggregate_op)


def captured(calls):
    """A graph of `calls`, one after the other, after three warm-up calls on a side stream."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            calls[0]()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    return graph


def time_graph(name, call, how, calls):
    """Milliseconds of a call, from replays of a graph of at least `calls` calls. Cold: call i of the graph uses copy i of the arguments,
    modulo the number of copies, which together exceed the L2 cache five times."""
    count = 1
    if how.cold:
        tensors = call.tensors()
        size = sum(t.numel() * t.element_size() for t in tensors)
        count = rotations(tensors) if tensors else 1
        if not tensors:
            warn_once(f"{name}: input_args and input_kwargs have no GPU tensor, so the L2 cache stays warm between the calls of a graph")
        elif size * count < 5 * l2_bytes() and count == MOST_ROTATIONS:
            warn_once(f"{name}: the arguments have {size} bytes, of which {MOST_ROTATIONS} copies still fit the L2 cache; calls are timed "
                      "by events, with a flush before each, without a graph")
            return time_events(name, call, how)
    calls = max(calls, count)
    copies = call.copies(count)
    graph = captured([copies[i % count] for i in range(calls)])
    return time_events(name, graph.replay, how, flush=lambda: None, calls=calls)
