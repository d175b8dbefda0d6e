# SPDX-License-Identifier: Apache-2.0
"""Mixtures of experts."""
import argparse

import torch

import flashinfer
from flashinfer import fused_moe
from flashinfer.fused_moe import ActivationType, RoutingMethodType
from routines.case import Case, Check, dtype

_METHODS = {"renormalize": "Renormalize", "deepseek_v3": "DeepSeekV3", "llama4": "Llama4", "renormalize_naive": "RenormalizeNaive",
            "topk": "TopK"}
_GATED = (ActivationType.Swiglu, ActivationType.Geglu)
# Bytes of an element with its share of the scale factors.
_BYTES = {"nvfp4": 0.5 + 1 / 16, "mxfp4": 0.5 + 1 / 32, "mxfp8": 1 + 1 / 32, "fp8": 1.0, "fp8_block": 1 + 4 / 128 ** 2, "bf16": 2.0}


def _sizes(args):
    experts = args.local_num_experts or args.num_experts
    rows = (2 if args.activation_type in _GATED else 1) * args.intermediate_size
    return args.num_tokens, args.hidden_size, args.intermediate_size, rows, experts


def _work(args, x_format, w_format):
    """Two products for each token and expert; weights of as many experts as tokens can choose, tokens and results once."""
    tokens, hidden, inter, rows, experts = _sizes(args)
    used = min(experts, tokens * args.top_k)
    return {"flops": tokens * args.top_k * (2.0 * hidden * rows + 2.0 * inter * hidden),
            "bytes": tokens * hidden * (_BYTES[x_format] + 2) + tokens * args.num_experts * 4
            + used * (rows + inter) * hidden * _BYTES[w_format]}


def _routing(args, device):
    """(logits, bias, keyword arguments) of the trtllm functions."""
    deepseek = args.routing_method == "deepseek_v3"
    logits = torch.randn(args.num_tokens, args.num_experts, device=device)
    logits = logits if deepseek else logits.bfloat16()
    # A bias and a scale of the chosen weights exist for DeepSeekV3's routing alone; the functions take neither with another one.
    bias = torch.randn(args.num_experts, device=device).bfloat16() if args.use_routing_bias and deepseek else None
    return logits, bias, {
        "num_experts": args.num_experts, "top_k": args.top_k, "n_group": args.n_group or 0, "topk_group": args.topk_group or 0,
        "intermediate_size": args.intermediate_size, "local_expert_offset": args.local_expert_offset,
        "local_num_experts": args.local_num_experts or args.num_experts, "routed_scaling_factor": args.routed_scaling_factor if deepseek else None,
        "routing_method_type": int(RoutingMethodType[_METHODS[args.routing_method]]), "enable_pdl": args.enable_pdl}


def _row(args, **more):
    return {"activation_type": args.activation_type.name, "input_dtype": dtype(args.input_dtype), "weight_dtype": dtype(args.weight_dtype),
            "local_num_experts": args.local_num_experts or args.num_experts, **more}


def _weights(args, device, to=torch.bfloat16):
    """The weights of both products, [experts, rows, columns], small enough that results stay near 1."""
    _, hidden, inter, rows, experts = _sizes(args)
    return ((torch.randn(experts, rows, hidden, device=device) / hidden ** 0.5).to(to),
            (torch.randn(experts, hidden, inter, device=device) / inter ** 0.5).to(to))


def experts_fp4(weights, mx):
    """(codes [e, n, k / 2], scales [e, n, k / block]) by expert."""
    one = torch.ones(1, device=weights.device)
    pairs = [flashinfer.fp4_quantize(w, one, 32 if mx else 16, mx, False) for w in weights]
    codes = torch.stack([p[0].view(torch.uint8) for p in pairs])
    return codes, torch.stack([p[1].view(torch.uint8).reshape(codes.shape[1], -1) for p in pairs]).view(torch.float8_e4m3fn)


# bf16 results of products of thousands of rounded terms.
_CHECK = Check(5e-2, 5e-2, share=2e-2)


