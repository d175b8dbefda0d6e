# SPDX-License-Identifier: Apache-2.0
"""Custom attention variants: a C++ struct, as text, that the library compiles its attention kernels with (docs/attention-variants.md).

    spec = gen_customize_single_prefill_module("fa2", "sigmoid", torch.float32, torch.float32, torch.float32, 64, 64,
                                               [], [], ["bias"], ["float"], "SigmoidAttention", SOURCE)
    out = flashinfer.single_prefill_with_kv_cache_with_jit_module(spec.build_and_load(), q, k, v, -1.0)

The batch wrappers take the same arguments as `jit_args=[uri, dtype_q, ..., variant_name, variant_decl]` (`spec.jit_args`).
"""
import json
import pathlib

from ... import _arrays, _native
from .._library import call, jit_disabled
from ..spec import JitSpec, MissingJITCacheError, jit_spec_registry
from ..utils import dtype_name

_C_TYPES = {"float": "float32", "half": "float16", "nv_bfloat16": "bfloat16", "double": "float64", "bool": "bool", "uint8_t": "uint8",
            "int8_t": "int8", "int32_t": "int32", "uint32_t": "uint32", "int64_t": "int64", "uint64_t": "uint64",
            "__nv_fp8_e4m3": "float8_e4m3fn", "__nv_fp8_e5m2": "float8_e5m2"}


class AttentionVariantSpec(JitSpec):
    """The attention kernels with one variant. `build()` compiles those for the CPU; kernels for a GPU, and for other options of a
    call, are compiled at the first call that needs them."""

    def __init__(self, jit_args, options, op):
        self.name = jit_args[0]
        self.jit_args = jit_args
        self.sources = []  # the text is jit_args[-1]
        self._options, self._op = options, op
        jit_spec_registry.register(self)

    def __repr__(self):
        return f"AttentionVariantSpec(name={self.name!r}, variant={self.jit_args[-2]!r})"

    def _call(self, rows):
        """The arguments of a small call, whose kernels are looked up but not run."""
        import torch

        def tensor(dtype, *shape):
            return torch.empty(shape, dtype=getattr(torch, dtype))

        _, dtype_q, dtype_kv, _, _, qk, vo, _, tensors, _, scalars, _, _ = self.jit_args
        single = "decode" in self._op
        values = [tensor(_C_TYPES.get(t, t), 1) for t in tensors] + [1 if t == "bool" or t.startswith(("int", "uint")) else 1.0 for t in scalars]
        return {"jit_module": self.jit_args, "q": tensor(dtype_name(dtype_q), *(() if single else (rows,)), 4, qk),
                "k": tensor(dtype_name(dtype_kv), 80, 1, qk), "v": tensor(dtype_name(dtype_kv), 80, 1, vo), "args": values}

    def _kernels(self, build):
        call("paths")  # follows a changed environment
        kernels = {}
        for rows in (1,) if "decode" in self._op else (1, 70):
            boxed = {name: _arrays.boxed(value) for name, value in self._call(rows).items()}
            for k in json.loads(str(_native.function("jit.variant_kernels")(build, self._op, boxed))):
                kernels[k["text"]] = k
        return list(kernels.values())

    @property
    def is_compiled(self):
        return all(k["kind"] for k in self._kernels(False))

    def get_library_paths(self):
        return tuple(pathlib.Path(k["library"]) for k in self._kernels(False) if k["kind"])

    def get_library_path(self):
        paths = self.get_library_paths()
        if not paths:
            raise RuntimeError(f"{self.name} is not compiled: build() it first")
        return paths[0]

    def build(self, verbose=None, need_lock=False):
        """RuntimeError with the compiler's output, whose lines are those of the variant's text."""
        for k in self._kernels(True):
            if k["outcome"] == "failed":
                raise RuntimeError(k["message"])
            if k["outcome"] == "unavailable" and jit_disabled():
                raise MissingJITCacheError(k["message"], self)

    def load(self):
        """What the `*_with_jit_module` functions take as their module."""
        return self.jit_args

    def build_and_load(self):
        """As `load()`: kernels are compiled by the first call, for its device and options, or by `build()` before it."""
        return self.jit_args


def _spec(uri, dtype_q, dtype_kv, dtype_o, idtype, head_dim_qk, head_dim_vo, additional_tensor_names, additional_tensor_dtypes,
          additional_scalar_names, additional_scalar_dtypes, variant_name, variant_decl, pos_encoding_mode, op="single_prefill_with_kv_cache_with_jit_module", **options):
    if int(pos_encoding_mode) != 0:
        raise ValueError(f"{uri}: pos_encoding_mode is {pos_encoding_mode}, but must be 0: a variant sees keys as they are")
    return AttentionVariantSpec([uri, dtype_q, dtype_kv, dtype_o, idtype, head_dim_qk, head_dim_vo, list(additional_tensor_names),
                                 list(additional_tensor_dtypes), list(additional_scalar_names), list(additional_scalar_dtypes), variant_name,
                                 variant_decl], options, op)


