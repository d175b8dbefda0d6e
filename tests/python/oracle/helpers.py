# SPDX-License-Identifier: Apache-2.0
"""Helpers without kernels, through whichever `flashinfer` is imported: each call's result or error is a line."""
import os

import flashinfer
import torch
from flashinfer import tllm_enums as enums
from flashinfer import utils
from flashinfer.fused_moe import core
from flashinfer.fused_moe import utils as moe_utils
from flashinfer.testing import utils as testing

FP8, U8 = torch.float8_e4m3fn, torch.uint8


def show(value):
    if isinstance(value, torch.Tensor):
        return f"{tuple(value.shape)} {value.dtype} {value.double().flatten().tolist()}"
    if isinstance(value, (tuple, list)):
        return "; ".join(map(show, value))
    return str(value)


def call(label, function, *args, **kwargs):
    try:
        print(label, show(function(*args, **kwargs)))
    except Exception as error:
        print(label, type(error).__name__, error if str(error) and "[0" not in str(error) else "")


def number_helpers():
    for tokens in (0, 1, 7, 64, 100, 999, 5000, 70000):
        for experts, k in ((1, 1), (8, 2), (60, 4), (128, 8), (384, 6)):
            for most in (8, 16, 128, 256):
                call(f"tile {tokens} {experts} {k} {most}", utils.calculate_tile_tokens_dim, tokens, experts, k, most)
    for m in (1, 8, 64, 128, 192, 256):
        call(f"block {m}", utils.get_shuffle_block_size, m)
    for batch, heads, sms in ((4, 8, 148), (1, 1, 1), (4, 100, 148), (0, 8, 148), (7, 7, 13)):
        call(f"counters {batch} {heads} {sms}", utils.get_trtllm_gen_multi_ctas_kv_counter_bytes, batch, heads, sms)
    for n in (1, 8, 100, 256, 257, 1000, 2049, 5000, 20000):
        call(f"buckets {n}", moe_utils.get_hybrid_num_tokens_buckets, n)
        if n >= 256:  # below, upstream's mapper gives a bucket that is not in its list: 128 for 74 of at most 100
            call(f"mapper {n}", lambda n=n: [moe_utils.make_hybrid_bucket_mapper(n)(x) for x in range(0, 10000, 37)])
    call("range", utils._get_range_buf, 7, torch.device("cpu"))
    call("fp4 dtype", utils.get_native_fp4_dtype)
    for names, known, given in ((["a", "b"], {"a": 1}, (2,)), (["a", "b"], {"a": 1, "b": 3}, (2,)), (["a", "b"], {}, (2,)), ([], {}, (1, 2)),
                                (["x", "a"], {"a": None}, (1, 2, 3))):
        call(f"args {names} {known} {given}", utils.prepare_jit_additional_args, names, known, given)
    for encoding in (0, 1):
        for fp16 in (False, True):
            for mask in (False, True):
                for q in (torch.float16, FP8):
                    for kv in (torch.float16, FP8):
                        call(f"cutlass {encoding} {fp16} {mask} {q} {kv}", utils.is_cutlass_backend_supported, encoding, fp16, mask, q, kv)


def decorators():
    for bad in (80, ["80"], [80.0, 86], [True], None, [[80]]):
        call(f"capabilities {bad}", lambda bad=bad: utils.supported_compute_capability(bad)(lambda: 1) and "")
    checks = {"a": utils.supported_compute_capability([80])(lambda x, backend: True), "b": lambda x, backend: True}
    two = utils.backend_requirement(checks)(lambda x, backend="a": 1)
    none = utils.backend_requirement({})(lambda x: 1)
    for backend in ("a", "b", "c"):
        for cc in (None, 75, 80):
            call(f"supported {backend} {cc}", two.is_backend_supported, backend, cc)
    for cc in (75, 80):
        call(f"capability {cc}", two.is_compute_capability_supported, cc)
    call("has", lambda: (two.has_backend("a"), two.has_backend("z"), two.has_backend_choices(), none.has_backend_choices()))
    call("none", none.is_backend_supported, "a")
    call("none called", none, 1)

    def common(x):
        return True

    call("common called", utils.backend_requirement({}, common_check=common)(lambda x: 1), 1)


