# SPDX-License-Identifier: Apache-2.0
"""Routines of functions that this library does not have; their flags are read, so that a wrong command is still an error."""
_COMM = "communication between processes is not implemented; torch.distributed has all-reduce and all-to-all"
REASONS = {
    "moe_a2a_dispatch_combine": _COMM, "allreduce_fusion": _COMM, "mixed_comm": _COMM,
}


def make(args, device):
    raise NotImplementedError(f"routine {args.routine} is not available in this library: {REASONS[args.routine]}")
