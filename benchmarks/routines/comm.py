# SPDX-License-Identifier: Apache-2.0
"""Communication between the processes of one machine, on CPU tensors: all-reduces, mixed collectives and the all-to-all of experts."""
import hashlib
import platform

import numpy as np
import torch

import flashinfer.comm as comm
from flashinfer.testing.utils import set_seed
from routines import case, mixed_comm, moe_comm, ranks
from routines.case import Check, dtype

_PATTERNS = {"allreduce": comm.AllReduceFusionPattern.kAllReduce,
             "ar_residual_rmsnorm": comm.AllReduceFusionPattern.kARResidualRMSNorm,
             "ar_residual_rmsnorm_dynamic_fp8": comm.AllReduceFusionPattern.kARResidualRMSNormDynamicFP8Quant}
_EPS = 1e-5


def _print(name, times, flops, moved):
    """(median, standard deviation, teraflops and terabytes a second) of times in milliseconds, printed; `flops` and bytes of all ranks together."""
    median, std = float(np.median(times)), float(np.std(times))
    figures = median, std, flops / (1e9 * median), moved / (1e9 * median)
    case.print_perf(name, *figures)
    return figures


def _peer_times(args, group, name, call):
    """{column: median} of torch.distributed, where --peers asks for it and `call` makes a function that computes the same."""
    found = {}
    for peer in args.peers:
        if peer != "torch" or call is None:
            print(f"[WARNING] --peers {peer} has nothing to compare with {name}.")
            continue
        (_, times) = group.times(args, [call()])
        median = found["torch_median_time"] = float(np.median(times))
        print(f"[PERF] {'torch':16}:: median time {median:.6f} ms (torch.distributed, gloo)")
    return found


def _row(args, times, moved, backend, name):
    """The row of milliseconds of iterations in which `moved` bytes went between ranks. There is no figure of operations."""
    median, std, tflops, tb_per_sec = _print(name, times, float("nan"), moved)
    return {"routine": args.routine, "median_time": median, "std_time": std, "tflops": tflops, "tb_per_sec": tb_per_sec, "backend": backend,
            "resolved_backend": name, "input_dtype": dtype(getattr(args, "input_dtype", None) or args.dtype), "device": "cpu", "device_name": platform.machine()}


def _compare(args, group, name, problem):
    """Says what is wrong on any rank, and raises on all unless that is allowed."""
    found = group.first(problem)
    if found:
        print(f"[ERROR] Output tensor mismatch between backends reference and {name}: {found}")
        if not args.allow_output_mismatch:
            raise AssertionError(f"[ERROR] Backend {name} output mismatch: {found}")


