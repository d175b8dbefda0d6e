# SPDX-License-Identifier: Apache-2.0
"""What a routine times, and how: back ends, reference check, times, figures, rows."""
import dataclasses
import functools
import importlib.util
import pathlib
import platform
import typing

import numpy as np
import torch

import flashinfer
from flashinfer.testing.utils import bench_gpu_time, candidate, count_bytes, set_seed

# The reference computes in plain loops: beyond this many operations it would take minutes.
MOST_REFERENCE_FLOPS = 4e9
# Words of packages that compute on GPUs alone, and compute capabilities that a word of FlashInfer's needs.
NEVER_ON_CPU = ("triton", "fla")
CAPABILITIES = {"fa3": (9,), "trtllm-fmha-v2": (9, 12), "trtllm-gen": (10,), "cutlass": (8, 9, 10, 11, 12), "trtllm": (10,),
                "cute-dsl": (10, 12), "prims-ts": (10,), "b12x": (12,), "tgv": (10,), "trtllm_low_latency": (10,)}
DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32, "float64": torch.float64,
          "fp8_e4m3": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2, "nvfp4": torch.uint8}


def dtype(word, allowed=None, what="dtype"):
    """torch's element type of that name; ValueError where it is none, or not one of `allowed` names."""
    if word not in DTYPES or allowed is not None and word not in allowed:
        raise ValueError(f"Unsupported {what}: {word}. Supported dtypes are {', '.join(allowed or DTYPES)}.")
    return DTYPES[word]


@dataclasses.dataclass
class Check:
    """When outputs agree: each element within atol + rtol * |expected|, but for a share of `share`, or, with `cosine`, the angle alone."""
    rtol: float = 1e-2
    atol: float = 1e-2
    share: float = 0.0
    cosine: typing.Optional[float] = None
    # The outputs as tensors that can be compared: dequantised, in the order of the rows, ...
    view: typing.Callable = lambda outputs: outputs
    # What torch computes; it is viewed already. None: only the library's own reference is compared.
    expected: typing.Optional[typing.Callable] = None
    expected_cosine: typing.Optional[float] = None


@dataclasses.dataclass
class Case:
    call: typing.Callable                   # call(*inputs) -> tensor, or tuple or list of tensors
    inputs: tuple
    flops: float = 0.0
    bytes: typing.Optional[float] = None    # None: those of inputs and outputs
    row: dict = dataclasses.field(default_factory=dict)
    check: typing.Optional[Check] = None    # None: the outputs are random, the call is only run
    routes: dict = dataclasses.field(default_factory=dict)   # back end -> another call of the same inputs
    peers: dict = dataclasses.field(default_factory=dict)    # library -> a function without arguments
    peer_row: typing.Optional[tuple] = None  # (op, case text) of the same work, for the libraries that bench/peers.py knows
    changes_inputs: bool = False
    uses_pdl: bool = True
    no_graph: tuple = ()                    # back ends that are not captured in graphs
    sleep: bool = False                     # after each call: products heat the chip
    show: typing.Callable = lambda backend: backend
    backends: typing.Optional[list] = None  # None: those of --backends


def device_of(args):
    cuda = torch.cuda.is_available() if args.device == "auto" else args.device == "cuda"
    return torch.device("cuda" if cuda else "cpu")


def usable(backends, routine, device):
    """Those that may run on the device; `ours` stands for the candidates."""
    gpu = device.type == "cuda"
    capability = torch.cuda.get_device_capability(device) if gpu else None
    words = [w for b in backends for w in ((("cuda", "cuda_cublaslt") if gpu else ("cpu", "reference")) if b == "ours" else (b,))]
    kept = []
    for word in words:
        if word in NEVER_ON_CPU or gpu and capability[0] not in CAPABILITIES.get(word, capability[:1]) or gpu and word == "cpu":
            name = f"{capability[0]}.{capability[1]}" if gpu else "cpu"
            print(f"[WARNING] {word} for routine {routine} is not supported on compute capability {name}. Skipping.")
        else:
            kept.append(word)
    return kept


def tensors_of(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in value for t in tensors_of(v)] if isinstance(value, (list, tuple)) else []


def _cloned(value):
    if isinstance(value, torch.Tensor):
        if 0 in value.stride():  # one value seen many times: no output
            return value
        return value.clone() if value.is_contiguous() else torch.empty_strided(
            value.size(), value.stride(), dtype=value.dtype, device=value.device).copy_(value)
    return type(value)(map(_cloned, value)) if isinstance(value, (list, tuple)) else value


