# SPDX-License-Identifier: Apache-2.0
"""Names of dtypes in sources and file names, and `write_if_different`."""
import os
import pathlib
import tempfile

_C_NAMES = {"float16": "half", "bfloat16": "nv_bfloat16", "float8_e4m3fn": "__nv_fp8_e4m3", "float8_e5m2": "__nv_fp8_e5m2",
            "int8": "int8_t", "uint8": "uint8_t", "int32": "int32_t", "uint32": "uint32_t", "int64": "int64_t", "uint64": "uint64_t"}
_C_NAMES_KV = {**{k: _C_NAMES[k] for k in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")}, "uint8": "__nv_fp4x2_e2m1",
               "float4_e2m1fn_x2": "__nv_fp4x2_e2m1"}
_FILE_NAMES = {"float16": "f16", "bfloat16": "bf16", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "int8": "i8", "uint8": "u8",
               "int32": "i32", "uint32": "u32", "int64": "i64", "uint64": "u64", "float4_e2m1fn_x2": "fp4_e2m1", "float32": "f32"}

pos_encoding_mode_literal = {0: "PosEncodingMode::kNone", 1: "PosEncodingMode::kRoPELlama", 2: "PosEncodingMode::kALiBi"}
mask_mode_literal = {0: "MaskMode::kNone", 1: "MaskMode::kCausal", 2: "MaskMode::kCustom", 3: "MaskMode::kMultiItemScoring"}

_MAPS = {"dtype_map": _C_NAMES, "dtype_map_kv": _C_NAMES_KV, "filename_safe_dtype_map": _FILE_NAMES}


def __getattr__(name):  # their keys are torch's dtypes, and torch may be absent
    if name not in _MAPS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import torch

    return {getattr(torch, key): text for key, text in _MAPS[name].items() if hasattr(torch, key)}


def dtype_name(dtype):
    """"float16" of torch.float16, numpy.float16 or the text."""
    text = getattr(dtype, "__name__", None) or str(dtype)
    return text.rpartition(".")[2]


def file_name(dtype):
    """"f16". KeyError for other dtypes than those of kernels."""
    name = dtype_name(dtype)
    if name not in _FILE_NAMES:
        raise KeyError(f"{dtype} is no dtype of kernels: {', '.join(_FILE_NAMES)}")
    return _FILE_NAMES[name]


def filename_safe_dtype_map_kv(dtype):
    """As `filename_safe_dtype_map`, for caches: uint8 holds pairs of FP4 elements."""
    return "fp4x2_e2m1" if dtype_name(dtype) in ("uint8", "float4_e2m1fn_x2") else file_name(dtype)


def write_if_different(path: pathlib.Path, content: str) -> None:
    """Writes the text unless the file has it already, so that its time stays; missing folders are made. The file is replaced at
    once: another process sees the old text or the new one."""
    path = pathlib.Path(path)
    try:
        if path.read_text() == content:
            return
    except (FileNotFoundError, UnicodeDecodeError):
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w") as f:
            f.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
