# SPDX-License-Identifier: Apache-2.0
"""Precompiling kernels from Python: `python -m flashinfer.aot --out-dir DIR`. The command `flashinfer aot`, which needs no Python,
compiles for CPUs and GPUs that need not be here; this module compiles specs (flashinfer.jit) for this machine, by FlashInfer's options.

A program finds the folder by FLASHINFER_AOT_DIR."""
import argparse
import os
import pathlib
import shutil
from itertools import product
from typing import List, Optional, Tuple

from . import jit
from .jit.core import JitSpecNvcc, build_jit_specs, copy_library


def parse_bool(s: str) -> bool:
    """ValueError for anything but true, false, 1 and 0."""
    if s.lower() in ("true", "1"):
        return True
    if s.lower() in ("false", "0"):
        return False
    raise ValueError(f"Invalid boolean value: {s}")


def parse_head_dim(head_dim: str) -> Tuple[int, int]:
    """"128,64" -> (128, 64)"""
    qk, vo = map(int, head_dim.split(","))
    return qk, vo


def get_default_config():
    import torch

    return {"fa2_head_dim": [(64, 64), (128, 128), (256, 256)], "fa3_head_dim": [(192, 128), (128, 128), (64, 64), (256, 256)],
            "f16_dtype": [torch.float16, torch.bfloat16], "f8_dtype": [torch.float8_e4m3fn], "use_sliding_window": [False, True],
            "use_logits_soft_cap": [False, True], "add_comm": True, "add_gemma": True, "add_oai_oss": True, "add_moe": True,
            "add_act": True, "add_misc": True, "add_xqa": True}


def detect_sm_capabilities():
    """{"sm90": whether it is among the targets, ...}"""
    archs = {f"sm{major}{minor[0]}" for major, minor in jit.current_compilation_context.TARGET_CUDA_ARCHS}
    return {name: name in archs for name in ("sm75", "sm80", "sm86", "sm89", "sm90", "sm100", "sm103", "sm110", "sm120", "sm121")}


def gen_fa2(dtype_qo, dtype_kv, head_dim_qk: int, head_dim_vo: int, use_sliding_window: bool, use_logits_soft_cap: bool, prefill_only: bool = False):
    """Specs of prefill and decode attention for these dtypes and head dims."""
    import torch

    options = (0, use_sliding_window, use_logits_soft_cap)
    dims = (head_dim_qk, head_dim_vo)
    yield jit.gen_single_prefill_module("fa2", dtype_qo, dtype_kv, dtype_qo, *dims, *options, False)
    yield jit.gen_batch_prefill_module("fa2", dtype_qo, dtype_kv, dtype_qo, torch.int32, *dims, *options, False)
    if not prefill_only and head_dim_qk == head_dim_vo:
        yield jit.gen_single_decode_module(dtype_qo, dtype_kv, dtype_qo, *dims, *options)
        yield jit.gen_batch_decode_module(dtype_qo, dtype_kv, dtype_qo, torch.int32, *dims, *options)


def gen_fa3(dtype_q, dtype_kv, dtype_o, head_dim_qk: int, head_dim_vo: int, use_sliding_window: bool, use_logits_soft_cap: bool):
    """As `gen_fa2`, prefill alone: a device has one family of kernels."""
    yield from gen_fa2(dtype_q, dtype_kv, head_dim_qk, head_dim_vo, use_sliding_window, use_logits_soft_cap, True)


def gen_xqa(input_type_, fp8_kv_cache_, token_per_page_, head_size_, head_grp_size_, use_sliding_window_, has_sm90, has_sm100, has_sm103,
            has_sm120, has_sm121):
    """The spec of the decode functions in XQA form; its arguments choose nothing."""
    from .jit.xqa import gen_xqa_module

    yield gen_xqa_module(None, None, 0, 0, 0, False, None)


def gen_attention(f16_dtype_, f8_dtype_, fa2_head_dim_, fa3_head_dim_, use_sliding_window_, use_logits_soft_cap_, has_sm90, has_sm100,
                  has_sm103, has_sm110, add_gemma, add_oai_oss):
    """Specs of attention, MLA and merging of states. Back ends of single GPUs (`has_*`) have no kernels of their own."""
    import torch

    dims = list(dict.fromkeys([*map(tuple, fa2_head_dim_), *map(tuple, fa3_head_dim_)]))
    kinds = [*product(dims, use_sliding_window_, use_logits_soft_cap_)]
    kinds += [((256, 256), True, True)] * add_gemma + [((64, 64), True, False)] * add_oai_oss
    for dtype, ((qk, vo), window, cap) in product(f16_dtype_, dict.fromkeys(kinds)):
        yield from gen_fa2(dtype, dtype, qk, vo, window, cap)
    for dtype in f16_dtype_:
        yield jit.gen_batch_mla_module("fa2", dtype, dtype, dtype, torch.int32, 512, 64, False)
    yield jit.gen_cascade_module()