def layouts():
    for shape in ((128, 16), (48, 8), (24, 8), (16, 8), (32,), (2, 32, 8)):
        for m in (64, 128):
            x = torch.zeros(shape, dtype=U8)
            call(f"rows {shape} {m}", utils.get_shuffle_matrix_a_row_indices, x, m)
            if x.dim() != 2 or shape[0] == 128:
                call(f"scale rows {shape} {m}", utils.get_shuffle_matrix_sf_a_row_indices, x, m)
    call("halves", core.get_reorder_rows_for_gated_act_gemm_row_indices, torch.zeros(8, 4))
    call("odd halves", core.get_reorder_rows_for_gated_act_gemm_row_indices, torch.zeros(7, 4))
    cache, w = {}, torch.zeros(128, 16, dtype=U8)
    for options in ({}, {"num_elts_per_sf": 16}, {"is_gated_act_gemm": True}, {"is_gated_act_gemm": False}):
        for m in (64, 128):
            call(f"w2 {options} {m}", core.get_w2_permute_indices_with_cache, cache, w, m, **options)
            call(f"w3 {options} {m}", core._maybe_get_cached_w3_w1_permute_indices, cache, w, m, **options)
    call("keys", lambda: sorted(map(str, cache)))
    data, scale = torch.zeros(4, 8, dtype=U8), torch.zeros(128, 4, dtype=FP8)
    for arguments in ((data, scale), (data.float(), scale), (data, scale.float()), (data, scale[:4]), (data, scale, 124), (data, scale, 126),
                      (data, scale, -1), (data, scale, 128), (data, scale, 0, (4, 16)), (data, scale, 0, (4, 15)), (data, scale, 0, (4, 17)),
                      (data, scale, 0, (3, 16))):
        call("fp4 tensor", lambda a=arguments: vars(utils.FP4Tensor(*a)).values().__len__())


def enumerations():
    for kind in (enums.ActivationType, enums.GatedActType, enums.RoutingMethodType, enums.DtypeTrtllmGen, core.RoutingInputMode):
        print(kind.__name__, [(m.name, m.value) for m in kind])
    print("gated", [m.is_gated for m in enums.ActivationType])
    for value in (*range(14), 99, "x", None):
        call(f"gated {value}", enums.is_gated_activation, value)
        call(f"normalize {value}", lambda v=value: int(enums.normalize_activation_type(v)))
    for value in enums.DtypeTrtllmGen:
        call(f"scale {value.name}", enums.trtllm_gen_dtype_has_scale, value)
    for dtype in (torch.bfloat16, torch.float16, FP8, U8, torch.int32):
        x = torch.zeros(4, 64).to(dtype)
        for scale in (None, torch.zeros(4, 2), torch.zeros(4, 4), torch.zeros(4, 8), torch.zeros(1)):
            call(f"deduce {dtype} {None if scale is None else tuple(scale.shape)}", lambda: int(enums.deduce_trtllm_gen_tensor_dtype(x, scale)))


def fp8():
    torch.manual_seed(0)
    for x, tile in ((torch.randn(4, 256), (1, 128)), (torch.randn(256, 128) * 100, (128, 128)), (torch.randint(-15, 16, (2, 4, 256)) * 1e-3, (1, 1, 128)),
                    (torch.zeros(2, 128), (1, 128))):
        for mode in ("K", "MN"):
            shape = [n // t for n, t in zip(x.shape, tile)]
            if mode == "MN":
                shape[-2:] = shape[:-3:-1]
            call(f"quantize {tuple(x.shape)} {mode}", testing.quantize_fp8, x, tuple(shape), tile, mode)
            call(f"back {tuple(x.shape)} {mode}", lambda: testing.dequantize_fp8(*testing.quantize_fp8(x, tuple(shape), tile, mode), mode))
    call("token", testing.per_token_cast_to_fp8, torch.randn(3, 256))
    call("block", testing.per_block_cast_to_fp8, torch.randn(130, 256))
    call("bytes", testing.count_bytes, torch.zeros(4), [torch.zeros(3, dtype=U8), torch.zeros(2)])


def moe_weights():
    from flashinfer.fused_moe import CutlassBf16Config, TrtllmBf16Config

    torch.manual_seed(1)
    sizes = {"num_local_experts": 2, "hidden_size": 128, "intermediate_size": 64}
    w1, w2 = torch.randn(2, 128, 128).bfloat16(), torch.randn(2, 128, 64).bfloat16()
    for backend in (CutlassBf16Config, TrtllmBf16Config):
        name = backend.__name__
        call(name, lambda b=backend: [(k, v) for k, v in sorted(b.prepare_weights(w1, w2, **sizes).items())])
        for a, b in ((w1.float(), w2.float()), (w1[:, :60], w2)):
            try:
                backend.prepare_weights(a, b, **sizes)
            except Exception as error:
                print(name, type(error).__name__)


def four_over_six():
    from flashinfer import quantization
    from flashinfer.quantization import nvfp4_quantization_utils as recipes

    recipe, mode = recipes.NVFP44Over6Config, recipes.NVFP44Over6ErrMode
    for config in (None, recipe(), recipe(256), recipe(448, mode.MSE), recipe(448, "MAE", True), recipe(256, "MSE", True)):
        for function in (recipes.nvfp4_4over6_code, recipes.nvfp4_e4m3_max, recipes.nvfp4_per_token_scale_inv, recipes.resolve_nvfp4_4over6):
            call(f"{function.__name__} {config}", function, config)
    for code in range(-3, 40):
        call(f"code {code}", recipes.nvfp4_4over6_from_code, code)
    for bad in (300, 0):
        call(f"maximum {bad}", recipe, bad)
    call("unset", quantization.resolve_nvfp4_4over6)
    call("wrong", quantization.resolve_nvfp4_4over6, 1)
    for name in ("FLASHINFER_NVFP4_4OVER6", "FLASHINFER_NVFP4_4OVER6_E4M3_USE_256"):
        os.environ[name] = "1"
        call(name, quantization.resolve_nvfp4_4over6)


def checks():
    from flashinfer import trace

    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, FP8, torch.float8_e5m2, torch.int32, torch.bool, "bfloat16", "x"):
        call(f"tolerances {dtype}", trace.default_tolerances, dtype)
    a = torch.linspace(-2, 3, 100)
    b = a.clone()
    b[0] += 5
    numbers, nan, inf = torch.tensor([1, 2, 3, 4]), torch.tensor([float("nan")]), torch.tensor([float("inf")])
    pairs = ((a, a), (a, a + 1e-4), (a, a * 1.5), (a, a[:50]), (a, a.half()), (a, a.bfloat16()), ([a, a], (a, a)), ([a], a), ({"x": a}, {"x": a}),
             ({"x": a}, {"y": a}), (3, 3), (3, 4), ("a", "a"), (None, None), (a, None), (a * 0, a * 0), (a * 0, a * 0 + 1e-9), (nan, nan), (inf, inf),
             (numbers, numbers), (numbers, numbers + 1), (numbers, numbers.float()), ([a], [a, a]), (a.view(10, 10), a), (3.0, 3.0000001),
             (a[:0], a[:0]), (a.to(FP8), a.to(FP8)), (a, -a), (a, b), (numbers, torch.tensor([1, 2, 3, 5])))
    for i, (x, y) in enumerate(pairs):
        for options in ({}, {"max_mismatch_pct": 1.0}, {"max_mismatch_pct": 25.0, "min_cos_sim": None}, {"rtol": 0.1, "atol": 0.0}, {"min_cos_sim": None}):
            call(f"check {i} {options}", trace.default_check, x, y, **options)


