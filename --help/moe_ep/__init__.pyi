# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._moe_api import MoEWeightPack as MoEWeightPack
from flashinfer._availability import available_backends as available_backends
from flashinfer._availability import have_nccl_ep as have_nccl_ep
from flashinfer._availability import have_nixl_ep as have_nixl_ep
class AlgoKnob:
    """flashinfer.moe_ep.AlgoKnob is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Bf16CutedslMegaMoeConfig:
    """flashinfer.moe_ep.Bf16CutedslMegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class BootstrapConfig:
    """flashinfer.moe_ep.BootstrapConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CakeAlltoAll:
    """flashinfer.moe_ep.CakeAlltoAll is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CakeAlltoAllConfig:
    """flashinfer.moe_ep.CakeAlltoAllConfig is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CakeMxfp8MegaMoeEp16:
    """flashinfer.moe_ep.CakeMxfp8MegaMoeEp16 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CakeMxfp8MegaMoeEp16Weights:
    """flashinfer.moe_ep.CakeMxfp8MegaMoeEp16Weights is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CombineInputParams:
    """flashinfer.moe_ep.CombineInputParams is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CombineOutput:
    """flashinfer.moe_ep.CombineOutput is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class DeepGemmMegaMoeConfig:
    """flashinfer.moe_ep.DeepGemmMegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class DispatchInputParams:
    """flashinfer.moe_ep.DispatchInputParams is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class DispatchOutput:
    """flashinfer.moe_ep.DispatchOutput is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class EpAlgorithm:
    """flashinfer.moe_ep.EpAlgorithm is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class EpLayout:
    """flashinfer.moe_ep.EpLayout is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Fleet:
    """flashinfer.moe_ep.Fleet is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class FleetAlgoKnobAllocator:
    """flashinfer.moe_ep.FleetAlgoKnobAllocator is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class FleetAlgoKnobFaultTolerance:
    """flashinfer.moe_ep.FleetAlgoKnobFaultTolerance is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class FleetAlgoKnobNumChannelsPerRank:
    """flashinfer.moe_ep.FleetAlgoKnobNumChannelsPerRank is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class FleetAlgoKnobNumQpsPerRank:
    """flashinfer.moe_ep.FleetAlgoKnobNumQpsPerRank is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class FleetAlgoKnobQuantization:
    """flashinfer.moe_ep.FleetAlgoKnobQuantization is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class FleetAlgoKnobRdmaBufferSize:
    """flashinfer.moe_ep.FleetAlgoKnobRdmaBufferSize is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class FleetAlgoKnobTopologyCapacity:
    """flashinfer.moe_ep.FleetAlgoKnobTopologyCapacity is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class FleetParams:
    """flashinfer.moe_ep.FleetParams is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class FusedMoeKernelConfig:
    """flashinfer.moe_ep.FusedMoeKernelConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Handle:
    """flashinfer.moe_ep.Handle is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class HandleAlgoKnobNumReceivedTokens:
    """flashinfer.moe_ep.HandleAlgoKnobNumReceivedTokens is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class HandleAlgoKnobSplitOperation:
    """flashinfer.moe_ep.HandleAlgoKnobSplitOperation is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class HandleAlgoKnobTopKWeights:
    """flashinfer.moe_ep.HandleAlgoKnobTopKWeights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class HandleAlgoKnobUserStream:
    """flashinfer.moe_ep.HandleAlgoKnobUserStream is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class HandleParams:
    """flashinfer.moe_ep.HandleParams is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class IdentityConfig:
    """flashinfer.moe_ep.IdentityConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MegaConfig:
    """flashinfer.moe_ep.MegaConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpArchError(RuntimeError):
    """flashinfer.moe_ep.MoEEpArchError is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpCommParams:
    """flashinfer.moe_ep.MoEEpCommParams is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpCommunication:
    """flashinfer.moe_ep.MoEEpCommunication is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpConfigError(RuntimeError):
    """flashinfer.moe_ep.MoEEpConfigError is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpDispatchResult:
    """flashinfer.moe_ep.MoEEpDispatchResult is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpFaultToleranceUnsupportedError(RuntimeError):
    """flashinfer.moe_ep.MoEEpFaultToleranceUnsupportedError is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpLayer:
    """flashinfer.moe_ep.MoEEpLayer is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpMegaLayer:
    """flashinfer.moe_ep.MoEEpMegaLayer is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpMegaWorkspace:
    """flashinfer.moe_ep.MoEEpMegaWorkspace is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpNotBuiltError(RuntimeError):
    """flashinfer.moe_ep.MoEEpNotBuiltError is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpRankEvictedError(RuntimeError):
    """flashinfer.moe_ep.MoEEpRankEvictedError is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpSplitGraphState:
    """flashinfer.moe_ep.MoEEpSplitGraphState is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpSplitLayer:
    """flashinfer.moe_ep.MoEEpSplitLayer is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpTensors:
    """flashinfer.moe_ep.MoEEpTensors is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpTransportError(RuntimeError):
    """flashinfer.moe_ep.MoEEpTransportError is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Mxfp8CutedslMegaMoeConfig:
    """flashinfer.moe_ep.Mxfp8CutedslMegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class NCCLEPConfig:
    """flashinfer.moe_ep.NCCLEPConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class NVLinkOneSidedAlltoAll:
    """flashinfer.moe_ep.NVLinkOneSidedAlltoAll is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class NVLinkOneSidedConfig:
    """flashinfer.moe_ep.NVLinkOneSidedConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class NVLinkTwoSidedAlltoAll:
    """flashinfer.moe_ep.NVLinkTwoSidedAlltoAll is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class NVLinkTwoSidedConfig:
    """flashinfer.moe_ep.NVLinkTwoSidedConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class NcclEpConfig:
    """flashinfer.moe_ep.NcclEpConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class NvepConfig:
    """flashinfer.moe_ep.NvepConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Nvfp4CutedslMegaMoeConfig:
    """flashinfer.moe_ep.Nvfp4CutedslMegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class PrequantizedMoEWeights:
    """flashinfer.moe_ep.PrequantizedMoEWeights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class QuantType:
    """flashinfer.moe_ep.QuantType is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Sm100_Bf16_Bf16_Bf16_Cutedsl_MegaMoeConfig:
    """flashinfer.moe_ep.Sm100_Bf16_Bf16_Bf16_Cutedsl_MegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Sm100_Bf16_Bf16_Bf16_RankMajorCuda_MegaMoeConfig:
    """flashinfer.moe_ep.Sm100_Bf16_Bf16_Bf16_RankMajorCuda_MegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Sm100_Bf16_Mxfp8_Bf16_Cutedsl_MegaMoeConfig:
    """flashinfer.moe_ep.Sm100_Bf16_Mxfp8_Bf16_Cutedsl_MegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Sm100_Bf16_Nvfp4_Bf16_Cutedsl_MegaMoeConfig:
    """flashinfer.moe_ep.Sm100_Bf16_Nvfp4_Bf16_Cutedsl_MegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Sm100_Fp8_Fp4_Bf16_Deepgemm_MegaMoeConfig:
    """flashinfer.moe_ep.Sm100_Fp8_Fp4_Bf16_Deepgemm_MegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Sm100_Mxfp8_Mxfp8_Bf16_Cutedsl_MegaMoeConfig:
    """flashinfer.moe_ep.Sm100_Mxfp8_Mxfp8_Bf16_Cutedsl_MegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Sm100_Nvfp4_Nvfp4_Bf16_Cutedsl_MegaMoeConfig:
    """flashinfer.moe_ep.Sm100_Nvfp4_Nvfp4_Bf16_Cutedsl_MegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Sm107_Mxfp8_Mxfp4_Bf16_Cutedsl_MegaMoeConfig:
    """flashinfer.moe_ep.Sm107_Mxfp8_Mxfp4_Bf16_Cutedsl_MegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Sm107_Mxfp8_Mxfp8_Bf16_Cutedsl_MegaMoeConfig:
    """flashinfer.moe_ep.Sm107_Mxfp8_Mxfp8_Bf16_Cutedsl_MegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Sm107_Nvfp4_Nvfp4_Bf16_Cutedsl_MegaMoeConfig:
    """flashinfer.moe_ep.Sm107_Nvfp4_Nvfp4_Bf16_Cutedsl_MegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Sm120_Mxfp4_Mxfp8_Bf16_Cutedsl_MegaMoeConfig:
    """flashinfer.moe_ep.Sm120_Mxfp4_Mxfp8_Bf16_Cutedsl_MegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Sm120_Mxfp8_Mxfp8_Bf16_Cutedsl_MegaMoeConfig:
    """flashinfer.moe_ep.Sm120_Mxfp8_Mxfp8_Bf16_Cutedsl_MegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Sm90PullFp8MegaMoeConfig:
    """flashinfer.moe_ep.Sm90PullFp8MegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Sm90PushFp8MegaMoeConfig:
    """flashinfer.moe_ep.Sm90PushFp8MegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Sm90_Bf16_Bf16_Bf16_PushCake_MegaMoeConfig:
    """flashinfer.moe_ep.Sm90_Bf16_Bf16_Bf16_PushCake_MegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Sm90_Fp8_Fp8_Bf16_PullCutedsl_MegaMoeConfig:
    """flashinfer.moe_ep.Sm90_Fp8_Fp8_Bf16_PullCutedsl_MegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Sm90_Fp8_Fp8_Bf16_PushCuda_MegaMoeConfig:
    """flashinfer.moe_ep.Sm90_Fp8_Fp8_Bf16_PushCuda_MegaMoeConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SplitConfig:
    """flashinfer.moe_ep.SplitConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SplitKernelContext:
    """flashinfer.moe_ep.SplitKernelContext is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class UnquantizedMoEWeights:
    """flashinfer.moe_ep.UnquantizedMoEWeights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def available_communication_backends(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.available_communication_backends is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def bootstrap_comm_group(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.bootstrap_comm_group is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def bootstrap_ep_rank_world(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.bootstrap_ep_rank_world is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def bootstrap_ep_world_size(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.bootstrap_ep_world_size is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def bootstrap_moe_ep_runtime(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.bootstrap_moe_ep_runtime is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def create_communication(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.create_communication is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def create_fleet(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.create_fleet is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def dummy_moe_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.dummy_moe_weights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def ensure_bootstrap_dist_validated(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.ensure_bootstrap_dist_validated is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def ensure_moe_ep_cuda_device(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.ensure_moe_ep_cuda_device is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def finalize_moe_ep_runtime(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.finalize_moe_ep_runtime is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def kernel_requires_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.kernel_requires_weights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def preprocess_bf16_cutedsl_mega_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.preprocess_bf16_cutedsl_mega_weights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def preprocess_bf16_nvfp4_cutedsl_mega_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.preprocess_bf16_nvfp4_cutedsl_mega_weights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def preprocess_bf16_rank_major_cuda_mega_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.preprocess_bf16_rank_major_cuda_mega_weights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def preprocess_cake_mxfp8_megamoe_ep16_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.preprocess_cake_mxfp8_megamoe_ep16_weights is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def preprocess_mega_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.preprocess_mega_weights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def preprocess_mxfp8_cutedsl_mega_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.preprocess_mxfp8_cutedsl_mega_weights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def preprocess_nvfp4_cutedsl_mega_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.preprocess_nvfp4_cutedsl_mega_weights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def preprocess_sm107_mxfp4_mega_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.preprocess_sm107_mxfp4_mega_weights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def preprocess_sm107_mxfp8_mega_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.preprocess_sm107_mxfp8_mega_weights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def preprocess_sm107_nvfp4_mega_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.preprocess_sm107_nvfp4_mega_weights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def preprocess_sm120_mxfp4_mxfp8_cutedsl_mega_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.preprocess_sm120_mxfp4_mxfp8_cutedsl_mega_weights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def preprocess_sm120_mxfp8_cutedsl_mega_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.preprocess_sm120_mxfp8_cutedsl_mega_weights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def preprocess_sm90_pull_fp8_mega_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.preprocess_sm90_pull_fp8_mega_weights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def preprocess_sm90_push_cake_bf16_mega_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.preprocess_sm90_push_cake_bf16_mega_weights is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def preprocess_sm90_push_fp8_mega_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.preprocess_sm90_push_fp8_mega_weights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def register_communication(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.register_communication is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def register_fleet(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.register_fleet is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def run_split_kernel(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.run_split_kernel is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def supports_fault_tolerance(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.supports_fault_tolerance is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def validate_arch_for_backend(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.validate_arch_for_backend is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def validate_bootstrap_process_group_ready(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.validate_bootstrap_process_group_ready is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def validate_bootstrap_world_size(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.validate_bootstrap_world_size is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def validate_fleet_params(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.validate_fleet_params is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def validate_fleet_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.validate_fleet_weights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def validate_mega_arch(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.validate_mega_arch is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def validate_mega_fleet_params(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.validate_mega_fleet_params is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def validate_mega_forward_inputs(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.validate_mega_forward_inputs is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def validate_split_forward_inputs(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.validate_split_forward_inputs is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...