def gen_all_modules(f16_dtype_, f8_dtype_, fa2_head_dim_, fa3_head_dim_, use_sliding_window_, use_logits_soft_cap_, sm_capabilities: dict,
                    add_comm: bool, add_gemma: bool, add_oai_oss: bool, add_moe: bool, add_act: bool, add_misc: bool, add_xqa: bool):
    """All specs for these choices; families that the library lacks are left out."""
    has = {f"has_{name}": sm_capabilities.get(name, False) for name in ("sm90", "sm100", "sm103", "sm110")}
    specs = [*gen_attention(f16_dtype_, f8_dtype_, fa2_head_dim_, fa3_head_dim_, use_sliding_window_, use_logits_soft_cap_, **has,
                            add_gemma=add_gemma, add_oai_oss=add_oai_oss)]
    wanted = [(add_act, [lambda n=n: jit.gen_act_and_mul_module(n) for n in ("silu", "gelu", "gelu_tanh")]),
              (add_moe, [jit.gen_cutlass_fused_moe_sm90_module, jit.gen_trtllm_gen_fused_moe_sm100_module]),
              (add_comm, [jit.gen_trtllm_comm_module]),
              (add_xqa, [lambda: next(gen_xqa([], [], [], [], [], [], *[False] * 5))]),
              (add_misc, [jit.gen_norm_module, jit.gen_page_module, jit.gen_rope_module, jit.gen_sampling_module, jit.gen_topk_module,
                          jit.gen_quantization_module, jit.gen_fp4_quantization_sm100_module, jit.gen_mxfp8_quantization_sm100_module])]
    for chosen, generators in wanted:
        for generate in generators if chosen else ():
            try:
                specs.append(generate())
            except NotImplementedError:
                pass
    return list({spec.name: spec for spec in specs}.values())


def copy_built_kernels(jit_specs: List, out_dir: pathlib.Path) -> None:
    """Copies what is compiled into a folder for FLASHINFER_AOT_DIR: <target>/<kernel>/, and <name>/<name>.so of user sources."""
    out_dir = pathlib.Path(out_dir)
    for spec in jit_specs:
        if isinstance(spec, JitSpecNvcc):
            copy_library(spec, out_dir)
        else:
            for kernel in spec.kernels:
                target = out_dir / kernel["target"] / kernel["aot_folder"]
                if kernel["kind"] and not target.exists():
                    shutil.copytree(pathlib.Path(kernel["library"]).parent, target)


def compile_and_package_modules(out_dir: Optional[pathlib.Path], build_dir: pathlib.Path, project_root: pathlib.Path, config: dict = None,
                                verbose: bool = False, skip_prebuilt: bool = True) -> None:
    """Compiles all specs of `config` (over `get_default_config()`) and copies them to `out_dir`, if one is given."""
    del build_dir, project_root  # kernels are compiled in the cache
    specs = gen_all_modules(**_arguments({**get_default_config(), **(config or {})}))
    build_jit_specs(specs, verbose=verbose, skip_prebuilt=skip_prebuilt)
    if out_dir is not None:
        copy_built_kernels(specs, pathlib.Path(out_dir))


def _arguments(config):
    lists = {f"{name}_": config[name] for name in ("f16_dtype", "f8_dtype", "fa2_head_dim", "fa3_head_dim", "use_sliding_window", "use_logits_soft_cap")}
    flags = {name: value for name, value in config.items() if name.startswith("add_")}
    return {**lists, "sm_capabilities": detect_sm_capabilities(), **flags}


def register_default_modules() -> int:
    """Describes the specs of the default choices in `jit.jit_spec_registry`; returns how many there are."""
    return len(gen_all_modules(**_arguments(get_default_config())))


def main():
    import torch

    parser = argparse.ArgumentParser(description="Ahead-of-Time (AOT) build all modules")
    parser.add_argument("--out-dir", type=pathlib.Path, help="Output directory")
    parser.add_argument("--build-dir", type=pathlib.Path, help="accepted; kernels are compiled in the cache")
    for name in ("fa2", "fa3"):
        parser.add_argument(f"--{name}-head-dim", nargs="*", help="head dims of qk and vo, separated by a comma")
    parser.add_argument("--f16-dtype", nargs="*", choices=["float16", "bfloat16"], help="16-bit data type")
    parser.add_argument("--f8-dtype", nargs="*", choices=["float8_e4m3fn", "float8_e5m2"], help="8-bit data type")
    parser.add_argument("--use-sliding-window", nargs="*", help="kernels with a window")
    parser.add_argument("--use-logits-soft-cap", nargs="*", help="kernels with a soft cap")
    for name in ("comm", "gemma", "oai-oss", "moe", "act", "misc", "xqa"):
        parser.add_argument(f"--add-{name}", type=parse_bool, help=f"add the kernels of {name}")
    given = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
    out_dir, build_dir = given.pop("out_dir", pathlib.Path(os.getcwd()) / "aot-ops"), given.pop("build_dir", None)
    for names, convert in ((("fa2_head_dim", "fa3_head_dim"), parse_head_dim), (("use_sliding_window", "use_logits_soft_cap"), parse_bool),
                           (("f16_dtype", "f8_dtype"), lambda text: getattr(torch, text))):
        given.update({name: [convert(x) for x in given[name]] for name in names if name in given})
    compile_and_package_modules(out_dir, build_dir, pathlib.Path.cwd(), given, verbose=True, skip_prebuilt=False)
    print("AOT kernels saved to:", out_dir)


if __name__ == "__main__":
    main()