class _AllReduce:
    """An all-reduce of a pattern: its call, and its outputs in double precision."""

    def __init__(self, args, group):
        self.args, self.group, self.kind = args, group, dtype(args.input_dtype)
        self.shape, self.pattern = (args.num_tokens, args.hidden_size), _PATTERNS[args.pattern]
        self.workspace = comm.create_allreduce_fusion_workspace(
            args.ar_backend, group.size, group.rank, *self.shape, self.kind, comm_backend=group.backend, force_oneshot_support=True)
        g = ranks.generator(args, -1)
        self.residual = torch.randn(self.shape, generator=g).to(self.kind)
        self.gamma = torch.randn(args.hidden_size, generator=g).to(self.kind)
        self.input = self._input(group.rank)
        self.norm = args.pattern != "allreduce"
        self.options = {"launch_with_pdl": args.enable_pdl}
        if not self.norm:
            self.options["output"] = torch.empty_like(self.input)
        else:
            self.options.update(residual_in=self.residual, residual_out=torch.empty_like(self.input), rms_gamma=self.gamma, rms_eps=_EPS)
            if "fp8" in args.pattern:
                self.options.update(quant_out=torch.empty(self.shape, dtype=torch.float8_e4m3fn), scale_out=torch.empty(args.num_tokens, 1))
            else:
                self.options["norm_out"] = torch.empty_like(self.input)

    def _input(self, rank):
        return torch.randn(self.shape, generator=ranks.generator(self.args, rank)).to(self.kind)

    def call(self, oneshot):
        return lambda: comm.allreduce_fusion(self.input, self.workspace, self.pattern, use_oneshot=oneshot, **self.options)

    def peer(self):
        """The same by torch.distributed: a function without arguments. None of the patterns that quantise."""
        if "fp8" in self.args.pattern:
            return None
        dist = self.group.torch_distributed()

        def run():
            x = self.input.clone()
            dist.all_reduce(x)
            return x if not self.norm else torch.nn.functional.rms_norm(x.add_(self.residual), x.shape[-1:], self.gamma, _EPS)

        return run

    def outputs(self):
        return [t for name, t in self.options.items() if name in ("output", "residual_out", "norm_out", "quant_out", "scale_out")]

    def problem(self):
        """What is wrong with the outputs of the last call on this rank, or with their being the same on all; None: nothing."""
        h = sum(self._input(r).double() for r in range(self.group.size))
        found = [(h, self.options.get("output"))]
        # Each of size - 1 sums is rounded to the element type; partial sums of k ranks have a deviation of sqrt(k).
        slack = 1.3 * torch.finfo(self.kind).eps * self.group.size ** 1.5
        rtol = 0.01
        if self.norm:
            h = h + self.residual.double()
            n = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + _EPS) * self.gamma.double()
            slack *= 1.0 + self.gamma.abs().max().item()
            found = [(h, self.options["residual_out"]), (n, self.options.get("norm_out"))]
            if "fp8" in self.args.pattern:
                rtol = 0.08  # e4m3 has 3 bits behind the point
                found[1] = (n, self.options["quant_out"].double() * self.options["scale_out"].double())
        wrong = case.mismatch(Check(rtol, slack), *zip(*found))
        digest = hashlib.sha256(b"".join(t.view(torch.uint8).numpy().tobytes() for t in self.outputs())).hexdigest()
        if wrong is None and len(set(self.group.backend.allgather(digest))) > 1:
            wrong = ("the outputs of the ranks differ",)
        return wrong and wrong[0]


def _allreduce(args, group):
    reduced = _AllReduce(args, group)
    elements = args.num_tokens * args.hidden_size
    moved = 2 * (group.size - 1) / group.size * elements * reduced.kind.itemsize
    rows = []
    try:
        peers = _peer_times(args, group, f"pattern {args.pattern}", None if "fp8" in args.pattern else reduced.peer)
        for oneshot in (True, False):
            name = f"{reduced.workspace.backend}_{args.pattern}_{'oneshot' if oneshot else 'twoshot'}"
            if not oneshot and args.num_tokens <= group.size:
                print(f"[WARNING] {name} needs more tokens than ranks, but --num_tokens is {args.num_tokens} of {group.size} ranks. Skipping.")
                continue
            if args.validate or args.refcheck:
                reduced.call(oneshot)()
                _compare(args, group, name, reduced.problem())
            (_, times) = group.times(args, [reduced.call(oneshot)])
            rows.append({**_row(args, times, moved, reduced.workspace.backend, name), **peers})
            if args.verbose:
                print(f"[INFO] {group.size} ranks, {elements * reduced.kind.itemsize / 1024:.1f} KiB, {rows[-1]['median_time'] * 1e3:.1f} us")
    finally:
        reduced.workspace.destroy()
    return rows


def _mixed(args, group):
    if group.size != mixed_comm.size_of(args):
        raise ValueError(f"there are {group.size} ranks, but the product of the four sizes is {mixed_comm.size_of(args)}")
    mixed, rows = mixed_comm.Mixed(args, group), []
    try:
        for local_bs in args.local_bs_list:
            for op in mixed.ops():
                call, out = mixed.call(op, local_bs)
                if args.refcheck:
                    call()
                    _compare(args, group, op.name, mixed.problem(op, local_bs, out))
                (_, times) = group.times(args, [call])
                rows.append({**_row(args, times, mixed.moved(op, local_bs), "shm", op.name), "resolved_backend": "cpu", "local_bs": local_bs, "op_name": op.name,
                             "mode_name": mixed.handler.select_autotune_mode(op, out).name,
                             **_peer_times(args, group, op.name, lambda op=op, local_bs=local_bs: mixed.peer(op, local_bs))})
    finally:
        mixed.close()
    return rows


