# SPDX-License-Identifier: Apache-2.0
"""Attention's modules: `modules` has the library's kernels, `customize` those with a variant of the program's own."""
from .modules import (gen_batch_attention_module, gen_batch_decode_module, gen_batch_mla_module, gen_batch_pod_module,
                      gen_batch_prefill_attention_sink_module, gen_batch_prefill_bidirectional_ranges_module, gen_batch_prefill_module,
                      gen_cudnn_fmha_module, gen_customize_batch_attention_module, gen_customize_batch_decode_module,
                      gen_customize_batch_pod_module, gen_customize_batch_prefill_module, gen_customize_pod_module,
                      gen_customize_single_decode_module, gen_customize_single_prefill_module, gen_fmha_cutlass_sm100a_module,
                      gen_fmha_v2_module, gen_pod_module, gen_single_decode_module, gen_single_prefill_module,
                      gen_trtllm_fmha_v2_sm120_module, gen_trtllm_gen_fmha_module, get_batch_attention_uri, get_batch_decode_uri,
                      get_batch_mla_uri, get_batch_prefill_attention_sink_uri, get_batch_prefill_uri, get_pod_uri,
                      get_single_decode_uri, get_single_prefill_uri)


def __getattr__(name):
    from .. import _submodule

    if (module := _submodule(__name__, __path__, name)) is not None:
        return module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
