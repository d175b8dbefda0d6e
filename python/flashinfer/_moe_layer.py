# SPDX-License-Identifier: Apache-2.0
"""MoELayer: a mixture of experts by its description (`_moe_api`), computed by the MoE ops.

    layer = MoELayer(MoEConfig(RoutingConfig(num_experts=8, top_k=2), QuantConfig(), ExpertConfig(intermediate_size=256)))
    weights.prepare_for("cutlass_bf16", CutlassBf16Config.prepare_weights(w1, w2, ...))
    y = layer(MoEActivationPack(x, None, topk_ids, topk_weights), weights)
"""
import collections

from ._buckets import get_hybrid_num_tokens_buckets, make_hybrid_bucket_mapper
from . import _moe_checkpoint, _moe_runners, _moe_shared
from ._moe_runners import QuantisedRunner
from .autotuner import AutoTuner, DynamicTensorSpec, TunableRunner, TuningConfig
from .tllm_enums import RoutingInputMode

_WINNERS = 128  # remembered winners of one layer
BACKEND_RUNNERS = {**_moe_runners.BACKEND_RUNNERS, **_moe_shared.RUNNERS, **_moe_checkpoint.RUNNERS}


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
            runner = BACKEND_RUNNERS.get(type(candidate))
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
        if len(runners) == 1 or isinstance(runners[0], QuantisedRunner):
            return runners[0]
        mapper = make_hybrid_bucket_mapper(self.config.execution.tune_max_num_tokens)
        bucket = mapper(shared[0].shape[0]), tuple(r.backend_key for r in runners)
        if bucket not in self._winners or AutoTuner.get().is_tuning_mode:
            shared_and_weights = [*shared, *[r.weights_of(weight_pack)[n] for r in runners for n in r.view]]
            wrapped = [_Measured(r, 3 + 2 * i) for i, r in enumerate(runners)]
            runner, tactic = AutoTuner.get().choose_one("moe_layer", wrapped, self._tuning(), shared_and_weights)
            if tactic == -1:
                return runners[0]
            self._winners[bucket] = runner.runner
            while len(self._winners) > _WINNERS:
                self._winners.popitem(last=False)
        return self._winners[bucket]

    def __call__(self, act_pack, weight_pack):
        """[tokens, hidden] of bf16; with do_finalize=False [rows of experts, weights, row of each choice], as of the trtllm_* ops.

        Raises:
            KeyError: no candidate's weights are prepared
        """
        ready = [r for r in self.runners if r.is_ready(weight_pack)] or self.runners[:1]
        shared = [act_pack.hidden_states_q, *self._routing(act_pack)]
        self._last = self._select_winner(shared, weight_pack, ready)
        view = self._last.weights_of(weight_pack)
        if isinstance(self._last, QuantisedRunner):
            return self._last([act_pack, *shared[1:], view])
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
