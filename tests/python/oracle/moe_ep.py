# SPDX-License-Identifier: Apache-2.0
"""Calls of flashinfer.moe_ep that need no GPU: a line each, with the value or the type of the error."""
import contextlib
import dataclasses
import io
import logging

import torch

logging.disable(logging.CRITICAL)
with contextlib.redirect_stdout(io.StringIO()):
    import flashinfer.fused_moe as fm
    import flashinfer.moe_ep as m
    from flashinfer.moe_ep.algo_knobs import _index_knobs

P = m.FleetParams(8, 128, 4096)
HT = m.FleetParams(8, 128, 4096, algorithm=m.EpAlgorithm.HIGH_THROUGHPUT)
RANKS = m.FleetParams(8, 16, 64, layout=m.EpLayout.RANK_MAJOR)
W = m.dummy_moe_weights(num_local_experts=8, hidden=64, intermediate=8)
H, IDS, WEIGHTS = torch.zeros(4, 4096), torch.zeros(4, 2).long(), torch.ones(4, 2)
CONTEXT = m.SplitKernelContext(torch.ones(3, 4), 2, P)
ONE, FOUR = m.BootstrapConfig(1, 0), m.BootstrapConfig(4, 1)
GROUP = m.BootstrapConfig(4, 1, process_group=WEIGHTS)  # torch.distributed is not initialised


def weights(experts, hidden):
    return m.dummy_moe_weights(num_local_experts=experts, hidden=hidden)


