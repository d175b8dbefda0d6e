# SPDX-License-Identifier: Apache-2.0
"""The all-to-all of experts: tokens of a rank, what is sent of them, the experts between dispatch and combine."""
import warnings

import torch

import flashinfer
import flashinfer.comm as comm
from flashinfer import fused_moe
from flashinfer.fused_moe import RoutingMethodType
from routines import case, moe, ranks
from routines.case import Check, dtype

# The values of the eight codes of FP4 without a sign.
_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def _fp4_values(codes, scales):
    """float32 of two codes a byte and e4m3 scale factors of 16 elements."""
    table = torch.tensor([*_E2M1, *(-v for v in _E2M1)])
    codes = codes.view(torch.uint8).int()
    values = torch.stack((table[codes & 15], table[codes >> 4]), -1).flatten(-2)
    return values * scales.view(torch.float8_e4m3fn).float().repeat_interleave(16, -1)


class Experts:
    """Tokens of a rank, what is sent of them, and experts that multiply a token by 1 + id / experts."""

    def __init__(self, args, group):
        self.args, self.group, self.kind = args, group, dtype(args.input_dtype, ("float16", "bfloat16"), "input dtype")
        self.block = {"nvfp4": 16, "fp8_block_scale": 128}.get(args.quant_dtype, 1)
        if args.hidden_size % self.block:
            raise ValueError(f"--hidden_size is {args.hidden_size}, but must be a multiple of {self.block} with --quant_dtype {args.quant_dtype}")
        if args.top_k > args.num_experts:
            raise ValueError(f"--top_k is {args.top_k}, but --num_experts {args.num_experts}")
        if args.real_math and (args.quant_dtype not in ("nvfp4", "fp8_block_scale") or args.intermediate_size is None or args.input_dtype != "bfloat16"):
            raise ValueError(f"--real_math needs --quant_dtype nvfp4 or fp8_block_scale, --intermediate_size and --input_dtype bfloat16, but got "
                             f"{args.quant_dtype}, {args.intermediate_size} and {args.input_dtype}")
        if args.max_num_tokens < args.num_tokens:
            raise ValueError(f"--max_num_tokens is {args.max_num_tokens}, but must be at least --num_tokens, {args.num_tokens}")
        g = ranks.generator(args, group.rank)
        x = torch.randn(args.num_tokens, args.hidden_size, generator=g).to(self.kind)
        self.ids = torch.rand(args.num_tokens, args.num_experts, generator=g).topk(args.top_k).indices.int()
        weights = torch.rand(args.num_tokens, args.top_k, generator=g)
        self.payloads = [*self._quantized(x), self.ids, weights]
        self.scaled = len(self.payloads) - 3  # 1: the scale factors are the second payload
        if args.use_lora:
            self.payloads.append(torch.randint(4, (args.num_tokens, 1), generator=g, dtype=torch.int32))
        self.row_bytes = sum(t.shape[1] * t.itemsize for t in self.payloads)
        self.most = args.max_num_tokens
        mapping = comm.Mapping(world_size=group.size, rank=group.rank, tp_size=group.size, moe_ep_size=group.size)
        result = args.hidden_size * self.kind.itemsize
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self.a2a = comm.MoeAlltoAll(
                mapping, self.most, args.top_k, args.num_experts, comm.moe_a2a_get_workspace_size_per_rank(group.size, self.most, self.row_bytes, result),
                mnnvl_config=comm.mnnvl.MnnvlConfig(comm_backend=group.backend))

    def _quantized(self, x):
        """What is sent of tokens: themselves, or codes and, by block, scale factors."""
        kind = self.args.quant_dtype
        if kind is None:
            return [x]
        if kind == "nvfp4":
            codes, scales = flashinfer.fp4_quantize(x, torch.ones(1), 16, False, False)
            return [codes.view(torch.uint8).reshape(x.shape[0], -1), scales.view(torch.uint8).reshape(x.shape[0], -1)]
        blocks = x.float().unflatten(-1, (-1, self.block if kind == "fp8_block_scale" else x.shape[1]))
        if kind == "fp8":  # one factor for the tokens of all ranks
            self.scale = max(self.group.backend.allgather(blocks.abs().max().item() if x.numel() else 0.0)) / 448 or 1.0
            return [(x.float() / self.scale).to(torch.float8_e4m3fn)]
        scales = (blocks.abs().amax(-1) / 448).clamp(min=1e-12)
        return [(blocks / scales[..., None]).flatten(-2).to(torch.float8_e4m3fn), scales]

    def values(self, payloads):
        """float32 of the tokens that were sent."""
        x, kind = payloads[0], self.args.quant_dtype
        if kind == "nvfp4":
            return _fp4_values(x, payloads[1])
        if kind == "fp8":
            return x.float() * self.scale
        return x.float() * payloads[1].repeat_interleave(self.block, -1) if kind == "fp8_block_scale" else x.float()

    def owners(self, ids):
        """The ranks of experts: as many on each, the first ones have one more."""
        base, more = divmod(self.args.num_experts, self.group.size)
        first = torch.tensor([r * base + min(r, more) for r in range(1, self.group.size)], dtype=torch.int32)
        return torch.searchsorted(first, ids.contiguous(), right=True)

    def factors(self, payloads, mine):
        """What each token is multiplied by, by the experts for which `mine` holds."""
        ids, weights = payloads[1 + self.scaled], payloads[2 + self.scaled]
        total = (weights.double() * (1 + ids.double() / self.args.num_experts) * mine).sum(-1, keepdim=True)
        return total * (1 + payloads[-1].double() / 8) if self.args.use_lora else total

    def dispatch(self):
        """Rows beyond those that a rank sent have the expert -1."""
        self.got = self.a2a.dispatch(self.ids, self.payloads, self.most, -1, 1 + self.scaled)
        self.y = self.a2a.get_combine_payload_tensor_in_workspace(self.most, self.args.hidden_size, self.kind)

    def combine(self):
        return self.a2a.combine(self.y, self.most, payload_in_workspace=True)

    def make_weights(self):
        """Random weights of this rank's experts, rounded as the tokens are."""
        args, g = self.args, ranks.generator(self.args, self.group.rank)
        base, more = divmod(args.num_experts, self.group.size)
        count, inter = base + (self.group.rank < more), args.intermediate_size
        w1 = torch.randn(count, 2 * inter, args.hidden_size, generator=g).bfloat16() / args.hidden_size ** 0.5
        w2 = torch.randn(count, args.hidden_size, inter, generator=g).bfloat16() / inter ** 0.5
        if args.quant_dtype == "nvfp4":
            self.weights = [*moe.experts_fp4(w1, False), *moe.experts_fp4(w2, False)]
        else:
            ones = [torch.ones(count, w.shape[1] // 128, w.shape[2] // 128) for w in (w1, w2)]
            self.weights = [w1.to(torch.float8_e4m3fn), ones[0], w2.to(torch.float8_e4m3fn), ones[1]]
        self.options = {"num_experts": args.num_experts, "top_k": args.top_k, "n_group": 0, "topk_group": 0, "intermediate_size": inter,
                        "local_expert_offset": self.group.rank * base + min(self.group.rank, more), "local_num_experts": count,
                        "routed_scaling_factor": None, "routing_method_type": int(RoutingMethodType.Renormalize),
                        "output": None}

    def compute(self):
        """This rank's experts on the rows that it got."""
        x, scales, ids, weights = (t.flatten(0, 1) for t in self.got[:4])
        w1, s1, w2, s2 = self.weights
        options = {**self.options, "output": self.y.flatten(0, 1)}
        if self.args.quant_dtype == "nvfp4":
            fused_moe.trtllm_fp4_block_scale_routed_moe((ids, weights), None, x, scales.view(torch.float8_e4m3fn), w1, s1, None, None, None, None, w2,
                                                        s2, None, None, None, None, **options)
        else:
            fused_moe.trtllm_fp8_block_scale_routed_moe((ids, weights), None, x, scales.t().contiguous(), w1, s1, w2, s2, **options)

    def work(self):
        """{step: (operations, bytes)} of all ranks. A token is sent once to each rank of its experts, its own too."""
        args, owners = self.args, self.owners(self.ids).sort().values
        rows = sum(self.group.backend.allgather(int((owners.diff(dim=1) != 0).sum()) + owners.shape[0]))
        row, result = self.row_bytes, args.hidden_size * self.kind.itemsize
        work = {"a2a_dispatch": (float("nan"), rows * row), "a2a_combine": (float("nan"), rows * result)}
        if args.real_math:
            tokens = args.num_tokens * self.group.size
            read = sum(self.group.backend.allgather(sum(w.nbytes for w in self.weights)))
            work["moe_kernel"] = 6.0 * tokens * args.top_k * args.hidden_size * args.intermediate_size, rows * (row + result) + read
        return work

    def problem(self):
        """What is wrong with the sum of what experts of all ranks return for this rank's tokens; None: nothing."""
        self.dispatch()
        ids = self.got[1 + self.scaled]
        mine = (self.owners(ids) == self.group.rank) & (ids >= 0)
        used = mine.any(-1, keepdim=True)
        self.y.copy_(torch.where(used, self.values(self.got).double() * self.factors(self.got, mine), 0.0))
        out = self.combine()
        want = self.values(self.payloads).double() * self.factors(self.payloads, torch.ones_like(self.ids, dtype=torch.bool))
        # A rank's part is rounded, and their sum: the weights are positive, so nothing cancels.
        found = case.mismatch(Check(torch.finfo(self.kind).eps, 1e-5), [want], [out])
        return found and found[0]
