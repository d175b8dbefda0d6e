# SPDX-License-Identifier: Apache-2.0
"""Collectives with a group as their argument: sums, and a product of gathered rows. docs/comm.md."""
import atexit
import weakref

from . import _make
from ._comm import AllReduceFusionWorkspace, _agree, checking
from ._comm_backends import of_group

_fusion = _make.package.exports["allreduce_fusion"]
_gather = _make.package.exports["all_gather"]
_quantized = _make.package.exports["quantized_all_reduce_into"]
_ELEMENTS = 1 << 20  # of the memory: larger tensors go through it in pieces
_of_group = weakref.WeakKeyDictionary()


def _workspace(group, device):
    """The memory of the ranks of `group` for tensors of this rank's device, made by the first call: collective."""
    import torch

    of_device = _of_group.setdefault(group, {})
    if device not in of_device:
        comm = of_group(group)
        of_device[device] = AllReduceFusionWorkspace(comm.Get_size(), comm.Get_rank(), 1, _ELEMENTS, torch.float32, comm, device=device)
    return of_device[device]


@atexit.register
def _close():
    for of_device in list(_of_group.values()):
        for workspace in of_device.values():
            workspace.destroy()


def quantized_all_reduce(inp, group, *, scale_group=256, block_size=None, num_warps=None, max_num_blocks=None, p2p_phase3=None, output=None):
    """The sum over the ranks, sent as float8_e4m3fn codes with a float32 scale for each group of elements. Collective; the same bits on every rank.

    Args:
        inp: bfloat16, contiguous, a multiple of 8 elements
        group: of torch.distributed, or a communicator; its first call is collective too
        scale_group: elements, one behind another, that share a scale
        block_size: of a GPU kernel; a multiple of scale_group; changes no result
        num_warps, max_num_blocks, p2p_phase3: of a GPU kernel; they change nothing
        output: memory for the result

    Returns:
        as inp

    Raises:
        ValueError: arguments that do not fit together
        RuntimeError: a rank that calls something else, died or does not arrive in time
    """
    workspace = _workspace(group, "cpu")
    with checking(workspace, "quantized_all_reduce"):
        if block_size is not None and (scale_group < 1 or block_size % scale_group):
            raise ValueError(f"quantized_all_reduce: block_size ({block_size}) must be divisible by scale_group ({scale_group})")
    result = _quantized(inp, workspace, scale_group, output)
    return result if output is None else output


quantized_all_reduce.fi_trace = _quantized.fi_trace


def all_gather_matmul(inp, w, group, *, backend="auto", verbose=False):
    """The rows of all ranks' inp, one rank behind another, times w. Collective.

    Args:
        inp: [m, k] float16, bfloat16 or float32, the same shape on every rank
        w: [k, n] of the same dtype
        group: of torch.distributed, or a communicator; its first call is collective too
        backend: "auto"
        verbose: not used

    Returns:
        [ranks * m, n]

    Raises:
        ValueError: arguments that do not fit together
        RuntimeError: a rank that calls something else, died or does not arrive in time
    """
    import torch

    workspace = _workspace(group, str(inp.device))
    with checking(workspace, "all_gather_matmul"):
        if inp.dim() != 2 or w.dim() != 2 or w.shape[0] != inp.shape[1] or w.dtype != inp.dtype:
            raise ValueError(f"all_gather_matmul: inp is {inp.dtype} of shape {tuple(inp.shape)} and w {w.dtype} of shape {tuple(w.shape)}, but must be of one "
                             "dtype, [m, k] and [k, n]")
        if backend != "auto":
            raise ValueError(f"all_gather_matmul: backend is {backend!r}, but must be 'auto'")
        flat = inp.contiguous().view(1, -1)
    rows = _gather(flat, workspace, [flat.shape[1]] * workspace.world_size).view(-1, inp.shape[1])
    return torch.matmul(rows, w)


def prepare_all_gather_matmul(inp, w, group, *, backend="auto", max_rows=None, verbose=False):
    """A function f(inp) that is all_gather_matmul(inp, w, group) for inputs as `inp` of at most `max_rows` rows. Collective; so are its calls.

    Args:
        inp: an example [m, k]
        w: [k, n] of the same dtype
        group: of torch.distributed, or a communicator
        backend: "auto" or "cake"; changes no result
        max_rows: None: inp.shape[0]
        verbose: not used

    Raises:
        ValueError: arguments that do not fit together
    """
    workspace = _workspace(group, str(inp.device))
    most = inp.shape[0] if max_rows is None else max_rows
    with checking(workspace, "prepare_all_gather_matmul"):
        if backend not in ("auto", "cake"):
            raise ValueError(f"prepare_all_gather_matmul: backend is {backend!r}, but must be 'auto' or 'cake'")
        if most < inp.shape[0]:
            raise ValueError(f"prepare_all_gather_matmul: max_rows is {most}, but inp has {inp.shape[0]} rows")

    def prepared(x):
        with checking(workspace, "prepare_all_gather_matmul"):
            if x.shape[1:] != inp.shape[1:] or x.dtype != inp.dtype or x.device != inp.device or x.shape[0] > most:
                raise ValueError(f"prepare_all_gather_matmul: inp is {x.dtype} of shape {tuple(x.shape)} on {x.device}, but must be {inp.dtype} of at most {most} rows of "
                                 f"{inp.shape[1]} on {inp.device}")
        return all_gather_matmul(x, w, group)

    return prepared


class NVSHMEMAllReduce:
    """All-reduces of one group: through shared memory of one machine, of GPUs as allreduce_fusion. Collective.

    Args:
        local_rank: not used
        world_size: ranks of the group
        max_buffer_elements: elements of the largest tensor
        dtype: float16, bfloat16 or float32
        device: "cpu", or this rank's GPU
        group: of torch.distributed, or a communicator; None: torch.distributed, MPI, or one rank
        should_init: not used: there is nothing to initialise

    Raises:
        ValueError: arguments that are not possible, on any rank
    """

    def __init__(self, local_rank, world_size, max_buffer_elements, dtype, device, group=None, should_init=True):
        import torch

        comm = of_group(group)
        of_rank = lambda: torch.device(device)
        _agree(comm, lambda: None if of_rank().type in ("cpu", "cuda") else f"device is {device}, but must be 'cpu' or a GPU", "NVSHMEMAllReduce")
        device = of_rank()
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", torch.cuda.current_device())
        self._most, self._dtype = max_buffer_elements, dtype
        self._workspace = AllReduceFusionWorkspace(world_size, comm.Get_rank(), 1, max_buffer_elements, dtype, comm, device=device)

    def all_reduce(self, inp, out):
        """out = the sum of all ranks' inp, in the dtype and the order of the ranks.

        Raises:
            ValueError: another dtype, more elements, a tensor that is not contiguous
            RuntimeError: a rank that calls something else, died or does not arrive in time
        """
        with checking(self._workspace, "NVSHMEMAllReduce.all_reduce"):
            for name, t in (("inp", inp), ("out", out)):
                if t.dtype != self._dtype or t.numel() > self._most or t.numel() != inp.numel() or not t.is_contiguous():
                    raise ValueError(f"NVSHMEMAllReduce.all_reduce: {name} is {t.dtype} of shape {tuple(t.shape)}, but must be contiguous {self._dtype} of at "
                                     f"most {self._most} elements, as many as inp")
        _fusion(inp.view(1, -1), self._workspace, 0, output=out.view(1, -1))

    def shutdown(self):
        """Gives the memory back; calling it again does nothing."""
        self._workspace.destroy()
