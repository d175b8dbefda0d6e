# SPDX-License-Identifier: Apache-2.0
"""Collectives of FlashInfer's that go together with a norm (`flashinfer.comm.mnnvl_cutedsl_ag`, `mnnvl_cutedsl_moe_finalize`, `tp_moe_finalize_rmsnorm`,
`cake_fused_norm_combine`): compositions of all_gather, allreduce_fusion and the norms, of any sizes. docs/comm.md."""
from . import _make
from ._comm import AllReduceFusionWorkspace, _agree, _current_device, checking
from ._comm_backends import of_group
from .api_logging import flashinfer_api
from .trace import Const, Scalar, Tensor, TraceTemplate, Var

_exports = _make.package.exports
_fusion, _gather = _exports["allreduce_fusion"], _exports["all_gather"]
_ELEMENTS = 1 << 20  # of an all-reduce: a larger tensor takes several


def _template(name, axes, inputs, outputs, description, tags="stage:comm fused", **more):
    return TraceTemplate(op_type=name, name_prefix=name, description=description, axes=axes, inputs=inputs, outputs=outputs, tags=tags.split(), **more)


def _close(workspace):
    if workspace is not None:
        workspace.destroy()


def _sum_into(out, partial, workspace):
    """out = the sum of all ranks' partial [rows, hidden], rounded after each rank. Collective, in pieces that fit the workspace."""
    rows = max(1, _ELEMENTS // max(1, partial.shape[1]))
    for first in range(0, partial.shape[0], rows):
        _fusion(partial[first:first + rows], workspace, 0, output=out[first:first + rows])


class _Workspace:
    """Memory of a tensor parallel group for rows of `hidden_dim` columns. Making one is collective."""

    def __init__(self, tp_size, tp_rank, max_token_num, hidden_dim, group):
        import torch

        self.tp_size, self.tp_rank, self.max_token_num, self.hidden_dim = tp_size, tp_rank, max_token_num, hidden_dim
        self._comm = of_group(group)
        _agree(self._comm, self._problem, type(self).__name__)
        self.device = torch.device(_current_device())
        elements = max(_ELEMENTS, hidden_dim)
        self._workspace = AllReduceFusionWorkspace(tp_size, tp_rank, 1, elements, torch.bfloat16, self._comm, device=str(self.device))

    def _problem(self):
        if (self.tp_size, self.tp_rank) != (self._comm.Get_size(), self._comm.Get_rank()):
            return f"tp_size is {self.tp_size} and tp_rank {self.tp_rank}, but the group says {self._comm.Get_size()} and {self._comm.Get_rank()}"
        if self.max_token_num < 1 or self.hidden_dim < 1 or self.hidden_dim % self.tp_size:
            return (f"max_token_num is {self.max_token_num} and hidden_dim {self.hidden_dim}, but must be at least 1, and a positive multiple of the {self.tp_size} "
                    "ranks")
        return None

    def check_support(self, local_supported):
        """Whether it holds on every rank. Collective."""
        return all(self._comm.allgather(bool(local_supported)))

    def compile(self, **options):
        """Nothing: kernels are compiled by the first call."""

    def fits(self, shard):
        """Whether a tensor is a rank's columns: contiguous bfloat16 [tokens, hidden_dim / tp_size]."""
        return (shard.dim() == 2 and 1 <= shard.shape[0] <= self.max_token_num and shard.shape[1] == self.hidden_dim // self.tp_size
                and self._is(shard, shard.shape, "bfloat16"))

    def _is(self, t, shape, *dtypes):
        on_device = t.device.type == self.device.type and t.device.index in (self.device.index, None)
        return tuple(t.shape) == tuple(shape) and str(t.dtype).removeprefix("torch.") in dtypes and on_device and t.is_contiguous()

    def _ready(self, function, supported, **tensors):
        """The memory, after the checks of a call."""
        if self._workspace is None:
            raise RuntimeError(f"{function}: the workspace is destroyed")
        with checking(self._workspace, function):
            if not supported:
                given = ", ".join(f"{name} {t.dtype} of shape {tuple(t.shape)} on {t.device}" for name, t in tensors.items() if t is not None)
                raise ValueError(f"{function}: {given} do not fit each other and the workspace: {self.max_token_num} tokens of {self.hidden_dim} columns, of which a "
                                 f"rank has {self.hidden_dim // self.tp_size}, on {self.device}, contiguous")
        return self._workspace

    def _gathered(self, shard):
        return _gather(shard, self._workspace, [shard.shape[1]] * self.tp_size)

    def destroy(self):
        """Gives the memory back; calling it again does nothing."""
        _close(self._workspace)
        self._workspace = None


# ---- columns gathered, then a norm ----
class MNNVLCuteDSLAllGatherDualNormWorkspace(_Workspace):
    """Memory for all_gather_gated_residual_next_rmsnorm. Making one is collective.

    Args:
        tp_size, tp_rank: of the group
        max_token_num: rows of the largest call
        hidden_dim: columns of all ranks
        group: of torch.distributed, or a communicator
        tuning: of a GPU kernel; not used

    Raises:
        ValueError: sizes that are not possible, on any rank
    """

    def __init__(self, tp_size, tp_rank, max_token_num, hidden_dim, *, group, tuning=None):
        super().__init__(tp_size, tp_rank, max_token_num, hidden_dim, group)


def supports_all_gather_gated_residual_next_rmsnorm(workspace, branch_shard, residual, alpha, beta, next_weight, post_weight=None):
    """Whether all_gather_gated_residual_next_rmsnorm takes these tensors on this rank."""
    h, is_ = workspace.hidden_dim, workspace._is
    return (workspace.fits(branch_shard) and is_(residual, (branch_shard.shape[0], h), "float32") and is_(alpha, (h,), "float32") and is_(beta, (h,), "float32")
            and is_(next_weight, (h,), "bfloat16") and (post_weight is None or is_(post_weight, (h,), "bfloat16")))


_rows, _columns = ["num_tokens", "hidden"], ["hidden"]
_shard = {"num_tokens": Var(), "shard_hidden": Const(abbrev="sh"), "hidden": Const(abbrev="h")}


@flashinfer_api(trace=_template(
    "all_gather_gated_residual_next_rmsnorm", _shard,
    {"branch_shard": Tensor(["num_tokens", "shard_hidden"]), "residual": Tensor(_rows, dtype="float32"), "alpha": Tensor(_columns, dtype="float32"),
     "beta": Tensor(_columns, dtype="float32"), "next_weight": Tensor(_columns), "post_weight": Tensor(_columns, optional=True),
     **{name: Scalar("float32") for name in ("post_eps", "next_eps", "next_gain_center", "post_gain_center")}, "workspace": Scalar("int64")},
    {"residual_out": Tensor(_rows, dtype="float32"), "ffn_input": Tensor(_rows, dtype="bfloat16")},
    "Gathers the ranks' columns, adds them gated and normalised to the residual, and normalises that."))
def all_gather_gated_residual_next_rmsnorm(branch_shard, residual, alpha, beta, next_weight, workspace, *, post_eps, next_eps, next_gain_center=0.0,
                                           post_weight=None, post_gain_center=0.0):
    """gated_residual_next_rmsnorm of the ranks' columns side by side. Collective.

    Args:
        branch_shard: bfloat16 [tokens, hidden / ranks]: this rank's columns
        residual: float32 [tokens, hidden], the same on every rank
        alpha, beta: float32 [hidden]: gates of the residual and of the branch
        next_weight: bfloat16 [hidden]
        workspace: MNNVLCuteDSLAllGatherDualNormWorkspace
        post_eps, next_eps: of the two norms
        next_gain_center: added to next_weight
        post_weight: bfloat16 [hidden] of the branch's norm; None: none
        post_gain_center: added to post_weight

    Returns:
        (float32 [tokens, hidden], the new residual; bfloat16 [tokens, hidden])

    Raises:
        ValueError: tensors that do not fit the workspace
        RuntimeError: a rank that calls something else, died or does not arrive in time
    """
    given = dict(branch_shard=branch_shard, residual=residual, alpha=alpha, beta=beta, next_weight=next_weight, post_weight=post_weight)
    workspace._ready("all_gather_gated_residual_next_rmsnorm", supports_all_gather_gated_residual_next_rmsnorm(workspace, **given), **given)
    return tuple(_exports["gated_residual_next_rmsnorm"](
        workspace._gathered(branch_shard), residual, next_weight, alpha, beta, post_eps=post_eps, next_eps=next_eps, next_gain_center=next_gain_center,
        post_weight=post_weight, post_gain_center=post_gain_center))


class MNNVLCuteDSLAllGatherNormQuantWorkspace(_Workspace):
    """Memory for all_gather_rmsnorm_fp4_quantize; as MNNVLCuteDSLAllGatherDualNormWorkspace. enable_pdl changes no result."""

    def __init__(self, tp_size, tp_rank, max_token_num, hidden_dim, *, group, enable_pdl=True):
        super().__init__(tp_size, tp_rank, max_token_num, hidden_dim, group)

    def _problem(self):
        return super()._problem() or (f"hidden_dim is {self.hidden_dim}, but must be a multiple of 16" if self.hidden_dim % 16 else None)


def supports_all_gather_rmsnorm_fp4_quantize(workspace, shard, weight, global_scale):
    """Whether all_gather_rmsnorm_fp4_quantize takes these tensors on this rank."""
    is_ = workspace._is
    return workspace.fits(shard) and is_(weight, (workspace.hidden_dim,), "bfloat16") and global_scale.numel() == 1 and is_(global_scale, global_scale.shape, "float32")


@flashinfer_api(trace=_template(
    "all_gather_rmsnorm_fp4_quantize", {**_shard, "packed_hidden": Var(), "scale_hidden": Var(), "one": Const(value=1)},
    {"shard": Tensor(["num_tokens", "shard_hidden"]), "weight": Tensor(_columns), "global_scale": Tensor(["one"], dtype="float32"), "eps": Scalar("float32"),
     "gain_center": Scalar("float32"), "workspace": Scalar("int64")},
    {"packed": Tensor(["num_tokens", "packed_hidden"], dtype="uint8"), "scales": Tensor(["num_tokens", "scale_hidden"], dtype="uint8")},
    "Gathers the ranks' columns, normalises the rows and quantises them to NVFP4.", constraints=["packed_hidden == hidden // 2", "scale_hidden == hidden // 16"]))
def all_gather_rmsnorm_fp4_quantize(shard, weight, global_scale, workspace, *, eps, gain_center=0.0):
    """RMSNorm of the ranks' columns side by side, quantised as fp4_quantize does. Collective.

    Args:
        shard: bfloat16 [tokens, hidden / ranks]: this rank's columns
        weight: bfloat16 [hidden]
        global_scale: float32 [1]
        workspace: MNNVLCuteDSLAllGatherNormQuantWorkspace
        eps: of the norm
        gain_center: added to weight

    Returns:
        (uint8 [tokens, hidden / 2], two e2m1 codes a byte; uint8 [tokens, hidden / 16], e4m3 scales in rows)

    Raises:
        ValueError: tensors that do not fit the workspace
        RuntimeError: a rank that calls something else, died or does not arrive in time
    """
    given = dict(shard=shard, weight=weight, global_scale=global_scale)
    workspace._ready("all_gather_rmsnorm_fp4_quantize", supports_all_gather_rmsnorm_fp4_quantize(workspace, **given), **given)
    rows = _exports["rmsnorm"](workspace._gathered(shard), weight.float() + gain_center if gain_center else weight, eps)
    codes, scales = _exports["fp4_quantize"](rows, global_scale.reshape(1), 16, False, False)
    return codes, scales.view(shard.shape[0], -1)


# ---- experts' rows normalised and added ----
def _routed(rows, indices, hidden):
    """Of each token and expert its row in f32 [tokens, k, hidden]; 0 where the index names none."""
    import torch

    there = (indices >= 0) & (indices < rows.shape[0])
    if not rows.shape[0]:
        return torch.zeros(*indices.shape, hidden, device=rows.device)
    return torch.where(there[..., None], rows[indices.clamp(0, rows.shape[0] - 1).long(), :hidden].float(), 0.0)


def _normalised_sum(x, weights, gamma, eps, before):
    """The sum over k of weights * RMSNorm of x [tokens, k, hidden], in the order of k, in f32."""
    import torch

    total = torch.zeros(x.shape[0], x.shape[2], device=x.device)
    for k in range(x.shape[1]):
        s = x[:, k] * gamma if before else x[:, k]
        s = s * torch.rsqrt(s.square().mean(-1, keepdim=True) + eps)
        total += (s if before else s * gamma) * weights[:, k, None].float()
    return total


class MNNVLCuteDSLMoEFinalizeAllReduceWorkspace(_Workspace):
    """Memory for moe_finalize_rmsnorm_allreduce of `top_k` experts a token; as MNNVLCuteDSLAllGatherDualNormWorkspace. enable_pdl changes no result."""

    def __init__(self, tp_size, tp_rank, max_token_num, hidden_dim, top_k, *, group, enable_pdl=True):
        self.top_k = top_k
        super().__init__(tp_size, tp_rank, max_token_num, hidden_dim, group)

    def _problem(self):
        return super()._problem() or (f"top_k is {self.top_k}, but must be at least 1" if self.top_k < 1 else None)


def supports_moe_finalize_rmsnorm_allreduce(workspace, routed_rows, route_weights, permuted_idx, norm_weight, output):
    """Whether moe_finalize_rmsnorm_allreduce takes these tensors on this rank."""
    h, is_ = workspace.hidden_dim, workspace._is
    if output.dim() != 2 or not 1 <= output.shape[0] <= workspace.max_token_num or routed_rows.dim() != 2 or routed_rows.shape[1] < h:
        return False
    routes = output.shape[0], workspace.top_k
    return (is_(output, (routes[0], h), "bfloat16") and is_(routed_rows, routed_rows.shape, "bfloat16") and is_(route_weights, routes, "bfloat16", "float32")
            and is_(permuted_idx, routes, "int32") and is_(norm_weight, (h,), "bfloat16"))


@flashinfer_api(trace=_template(
    "moe_finalize_rmsnorm_allreduce",
    {"num_tokens": Var(), "num_rows": Var(), "hidden_padded": Const(abbrev="hp"), "hidden": Const(abbrev="h"), "top_k": Const(abbrev="k")},
    {"routed_rows": Tensor(["num_rows", "hidden_padded"]), "route_weights": Tensor(["num_tokens", "top_k"]),
     "permuted_idx": Tensor(["num_tokens", "top_k"], dtype="int32"), "norm_weight": Tensor(_columns), "eps": Scalar("float32"), "gain_center": Scalar("float32"),
     "weight_before_norm": Scalar("int32"), "workspace": Scalar("int64")},
    {"output": Tensor(_rows, dtype="bfloat16", param="output")},
    "Normalises and weighs this rank's experts' rows of each token, and sums over the ranks."))
def moe_finalize_rmsnorm_allreduce(routed_rows, route_weights, permuted_idx, norm_weight, output, workspace, *, eps, gain_center=0.0, weight_before_norm=True):
    """output[t] = the sum over the ranks of round(sum over k of route_weights[t, k] * RMSNorm(routed_rows[permuted_idx[t, k]])). Collective.

    Args:
        routed_rows: bfloat16 [rows, at least hidden]: what this rank's experts computed
        route_weights: bfloat16 or float32 [tokens, top_k]
        permuted_idx: int32 [tokens, top_k]: rows; others than [0, rows) are other ranks' and add nothing
        norm_weight: bfloat16 [hidden]
        output: bfloat16 [tokens, hidden], written, the same on every rank
        workspace: MNNVLCuteDSLMoEFinalizeAllReduceWorkspace
        eps: of the norm
        gain_center: added to norm_weight
        weight_before_norm: whether norm_weight multiplies a row before its mean square is taken, or after

    Raises:
        ValueError: tensors that do not fit the workspace
        RuntimeError: a rank that calls something else, died or does not arrive in time
    """
    given = dict(routed_rows=routed_rows, route_weights=route_weights, permuted_idx=permuted_idx, norm_weight=norm_weight, output=output)
    memory = workspace._ready("moe_finalize_rmsnorm_allreduce", supports_moe_finalize_rmsnorm_allreduce(workspace, **given), **given)
    x = _routed(routed_rows, permuted_idx, workspace.hidden_dim)
    partial = _normalised_sum(x, route_weights, norm_weight.float() + gain_center, eps, weight_before_norm)
    _sum_into(output, partial.to(output.dtype), memory)


_finalize = None  # the memory of tp_moe_finalize_rmsnorm: one for the process


def init_tp_moe_finalize_rmsnorm(group=None):
    """Makes the memory of tp_moe_finalize_rmsnorm. Collective; a second call of the same group does nothing. True.

    Raises:
        RuntimeError: it was made for another group
    """
    import torch

    global _finalize
    if _finalize is None:
        comm, device = of_group(group), _current_device()
        _finalize = group, AllReduceFusionWorkspace(comm.Get_size(), comm.Get_rank(), 1, _ELEMENTS, torch.float32, comm, device=device), torch.device(device)
    elif group is not None and group is not _finalize[0]:
        raise RuntimeError("init_tp_moe_finalize_rmsnorm: it was called for another group before")
    return True


def supports_tp_moe_finalize_rmsnorm(gemm2_permuted, expert_weights, expanded_idx_to_permuted_idx, norm_weight, output):
    """Whether tp_moe_finalize_rmsnorm takes these tensors: any hidden size and number of experts of a token."""
    if _finalize is None or gemm2_permuted.dim() != 2 or output.dim() != 2 or expert_weights.dim() != 2:
        return False
    dtypes = [str(t.dtype).removeprefix("torch.") for t in (gemm2_permuted, norm_weight, output, expanded_idx_to_permuted_idx)]
    return (dtypes == ["bfloat16", "bfloat16", "bfloat16", "int32"] and expert_weights.dtype.is_floating_point and norm_weight.shape == output.shape[1:]
            and gemm2_permuted.shape[1] >= output.shape[1] and expert_weights.shape == expanded_idx_to_permuted_idx.shape and expert_weights.shape[0] == output.shape[0]
            and output.is_contiguous() and all(t.device.type == _finalize[2].type for t in (gemm2_permuted, expert_weights, norm_weight, output)))


def _tp_finalize_reference(gemm2_permuted, expert_weights, expanded_idx_to_permuted_idx, norm_weight, eps, gain_center, weight_before_norm, **_):
    import torch

    index, weight = expanded_idx_to_permuted_idx.long(), norm_weight.double() + gain_center
    there = (index >= 0) & (index < gemm2_permuted.shape[0])
    x = gemm2_permuted[index.clamp(0, gemm2_permuted.shape[0] - 1), :weight.shape[0]].double() * there[..., None]
    x = x * weight if weight_before_norm else x
    x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    x = x if weight_before_norm else x * weight
    return (x * expert_weights.double()[..., None]).sum(1).to(torch.bfloat16)


@flashinfer_api(trace=_template(
    "tp_moe_finalize_rmsnorm",
    {"num_tokens": Var(), "num_permuted_rows": Var(), "num_experts": Const(abbrev="e"), "hidden_size": Const(abbrev="h"), "hidden_size_padded": Const(abbrev="hp")},
    {"gemm2_permuted": Tensor(["num_permuted_rows", "hidden_size_padded"]), "expert_weights": Tensor(["num_tokens", "num_experts"]),
     "expanded_idx_to_permuted_idx": Tensor(["num_tokens", "num_experts"], dtype="int32"), "norm_weight": Tensor(["hidden_size"]), "eps": Scalar("float32"),
     "gain_center": Scalar("float32"), "weight_before_norm": Scalar("int32")},
    {"output": Tensor(["num_tokens", "hidden_size"], dtype="bfloat16", param="output")},
    "Sums the experts' rows over the ranks, normalises each and adds them with their weights. The reference is that of one rank.",
    "status:verified stage:comm fused tp4", reference=_tp_finalize_reference))
def tp_moe_finalize_rmsnorm(gemm2_permuted, expert_weights, expanded_idx_to_permuted_idx, norm_weight, output, *, eps, gain_center, weight_before_norm):
    """output[t] = the sum over k of expert_weights[t, k] * RMSNorm(the sum over the ranks of gemm2_permuted[expanded_idx_to_permuted_idx[t, k]]), sums in float32 in
    the order of ranks and of k. Collective, after init_tp_moe_finalize_rmsnorm.

    Args:
        gemm2_permuted: bfloat16 [rows, at least hidden]: this rank's part of each sum
        expert_weights: [tokens, k] of a floating-point dtype
        expanded_idx_to_permuted_idx: int32 [tokens, k]; other numbers than [0, rows) add nothing
        norm_weight: bfloat16 [hidden]
        output: bfloat16 [tokens, hidden], written, the same on every rank
        eps: of the norm
        gain_center: added to norm_weight
        weight_before_norm: whether norm_weight multiplies a row before its mean square is taken, or after

    Raises:
        ValueError: tensors that do not fit together
        RuntimeError: init_tp_moe_finalize_rmsnorm was not called; a rank that calls something else, died or does not arrive in time
    """
    import torch

    if _finalize is None:
        raise RuntimeError("tp_moe_finalize_rmsnorm: init_tp_moe_finalize_rmsnorm() was not called")
    given = gemm2_permuted, expert_weights, expanded_idx_to_permuted_idx, norm_weight, output
    with checking(_finalize[1], "tp_moe_finalize_rmsnorm"):
        if not supports_tp_moe_finalize_rmsnorm(*given):
            raise ValueError("tp_moe_finalize_rmsnorm: gemm2_permuted, expert_weights, expanded_idx_to_permuted_idx, norm_weight and output are "
                             + ", ".join(f"{t.dtype} of shape {tuple(t.shape)}" for t in given) + ", which do not fit together")
    tokens, k = expert_weights.shape
    hidden = output.shape[1]
    partial = _routed(gemm2_permuted, expanded_idx_to_permuted_idx, hidden).view(-1, hidden)
    sums = torch.empty_like(partial)
    _sum_into(sums, partial, _finalize[1])
    output.copy_(_normalised_sum(sums.view(tokens, k, hidden), expert_weights, norm_weight.float() + gain_center, eps, weight_before_norm))


# ---- two tracks normalised, their mean summed ----
_HIDDEN, _TRACKS = 2560, 2


def cake_fused_norm_combine_workspace_bytes(world_size, max_tokens, hidden=_HIDDEN):
    """Bytes a rank as FlashInfer's kernels count them, by name.

    Raises:
        ValueError: numbers below 1
    """
    if min(world_size, max_tokens, hidden) < 1:
        raise ValueError(f"cake_fused_norm_combine_workspace_bytes: world_size is {world_size}, max_tokens {max_tokens} and hidden {hidden}, but must be at least 1")
    rotation = 2 * world_size * max_tokens * hidden
    return {"data_bytes": 4 * max_tokens * hidden, "flags_bytes": 4 * max_tokens * world_size, "rotation_bytes": rotation, "lamport_bytes": 3 * rotation,
            "control_bytes": 20, "table_entries": 3 * world_size + 1}


class CakeFusedNormCombineWorkspace(_Workspace):
    """Memory for cake_fused_norm_combine; cake_fused_norm_combine_create_workspace makes it."""

    @property
    def rotation_bytes(self):
        """Of cake_fused_norm_combine_workspace_bytes."""
        return 2 * self.tp_size * self.max_token_num * self.hidden_dim

    @property
    def closed(self):
        """Whether it is destroyed."""
        return self._workspace is None


def cake_fused_norm_combine_create_workspace(*, rank, world_size, max_tokens, hidden=_HIDDEN, group=None, device=None):
    """Memory of the ranks of `group` for calls of up to `max_tokens` tokens. Collective.

    Raises:
        ValueError: sizes that are not possible, on any rank
    """
    made = CakeFusedNormCombineWorkspace.__new__(CakeFusedNormCombineWorkspace)
    _Workspace.__init__(made, world_size, rank, max_tokens, hidden, group)
    return made


def cake_fused_norm_combine_destroy_workspace(workspace):
    """Gives the memory back."""
    if not isinstance(workspace, CakeFusedNormCombineWorkspace):
        raise TypeError(f"cake_fused_norm_combine_destroy_workspace: workspace is a {type(workspace).__name__}, but must be a CakeFusedNormCombineWorkspace")
    workspace.destroy()


def cake_fused_norm_combine(x, residual, weight, *, norm_out, residual_out, collective_out, workspace, epsilon, backend="cake"):
    """residual_out = round(x + residual); norm_out = RMSNorm of each of its two tracks; collective_out = the sum over the ranks of the mean of the two, rounded to
    bfloat16 after each rank. Collective.

    Args:
        x, residual: bfloat16 [tokens, 2, hidden]
        weight: bfloat16 [2, hidden]
        norm_out, residual_out: bfloat16 [tokens, 2, hidden], written
        collective_out: bfloat16 [tokens, hidden], written, the same on every rank
        workspace: of cake_fused_norm_combine_create_workspace
        epsilon: of the norms
        backend: "cake"

    Raises:
        ValueError: tensors that do not fit the workspace
        RuntimeError: a rank that calls something else, died or does not arrive in time
    """
    import torch

    if not isinstance(workspace, CakeFusedNormCombineWorkspace):
        raise TypeError(f"cake_fused_norm_combine: workspace is a {type(workspace).__name__}, but must be a CakeFusedNormCombineWorkspace")
    h, is_ = workspace.hidden_dim, workspace._is
    full = (x.shape[0] if x.dim() else 0, _TRACKS, h)
    given = dict(x=x, residual=residual, weight=weight, norm_out=norm_out, residual_out=residual_out, collective_out=collective_out)
    fits = (1 <= full[0] <= workspace.max_token_num and all(is_(t, full, "bfloat16") for t in (x, residual, norm_out, residual_out))
            and is_(weight, full[1:], "bfloat16") and is_(collective_out, (full[0], h), "bfloat16") and backend == "cake")
    memory = workspace._ready("cake_fused_norm_combine", fits, **given)
    torch.add(x, residual, out=residual_out)
    for track in range(_TRACKS):
        _exports["rmsnorm"](residual_out[:, track], weight[track], epsilon, out=norm_out[:, track])
    mean = (norm_out[:, 0].float() + norm_out[:, 1].float()) * 0.5
    _sum_into(collective_out, mean.bfloat16(), memory)
