# SPDX-License-Identifier: Apache-2.0
"""MoELayer: a mixture of experts by its description (`_moe_api`), computed by the MoE ops.

    layer = MoELayer(MoEConfig(RoutingConfig(num_experts=8, top_k=2), QuantConfig(), ExpertConfig(intermediate_size=256)))
    weights.prepare_for("cutlass_bf16", CutlassBf16Config.prepare_weights(w1, w2, ...))
    y = layer(MoEActivationPack(x, None, topk_ids, topk_weights), weights)
"""
import collections

from . import _moe_api as api
from ._buckets import get_hybrid_num_tokens_buckets, make_hybrid_bucket_mapper
from .autotuner import AutoTuner, DynamicTensorSpec, TunableRunner, TuningConfig
from .tllm_enums import RoutingInputMode, RoutingMethodType

_WINNERS = 128  # remembered winners of one layer


class _Runner(TunableRunner):
    """One back end for one configuration. Inputs: rows, experts, their weights, then the tensors of the back end's view."""
    backend_key = None
    view = ()

    def __init__(self, config):
        self.config = config
        self.num_local = config.experts.local_num_experts or config.routing.num_experts

    @classmethod
    def why_not(cls, config):
        """Why this back end does not compute such a layer; empty: it does."""
        if config.quant.pair != (api.QuantFormat.BF16, api.QuantFormat.BF16) or config.quant.output != api.QuantFormat.BF16:
            return "only BF16 weights, inputs and results are available, not " + ", ".join(
                f.name for f in (config.quant.weight, config.quant.activation, config.quant.output))
        if not config.finalize.do_finalize:
            return "do_finalize=False is not available with BF16"
        if config.experts.num_fused_shared_experts:
            return "num_fused_shared_experts is not available"
        return ""

    def get_valid_tactics(self, inputs, profile):
        return [0]

    def get_cache_key_extras(self, inputs):
        return (str(self.config),)

    def parameter(self, value, like):
        """The same number for each expert here."""
        import torch

        return torch.full((self.num_local,), value, dtype=torch.float32, device=like.device)

    def swiglu(self, x):
        """(alpha, beta, limit) for each expert, None where the activation has none or its default."""
        a = self.config.activation
        if isinstance(a, api.SwiGLUStep):
            return None, None, self.parameter(a.limit, x)
        if not isinstance(a, api.SwiGLU) or a == api.SwiGLU():
            return None, None, None
        return self.parameter(a.alpha, x), self.parameter(a.beta, x), self.parameter(a.limit, x) if a.limit != api._LARGEST else None


class CutlassBf16Runner(_Runner):
    """`cutlass_fused_moe`."""
    backend_key, view = "cutlass_bf16", ("fc1_expert_weights", "fc2_expert_weights")

    @classmethod
    def why_not(cls, config):
        experts, routing = config.experts, config.routing
        local = experts.local_num_experts or routing.num_experts
        if routing.num_experts % local or experts.local_expert_offset % local:
            return f"experts {experts.local_expert_offset} to {experts.local_expert_offset + local} are no even share of {routing.num_experts}"
        if isinstance(config.activation, api.SiTU):
            return "SiTU is not available"
        return super().why_not(config)

    def forward(self, inputs, tactic=-1, do_preparation=False, **kwargs):
        from . import cutlass_fused_moe

        x, ids, scales, w1, w2 = inputs
        alpha, beta, limit = self.swiglu(x)
        return cutlass_fused_moe(x, ids, scales, w1, w2, x.dtype, [], swiglu_alpha=alpha, swiglu_beta=beta, swiglu_limit=limit,
                                 ep_size=self.config.routing.num_experts // self.num_local,
                                 ep_rank=self.config.experts.local_expert_offset // self.num_local,
                                 activation_type=self.config.activation.type, enable_pdl=self.config.execution.enable_pdl)


class TrtllmBf16RoutedRunner(_Runner):
    """`trtllm_bf16_routed_moe`."""
    backend_key, view = "trtllm_bf16_routed", ("gemm1_weights", "gemm2_weights")

    @classmethod
    def why_not(cls, config):
        if not isinstance(config.activation, (api.SwiGLU, api.ReLU2)):
            return f"{type(config.activation).__name__} is not available"
        return super().why_not(config)

    def forward(self, inputs, tactic=-1, do_preparation=False, **kwargs):
        import torch

        from . import trtllm_bf16_routed_moe

        x, ids, scales, w1, w2 = inputs
        routing, (alpha, beta, limit) = self.config.routing, self.swiglu(x)
        return trtllm_bf16_routed_moe((ids, scales.to(torch.bfloat16)), x, w1, w2, routing.num_experts, routing.top_k, None, None,
                                      self.config.experts.intermediate_size, self.config.experts.local_expert_offset, self.num_local,
                                      routing_method_type=RoutingMethodType.TopK, activation_type=self.config.activation.type,
                                      gemm1_alpha=alpha, gemm1_beta=beta, gemm1_clamp_limit=limit)


_BACKEND_RUNNERS = {api.CutlassBf16Config: CutlassBf16Runner, api.TrtllmBf16Config: TrtllmBf16RoutedRunner}