CALLS = """P
HT
RANKS
m.FleetParams(8, 128, 4096, algorithm=m.EpAlgorithm.HIGH_THROUGHPUT, layout=m.EpLayout.RANK_MAJOR)
m.FleetParams(0, 1, 1)
m.FleetParams(1, -1, 1)
m.FleetParams(1, 1, 0)
m.FleetParams(1, 1, 1, 0)
dataclasses.replace(P, num_experts=16)
m.FleetParams(8, 128, 4096, weights=W)
m.BootstrapConfig(0, 0)
m.BootstrapConfig(8, 9)
m.BootstrapConfig(8, -1)
m.BootstrapConfig(2, 0, device=-1)
m.BootstrapConfig(2, 1, device=3).device
m.FleetAlgoKnobAllocator(True, 1, 2)
m.FleetAlgoKnobAllocator(alloc_fn=1)
m.FleetAlgoKnobAllocator(alloc_fn=1, free_fn=2, context=3)
m.FleetAlgoKnobFaultTolerance(timeout_ms=-1)
m.FleetAlgoKnobFaultTolerance(reconcile_timeout_s=0)
m.FleetAlgoKnobFaultTolerance()
m.FleetAlgoKnobNumChannelsPerRank(4)
m.FleetAlgoKnobNumChannelsPerRank()
m.FleetAlgoKnobQuantization()
m.HandleAlgoKnobSplitOperation()
_index_knobs(['x'])
_index_knobs([m.FleetAlgoKnobNumChannelsPerRank(4), m.FleetAlgoKnobNumChannelsPerRank(8)])[m.FleetAlgoKnobNumChannelsPerRank].n
m.SplitConfig()
m.MegaConfig(None)
m.NCCLEPConfig is m.NcclEpConfig
str(m.MoEEpTransportError('f', 3, 'd', 'E'))
str(m.MoEEpTransportError('f', 3))
[c.__mro__[1].__name__ for c in (m.MoEEpArchError, m.MoEEpConfigError, m.MoEEpNotBuiltError, m.MoEEpRankEvictedError)]
[(x.name, x.value) for e in (m.EpAlgorithm, m.EpLayout, m.QuantType) for x in e]
(type(W).__name__, W.w13.shape, W.w2.shape, W.w13.dtype, W.w13_scale)
m.MoEWeightPack()
type(m.MoEWeightPack(w13=W.w13, w2=W.w2, w13_scale=W.w13, w2_scale=W.w2)).__name__
isinstance(W, m.MoEWeightPack)
m.validate_fleet_weights(weights(4, 4096), P, 2)
m.validate_fleet_weights(weights(4, 4096), P, 4)
m.validate_fleet_weights(weights(4, 64), P, 2)
m.validate_fleet_weights(weights(4, 64), P, 3)
m.validate_fleet_params(P, 'nccl_ep', 3)
m.validate_fleet_params(P, 'nixl_ep', 3)
m.validate_fleet_params(P, 'nixl_ep', 3, topology_capacity=4)
m.validate_fleet_params(HT, 'nixl_ep', 2)
m.validate_fleet_params(m.FleetParams(8, 1025, 4096), 'nixl_ep', 2)
m.validate_fleet_params(m.FleetParams(8, 1024, 4096), 'nixl_ep', 2)
m.validate_fleet_params(m.FleetParams(8, 128, 1024), 'nixl_ep', 2)
m.validate_fleet_params(m.FleetParams(8, 128, 2560), 'nixl_ep', 2)
m.validate_fleet_params(m.FleetParams(8, 128, 4096, layout=m.EpLayout.RANK_MAJOR), 'nixl_ep', 2)
m.validate_fleet_params(P, 'nixl_ep', 4, topology_capacity=2)
m.validate_fleet_params(HT, 'nccl_ep', 2, fault_tolerance=m.FleetAlgoKnobFaultTolerance())
m.validate_fleet_params(HT, 'nccl_ep', 2, fault_tolerance=m.FleetAlgoKnobFaultTolerance(enabled=False))
m.validate_mega_arch()
m.validate_mega_fleet_params(P, 2, intermediate_size=256, top_k=2)
m.validate_mega_fleet_params(P, 2, intermediate_size=100, top_k=2)
m.validate_mega_fleet_params(P, 2, intermediate_size=256, top_k=0)
m.validate_mega_fleet_params(P, 3, intermediate_size=256, top_k=1)
m.validate_mega_fleet_params(m.FleetParams(8, 128, 96), 2, intermediate_size=64, top_k=2, alignment=32)
m.validate_mega_forward_inputs(H, IDS, WEIGHTS, P, top_k=2, quantize_input=True)
m.validate_mega_forward_inputs(H, IDS, WEIGHTS, P, top_k=3, quantize_input=True)
m.validate_mega_forward_inputs(H, IDS, WEIGHTS, P, top_k=2, quantize_input=False)
m.validate_mega_forward_inputs(H, IDS, WEIGHTS, P, top_k=2, quantize_input=False, scales=torch.zeros(4, 8))
m.validate_mega_forward_inputs(H[:, :8], IDS, WEIGHTS, P, top_k=2, quantize_input=True)
m.validate_arch_for_backend('nccl_ep')
m.supports_fault_tolerance('nccl_ep')
m.validate_split_forward_inputs(H, IDS, WEIGHTS, P)
m.validate_split_forward_inputs(H[:, :8], IDS, WEIGHTS, P)
m.validate_split_forward_inputs(torch.zeros(200, 4096), torch.zeros(200, 2).long(), torch.ones(200, 2), P)
m.validate_split_forward_inputs(H, IDS[:3], WEIGHTS, P)
m.validate_split_forward_inputs(H, IDS[:3], WEIGHTS[:3], P)
m.validate_split_forward_inputs(H, IDS, torch.ones(4, 3), P)
m.MoEEpCommParams(0, 2, 128, 4096)
m.MoEEpCommParams(8, 9, 128, 4096)
m.MoEEpCommParams(8, 2, 1, 10, invalid_expert_id=3)
m.MoEEpCommParams(8, 2, 1, 10)
m.MoEEpCommParams(8, 2, 1, 10).token_dtype
[m.MoEEpCommParams(8, 2, 1, 128, dispatch_format=q).dispatch_bytes_per_token for q in fm.QuantFormat if q.name not in ('INT4', 'MXINT4')]
m.MoEEpCommParams(8, 2, 1, 128, dispatch_format=fm.QuantFormat.INT4)
m.bootstrap_ep_world_size(FOUR)
m.bootstrap_ep_rank_world(FOUR)
m.bootstrap_comm_group(FOUR)
m.validate_bootstrap_world_size(FOUR)
m.ensure_bootstrap_dist_validated(FOUR)
m.bootstrap_ep_rank_world(GROUP)
m.bootstrap_comm_group(GROUP)
m.validate_bootstrap_process_group_ready(GROUP)
m.validate_bootstrap_world_size(GROUP)
m.ensure_bootstrap_dist_validated(GROUP)
m.bootstrap_moe_ep_runtime(GROUP, frozenset())
m.finalize_moe_ep_runtime(None)
m.bootstrap_moe_ep_runtime(ONE, frozenset())
m.kernel_requires_weights(m.IdentityConfig())
m.kernel_requires_weights(m.FusedMoeKernelConfig(None))
m.kernel_requires_weights(object())
m.run_split_kernel(m.IdentityConfig(), CONTEXT).tolist()
m.run_split_kernel(object(), CONTEXT)
m.create_fleet(ONE, P)
m.create_fleet(ONE, P, backend='foo')
m.create_communication(ONE, m.MoEEpCommParams(8, 2, 128, 4096), 'foo')
m.create_communication(ONE, m.MoEEpCommParams(8, 2, 128, 4096), 3)
m.create_communication(ONE, m.MoEEpCommParams(8, 2, 128, 4096), 'nvlink_one_sided', foo=1)
m.MoEEpLayer(m.BootstrapConfig(2, 0), RANKS, weights(4, 64))
m.MoEEpLayer(ONE, RANKS, W, backend='foo')
m.MoEEpLayer(ONE, P, weights(8, 4096), backend=m.SplitConfig(comm=m.NVLinkOneSidedConfig()))
m.MoEEpLayer(ONE, RANKS, weights(4, 64), backend=m.SplitConfig(comm=m.NVLinkOneSidedConfig()))
type(m.MoEEpLayer(m.BootstrapConfig(1, 0, auto_bootstrap=False), RANKS, W)).__name__"""

for call in CALLS.splitlines():
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            value = repr(eval(call))
    except Exception as error:
        value = type(error).__name__
    print(f"{call} -> {value}")
