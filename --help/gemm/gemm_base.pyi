# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._one_gpu import CudnnCaptureUnsafeError as CudnnCaptureUnsafeError
from flashinfer._one_gpu import CudnnPlanBuildInCaptureError as CudnnPlanBuildInCaptureError
from flashinfer._one_gpu import CudnnWorkspaceTooSmallInCaptureError as CudnnWorkspaceTooSmallInCaptureError
from flashinfer.gemm import SegmentGEMMWrapper as SegmentGEMMWrapper
from flashinfer.gemm import batch_deepgemm_fp8_nt_groupwise as batch_deepgemm_fp8_nt_groupwise
from flashinfer.gemm import bmm_bf16 as bmm_bf16
from flashinfer.gemm import bmm_fp8 as bmm_fp8
from flashinfer.gemm import bmm_mxfp8 as bmm_mxfp8
from flashinfer.gemm import fp8_blockscale_gemm_sm90 as fp8_blockscale_gemm_sm90
from flashinfer.gemm import gemm_alpha_beta as gemm_alpha_beta
from flashinfer.gemm import gemm_fp8_nt_blockscaled as gemm_fp8_nt_blockscaled
from flashinfer.gemm import gemm_fp8_nt_groupwise as gemm_fp8_nt_groupwise
from flashinfer.gemm import group_deepgemm_fp8_nt_groupwise as group_deepgemm_fp8_nt_groupwise
from flashinfer.gemm import group_gemm_fp8_nt_groupwise as group_gemm_fp8_nt_groupwise
from flashinfer.gemm import group_gemm_fp8_nt_groupwise_contiguous as group_gemm_fp8_nt_groupwise_contiguous
from flashinfer.gemm import group_gemm_mxfp4_nt_groupwise as group_gemm_mxfp4_nt_groupwise
from flashinfer.gemm import group_gemm_mxfp4_nt_groupwise as group_gemm_mxfp8_mxfp4_nt_groupwise
from flashinfer.gemm import group_gemm_nvfp4_nt_groupwise as group_gemm_nvfp4_nt_groupwise
from flashinfer.gemm import masked_bmm as masked_bmm
from flashinfer.gemm import masked_scaled_bmm as masked_scaled_bmm
from flashinfer.gemm import mm_bf16 as mm_bf16
from flashinfer.gemm import mm_fp4 as mm_fp4
from flashinfer.gemm import mm_fp8 as mm_fp8
from flashinfer.gemm import mm_mxfp8 as mm_mxfp8
from flashinfer.gemm import pad_indptr_to_multiple_of_4 as pad_indptr_to_multiple_of_4
from flashinfer.gemm import ragged_block_scaled_bmm as ragged_block_scaled_bmm
from flashinfer.gemm import ragged_bmm as ragged_bmm
from flashinfer.gemm import ragged_scaled_bmm as ragged_scaled_bmm
CUDNN_AVAILABLE: Any
