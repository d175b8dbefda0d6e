# SPDX-License-Identifier: Apache-2.0
"""Custom attention variants: a C++ struct, as text, that the library compiles its attention kernels with at the first call
(docs/attention-variants.md).

    spec = gen_customize_single_prefill_module("fa2", "sigmoid", torch.float32, torch.float32, torch.float32, 64, 64,
                                               [], [], ["bias"], ["float"], "SigmoidAttention", SOURCE)
    out = flashinfer.single_prefill_with_kv_cache_with_jit_module(spec.build_and_load(), q, k, v, -1.0)

The batch wrappers take the same arguments as `jit_args=[uri, dtype_q, ..., variant_name, variant_decl]` (`spec.jit_args`).
"""

__all__ = ["JitSpec", "gen_customize_batch_decode_module", "gen_customize_batch_prefill_module", "gen_customize_single_decode_module",
           "gen_customize_single_prefill_module"]


class JitSpec:
    """A module that was described. Kernels are compiled at the first call that needs them, one per combination of options."""

    def __init__(self, jit_args, options):
        self.jit_args = jit_args
        self.name = jit_args[0]
        self._options = options

    def build_and_load(self):
        """What the `*_with_jit_module` functions take as their module."""
        return self.jit_args

    def __repr__(self):
        return f"JitSpec(name={self.name!r}, variant={self.jit_args[-2]!r})"


def _spec(uri, dtype_q, dtype_kv, dtype_o, idtype, head_dim_qk, head_dim_vo, additional_tensor_names, additional_tensor_dtypes,
          additional_scalar_names, additional_scalar_dtypes, variant_name, variant_decl, pos_encoding_mode, **options):
    if int(pos_encoding_mode) != 0:
        raise ValueError(f"{uri}: pos_encoding_mode is {pos_encoding_mode}, but must be 0: a variant sees keys as they are")
    return JitSpec([uri, dtype_q, dtype_kv, dtype_o, idtype, head_dim_qk, head_dim_vo, list(additional_tensor_names),
                    list(additional_tensor_dtypes), list(additional_scalar_names), list(additional_scalar_dtypes), variant_name,
                    variant_decl], options)


def gen_customize_single_decode_module(uri, dtype_q, dtype_kv, dtype_o, head_dim_qk, head_dim_vo, additional_tensor_names,
                                       additional_tensor_dtypes, additional_scalar_names, additional_scalar_dtypes, variant_name,
                                       variant_decl, pos_encoding_mode=0, use_sliding_window=False, use_logits_soft_cap=False):
    """For `single_decode_with_kv_cache_with_jit_module`. Window and soft cap are values of each call here; their flags choose nothing."""
    return _spec(uri, dtype_q, dtype_kv, dtype_o, "int32", head_dim_qk, head_dim_vo, additional_tensor_names, additional_tensor_dtypes,
                 additional_scalar_names, additional_scalar_dtypes, variant_name, variant_decl, pos_encoding_mode,
                 use_sliding_window=use_sliding_window, use_logits_soft_cap=use_logits_soft_cap)


def gen_customize_single_prefill_module(backend, uri, dtype_q, dtype_kv, dtype_o, head_dim_qk, head_dim_vo, additional_tensor_names,
                                        additional_tensor_dtypes, additional_scalar_names, additional_scalar_dtypes, variant_name,
                                        variant_decl, pos_encoding_mode=0, use_sliding_window=False, use_logits_soft_cap=False,
                                        use_fp16_qk_reduction=False, fp8_enabled=False):
    """For `single_prefill_with_kv_cache_with_jit_module`."""
    _check(backend, fp8_enabled)
    return _spec(uri, dtype_q, dtype_kv, dtype_o, "int32", head_dim_qk, head_dim_vo, additional_tensor_names, additional_tensor_dtypes,
                 additional_scalar_names, additional_scalar_dtypes, variant_name, variant_decl, pos_encoding_mode,
                 use_sliding_window=use_sliding_window, use_logits_soft_cap=use_logits_soft_cap,
                 use_fp16_qk_reduction=use_fp16_qk_reduction)


def gen_customize_batch_decode_module(uri, dtype_q, dtype_kv, dtype_o, idtype, head_dim_qk, head_dim_vo, additional_tensor_names,
                                      additional_tensor_dtypes, additional_scalar_names, additional_scalar_dtypes, variant_name,
                                      variant_decl, pos_encoding_mode=0, use_sliding_window=False, use_logits_soft_cap=False):
    """`spec.jit_args` is what `BatchDecodeWithPagedKVCacheWrapper` takes."""
    return _spec(uri, dtype_q, dtype_kv, dtype_o, idtype, head_dim_qk, head_dim_vo, additional_tensor_names, additional_tensor_dtypes,
                 additional_scalar_names, additional_scalar_dtypes, variant_name, variant_decl, pos_encoding_mode,
                 use_sliding_window=use_sliding_window, use_logits_soft_cap=use_logits_soft_cap)


def gen_customize_batch_prefill_module(backend, uri, dtype_q, dtype_kv, dtype_o, idtype, head_dim_qk, head_dim_vo,
                                       additional_tensor_names, additional_tensor_dtypes, additional_scalar_names,
                                       additional_scalar_dtypes, variant_name, variant_decl, pos_encoding_mode=0,
                                       use_sliding_window=False, use_logits_soft_cap=False, use_fp16_qk_reduction=False,
                                       fp8_enabled=False):
    """`spec.jit_args` is what the batch prefill wrappers take."""
    _check(backend, fp8_enabled)
    return _spec(uri, dtype_q, dtype_kv, dtype_o, idtype, head_dim_qk, head_dim_vo, additional_tensor_names, additional_tensor_dtypes,
                 additional_scalar_names, additional_scalar_dtypes, variant_name, variant_decl, pos_encoding_mode,
                 use_sliding_window=use_sliding_window, use_logits_soft_cap=use_logits_soft_cap,
                 use_fp16_qk_reduction=use_fp16_qk_reduction)


def _check(backend, fp8_enabled):
    if backend not in ("auto", "fa2", "fa3"):
        raise ValueError(f"backend is {backend!r}, but must be 'auto', 'fa2' or 'fa3'")
    if fp8_enabled:
        raise NotImplementedError("fp8_enabled=True: 8-bit queries are not available")
