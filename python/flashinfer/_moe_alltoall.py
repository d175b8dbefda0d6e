# SPDX-License-Identifier: Apache-2.0
"""All-to-all of experts that are spread over ranks (`flashinfer.comm.MoeAlltoAll`, `moe_a2a_*`). docs/comm.md."""
import warnings

from . import _make, _native
from ._comm import _agree, checking
from ._comm_backends import resolved
from ._comm_memory import MnnvlConfig, MnnvlMemory, agreed_device, share

_initialize = _make.package.exports["moe_a2a_initialize"]
_dispatch_into = _make.package.exports["moe_a2a_dispatch_into"]
_combine = _make.package.exports["moe_a2a_combine"]
_sanitize = _make.package.exports["moe_a2a_sanitize_expert_ids"]
_ALIGN, _TOP_K, _PAYLOADS = 128, 32, 6


def _up(n):
    return (n + _ALIGN - 1) // _ALIGN * _ALIGN


def moe_a2a_active_rank_mask(active_ranks, ep_size):
    """The mask of the ranks that take part, uint64 [1] with bit r for rank r.

    Raises:
        AssertionError: a rank outside [0, ep_size)
    """
    import torch

    bits = 0
    for rank in (active_ranks.tolist() if isinstance(active_ranks, torch.Tensor) else active_ranks):
        assert 0 <= rank < ep_size, f"rank {rank} out of range [0, {ep_size})"
        bits |= 1 << rank
    return torch.tensor([bits], dtype=torch.uint64)


def moe_a2a_get_workspace_size_per_rank(ep_size, max_num_tokens, total_dispatch_payload_size_per_token, combine_payload_size_per_token,
                                        eplb_stats_num_experts=0, *, backend="trtllm"):
    """Bytes a rank of a workspace for dispatches and combines of so many bytes a token.

    Raises:
        ValueError: sizes that are not possible
    """
    return _native.function("comm.moe_a2a_workspace_size")(ep_size, max_num_tokens, total_dispatch_payload_size_per_token, combine_payload_size_per_token,
                                                           eplb_stats_num_experts)


def moe_a2a_wrap_payload_tensor_in_workspace(workspace, leading_shape, slice_start, slice_end, dtype):
    """Bytes [slice_start, slice_end) of the workspace as a tensor [*leading_shape, columns]: a view.

    Args:
        workspace: uint8 [ep_size, bytes], or one rank's row of it
        slice_start: from the workspace's first byte on, rows being workspace.stride(0) apart

    Raises:
        AssertionError: bytes of more than one rank
    """
    if workspace.dim() == 2:
        step = workspace.stride(0) or workspace.shape[1]
        rank, begin = divmod(slice_start, step)
        row, end = workspace[rank], slice_end - rank * step
    else:
        row, begin, end = workspace, slice_start, slice_end
    assert 0 <= begin <= end <= row.shape[0], "slice must fall within the workspace size per rank"
    return row[begin:end].view(dtype).view(*leading_shape, -1)


def _received(workspace, metainfo, input_payloads, runtime_max_tokens_per_rank, ep_rank, ep_size):
    """Where a dispatch puts the payloads, and the offset behind them."""
    if workspace.dim() != 2 or not 0 <= ep_rank < workspace.shape[0]:
        raise ValueError(f"moe_a2a_dispatch: ep_rank is {ep_rank} and workspace has shape {tuple(workspace.shape)}, but it must be [ep_size, bytes]")
    own, views, at = workspace[ep_rank], [], int(metainfo[5])
    for payload in input_payloads:
        size = ep_size * runtime_max_tokens_per_rank * payload.shape[-1] * payload.element_size()
        if at + size > own.shape[0] or size < 0:
            raise ValueError(f"moe_a2a_dispatch: workspace has {own.shape[0]} bytes a rank, but {at + size} are needed for runtime_max_tokens_per_rank "
                             f"{runtime_max_tokens_per_rank}")
        views.append(own[at:at + size].view(payload.dtype).view(ep_size, runtime_max_tokens_per_rank, payload.shape[-1]))
        at = _up(at + size)
    return views, at