def _moe(args, group):
    experts = moe_comm.Experts(args, group)
    if args.validate or args.refcheck:
        _compare(args, group, "moe_a2a", experts.problem())
    steps = {"a2a_dispatch": experts.dispatch, "a2a_combine": experts.combine}
    if args.real_math:
        experts.make_weights()
        steps = {"a2a_dispatch": experts.dispatch, "moe_kernel": experts.compute, "a2a_combine": experts.combine}
    *of_steps, total = group.times(args, list(steps.values()))
    work = experts.work()
    for name, times in zip(steps, of_steps if args.per_phase_timing else []):
        _print(name, times, *work[name])
    moved = work["a2a_dispatch"][1] + work["a2a_combine"][1]
    return [{**_row(args, total, moved, "moe_a2a", "a2a_total"), "resolved_backend": "cpu", "ep_size": group.size}]


_ROUTINES = {"allreduce_fusion": _allreduce, "mixed_comm": _mixed, "moe_a2a_dispatch_combine": _moe}


def on_rank(args, backend):
    """The rows of a command, on each of its ranks. Collective."""
    case.announce(args, torch.device("cpu"))
    threads = torch.get_num_threads()
    print(f"[INFO] {backend.Get_size()} ranks on this machine communicate by shared memory; torch has {threads} thread{'s' * (threads > 1)} in each.")
    set_seed(args.random_seed)
    group = ranks.Group(backend)
    try:
        return _ROUTINES[args.routine](args, group)
    finally:
        group.close()


def _check(args):
    """Raises for flags that are not possible, and says which have no effect."""
    if args.device == "cuda":
        raise NotImplementedError(f"{args.routine} is not available on GPUs: the library communicates between processes on CPU tensors alone; "
                                  "without --device cuda it is timed on those")
    tokens = args.local_bs_list if args.routine == "mixed_comm" else [args.num_tokens]
    if min(tokens) < 1 or args.hidden_size < 1:
        raise ValueError(f"the numbers of tokens are {tokens} and --hidden_size {args.hidden_size}, but all must be at least 1")
    if args.routine == "mixed_comm" and min(args.local_tp_size, args.local_dp_size, args.inter_tp_size, args.inter_dp_size) < 1:
        raise ValueError("a size of --local_tp_size, --local_dp_size, --inter_tp_size, --inter_dp_size is less than 1")
    ignored = {"--nvtx": getattr(args, "nvtx", False), "--trace-out": args.trace_out, "--autotune_cache": args.autotune_cache,
               "--peers": args.peers and args.routine == "moe_a2a_dispatch_combine", "--enable_pdl": args.enable_pdl and args.routine != "allreduce_fusion"}
    for flag in (flag for flag, given in ignored.items() if given):
        print(f"[WARNING] {flag} has no effect on routine {args.routine}.")


def run(args):
    """Runs a command on the ranks of the launcher, or on --np processes; its rows, which rank 0 prints and writes."""
    if getattr(args, "max_num_tokens", 1) is None:
        args.max_num_tokens = args.num_tokens
    _check(args)
    size = ranks.launched()[1]
    if size > 1:
        if args.np not in (None, size):
            raise ValueError(f"--np is {args.np}, but the launcher started {size} ranks")
        return on_rank(args, ranks.connect())
    if args.routine == "mixed_comm":
        args.np = args.np or mixed_comm.size_of(args)
    if args.np is None:
        args.np = 2
        print("[WARNING] No mpirun, srun or torchrun started this process: 2 ranks are started on this machine. --np N sets their number.")
    if not 1 <= args.np <= 64:
        raise ValueError(f"--np is {args.np}, but must be in [1, 64]")
    return ranks.spawn(on_rank, args, args.np)