def _trtllm_fp4(args, device):
    logits, bias, options = _routing(args, device)
    tokens, hidden, _, _, experts = _sizes(args)
    mx = args.fp4_mode != "nvfp4"
    (w1, s1), (w2, s2) = (experts_fp4(w, mx) for w in _weights(args, device))
    x = torch.randn(tokens, hidden, device=device).bfloat16()
    x_scale = None
    if args.fp4_mode == "mxfp4_mxfp8":
        x, x_scale = flashinfer.mxfp8_quantize(x, False)
        x_scale = x_scale.view(torch.float8_e4m3fn).reshape(tokens, -1)
    elif not mx:
        x, x_scale = flashinfer.fp4_quantize(x, torch.ones(1, device=device), 16, False, False)
        x, x_scale = x.view(torch.uint8).reshape(tokens, -1), x_scale.view(torch.float8_e4m3fn).reshape(tokens, -1)
    ones = torch.ones(experts, device=device)

    def call(logits, x, x_scale, w1, s1, w2, s2):
        return fused_moe.trtllm_fp4_block_scale_moe(
            logits, bias, x, x_scale, w1, s1, None, None, None, None, w2, s2, None, ones, ones, ones,
            activation_type=int(args.activation_type), **options)[0]

    formats = ("nvfp4", "nvfp4") if not mx else (("mxfp8" if x_scale is not None else "bf16"), "mxfp4")
    return Case(call, (logits, x, x_scale, w1, s1, w2, s2), row=_row(args, fp4_mode=args.fp4_mode), check=_CHECK, **_work(args, *formats))