def sizes():
    for n in (0, 1, 256, 257):
        call(f"padded {n}", lambda: flashinfer.padded_seq_len(n))
        call(f"pages {n}", lambda: flashinfer.min_block_table_width(n, 64))


def caches():
    """Helpers of utils that programs import in spite of their names."""
    cpu, z = torch.device("cpu"), torch.zeros
    first = utils._get_cache_buf("a", 100, cpu)
    print("buffers", first.shape, first.dtype, utils._get_cache_buf("a", 50, cpu) is first, utils._get_cache_buf("a", 200, "cpu").shape,
          utils._get_cache_buf("b", 8, cpu, zero_init=True).tolist(), ("b", cpu) in utils._cache_buf)
    x = torch.arange(640.0)
    for layout in ("NHD", "HND", "X"):
        call(f"layout {layout}", utils._check_kv_layout, layout)
        for cache in (x.view(5, 2, 4, 2, 8), x.view(10, 2, 4, 8), (x.view(10, 4, 2, 8), x.view(10, 4, 2, 8)), (x.view(20, 4, 8), x.view(20, 4, 8)), x, None, (z(1),), 3):
            call(f"unpacked {layout} {type(cache)}", utils._unpack_paged_kv_cache, cache, layout)
        for cache in (x.view(20, 4, 8), x.view(10, 4, 2, 8), x.view(5, 2, 4, 2, 8), x):
            call(f"4d {layout} {cache.dim()}", utils._expand_4d, cache, layout)
            call(f"5d {layout} {cache.dim()}", utils._expand_5d, cache, layout)
    for mode in ("NONE", "ROPE_LLAMA", "ALIBI", "X"):
        call(f"positions {mode}", utils._check_pos_encoding_mode, mode)


def interleaved_scales():
    from flashinfer.fused_moe import interleave_moe_scales_for_sm90_mixed_gemm as interleave

    for dtype in (U8, FP8, torch.bfloat16, torch.float32, torch.int64):
        for group in (16, 32, 64, 128, 256, 33, 0):
            for shape in ((2, 128, 8), (1, 64, 16), (0, 64, 8), (1, 64, 0), (64, 8), (1, 65, 8), (1, 64, 7)):
                try:
                    scales = torch.arange(torch.Size(shape).numel()).remainder(97).to(dtype).view(shape)
                    print(dtype, group, shape, show(interleave(scales, group)))
                except ValueError:
                    print(dtype, group, shape, "ValueError")


for part in (number_helpers, decorators, layouts, enumerations, fp8, moe_weights, four_over_six, checks, sizes, caches, interleaved_scales):
    part()
