# SPDX-License-Identifier: Apache-2.0
"""Collectives of ranks that are divided by tensor and by data parallelism."""
import torch

import flashinfer.comm as comm
from flashinfer.comm.mixed_comm import MixedCommOp as Op
from routines import case, ranks
from routines.case import Check, dtype

_SCATTERS, _GATHERS = (Op.REDUCESCATTER, Op.REDUCESCATTER_ALLREDUCE), (Op.ALLGATHER, Op.ALLREDUCE_ALLGATHER)


def size_of(args):
    """Ranks that the flags ask for."""
    return args.local_tp_size * args.local_dp_size * args.inter_tp_size * args.inter_dp_size


class Mixed:
    """The ranks' places, and the calls of one number of rows."""

    def __init__(self, args, group):
        self.args, self.group, self.kind = args, group, dtype(args.dtype)
        local = args.local_tp_size * args.local_dp_size
        self.handler = comm.MixedCommHandler(
            group.rank, group.size, group.rank % local, local, group.rank // local, group.size // local, args.local_tp_size, args.local_dp_size, args.inter_tp_size,
            args.inter_dp_size, self.kind, "cpu", comm_backend=group.backend)
        places = group.backend.allgather((self.handler.tp_rank, self.handler.dp_rank))
        self.tp_ranks = [r for r, (_, dp) in enumerate(places) if dp == self.handler.dp_rank]
        self.dp_ranks = [r for r, (tp, _) in enumerate(places) if tp == self.handler.tp_rank]
        self.by_dp = [[r for r, (_, dp) in enumerate(places) if dp == d] for d in range(self.handler.dp_size)]

    def ops(self):
        return self.handler.get_valid_op_list()

    def rows(self, op, local_bs):
        """Of an input: `local_bs` rows a rank before an exchange of data parallelism, or after it."""
        return local_bs * self.handler.dp_size if op in _SCATTERS else local_bs

    def input(self, op, local_bs, rank):
        return torch.randn(self.rows(op, local_bs), self.args.hidden_size, generator=ranks.generator(self.args, rank)).to(self.kind)

    def call(self, op, local_bs):
        """(a function without arguments, its output)."""
        x, rows = self.input(op, local_bs, self.group.rank), local_bs * (self.handler.dp_size if op in _GATHERS else 1)
        out = torch.empty(rows, self.args.hidden_size, dtype=self.kind)
        return lambda: comm.run_mixed_comm(op, self.handler, x, out), out

    def problem(self, op, local_bs, out):
        """What is wrong with an output; None: nothing."""
        def total(of):
            return sum(self.input(op, local_bs, r).double() for r in of)

        if op in _GATHERS:
            want = torch.cat([total(of) for of in (self.by_dp if op == Op.ALLREDUCE_ALLGATHER else [[r] for r in self.dp_ranks])])
        else:
            want = total({Op.ALLREDUCE: self.tp_ranks, Op.REDUCESCATTER: self.dp_ranks}.get(op, range(self.group.size)))
            if op in _SCATTERS:
                want = want.chunk(self.handler.dp_size)[self.handler.dp_rank]
        wrong = case.mismatch(Check(torch.finfo(self.kind).eps, torch.finfo(self.kind).tiny), [want], [out])
        return wrong and wrong[0]

    def moved(self, op, local_bs):
        """Bytes that a rank sends and receives at least: 2 (T - 1) / T of what is summed over T ranks, (D - 1) / D of what is gathered or scattered over D."""
        row, t, d = self.args.hidden_size * self.kind.itemsize, self.handler.tp_size, self.handler.dp_size
        return local_bs * row * (2 * (t - 1) / t + (d - 1))

    def peer(self, op, local_bs):
        """The same by torch.distributed: a function without arguments."""
        dist, tp, dp = self.group.torch_distributed(), self.group.torch_group(self.tp_ranks), self.group.torch_group(self.dp_ranks)
        x, handler = self.input(op, local_bs, self.group.rank), self.handler
        gathered = torch.empty(local_bs * handler.dp_size, self.args.hidden_size, dtype=self.kind)

        def run():
            part = x.clone()
            if op in _SCATTERS:  # gloo has no reduce-scatter
                dist.all_reduce(part, group=None if op == Op.REDUCESCATTER_ALLREDUCE else dp)
                return part.chunk(handler.dp_size)[handler.dp_rank]
            if op != Op.ALLGATHER:
                dist.all_reduce(part, group=tp)
            if op in _GATHERS:
                dist.all_gather(list(gathered.chunk(handler.dp_size)), part, group=dp)
            return part

        return run

    def close(self):
        self.handler.shutdown()