def moe_a2a_dispatch(token_selected_experts, input_payloads, workspace, metainfo, runtime_max_tokens_per_rank, ep_rank, ep_size, top_k, num_experts,
                     enable_pdl=None, eplb_local_stats=None, enable_rank_mask=False, active_rank_mask=None, *, backend="trtllm", recv_view_cache=None):
    """Sends each token once to every rank that has one of its experts. Collective.

    Args:
        token_selected_experts: int32 [tokens, top_k]; negative: none
        input_payloads: 1 to 6 contiguous tensors [tokens, columns]
        workspace: uint8 [ep_size, bytes] (MnnvlMemory)
        metainfo: what moe_a2a_initialize returned
        runtime_max_tokens_per_rank: rows of a slice of what is received
        ep_rank: this rank
        ep_size: ranks
        top_k: experts of a token
        num_experts: of all ranks; the first num_experts mod ep_size ranks have one more than the others
        enable_pdl: of a GPU kernel; changes no result
        eplb_local_stats: int32 [eplb_stats_num_experts] that every rank gets
        enable_rank_mask: whether there may be an active_rank_mask
        active_rank_mask: uint64 [1]: bit r: rank r takes part
        backend: "trtllm"
        recv_view_cache: views cost nothing here; not used

    Returns:
        the received payloads, [ep_size, runtime_max_tokens_per_rank, columns] in the workspace, slice s the tokens of rank s in their order;
        the offset of combine's payload; int32 [ep_size, eplb_stats_num_experts] or None

    Raises:
        ValueError: arguments that do not fit together or into the workspace
        RuntimeError: a rank that calls something else, died or does not arrive in time
    """
    import torch

    with checking(workspace, "moe_a2a_dispatch"):
        views, at = _received(workspace, metainfo, input_payloads, runtime_max_tokens_per_rank, ep_rank, ep_size)
    into = {f"received_{i}": view for i, view in enumerate(views[:_PAYLOADS])}
    gathered = None
    if eplb_local_stats is not None and eplb_local_stats.numel() == int(metainfo[1]):  # else the call says so
        stats = int(metainfo[3])
        gathered = workspace[ep_rank][stats:stats + 4 * ep_size * eplb_local_stats.numel()].view(torch.int32).view(ep_size, -1)
    _dispatch_into(token_selected_experts, list(input_payloads), workspace, metainfo, runtime_max_tokens_per_rank, ep_rank, ep_size, top_k, num_experts,
                   enable_pdl, eplb_local_stats, enable_rank_mask, active_rank_mask, backend=backend, eplb_gathered_stats=gathered, **into)
    return views, at, gathered


