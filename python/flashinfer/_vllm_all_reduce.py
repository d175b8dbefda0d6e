# SPDX-License-Identifier: Apache-2.0
"""All-reduce under the names that vLLM calls (`flashinfer.comm.vllm_*`), by allreduce_fusion. docs/comm.md.

Addresses are those of create_shared_buffer; nothing is ever read from any other. The data goes through the workspace of allreduce_fusion, so
the registered buffers only say what may be summed. Tensors of a GPU go through a workspace of that GPU, which graphs may capture as they are.
"""
import itertools

from . import _comm_memory, _make
from ._comm import TRTLLMAllReduceFusionWorkspace, _agree, checking

_META = 4096
_RANKS, _CTAS = (2, 4, 6, 8), 36
_fusion = _make.package.exports["allreduce_fusion"]
_reducers, _handles = {}, itertools.count(1)


class _Reducer:
    """A group's all-reduces; the workspace of a device is made by its first call and by one with more elements, on all ranks."""

    def __init__(self, meta, comm, rank, full_nvlink):
        self.meta, self.comm, self.rank, self.full_nvlink = meta, comm, rank, full_nvlink
        self.buffers, self.workspaces = [], {}

    def holds(self, tensor):
        """Whether the tensor lies in this rank's part of a registered buffer."""
        first, size = tensor.data_ptr(), tensor.numel() * tensor.element_size()
        return any(b[self.rank].data_ptr() <= first and first + size <= b[self.rank].data_ptr() + b.shape[1] for b in self.buffers)

    def workspace_for(self, size, inp):
        import torch

        device = str(inp.device)
        capacity, workspace = self.workspaces.get(device, (0, None))
        if size > capacity:
            if workspace is not None:  # do the others want a larger one too? One that left, or passes less, ends the call of all
                _fusion(inp.view(-1)[:1].view(1, 1), workspace, 0)
                del self.workspaces[device]
                workspace.destroy()
            capacity = max(1 << 20, 1 << (size - 1).bit_length())
            self.workspaces[device] = capacity, TRTLLMAllReduceFusionWorkspace(self.comm.Get_size(), self.rank, 1, capacity // 4, torch.float32, self.comm,
                                                                               device=device)
        return self.workspaces[device][1]

    def leave(self, device, text):
        """Ends the call of the others, in which this rank takes no part. Collective, before the first call for tensors of that device."""
        workspace = self.workspaces.get(device, (0, None))[1]
        with checking(workspace, "vllm_all_reduce"):
            if workspace is None:
                _agree(self.comm, text, "vllm_all_reduce")
            raise ValueError(f"vllm_all_reduce: {text}")

    def wants_one_shot(self, inp, row):
        """vLLM's choice on GPUs, by size; None: that of allreduce_fusion."""
        ranks, size = self.comm.Get_size(), inp.numel() * inp.element_size()
        if inp.device.type == "cpu" or inp.numel() // row <= ranks:
            return None
        return ranks == 2 or (self.full_nvlink and size < (512 << 10 if ranks <= 4 else 256 << 10))

    def close(self):
        for _, workspace in self.workspaces.values():
            workspace.destroy()


def _reducer(fa, function):
    if fa not in _reducers:
        raise ValueError(f"{function}: fa is {fa}, but must be what vllm_init_custom_ar returned")
    return _reducers[fa]


def vllm_meta_size():
    """Bytes of the buffer that vllm_init_custom_ar takes."""
    return _META


def vllm_init_custom_ar(ipc_tensors, rank_data, rank, full_nvlink):
    """A handle of the all-reduces of the ranks that share a buffer. Collective.

    Args:
        ipc_tensors: the addresses that create_shared_buffer(vllm_meta_size()) returned
        rank_data: memory of a GPU kernel; not used
        rank: this rank
        full_nvlink: whether NVLink connects all GPUs; changes no result

    Raises:
        ValueError: other addresses, a number of ranks other than 2, 4, 6 and 8, a rank that is not this one's
    """
    meta = _comm_memory.shared_buffer(ipc_tensors, "ipc_tensors")
    comm = _comm_memory.communicator(meta)
    fits = len(ipc_tensors) in _RANKS and rank == comm.Get_rank()
    problem = None if fits else f"there are {len(ipc_tensors)} ranks and rank is {rank}, but must be 2, 4, 6 or 8, and {comm.Get_rank()}"
    _agree(comm, problem, "vllm_init_custom_ar")
    handle = next(_handles)
    _reducers[handle] = _Reducer(meta, comm, rank, full_nvlink)
    return handle