class Runner:
    """The calls of a case, each back end's under its own name."""

    def __init__(self, case, device):
        self.case, self.device = case, device

    def call(self, backend):
        plain = self.case.routes.get(backend, self.case.call)
        if backend not in ("cpu", "reference", "cuda_cublaslt"):
            return plain

        def forced(*inputs):
            with candidate(backend):
                return plain(*inputs)

        return forced

    def once(self, call):
        """The outputs of one call, as a list; the inputs stay as they are."""
        outputs = tensors_of(call(*(_cloned(self.case.inputs) if self.case.changes_inputs else self.case.inputs)))
        return [t.clone() for t in outputs]

    def resolved(self, backend):
        """The candidate that computes the calls of a back end's name."""
        if backend in ("cpu", "reference", "cuda_cublaslt"):
            return backend
        for name in ("cuda", "cuda_cublaslt") if self.device.type == "cuda" else ("cpu",):
            try:
                with candidate(name):
                    self.once(self.call(backend))
                return name
            except NotImplementedError:
                continue
        return "reference"


def mismatch(check, expected, actual, cosine=None):
    """(text, share) of what differs; None: they agree."""
    cosine = check.cosine if cosine is None else cosine
    wrong = count = 0
    for e, a in zip(expected, actual):
        if e.shape != a.shape:
            return f"shapes {tuple(e.shape)} and {tuple(a.shape)}", 1.0
        e, a = e.double(), a.double()
        if cosine is not None:
            found = torch.nn.functional.cosine_similarity(e.flatten(), a.flatten(), dim=0).item()
            if e.numel() and bool(e.any()) and not found >= cosine:
                return f"the cosine is {found:.5f}, but must be at least {cosine}", 1.0
            continue
        wrong += int((~torch.isclose(a, e, rtol=check.rtol, atol=check.atol, equal_nan=True)).sum())
        count += e.numel()
    if wrong > check.share * count:
        return f"{wrong} / {count} ({100 * wrong / count:.2f}%) elements are different", wrong / count
    return None


class RefCheck:
    """Compares the outputs of back ends with the reference and with one another; says what differs, and raises unless that is allowed."""

    def __init__(self, args, runner, attention):
        self.args, self.runner, self.check, self.attention = args, runner, runner.case.check, attention
        self.seen = {}

    def _report(self, backend, against, found):
        print(f"[ERROR] Output tensor mismatch between backends {against} and {backend}: {found[0]}")
        if not self.args.allow_output_mismatch:
            raise AssertionError(f"[ERROR] Backend {backend} output mismatch")

    def reference(self):
        """The outputs of the library's own reference; None where it has none or would take too long."""
        case = self.runner.case
        if case.flops > MOST_REFERENCE_FLOPS:
            if self.args.verbose:
                print(f"[INFO] {case.flops:.3g} operations take the reference too long; compared with "
                      f"{'torch' if self.check.expected else 'the other back ends'} alone.")
            return None
        try:
            return self.check.view(self.runner.once(self.runner.call("reference")))
        except NotImplementedError as e:
            print(f"[WARNING] {self.args.routine} has no reference here: {e}")
            return None

    def compare(self, outputs, ours):
        """outputs: {back end: list of tensors}; ours: reference()."""
        viewed = {b: self.check.view(out) for b, out in outputs.items()}
        torchs = self.check.expected() if self.check.expected else None
        for backend, out in viewed.items():
            for against, expected, cosine in (("reference", ours, None), ("torch", torchs, self.check.expected_cosine)):
                found = expected is not None and mismatch(self.check, expected, out, cosine)
                if found:
                    self._report(backend, against, found)
        self._among(viewed)

    def _among(self, viewed):
        """The back ends with the first of them, or with fa2: FlashInfer's own comparison."""
        if len(viewed) < 2:
            return
        first = "fa2" if "fa2" in viewed else next(iter(viewed))
        loose = dataclasses.replace(self.check, rtol=0.2, atol=1e-2, cosine=None) if self.attention else self.check
        for backend, out in viewed.items():
            found = mismatch(loose, viewed[first], out)
            if found:
                self._report(backend, first, found)


def print_perf(name, median, std, tflops, tb_per_sec):
    print(f"[PERF] {name.ljust(15)}:: median time {median:.3f} ms; std {std:.3f} ms; achieved tflops {tflops:.3f} TFLOPs/sec; "
          f"achieved tb_per_sec {tb_per_sec:.3f} TB/sec")


def _times(args, device, call, inputs, graph, sleep):
    gpu = device.type == "cuda"
    return bench_gpu_time(call, dry_run_iters=args.dry_run_iters, repeat_iters=args.num_iters, sleep_after_run=sleep,
                          enable_cupti=args.use_cupti and gpu, use_cuda_graph=graph and gpu, input_args=inputs,
                          cold_l2_cache=not args.warm_cache)