class MoeAlltoAll:
    """Dispatch and combine over memory of their own. Making one is collective; each dispatch is followed by a combine.

    Args:
        mapping: its moe_ep_size ranks share the experts
        max_num_tokens: tokens of a rank in the largest dispatch
        top_k: experts of a token
        num_experts: of all ranks
        workspace_size_per_rank: bytes; None: for `hidden_size` 16-bit elements, ids and weights
        hidden_size: elements of a token
        mnnvl_config: its comm_backend connects the ranks; None: torch.distributed, MPI, or one rank
        eplb_stats_num_experts: length of dispatch's eplb_local_stats
        enable_rank_mask: whether there may be an active_rank_mask
        backend: "trtllm"
        device: of the tensors, "cpu" or this rank's "cuda:N"; absent: the current GPU once torch has used one, else the CPU

    Raises:
        ValueError: sizes that are not possible, on any rank
    """

    def __init__(self, mapping, max_num_tokens, top_k, num_experts, workspace_size_per_rank=None, hidden_size=None, mnnvl_config=None,
                 eplb_stats_num_experts=0, enable_rank_mask=False, *, backend="trtllm", device=None):
        warnings.warn("MoeAlltoAll is deprecated: FlashInfer's successor is flashinfer.moe_ep.NVLinkOneSidedAlltoAll", DeprecationWarning, stacklevel=2)
        comm = self._communicator(mapping, mnnvl_config)
        _agree(comm, lambda: self._problem(mapping, comm, max_num_tokens, top_k, num_experts, workspace_size_per_rank, hidden_size, backend), "MoeAlltoAll")
        if workspace_size_per_rank is None:
            workspace_size_per_rank = self.get_moe_workspace_size_per_rank(mapping.moe_ep_size, top_k, max_num_tokens, hidden_size, 0, eplb_stats_num_experts)
        self.ep_size, self.ep_rank = mapping.moe_ep_size, mapping.moe_ep_rank
        self.max_num_tokens, self.top_k, self.num_experts = max_num_tokens, top_k, num_experts
        self.workspace_size_per_rank, self.eplb_stats_num_experts, self.enable_rank_mask = workspace_size_per_rank, eplb_stats_num_experts, enable_rank_mask
        self._mapping, self._comm, self._device = mapping, comm, agreed_device(comm, device)
        self._share()

    def _share(self):
        """Makes the memory. Collective."""
        self.workspace = share(self._comm, self.workspace_size_per_rank, "" if self._device == "cpu" else "peers", self._device)
        self.metainfo = _initialize(self.workspace, self.ep_rank, self.ep_size, self.max_num_tokens, self.eplb_stats_num_experts).cpu()
        self._reset()

    @staticmethod
    def get_workspace(workspace_size_per_rank, ep_rank, ep_size, max_num_tokens, mapping, eplb_stats_num_experts=0, *, backend="trtllm"):
        """Memory for the functions moe_a2a_* with the communicator of MnnvlMemory: a dict with `workspace`, `metainfo` and the arguments. Collective.

        Args:
            workspace_size_per_rank: bytes, of moe_a2a_get_workspace_size_per_rank
            ep_rank, ep_size: those of `mapping`
            max_num_tokens: of a rank
            mapping: of the ranks
            eplb_stats_num_experts: of the statistics that a dispatch gathers
            backend: "trtllm"

        Raises:
            ValueError: ranks that `mapping` does not say, another back end
        """
        import torch

        problem = None
        if (ep_rank, ep_size) != (mapping.moe_ep_rank, mapping.moe_ep_size) or backend != "trtllm":
            problem = (f"ep_rank is {ep_rank}, ep_size {ep_size} and backend {backend!r}, but mapping has {mapping.moe_ep_rank} and {mapping.moe_ep_size}, and only "
                       "'trtllm' is implemented")
        _agree(MnnvlMemory.get_comm(mapping), problem, "MoeAlltoAll.get_workspace")
        memory = MnnvlMemory(mapping, workspace_size_per_rank)
        workspace = memory.as_torch_strided_tensor(torch.uint8)
        return {"workspace_size_per_rank": workspace_size_per_rank, "ep_rank": ep_rank, "ep_size": ep_size, "max_num_tokens": max_num_tokens,
                "eplb_stats_num_experts": eplb_stats_num_experts, "mnnvl_mem": memory, "workspace": workspace,
                "metainfo": _initialize(workspace, ep_rank, ep_size, max_num_tokens, eplb_stats_num_experts)}

    @staticmethod
    def _communicator(mapping, config):
        comm = resolved(config.comm_backend if config is not None else None)
        if comm.Get_size() == mapping.moe_ep_size:
            return comm
        others = mapping.tp_size * (mapping.pp_rank * mapping.cp_size + mapping.cp_rank)
        return comm.Split(others + mapping.tp_rank // mapping.moe_ep_size, mapping.moe_ep_rank)

    @staticmethod
    def _problem(mapping, comm, max_num_tokens, top_k, num_experts, workspace_size_per_rank, hidden_size, backend):
        """Why these arguments are not possible, or None."""
        if (comm.Get_size(), comm.Get_rank()) != (mapping.moe_ep_size, mapping.moe_ep_rank):
            return (f"mapping has moe_ep_size {mapping.moe_ep_size} and moe_ep_rank {mapping.moe_ep_rank}, but the communicator says {comm.Get_size()} and "
                    f"{comm.Get_rank()}")
        if max_num_tokens < 1 or not 1 <= top_k <= _TOP_K or num_experts < mapping.moe_ep_size:
            return (f"max_num_tokens is {max_num_tokens}, top_k {top_k} and num_experts {num_experts}, but must be at least 1, in [1, {_TOP_K}], and at least "
                    f"ep_size, {mapping.moe_ep_size}")
        if workspace_size_per_rank is None and hidden_size is None:
            return "hidden_size must be given when workspace_size_per_rank is None"
        if backend != "trtllm":
            return f"backend is {backend!r}, but only 'trtllm' is implemented"
        return None

    @staticmethod
    def get_moe_workspace_size_per_rank(ep_size, top_k, max_num_tokens, hidden_size, extra_payload_bytes_per_token=0, eplb_stats_num_experts=0, *,
                                        backend="trtllm"):
        """Bytes a rank for tokens of `hidden_size` 16-bit elements, their ids and weights, and `extra_payload_bytes_per_token`."""
        return moe_a2a_get_workspace_size_per_rank(ep_size, max_num_tokens, 2 * hidden_size + 8 * top_k + extra_payload_bytes_per_token, 2 * hidden_size,
                                                   eplb_stats_num_experts, backend=backend)

    def _reset(self):
        self._tokens = self._offset = self._stats = None

    @property
    def eplb_gathered_stats(self):
        """int32 [ep_size, eplb_stats_num_experts] of the last dispatch, until its combine; None without statistics."""
        return self._stats

    def dispatch(self, token_selected_experts, input_payloads, runtime_max_tokens_per_rank, invalid_token_expert_id=None, expert_id_payload_index=None,
                 eplb_local_stats=None, active_rank_mask=None):
        """Sends each token to the ranks of its experts; what this rank gets, as moe_a2a_dispatch. Collective.

        Args:
            token_selected_experts: int32 [tokens, top_k]; negative: none
            input_payloads: 1 to 6 contiguous tensors [tokens, columns]
            runtime_max_tokens_per_rank: rows of a slice of what is received
            invalid_token_expert_id: written where there is no token into payload `expert_id_payload_index`
            expert_id_payload_index: which payload has the ids
            eplb_local_stats: int32 [eplb_stats_num_experts]
            active_rank_mask: of moe_a2a_active_rank_mask

        Raises:
            AssertionError: twice without a combine
            ValueError, RuntimeError: as moe_a2a_dispatch
            RuntimeError: between checkpoint_prepare and checkpoint_restore
        """
        if self.workspace is None:
            raise RuntimeError("MoeAlltoAll.dispatch: checkpoint_prepare has given the memory back; checkpoint_restore makes it again")
        with checking(self.workspace, "MoeAlltoAll.dispatch"):
            assert self._tokens is None, "dispatch called twice without combine"
            if (invalid_token_expert_id is None) != (expert_id_payload_index is None):
                raise ValueError("MoeAlltoAll.dispatch: invalid_token_expert_id and expert_id_payload_index must be given together")
            if expert_id_payload_index is not None and not 0 <= expert_id_payload_index < len(input_payloads):
                raise ValueError(f"MoeAlltoAll.dispatch: expert_id_payload_index is {expert_id_payload_index}, but input_payloads has {len(input_payloads)} tensors")
        views, offset, stats = moe_a2a_dispatch(token_selected_experts, input_payloads, self.workspace, self.metainfo, runtime_max_tokens_per_rank,
                                                self.ep_rank, self.ep_size, self.top_k, self.num_experts, None, eplb_local_stats, self.enable_rank_mask,
                                                active_rank_mask)
        self._tokens, self._offset, self._stats = token_selected_experts.shape[0], offset, stats
        if invalid_token_expert_id is not None:
            _sanitize(views[expert_id_payload_index], self.workspace, self.metainfo, self.ep_rank, invalid_token_expert_id)
        return views

    def combine(self, payload, runtime_max_tokens_per_rank, payload_in_workspace=False, output_dtype=None, output_scales=None, output_scalar_scale=1.0,
                sf_layout=2, output=None, *, use_low_precision=False, active_rank_mask=None):
        """[tokens, hidden]: for each token of the dispatch the sum of what the ranks of its experts computed. Collective.

        Args:
            payload: [ep_size, runtime_max_tokens_per_rank, hidden]
            runtime_max_tokens_per_rank: that of the dispatch
            payload_in_workspace: payload is that of get_combine_payload_tensor_in_workspace
            output_dtype: None: payload's
            output_scales: memory for the scales of quantised results
            output_scalar_scale: of NVFP4
            sf_layout: of output_scales
            output: memory for the result
            use_low_precision: bfloat16 rows are sent as float8_e4m3fn
            active_rank_mask: that of the dispatch

        Raises:
            AssertionError: without a dispatch
            ValueError, RuntimeError: as moe_a2a_combine
        """
        with checking(self.workspace, "MoeAlltoAll.combine"):
            assert self._tokens is not None, "combine called before successful dispatch"
        out = _combine(payload, self._tokens, self.workspace, self.metainfo, runtime_max_tokens_per_rank, self.ep_rank, self.ep_size, self.top_k,
                       self._offset, payload_in_workspace, output_dtype, output_scales, output_scalar_scale, sf_layout, output,
                       use_low_precision=use_low_precision, enable_rank_mask=self.enable_rank_mask, active_rank_mask=active_rank_mask)
        self._reset()
        return out

    def get_combine_payload_tensor_in_workspace(self, runtime_max_tokens_per_rank, hidden_size, dtype):
        """[ep_size, runtime_max_tokens_per_rank, hidden_size] where combine reads it without a copy.

        Raises:
            RuntimeError: before a dispatch
        """
        if self._tokens is None:
            raise RuntimeError("get_combine_payload_tensor_in_workspace called before successful dispatch")
        size = self.ep_size * runtime_max_tokens_per_rank * hidden_size * dtype.itemsize
        return moe_a2a_wrap_payload_tensor_in_workspace(self.workspace[self.ep_rank], [self.ep_size, runtime_max_tokens_per_rank], self._offset,
                                                        self._offset + size, dtype)

    def checkpoint_prepare(self):
        """Gives back the memory, which a checkpoint of the process could not keep: there is nothing in it between a combine and the next dispatch. Calls before
        checkpoint_restore are errors. Collective; calling it again does nothing.

        Raises:
            RuntimeError: between a dispatch and its combine
        """
        if self._tokens is not None:
            raise RuntimeError("MoeAlltoAll.checkpoint_prepare: the last dispatch has no combine yet")
        if self._comm is not None:
            self._comm.barrier()
        self._comm = self.workspace = self.metainfo = None

    def checkpoint_restore(self, comm_backend):
        """Makes the memory again, after checkpoint_prepare. Collective.

        Args:
            comm_backend: a communicator of all ranks, or of those that share the experts, with the ranks of the mapping

        Raises:
            RuntimeError: without checkpoint_prepare
            ValueError: other ranks than the mapping's
        """
        if self._comm is not None:
            raise RuntimeError("MoeAlltoAll.checkpoint_restore: there was no checkpoint_prepare")
        comm = self._communicator(self._mapping, MnnvlConfig(comm_backend=comm_backend))
        _agree(comm, lambda: self._problem(self._mapping, comm, self.max_num_tokens, self.top_k, self.num_experts, self.workspace_size_per_rank, None, "trtllm"),
               "MoeAlltoAll.checkpoint_restore")
        self._comm = comm
        self._share()