def vllm_register_buffer(fa, fake_ipc_ptrs):
    """Lets vllm_all_reduce take what lies in the buffer of create_shared_buffer with these addresses."""
    _reducer(fa, "vllm_register_buffer").buffers.append(_comm_memory.shared_buffer(fake_ipc_ptrs, "fake_ipc_ptrs"))


def _why_not(r, inp, out, reg_buffer, reg_buffer_sz_bytes, num_ctas):
    """Why vllm_all_reduce does not take these arguments; None: it does."""
    import torch

    size = inp.numel() * inp.element_size()
    if inp.dtype not in (torch.float16, torch.bfloat16, torch.float32) or size % 16 or not inp.is_contiguous():
        return (f"inp is {inp.dtype} of shape {tuple(inp.shape)} and strides {inp.stride()}, but must be float16, bfloat16 or float32, contiguous, and a multiple of "
                "16 bytes")
    if out.dtype != inp.dtype or out.device != inp.device or out.numel() != inp.numel() or not out.is_contiguous():
        return f"out is {out.dtype} of shape {tuple(out.shape)} on {out.device}, but must be contiguous {inp.dtype} of {inp.numel()} elements on {inp.device}"
    if not 1 <= num_ctas <= _CTAS:
        return f"num_ctas is {num_ctas}, but must be in [1, {_CTAS}]"
    if reg_buffer == 0 and not r.holds(inp):
        return "reg_buffer is 0, but inp is not in a buffer of vllm_register_buffer"
    if reg_buffer and (size > reg_buffer_sz_bytes or not any(b[r.rank].data_ptr() == reg_buffer for b in r.buffers)):
        return (f"inp has {size} bytes, reg_buffer_sz_bytes is {reg_buffer_sz_bytes} and reg_buffer {reg_buffer}, but it must be this rank's part of a buffer of "
                "vllm_register_buffer, large enough")
    return None


def vllm_all_reduce(fa, inp, out, reg_buffer, reg_buffer_sz_bytes, num_ctas):
    """out = the sum of all ranks' inp, in float32 in the order of the ranks, rounded once. Collective.

    Args:
        fa: of vllm_init_custom_ar
        inp: float16, bfloat16 or float32, contiguous, a multiple of 16 bytes, on the CPU or this rank's GPU
        out: memory as inp
        reg_buffer: address of this rank's part of a registered buffer; 0: inp lies in one
        reg_buffer_sz_bytes: its size
        num_ctas: of a GPU kernel, at most 36; changes no result

    Raises:
        ValueError: arguments that do not fit together
        RuntimeError: a rank that calls something else, died or does not arrive in time
    """
    r, size = _reducer(fa, "vllm_all_reduce"), inp.numel() * inp.element_size()
    why_not = _why_not(r, inp, out, reg_buffer, reg_buffer_sz_bytes, num_ctas)
    if why_not is not None:
        r.leave(str(inp.device), why_not)
    if not inp.numel():
        return
    row = min(inp.numel() & -inp.numel(), 4096)  # the largest power of two that divides the elements
    workspace = r.workspace_for(max(size, reg_buffer_sz_bytes if reg_buffer else 0), inp)
    _fusion(inp.view(-1, row), workspace, 0, output=out.view(-1, row), fp32_acc=True, use_oneshot=r.wants_one_shot(inp, row))


def vllm_get_graph_buffer_ipc_meta(fa):
    """([], []): a captured call copies to memory of the workspace, so its tensors need not be registered."""
    _reducer(fa, "vllm_get_graph_buffer_ipc_meta")
    return [], []


def vllm_register_graph_buffers(fa, handles, offsets):
    """Takes what the ranks' vllm_get_graph_buffer_ipc_meta returned.

    Raises:
        ValueError: anything else
    """
    _reducer(fa, "vllm_register_graph_buffers")
    if any(map(len, handles)) or any(map(len, offsets)):
        raise ValueError("vllm_register_graph_buffers: there are buffers of graphs, but vllm_get_graph_buffer_ipc_meta names none")


def vllm_dispose(fa):
    """Ends the handle."""
    _reducer(fa, "vllm_dispose").close()
    del _reducers[fa]