def gen_customize_single_decode_module(uri, dtype_q, dtype_kv, dtype_o, head_dim_qk, head_dim_vo, additional_tensor_names,
                                       additional_tensor_dtypes, additional_scalar_names, additional_scalar_dtypes, variant_name,
                                       variant_decl, pos_encoding_mode=0, use_sliding_window=False, use_logits_soft_cap=False):
    """For `single_decode_with_kv_cache_with_jit_module`. Window and soft cap are values of each call here; their flags choose nothing."""
    return _spec(uri, dtype_q, dtype_kv, dtype_o, "int32", head_dim_qk, head_dim_vo, additional_tensor_names, additional_tensor_dtypes,
                 additional_scalar_names, additional_scalar_dtypes, variant_name, variant_decl, pos_encoding_mode,
                 op="single_decode_with_kv_cache_with_jit_module", use_sliding_window=use_sliding_window,
                 use_logits_soft_cap=use_logits_soft_cap)


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
                                       fp8_enabled=False, paged_kv_stride_mode="runtime", module_surface="full"):
    """`spec.jit_args` is what the batch prefill wrappers take. Strides are values of each call here, and one kernel reads paged and
    ragged caches: `paged_kv_stride_mode` and `module_surface` choose nothing."""
    _check(backend, fp8_enabled)
    _one_of("paged_kv_stride_mode", paged_kv_stride_mode, ("runtime", "equal", "independent"))
    _one_of("module_surface", module_surface, ("full", "paged"))
    scales = [n for n in ("maybe_k_cache_sf", "maybe_v_cache_sf") if n not in additional_tensor_names]
    if scales and str(dtype_kv) in ("torch.uint8", "uint8"):
        raise ValueError(f"{uri}: an NVFP4 cache (dtype_kv={dtype_kv}) needs its scale factors: additional_tensor_names lacks {', '.join(scales)}")
    return _spec(uri, dtype_q, dtype_kv, dtype_o, idtype, head_dim_qk, head_dim_vo, additional_tensor_names, additional_tensor_dtypes,
                 additional_scalar_names, additional_scalar_dtypes, variant_name, variant_decl, pos_encoding_mode,
                 use_sliding_window=use_sliding_window, use_logits_soft_cap=use_logits_soft_cap,
                 use_fp16_qk_reduction=use_fp16_qk_reduction)


def _check(backend, fp8_enabled):
    if backend not in ("auto", "fa2", "fa3"):
        raise ValueError(f"backend is {backend!r}, but must be 'auto', 'fa2' or 'fa3'")
    if fp8_enabled:
        raise NotImplementedError("fp8_enabled=True: 8-bit queries are not available")


def _one_of(name, value, legal):
    if value not in legal:
        raise ValueError(f"{name} is {value!r}, but must be one of {', '.join(map(repr, legal))}")


def _no_variants(what):
    raise NotImplementedError(f"{what} takes no custom variant here: use gen_customize_batch_prefill_module with BatchPrefillWithPagedKVCacheWrapper")


def gen_customize_batch_attention_module(uri, dtype_q, dtype_kv, dtype_o, idtype, head_dim_qk, head_dim_vo, additional_tensor_names,
                                         additional_tensor_dtypes, additional_scalar_names, additional_scalar_dtypes, variant_name,
                                         variant_decl, pos_encoding_mode=0, use_logits_soft_cap=False, use_profiler=False):
    """NotImplementedError: `BatchAttention` takes no variant."""
    _no_variants("BatchAttention")


def gen_customize_pod_module(uri, dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim, additional_tensor_names, additional_tensor_dtypes,
                             additional_scalar_names, additional_scalar_dtypes, variant_name_p, variant_name_d, variant_decl,
                             pos_encoding_mode_p=0, use_sliding_window_p=False, use_logits_soft_cap_p=False, pos_encoding_mode_d=0,
                             use_sliding_window_d=False, use_logits_soft_cap_d=False, use_fp16_qk_reduction=False):
    """NotImplementedError: `PODWithPagedKVCacheWrapper` takes no variant."""
    _no_variants("PODWithPagedKVCacheWrapper")


def gen_customize_batch_pod_module(uri, dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim, additional_tensor_names, additional_tensor_dtypes,
                                   additional_scalar_names, additional_scalar_dtypes, variant_name_p, variant_name_d, variant_decl,
                                   pos_encoding_mode_p=0, use_sliding_window_p=False, use_logits_soft_cap_p=False, pos_encoding_mode_d=0,
                                   use_sliding_window_d=False, use_logits_soft_cap_d=False, use_fp16_qk_reduction=False):
    """NotImplementedError: `BatchPODWithPagedKVCacheWrapper` takes no variant."""
    _no_variants("BatchPODWithPagedKVCacheWrapper")
