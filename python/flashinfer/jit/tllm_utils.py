# SPDX-License-Identifier: Apache-2.0
"""Helpers of TensorRT-LLM."""
from .kernels import missing


def gen_trtllm_utils_module():
    """Not available."""
    missing("trtllm_utils", "nothing here needs it")