def _trtllm_fp8_block(args, device):
    logits, bias, options = _routing(args, device)
    tokens, hidden, inter, rows, experts = _sizes(args)
    w1, w2 = _weights(args, device, torch.float8_e4m3fn)
    x = torch.randn(tokens, hidden, device=device).to(torch.float8_e4m3fn)
    x_scale = torch.ones(hidden // 128, tokens, device=device)
    s1 = torch.ones(experts, rows // 128, hidden // 128, device=device)
    s2 = torch.ones(experts, hidden // 128, inter // 128, device=device)

    def call(logits, x, x_scale, w1, s1, w2, s2):
        return fused_moe.trtllm_fp8_block_scale_moe(logits, bias, x, x_scale, w1, s1, w2, s2, use_shuffled_weight=args.use_shuffled_weight,
                                                    weight_layout=args.weight_layout, **options)

    return Case(call, (logits, x, x_scale, w1, s1, w2, s2), row=_row(args), check=_CHECK, **_work(args, "fp8", "fp8_block"))


def _trtllm_fp8_tensor(args, device):
    logits, bias, options = _routing(args, device)
    tokens, hidden, _, _, experts = _sizes(args)
    w1, w2 = _weights(args, device, torch.float8_e4m3fn)
    x = torch.randn(tokens, hidden, device=device).to(torch.float8_e4m3fn)
    ones = torch.ones(experts, device=device)

    def call(logits, x, w1, w2):
        return fused_moe.trtllm_fp8_per_tensor_scale_moe(
            logits, bias, x, w1, ones, ones, w2, ones, use_routing_scales_on_input=args.use_routing_scales_on_input,
            activation_type=int(args.activation_type), **options)

    return Case(call, (logits, x, w1, w2), row=_row(args), check=_CHECK, **_work(args, "fp8", "fp8"))


def _shards(args, w1, w2):
    """The experts and the part of the intermediate extent of this rank."""
    experts = args.num_experts // args.ep_size
    w1, w2 = (w[args.ep_rank * experts:(args.ep_rank + 1) * experts] for w in (w1, w2))
    part = args.intermediate_size // args.tp_size
    mine = slice(args.tp_rank * part, (args.tp_rank + 1) * part)
    halves = w1.chunk(2 if args.activation_type in _GATED else 1, 1)
    return torch.cat([h[:, mine] for h in halves], 1).contiguous(), w2[:, :, mine].contiguous()


def _tensor_fp8(w):
    scale = w.float().abs().amax() / 448
    return (w.float() / scale).to(torch.float8_e4m3fn), scale


def _cutlass_fp8(x, w1, w2):
    x8, x_scale = _tensor_fp8(x)
    (w1, s1), (w2, s2) = (map(torch.stack, zip(*map(_tensor_fp8, w))) for w in (w1, w2))
    return x8, None, w1, w2, [s1 * x_scale, torch.ones((), device=x.device), s2, x_scale]


def _nvfp4_experts(weights):
    """(codes, scale factors in tiles of 128x4, what each expert was multiplied by)."""
    scales = 448 * 6 / weights.float().abs().amax((1, 2))
    pairs = [flashinfer.fp4_quantize(w, s.reshape(1)) for w, s in zip(weights, scales)]
    rows, columns = -(-weights.shape[1] // 128) * 128, -(-weights.shape[2] // 64) * 4
    factors = torch.stack([p[1].view(torch.uint8).reshape(rows, columns) for p in pairs])
    return torch.stack([p[0].view(torch.uint8) for p in pairs]), factors.view(torch.int32), scales


def _cutlass_nvfp4(args, x, w1, w2):
    one = torch.ones((), device=x.device)
    (w1, f1, s1), (w2, f2, s2) = _nvfp4_experts(w1), _nvfp4_experts(w2)
    x, x_scale = flashinfer.fp4_quantize(x, one.reshape(1)) if args.quantized_input else (x, None)
    return x, x_scale, w1, w2, [one, f1, 1 / s1, one, f2, 1 / s2]


def _cutlass(args, device):
    kind = dtype(args.input_dtype, ("float16", "bfloat16"), "input dtype")
    x = torch.randn(args.num_tokens, args.hidden_size, device=device).to(kind)
    w1, w2 = _shards(args, *_weights(args, device, kind))
    weights, chosen = torch.softmax(torch.randn(args.num_tokens, args.num_experts, device=device), -1).topk(args.top_k)
    weights, chosen, out = weights / weights.sum(-1, keepdim=True), chosen.int(), torch.empty_like(x)
    x_scale, scales = None, None
    if args.cutlass_variant == "fp8":
        x, x_scale, w1, w2, scales = _cutlass_fp8(x, w1, w2)
    elif args.cutlass_variant == "nvfp4":
        x, x_scale, w1, w2, scales = _cutlass_nvfp4(args, x, w1, w2)

    def call(x, chosen, weights, w1, w2):
        fused_moe.cutlass_fused_moe(
            x, chosen, weights, w1, w2, kind, scales, input_sf=x_scale, tp_size=args.tp_size, tp_rank=args.tp_rank, ep_size=args.ep_size,
            ep_rank=args.ep_rank, output=out, enable_pdl=args.enable_pdl, activation_type=args.activation_type)
        return out

    formats = {"base": ("bf16", "bf16"), "fp8": ("fp8", "fp8"), "nvfp4": ("nvfp4" if args.quantized_input else "bf16", "nvfp4")}
    row = _row(args, weight_dtype=w1.dtype, cutlass_variant=args.cutlass_variant, quantized_input=args.quantized_input)
    return Case(call, (x, chosen, weights, w1, w2), row=row, check=_CHECK, **_work(args, *formats[args.cutlass_variant]))


def _bgmv(args, device):
    """Pairs of a token and an expert, sorted by expert, each with a LoRA of rank --rank; --num_slices parts of the output."""
    kind = dtype(args.input_dtype, ("float16", "bfloat16"), "input dtype")
    pairs, wide = args.num_tokens * args.top_k, args.hidden_size
    if args.num_slices > wide or wide % args.num_slices:
        raise ValueError(f"num_slices is {args.num_slices}, but must divide hidden_size, {wide}")
    x = (torch.randn(args.num_tokens, wide, device=device) * 0.1).to(kind)
    a = [(torch.randn(args.num_loras, args.num_experts, args.rank, wide, device=device) * 0.1).to(kind) for _ in range(args.num_slices)]
    b = [(torch.randn(args.num_loras, args.num_experts, wide // args.num_slices, args.rank, device=device) * 0.1).to(kind)
         for _ in range(args.num_slices)]
    tokens = torch.arange(pairs, device=device, dtype=torch.int32) // args.top_k
    experts = torch.randint(args.num_experts, (pairs,), device=device, dtype=torch.int32)
    loras = torch.randint(args.num_loras, (args.num_tokens,), device=device, dtype=torch.int32)
    weights = torch.rand(pairs, device=device)

    def call(x, a, b, tokens, experts, loras, weights):
        return fused_moe.bgmv_moe(x, a, b, tokens, experts, loras, weights, args.num_experts)

    return Case(call, (x, a, b, tokens, experts, loras, weights), 4.0 * pairs * args.rank * wide * args.num_slices, None, _row(args),
                Check(2e-2, 2e-2, share=1e-3), uses_pdl=False)


def _b12x(args, device):
    activations = {ActivationType.Swiglu: "silu", ActivationType.Geglu: "gelu_tanh", ActivationType.Relu2: "relu2"}
    if args.activation_type not in activations:
        raise ValueError(f"b12x_fused_moe has no activation {args.activation_type.name}, but {', '.join(a.name for a in activations)}")
    x = torch.randn(args.num_tokens, args.hidden_size, device=device).bfloat16()
    weights, chosen = torch.softmax(torch.randn(args.num_tokens, args.num_experts, device=device), -1).topk(args.top_k)
    (w1, f1, s1), (w2, f2, s2) = map(_nvfp4_experts, _weights(args, device))
    options = {"w1_alpha": 1 / s1, "w2_alpha": 1 / s2, "fc2_input_scale": torch.ones(1, device=device), "activation": activations[args.activation_type],
               "quant_mode": args.b12x_quant_mode}

    def call(x, w1, f1, w2, f2):
        return flashinfer.b12x_fused_moe(x, w1, f1, w2, f2, chosen.int(), weights, args.num_experts, args.top_k, **options)

    return Case(call, (x, w1, f1, w2, f2), row=_row(args, weight_dtype=torch.uint8), check=_CHECK, **_work(args, "bf16", "nvfp4"))


# Kernels of one GPU generation that compute what cutlass_fused_moe computes with NVFP4 weights and tokens.
_BY_CUTLASS = ("cute_dsl_fp4_block_scale_moe", "unified_nvfp4_moe")


def _by_cutlass(args, device):
    local = args.local_num_experts or args.num_experts
    if args.num_experts % local or args.local_expert_offset % local:
        raise ValueError(f"--local_num_experts is {local} and --local_expert_offset {args.local_expert_offset}, but the first must divide the second and "
                         f"--num_experts, {args.num_experts}")
    print(f"[WARNING] {args.routine} is a kernel of one GPU generation; the same mixture of NVFP4 experts is run by cutlass_fused_moe.")
    case = _cutlass(argparse.Namespace(**{**vars(args), "cutlass_variant": "nvfp4", "quantized_input": True, "tp_size": 1,
                                          "tp_rank": 0, "local_num_experts": None, "ep_size": args.num_experts // local, "ep_rank": args.local_expert_offset // local}), device)
    work = _work(args, "nvfp4", "nvfp4")
    case.flops, case.bytes, case.row = work["flops"], work["bytes"], _row(args, weight_dtype=torch.uint8)
    return case


_MAKERS = {**dict.fromkeys(_BY_CUTLASS, _by_cutlass), "b12x_fused_moe": _b12x, "trtllm_fp4_block_scale_moe": _trtllm_fp4, "trtllm_fp8_block_scale_moe": _trtllm_fp8_block,
           "trtllm_fp8_per_tensor_scale_moe": _trtllm_fp8_tensor, "cutlass_fused_moe": _cutlass, "bgmv_moe": _bgmv}


def make(args, device):
    return _MAKERS[args.routine](args, device)