def announce(args, device):
    if args.verbose >= 1:
        print(f"[INFO] {args = }")
        print(f"[INFO] Running {args.routine}")
        print(f"[INFO] FlashInfer version: {flashinfer.__version__}")
    if args.verbose >= 2:
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
        print(f"[VVERBOSE] device = {device.type}, {name}, {torch.get_num_threads()} threads")
    if device.type == "cpu":
        print("[INFO] Calls run on the CPU, by this library's own implementation under each back end's name.")
    if args.generate_repro_command:
        print(f"[INFO] To reproduce this test case, run the following command: {args.repro_command}")


def _tuned(args, call, inputs):
    """Measures tactics before the times are taken; reads and writes the file of --autotune_cache."""
    tune = getattr(args, "autotune", False)
    if tune or args.autotune_cache:
        with flashinfer.autotune(tune, cache=args.autotune_cache):
            for _ in range((args.dry_run_iters or 10) if tune else 0):
                call(*inputs)


@functools.lru_cache(maxsize=None)
def _peer_library(name):
    """(bench/peers.py, the library there), which is None where it is not installed."""
    spec = importlib.util.spec_from_file_location("peers", pathlib.Path(__file__).resolve().parents[2] / "bench/peers.py")
    peers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peers)
    return peers, peers.library(name, torch.get_num_threads())


def _peer_call(case, peer, device):
    """A function without arguments, or None with a reason."""
    if peer in case.peers:
        return case.peers[peer], ""
    if case.peer_row is None or peer == "torch" or device.type != "cpu":
        return None, "has nothing to compare with"
    peers, library = _peer_library(peer)
    if library is None:
        return None, "is not installed"
    try:
        return library.row(case.peer_row[0], peers.parse(case.peer_row[1])), "has nothing to compare with"
    except Exception as e:  # a library that cannot compute it on this CPU
        return None, f"fails ({peers.first_line(e)}): nothing to compare with"


def _peer_rows(args, device, case):
    """{library: median}: what other libraries take for the same."""
    medians = {}
    for peer in args.peers:
        call, reason = _peer_call(case, peer, device)
        if call is None:
            print(f"[INFO] {peer} {reason} for {args.routine}.")
            continue
        times = _times(args, device, call, (), False, False)
        medians[peer] = float(np.median(times))
        print_perf(peer, medians[peer], float(np.std(times)), case.flops / (1e9 * medians[peer]), case.bytes / (1e9 * medians[peer]))
    return medians


def run(args, module):
    """Runs one command and returns its rows."""
    from routines import trace_lines

    device = device_of(args)
    announce(args, device)
    set_seed(args.random_seed)
    case = module.make(args, device)
    runner = Runner(case, device)
    backends = usable(args.backends if case.backends is None else case.backends, args.routine, device)
    if not backends:
        print("[ERROR] No backends to test. Exiting.")
        return []
    if args.enable_pdl and not case.uses_pdl:
        print(f"[WARNING] --enable_pdl provided but routine {args.routine} does not support PDL; flag is ignored.")
    if args.verbose >= 2:
        for i, t in enumerate(tensors_of(case.inputs)):
            print(f"[VVERBOSE] input {i}: {tuple(t.shape)} {t.dtype}")
    outputs = {b: runner.once(runner.call(b)) for b in backends}
    checker = RefCheck(args, runner, "Wrapper" in args.routine)
    reference = trace_lines.timed_reference(checker) if case.check and (args.refcheck or args.trace_out) else None
    if args.refcheck and case.check is None:
        print(f"[INFO] The results of {args.routine} are random or have no reference: --refcheck only runs it.")
    elif args.refcheck:
        checker.compare(outputs, reference[0])
    if case.bytes is None:
        case.bytes = count_bytes(*tensors_of(case.inputs), *outputs[backends[0]])
    peers = _peer_rows(args, device, case)
    rows = []
    for backend in backends:
        call = runner.call(backend)
        _tuned(args, call, case.inputs)
        times = _times(args, device, call, case.inputs, not args.no_cuda_graph and backend not in case.no_graph, case.sleep)
        median, std = float(np.median(times)), float(np.std(times))
        tflops, tb_per_sec = case.flops / (1e9 * median), case.bytes / (1e9 * median)
        print_perf(case.show(backend), median, std, tflops, tb_per_sec)
        rows.append({"routine": args.routine, "median_time": median, "std_time": std, "tflops": tflops, "tb_per_sec": tb_per_sec,
                     "backend": backend, "resolved_backend": runner.resolved(backend), "device": device.type,
                     "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
                     **{f"{peer}_median_time": value for peer, value in peers.items()}, **case.row})
    if args.trace_out:
        trace_lines.append(args.trace_out, args.routine, checker, reference, outputs, rows, device)
    return rows
