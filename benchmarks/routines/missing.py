# SPDX-License-Identifier: Apache-2.0
"""Routines of functions that this library does not have; their flags are read, so that a wrong command is still an error."""
REASONS = {
    "mixed_comm": "it has no MixedCommHandler; allreduce_fusion and moe_a2a_dispatch_combine time the communication that it has",
}


def make(args, device):
    raise NotImplementedError(f"routine {args.routine} is not available in this library: {REASONS[args.routine]}")