class MoELayer:
    """A mixture of experts. Where several back ends compute it, `autotune` measures them by bucket of tokens, and the fastest runs; else the
    first candidate runs whose weights are prepared.

    Args:
        config: a MoEConfig
        device: where it runs; None: where the tensors of a call lie

    Raises:
        NotImplementedError: no candidate computes such a layer; the message has each one's reason
    """

    def __init__(self, config, device=None):
        self.config, self.device = config, device
        self.refresh_backends()

    def refresh_backends(self):
        """Finds the back ends again, and forgets winners."""
        self.runners, reasons = [], []
        for candidate in self.config.backend:
            runner = _BACKEND_RUNNERS.get(type(candidate))
            why = "MoELayer does not have this back end here" if runner is None else runner.why_not(self.config)
            if why:
                reasons.append(f"{type(candidate).__name__}: {why}")
            else:
                self.runners.append(runner(self.config))
        if not self.runners:
            raise NotImplementedError("MoELayer: no back end computes this layer: " + ("; ".join(reasons) or "there are no candidates"))
        self.reset_winner()

    def reset_winner(self):
        """Forgets which back end ran, and which won."""
        self._winners, self._last = collections.OrderedDict(), None

    @property
    def winner_backend(self):
        """The back end of the last call; None before it."""
        return None if self._last is None else self._last.backend_key

    def _routing(self, pack):
        """Experts and weights of each token."""
        routing = self.config.routing
        if pack.routing_input_mode == RoutingInputMode.FromLogits:
            from .fused_moe import trtllm_gen_routing

            logits = pack.routing_logits
            if tuple(logits.shape) != (pack.num_tokens, routing.num_experts):
                raise ValueError(f"MoELayer: routing_logits has shape {tuple(logits.shape)}, but must be [{pack.num_tokens}, {routing.num_experts}]")
            found = trtllm_gen_routing(logits, pack.routing_bias, int(routing.method), routing.top_k, n_group=routing.n_group or 0,
                                       topk_group=routing.topk_group or 0, local_num_experts=routing.num_experts,
                                       routed_scaling_factor=routing.routed_scaling_factor or 1.0)
            return found.topk_ids, found.topk_weights.float()
        if pack.topk_ids.shape[1] != routing.top_k:
            raise ValueError(f"MoELayer: topk_ids has {pack.topk_ids.shape[1]} columns, but top_k is {routing.top_k}")
        return pack.topk_ids.contiguous(), pack.topk_weights.float().contiguous()

    def _tuning(self):
        """Tokens vary, in buckets; experts of made inputs are drawn among all."""
        import torch

        most, experts = self.config.execution.tune_max_num_tokens, self.config.routing.num_experts
        return TuningConfig(
            dynamic_tensor_specs=(DynamicTensorSpec((0, 1, 2), (0, 0, 0), get_hybrid_num_tokens_buckets(most), make_hybrid_bucket_mapper(most)),),
            tensor_initializers=((1, lambda shape, dtype, device: torch.rand(shape[0], experts, device=device).argsort(1)[:, :shape[1]].to(dtype)),
                                 (2, lambda shape, dtype, device: torch.full(shape, 1 / shape[1], dtype=dtype, device=device))))

    def _select_winner(self, shared, weight_pack, runners):
        """The runner for these inputs: the fastest that is known or measured now, else the first."""
        if len(runners) == 1:
            return runners[0]
        mapper = make_hybrid_bucket_mapper(self.config.execution.tune_max_num_tokens)
        bucket = mapper(shared[0].shape[0]), tuple(r.backend_key for r in runners)
        if bucket not in self._winners or AutoTuner.get().is_tuning_mode:
            shared_and_weights = [*shared, *[weight_pack.get_view(r.backend_key)[n] for r in runners for n in r.view]]
            wrapped = [_Measured(r, 3 + 2 * i) for i, r in enumerate(runners)]
            runner, tactic = AutoTuner.get().choose_one("moe_layer", wrapped, self._tuning(), shared_and_weights)
            if tactic == -1:
                return runners[0]
            self._winners[bucket] = runner.runner
            while len(self._winners) > _WINNERS:
                self._winners.popitem(last=False)
        return self._winners[bucket]

    def __call__(self, act_pack, weight_pack):
        """[tokens, hidden] of bf16.

        Raises:
            KeyError: no candidate's weights are prepared
        """
        ready = [r for r in self.runners if r.backend_key in weight_pack.native_views]
        if not ready:
            weight_pack.get_view(self.runners[0].backend_key)
        shared = [act_pack.hidden_states_q, *self._routing(act_pack)]
        self._last = self._select_winner(shared, weight_pack, ready)
        view = weight_pack.get_view(self._last.backend_key)
        return self._last([*shared, *[view[n] for n in self._last.view]])


class _Measured(TunableRunner):
    """A runner whose weights are inputs from `at` on, beside those of other back ends."""

    def __init__(self, runner, at):
        self.runner, self.at = runner, at

    def __hash__(self):
        return hash(self.runner.backend_key)

    def get_cache_key_extras(self, inputs):
        return (self.runner.backend_key, *self.runner.get_cache_key_extras(inputs))

    def get_valid_tactics(self, inputs, profile):
        return [0]

    def forward(self, inputs, tactic=-1, do_preparation=False, **kwargs):
        return self.runner([*inputs[:3], *inputs[self.at:self.at + 2]])
