# SPDX-License-Identifier: Apache-2.0
"""The parser's flags, from the table of flag_table.py."""
import argparse
import functools

from routines.flag_table import FAMILY, SHARED

_TYPES = {"int": int, "float": float, "str": str}
# Back ends when none is given, where they are not the family's.
BACKENDS = {"group_gemm_fp8_nt_groupwise": ["cutlass"], "tinygemm_bf16": ["tinygemm"], "mm_bf16_fp4": ["cute-dsl"],
            "mm_fp8": ["trtllm_low_latency"], "rmsnorm_fp4quant": ["cute-dsl"], "add_rmsnorm_fp4quant": ["cute-dsl"],
            "cutlass_fused_moe": ["cutlass"], "cute_dsl_fp4_block_scale_moe": ["cute-dsl"], "b12x_fused_moe": ["b12x"],
            "unified_nvfp4_moe": ["unified"], "bgmv_moe": ["cuda"]}
# Of any routine: this library's candidates, all of them or one.
OURS = ("ours", "cpu", "reference")
_NEVER = {"top_k_page_table_transform": "vocab_size", "top_k_ragged_transform": "vocab_size"}
_BF16 = {"tinygemm_bf16": ("input_dtype", "mat2_dtype"), "mm_bf16_fp4": ("input_dtype",)}


@functools.lru_cache(maxsize=None)
def _activation(name):
    from flashinfer.fused_moe import ActivationType

    members = {m.name.lower(): m for m in ActivationType}
    if name.lower() not in members:
        raise argparse.ArgumentTypeError(f"Invalid value '{name}'. Must be one of: {', '.join(m.name for m in ActivationType)}")
    return members[name.lower()]


def _add(parser, line, routine):
    line, _, help_text = line.partition(" | ")
    name, kind, default, *words = line.split()
    options = {"help": help_text or None}
    if kind == "unset":
        parser.add_argument("--" + name, dest=default, action="store_false", help="the other way around")
        parser.set_defaults(**{default: True})
        return
    if kind == "flag":
        options.update(action="store_true", default=False)
    elif kind == "pair":
        options.update(action=argparse.BooleanOptionalAction, default=default == "yes")
    else:
        many = kind in ("words", "ints")
        of = _activation if kind == "activation" else _TYPES.get(kind, int if kind == "ints" else str)
        unset = {"required": None, "-": [] if kind == "words" else None, "=": ""}
        value = unset[default] if default in unset else of(default)
        if name == "backends":
            words = [*words, *(w for w in OURS if w not in words)]
            value = BACKENDS.get(routine, default)
        value = [value] if many and isinstance(value, str) else value
        options.update(type=of, default=value, required=default == "required" and _NEVER.get(routine) != name)
        if many:
            options["nargs"] = "+"
        if words:
            options["choices"] = [of(w) for w in words]
    parser.add_argument("--" + name, *(["--trace-out"] if name == "trace_out" else []), **options)


def add(parser, routine, family):
    """The shared flags and those of the family."""
    parser.add_argument("--verbose", "-v", action="count", default=0, help="print arguments; twice: shapes too")
    parser.add_argument("--num_iters", "-n", type=int, default=30, help="measured calls")
    parser.add_argument("--dry_run_iters", "-d", type=int, default=5, help="calls before those")
    for line in (SHARED + FAMILY[family]).strip().splitlines():
        if line:
            _add(parser, line, routine)
    for name in _BF16.get(routine, ()):
        parser.set_defaults(**{name: "bfloat16"})
