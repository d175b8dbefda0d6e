# SPDX-License-Identifier: Apache-2.0
"""Back ends of MoELayer whose weights are a checkpoint's, already quantised, and whose inputs are bf16: cuTile's, and SM12x's of NVFP4.

Their views are FlashInfer's: of gated first weights the gate lies before the linear half, FP4 scale factors are in tiles of 128x4. Weights are unpacked in
each call (`_expert_loop`); for serving from a CPU, `Cutlass*Config` read quantised weights in their kernels.
"""
import dataclasses

from . import _moe_api as api
from ._moe_runners import QuantisedRunner
from .tllm_enums import ActivationType, is_gated_activation

_F = api.QuantFormat


# ---- weights ----
def _shapes(who, given, experts, hidden, intermediate, gated, pack, block):
    """ValueError unless codes and scales of both weights have the shapes of `pack` values an element and scales of `block`."""
    rows = intermediate * (2 if gated else 1)
    for name, codes, scales, shape in zip(("w1", "w2"), given[::2], given[1::2], ((experts, rows, hidden), (experts, hidden, intermediate))):
        wanted = shape[:2] + (shape[2] // pack,), shape[:2] + (shape[2] // block,) if block else (experts,)
        if shape[2] % (block or 1) or (tuple(codes.shape), tuple(scales.shape)) != wanted:
            raise ValueError(f"{who}: {name} and its scales have shapes {tuple(codes.shape)} and {tuple(scales.shape)}, but must be {list(wanted[0])} and "
                             f"{list(wanted[1])}" + (f", of columns that are a multiple of {block}" if block else ""))


def _gate_first(t, gated):
    """Rows of the gate before those of the linear half."""
    import torch

    return torch.cat((t[:, t.shape[1] // 2:], t[:, :t.shape[1] // 2]), 1) if gated else t.contiguous()


def _fp4_view(who, w1, s1, w2, s2, block, scale_type, experts, hidden, intermediate, activation_type, device):
    import torch

    from . import block_scale_interleave

    gated, made = is_gated_activation(activation_type), {}
    if any(w.dtype not in (torch.uint8, getattr(torch, "float4_e2m1fn_x2", torch.uint8)) for w in (w1, w2)):
        raise TypeError(f"{who}: w1_fp4 and w2_fp4 are {w1.dtype} and {w2.dtype}, but must be torch.uint8")
    _shapes(who, (w1, s1, w2, s2), experts, hidden, intermediate, gated, 2, block)
    for name, codes, scales, swap in (("w1", w1, s1, gated), ("w2", w2, s2, False)):
        codes, scales = _gate_first(codes.to(device).view(torch.uint8), swap), _gate_first(scales.to(device).view(torch.uint8), swap)
        rows, columns = -(-scales.shape[1] // 128), -(-scales.shape[2] // 4)
        tiles = torch.stack([block_scale_interleave(s.contiguous()).reshape(rows, columns, 32, 16) for s in scales])
        made |= {name: codes, f"{name}_scale": tiles.view(scale_type), f"{name}_global_scale": torch.ones(experts, device=codes.device)}
    return made


def prepare_cutile_bf16_weights(w1_bf16, w2_bf16, *, num_local_experts, hidden_size, intermediate_size, activation_type=ActivationType.Swiglu, device=None):
    """{"w1": [experts, hidden, 2 * intermediate], "w2": [experts, intermediate, hidden]} of bf16 weights, transposed views.

    Raises:
        TypeError: other dtypes
        ValueError: other shapes
    """
    gated = is_gated_activation(activation_type)
    like = api.SwiGLU() if gated else api.ReLU2()
    api._checked_weights("prepare_cutile_bf16_weights", TypeError, w1_bf16, w2_bf16, num_local_experts, hidden_size, intermediate_size, like)
    return {"w1": _gate_first(w1_bf16.to(device), gated).transpose(1, 2), "w2": w2_bf16.to(device).contiguous().transpose(1, 2)}


def prepare_cutile_fp8_weights(w1_fp8, w1_scale, w2_fp8, w2_scale, *, num_local_experts, hidden_size, intermediate_size, block_scaled,
                               activation_type=ActivationType.Swiglu, device=None):
    """{"w1", "w1_scale", "w2", "w2_scale"} of e4m3 weights with UE8M0 scales of 32 (block_scaled: MXFP8) or one float32 scale an expert.

    Raises:
        TypeError: weights that are not e4m3
        ValueError: other shapes
    """
    import torch

    who, gated = "prepare_cutile_fp8_weights", is_gated_activation(activation_type)
    if w1_fp8.dtype != torch.float8_e4m3fn or w2_fp8.dtype != torch.float8_e4m3fn:
        raise TypeError(f"{who}: w1_fp8 and w2_fp8 are {w1_fp8.dtype} and {w2_fp8.dtype}, but must be torch.float8_e4m3fn")
    _shapes(who, (w1_fp8, w1_scale, w2_fp8, w2_scale), num_local_experts, hidden_size, intermediate_size, gated, 1, 32 if block_scaled else None)
    first = _gate_first(w1_fp8.to(device).view(torch.uint8), gated).view(torch.float8_e4m3fn)
    if block_scaled:
        w1_scale, w2_scale = (s.to(device).view(torch.uint8) for s in (w1_scale, w2_scale))
        scales = [s.contiguous().view(torch.float8_e8m0fnu) for s in (_gate_first(w1_scale, gated), w2_scale)]
    else:
        scales = [s.to(device).float().contiguous() for s in (w1_scale, w2_scale)]
    return {"w1": first, "w1_scale": scales[0], "w2": w2_fp8.to(device).contiguous(), "w2_scale": scales[1]}


def prepare_cutile_mxfp4_weights(w1_fp4, w1_block_scale, w2_fp4, w2_block_scale, *, num_local_experts, hidden_size, intermediate_size,
                                 activation_type=ActivationType.Swiglu, device=None):
    """{"w1": uint8 [experts, rows, hidden / 2], "w1_scale": UE8M0 in tiles, "w1_global_scale": ones, ...} of MXFP4 weights with plain scales of 32.

    Raises:
        TypeError: codes that are not uint8
        ValueError: other shapes
    """
    import torch

    return _fp4_view("prepare_cutile_mxfp4_weights", w1_fp4, w1_block_scale, w2_fp4, w2_block_scale, 32, torch.float8_e8m0fnu, num_local_experts, hidden_size,
                     intermediate_size, activation_type, device)


def prepare_cutile_nvfp4_weights(w1_fp4, w1_block_scale, w1_global_scale, w2_fp4, w2_block_scale, w2_global_scale, *, num_local_experts, hidden_size,
                                 intermediate_size, activation_type=ActivationType.Swiglu, source_format="modelopt", device=None):
    """{"w1": uint8 [experts, rows, hidden / 2], "w1_scale": e4m3 in tiles, "w1_global_scale": float32, ...} of NVFP4 weights with plain scales of 16.

    Args:
        w1_global_scale: float32 [experts], or [experts, 2] for the linear half and the gate: what products are multiplied by; of source_format
            "compressed_tensors" the inverse

    Raises:
        TypeError: codes that are not uint8, block scales that are not e4m3
        ValueError: other shapes, another source_format
    """
    import torch

    who = "prepare_cutile_nvfp4_weights"
    if source_format not in ("modelopt", "compressed_tensors"):
        raise ValueError(f"source_format must be 'modelopt' or 'compressed_tensors', got {source_format!r}.")
    if w1_block_scale.dtype != torch.float8_e4m3fn or w2_block_scale.dtype != torch.float8_e4m3fn:
        raise TypeError(f"{who}: block scales are {w1_block_scale.dtype} and {w2_block_scale.dtype}, but must be torch.float8_e4m3fn")
    view = _fp4_view(who, w1_fp4, w1_block_scale, w2_fp4, w2_block_scale, 16, torch.float8_e4m3fn, num_local_experts, hidden_size, intermediate_size,
                     activation_type, device)
    for name, factor, both in (("w1", w1_global_scale, is_gated_activation(activation_type)), ("w2", w2_global_scale, False)):
        factor = factor.to(view["w1"].device).float()
        if tuple(factor.shape) != (num_local_experts,) and not (both and tuple(factor.shape) == (num_local_experts, 2)):
            raise ValueError(f"{who}: {name}_global_scale has shape {tuple(factor.shape)}, but must be [{num_local_experts}]" + (" or [..., 2]" if both else ""))
        factor = 1 / factor if source_format == "compressed_tensors" else factor
        view[f"{name}_global_scale"] = factor.flip(1).contiguous() if factor.dim() == 2 else factor.contiguous()
    return view


# ---- configurations ----
def _config(name, key, function, doc, **fixed):
    def prepare_weights(*args, activation=None, **kwargs):
        return function(*args, **fixed, activation_type=ActivationType.Swiglu if activation is None else activation.type, **kwargs)

    prepare_weights.__doc__ = f"`{function.__name__}`"
    return api._value(type(name, (api._Backend,), {"runner": key, "prepare_weights": staticmethod(prepare_weights), "__doc__": doc + "; bf16 inputs.",
                                                   "__module__": __name__, "__annotations__": {}}))


CuTileBf16Config = _config("CuTileBf16Config", "cutile_bf16", prepare_cutile_bf16_weights, "BF16 weights")
CuTileMxfp8Config = _config("CuTileMxfp8Config", "cutile_mxfp8", prepare_cutile_fp8_weights, "MXFP8 weights, inputs of both products become MXFP8", block_scaled=True)
CuTileMxfp8Bf16Config = _config("CuTileMxfp8Bf16Config", "cutile_mxfp8", prepare_cutile_fp8_weights, "MXFP8 weights", block_scaled=True)
CuTileFp8PerTensorBf16Config = _config("CuTileFp8PerTensorBf16Config", "cutile_fp8_per_tensor", prepare_cutile_fp8_weights, "E4M3 weights with a scale for each expert",
                                       block_scaled=False)
CuTileMxfp4Config = _config("CuTileMxfp4Config", "cutile_mxfp4", prepare_cutile_mxfp4_weights, "MXFP4 weights, inputs of both products become MXFP4")
CuTileMxfp4Mxfp8Config = _config("CuTileMxfp4Mxfp8Config", "cutile_mxfp4", prepare_cutile_mxfp4_weights, "MXFP4 weights, inputs of both products become MXFP8")
CuTileMxfp4Bf16Config = _config("CuTileMxfp4Bf16Config", "cutile_mxfp4", prepare_cutile_mxfp4_weights, "MXFP4 weights")
CuTileNvfp4Config = _config("CuTileNvfp4Config", "cutile_nvfp4", prepare_cutile_nvfp4_weights, "NVFP4 weights, inputs of both products become NVFP4")
CuTileNvfp4Bf16Config = _config("CuTileNvfp4Bf16Config", "cutile_nvfp4", prepare_cutile_nvfp4_weights, "NVFP4 weights")
SM12xNvfp4Config = _config("SM12xNvfp4Config", "sm12x_nvfp4", prepare_cutile_nvfp4_weights, "As `CuTileNvfp4Config`, whose weights it takes too")
SM12xNvfp4Bf16Config = _config("SM12xNvfp4Bf16Config", "sm12x_nvfp4_bf16", prepare_cutile_nvfp4_weights, "As `CuTileNvfp4Bf16Config`, whose weights it takes too")
CuTileFp8PerTensorConfig, CutlassHummingConfig, SM12xFp8Config, SM12xMxfp8Mxfp4Config = (
    api._absent(n) for n in ("CuTileFp8PerTensorConfig", "CutlassHummingConfig", "SM12xFp8Config", "SM12xMxfp8Mxfp4Config"))


@dataclasses.dataclass(frozen=True, repr=False)
class CakeWarpDecodeConfig(api._Backend):
    """A back end of FlashInfer that MoELayer does not have here; it can be named among candidates."""
    backend: str = "cake"


# ---- runners ----
class _CheckpointRunner(QuantisedRunner):
    """One format of weights and what the inputs of both products become."""

    @classmethod
    def why_not(cls, config):
        if not config.finalize.do_finalize:
            return "it requires do_finalize=True"
        if (config.experts.local_num_experts or config.routing.num_experts) != config.routing.num_experts:
            return "a share of the experts (expert parallelism) is not available"
        return super().why_not(config)

    def matrices(self, view, name):
        """(matrix, factor) of `expert_sums`."""
        import torch

        from ._expert_loop import fp4_matrix, fp4_tiles, mxfp8_values

        w, weight = view[name], self.config.quant.weight
        if weight == _F.BF16:
            return lambda e: w[e].T, lambda e: 1.0
        scale = view[f"{name}_scale"]
        if weight == _F.MXFP8:
            return lambda e: mxfp8_values(w[e], scale[e]), lambda e: 1.0
        if weight == _F.FP8PerTensor:
            return lambda e: w[e].to(torch.bfloat16), lambda e: float(scale[e])
        block, factor = 32 if weight == _F.MXFP4 else 16, view[f"{name}_global_scale"]
        tiles = fp4_tiles(f"MoELayer ({self.backend_key})", f"{name}_scale", scale.reshape(-1), w, block)
        half = w.shape[1] // 2
        return lambda e: fp4_matrix(w, tiles, e, block), lambda e: factor[e].repeat_interleave(half) if factor.dim() == 2 else float(factor[e])

    def quantisers(self, view):
        from ._expert_loop import mxfp4_rows, mxfp8_rows, nvfp4_rows

        inputs = self.config.quant.activation
        if inputs == _F.BF16:
            return None
        if inputs in (_F.MXFP8, _F.MXFP4):
            rows = mxfp8_rows if inputs == _F.MXFP8 else mxfp4_rows
            return (lambda x, expert, token: (rows(x), 1.0),) * 2

        def nvfp4(name):
            scale = float(view.get(f"{name}_input_global_scale", 1.0)) if self.backend_key == "sm12x_nvfp4" else 1.0
            return lambda x, expert, token: (nvfp4_rows(x.contiguous(), scale), scale)

        return nvfp4("w1"), nvfp4("w2")

    def forward(self, inputs, tactic=-1, do_preparation=False, **kwargs):
        """[tokens, hidden] of bf16. Inputs: the pack of activations, experts, their weights, the view."""
        import torch

        from ._expert_loop import activated, expert_sums

        (pack, ids, weights, view), a = inputs, self.config.activation
        x, most = pack.hidden_states_q, self.config.routing.num_experts
        if x.dtype != torch.bfloat16 or pack.hidden_states_scale is not None or pack.per_token_scale is not None:
            raise ValueError(f"MoELayer: {self.backend_key} takes torch.bfloat16 hidden_states_q without scales, not {x.dtype}")
        if ids.numel() and int(ids.max()) >= most:
            raise ValueError(f"MoELayer: topk_ids names expert {int(ids.max())}, but there are {most}")

        def act(y):
            return activated(y.roll(y.shape[1] // 2, 1) if a.is_gated else y, a)

        return expert_sums(x, ids, weights, self.matrices(view, "w1"), act, self.matrices(view, "w2"), self.quantisers(view)).to(torch.bfloat16)


def _runner(name, key, weight, inputs, *also):
    return type(name, (_CheckpointRunner,), {"backend_key": key, "also": also, "pairs": ((weight, inputs),), "__module__": __name__,
                                             "__doc__": f"{weight.name} weights, {inputs.name} inputs of the products."})


CuTileBf16Runner = _runner("CuTileBf16Runner", "cutile_bf16", _F.BF16, _F.BF16)
CuTileMxfp8Runner = _runner("CuTileMxfp8Runner", "cutile_mxfp8", _F.MXFP8, _F.MXFP8)
CuTileMxfp8Bf16Runner = _runner("CuTileMxfp8Bf16Runner", "cutile_mxfp8", _F.MXFP8, _F.BF16)
CuTileFp8PerTensorBf16Runner = _runner("CuTileFp8PerTensorBf16Runner", "cutile_fp8_per_tensor", _F.FP8PerTensor, _F.BF16)
CuTileMxfp4Runner = _runner("CuTileMxfp4Runner", "cutile_mxfp4", _F.MXFP4, _F.MXFP4)
CuTileMxfp4Mxfp8Runner = _runner("CuTileMxfp4Mxfp8Runner", "cutile_mxfp4", _F.MXFP4, _F.MXFP8)
CuTileMxfp4Bf16Runner = _runner("CuTileMxfp4Bf16Runner", "cutile_mxfp4", _F.MXFP4, _F.BF16)
CuTileNvfp4Runner = _runner("CuTileNvfp4Runner", "cutile_nvfp4", _F.NVFP4, _F.NVFP4)
CuTileNvfp4Bf16Runner = _runner("CuTileNvfp4Bf16Runner", "cutile_nvfp4", _F.NVFP4, _F.BF16)
SM12xNvfp4Runner = _runner("SM12xNvfp4Runner", "sm12x_nvfp4", _F.NVFP4, _F.NVFP4, "cutile_nvfp4")
SM12xNvfp4Bf16Runner = _runner("SM12xNvfp4Bf16Runner", "sm12x_nvfp4_bf16", _F.NVFP4, _F.BF16, "cutile_nvfp4")

RUNNERS = {CuTileBf16Config: CuTileBf16Runner, CuTileMxfp8Config: CuTileMxfp8Runner, CuTileMxfp8Bf16Config: CuTileMxfp8Bf16Runner,
           CuTileFp8PerTensorBf16Config: CuTileFp8PerTensorBf16Runner, CuTileMxfp4Config: CuTileMxfp4Runner, CuTileMxfp4Mxfp8Config: CuTileMxfp4Mxfp8Runner,
           CuTileMxfp4Bf16Config: CuTileMxfp4Bf16Runner, CuTileNvfp4Config: CuTileNvfp4Runner, CuTileNvfp4Bf16Config: CuTileNvfp4Bf16Runner,
           SM12xNvfp4Config: SM12xNvfp4Runner, SM12xNvfp4Bf16Config: SM12xNvfp4Bf16Runner}
