# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's collectives of GPUs without NVLink (`flashinfer.comm.PcieIpc*Workspace`), by the ops of allreduce_fusion's workspace. docs/comm.md."""
import math

from . import _make
from ._comm import AllReduceFusionWorkspace, _agree, _current_device, checking
from ._comm_backends import of_group
from .api_logging import flashinfer_api
from .trace import Const, Tensor, TraceTemplate, Var

_fusion = _make.package.exports["allreduce_fusion"]
_gather = _make.package.exports["all_gather"]
_scatter = _make.package.exports["reduce_scatter"]
_PACK = 16  # bytes
_BLOCKS, _BLOCKS_OF_ROWS = 128, 64


def _trace(collective, rows, result, reference):
    return TraceTemplate(
        op_type="comm", name_prefix=f"pcie_ipc_{collective}", tags=["stage:comm"], reference=reference,
        description=f"The {collective.replace('_', '-')} of one rank. The reference is that of a group of one rank.",
        axes={rows: Var(), **({result: Var()} if result != rows else {}), "hidden_dim": Const(abbrev="h")},
        inputs={"inp": Tensor([rows, "hidden_dim"])},
        outputs={"output": Tensor([result, "hidden_dim"], dtype_from="inp", param="out")})


def _of_one_rank(inp, **_):
    return inp.clone()


class _Workspace:
    """What the three workspaces share: memory for tensors of `max_numel` elements of one dtype, and what fits it."""

    _dtypes = "float16 bfloat16"

    def __init__(self, group, max_numel, dtype, max_blocks):
        import torch

        self.group, self.max_numel, self.max_blocks = group, max_numel, max_blocks
        self.dtype = torch.bfloat16 if dtype is None else dtype
        what, comm = type(self).__name__, of_group(group)
        self.rank, self.world_size = comm.Get_rank(), comm.Get_size()
        _agree(comm, self._problem, what)
        own = max_numel, str(self.dtype), max_blocks
        for rank, other in enumerate(comm.allgather(own)):
            if other != own:
                raise ValueError(f"{what}: rank {rank} has (max_numel, dtype, max_blocks) {other}, but rank {self.rank} has {own}")
        self.device, self.element_size = torch.device(_current_device()), self.dtype.itemsize
        self._workspace = AllReduceFusionWorkspace(self.world_size, self.rank, 1, max_numel, self.dtype, comm, device=str(self.device))

    def _problem(self):
        if str(self.dtype).removeprefix("torch.") not in self._dtypes.split():
            return f"dtype is {self.dtype}, but must be one of {self._dtypes}"
        pack = _PACK // self.dtype.itemsize
        if self.max_numel < 1 or self.max_numel % pack:
            return f"max_numel is {self.max_numel}, but must be a positive multiple of {pack}"
        if self.max_blocks < 1:
            return f"max_blocks is {self.max_blocks}, but must be at least 1"
        return None

    def _why_not(self, inp, elements):
        """Why this workspace does not take `inp`, of which `elements` count; None: it does."""
        if str(inp.dtype).removeprefix("torch.") not in self._dtypes.split() or inp.dtype.itemsize != self.dtype.itemsize:
            return f"inp is {inp.dtype}, but the workspace was made for {self.dtype}"
        if inp.device.type != self.device.type or inp.device.index not in (self.device.index, None):
            return f"inp is on {inp.device}, but the workspace was made for {self.device}"
        if not inp.is_contiguous():
            return f"inp has strides {inp.stride()}, but must be contiguous"
        if elements * inp.element_size() % _PACK or not 0 < elements <= self.max_numel:
            return f"inp of shape {tuple(inp.shape)} has {elements} elements for a rank, but must have a multiple of {_PACK} bytes and at most {self.max_numel} elements"
        return None

    def _open(self, name, why_not):
        if self._workspace is None:
            raise RuntimeError(f"{type(self).__name__}.{name}: the workspace is destroyed")
        with checking(self._workspace, f"{type(self).__name__}.{name}"):
            problem = why_not()
            if problem is not None:
                raise ValueError(f"{type(self).__name__}.{name}: {problem}")

    def tune(self, hiddens, *, cache=None, warmup=10, repeat=50):
        """{}: there is one way to compute, and nothing to choose."""
        return {}

    def launch_config(self, inp):
        """None, which the collective takes as `config`: there is one way to compute."""
        return None

    tuned_launch_config = launch_config

    def rebind_stream(self):
        """Nothing: calls run on the stream that is current."""

    def destroy(self):
        """Gives the memory back; calling it again does nothing."""
        if self._workspace is not None:
            self._workspace.destroy()
            self._workspace = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.destroy()


class PcieIpcAllReduceWorkspace(_Workspace):
    """All-reduces of a group, with the sums of allreduce_fusion. Making one is collective; a context manager.

    Args:
        group: of torch.distributed, or a communicator; any number of ranks
        max_numel: elements of the largest tensor, a multiple of 16 bytes; the same on all ranks
        dtype: float16 or bfloat16; None: bfloat16. Tensors may have the other one
        max_blocks: of GPU kernels; changes no result
        profile, tune_batches, tune_cache: of FlashInfer's choice of a kernel; not used

    Raises:
        ValueError: arguments that are not possible, or differ between ranks
    """

    def __init__(self, group, max_numel, dtype=None, max_blocks=_BLOCKS, profile=None, tune_batches=None, tune_cache=None):
        super().__init__(group, max_numel, dtype, max_blocks)

    def supports(self, inp):
        """Whether all_reduce takes a tensor: contiguous, of a 16-bit dtype, a multiple of 16 bytes, not too large."""
        return self._why_not(inp, inp.numel()) is None

    def prepare(self, shapes, *, dtype=None):
        """{(tokens, hidden): None} of `shapes`: their launch_config, once it is known that all_reduce takes such tensors.

        Args:
            shapes: pairs (tokens, hidden)
            dtype: of the tensors; None: bfloat16

        Raises:
            ValueError: a shape that `supports` refuses
            RuntimeError: the workspace is destroyed
        """
        import torch

        for shape in shapes:
            self._open("prepare", lambda: self._why_not(torch.empty(shape, dtype=dtype or torch.bfloat16, device=self.device), math.prod(shape)))
        return {tuple(shape): None for shape in shapes}

    def tune(self, hiddens, *, dtype=None, cache=None, tune_group=None, warmup=10, repeat=50):
        """{}: there is one way to compute, and nothing to choose."""
        return {}

    @flashinfer_api(trace=_trace("all_reduce", "num_tokens", "num_tokens", _of_one_rank))
    def all_reduce(self, inp, *, out=None, config=None, enable_pdl=False):
        """The sum of all ranks' inp, rounded after each rank as by allreduce_fusion. Collective.

        Args:
            inp: as `supports` says
            out: memory for the result
            config, enable_pdl: of a GPU kernel; they change no result

        Raises:
            ValueError: a tensor that `supports` refuses
            RuntimeError: a rank that calls something else, died or does not arrive in time
        """
        import torch

        def why_not():
            problem = self._why_not(inp, inp.numel())
            if problem is None and out is not None and (out.dtype != inp.dtype or out.shape != inp.shape or not out.is_contiguous()):
                return f"out is {out.dtype} of shape {tuple(out.shape)}, but must be contiguous as inp, {inp.dtype} of shape {tuple(inp.shape)}"
            return problem

        self._open("all_reduce", why_not)
        out = torch.empty_like(inp) if out is None else out
        row = math.gcd(inp.numel(), 4096)
        _fusion(inp.view(-1, row), self._workspace, 0, output=out.view(-1, row))
        return out


class _Rows(_Workspace):
    """A collective between a tensor of a rank's rows and one of all ranks' rows."""

    _dtypes = "float16 bfloat16 float32"

    def __init__(self, group, max_numel, dtype=None, max_blocks=_BLOCKS_OF_ROWS, tune_batches=None, tune_cache=None):
        super().__init__(group, max_numel, dtype, max_blocks)

    def _why_not(self, inp, elements):
        if inp.dim() != 2 or inp.dtype != self.dtype:
            return f"inp is {inp.dtype} of shape {tuple(inp.shape)}, but must be {self.dtype} of two dimensions"
        return super()._why_not(inp, elements)

    def _result(self, name, inp, more, fewer, out):
        """Memory for the result, which has `more` times the rows of inp and then one of `fewer` parts: `out`, which is checked, or new."""
        import torch

        shape_of = lambda: (inp.shape[0] * more // fewer, inp.shape[-1])

        def why_not():
            problem = self._why_not(inp, inp.numel() // fewer)
            if problem is None and out is not None and (out.dtype != inp.dtype or tuple(out.shape) != shape_of() or not out.is_contiguous()):
                return f"out is {out.dtype} of shape {tuple(out.shape)}, but must be contiguous {inp.dtype} of shape {shape_of()}"
            return problem

        self._open(name, why_not)
        return torch.empty(shape_of(), dtype=inp.dtype, device=inp.device) if out is None else out


class PcieIpcAllGatherWorkspace(_Rows):
    """All-gathers of a group's rows. Making one is collective; a context manager.

    Args:
        group: of torch.distributed, or a communicator; any number of ranks
        max_numel: elements of a rank's largest input, a multiple of 16 bytes; the same on all ranks
        dtype: float16, bfloat16 or float32; None: bfloat16
        max_blocks: of GPU kernels; changes no result
        tune_batches, tune_cache: of FlashInfer's choice of a kernel; not used

    Raises:
        ValueError: arguments that are not possible, or differ between ranks
    """

    def supports(self, inp):
        """Whether all_gather takes a tensor."""
        return self._why_not(inp, inp.numel()) is None

    @flashinfer_api(trace=_trace("all_gather", "local_rows", "total_rows", _of_one_rank))
    def all_gather(self, inp, *, out=None, config=None):
        """[ranks * rows, hidden]: the rows of all ranks' inp, one rank behind another. Bytes are copied. Collective.

        Args:
            inp: [rows, hidden], contiguous, the same shape on every rank, a multiple of 16 bytes
            out: memory for the result
            config: of a GPU kernel; changes no result

        Raises:
            ValueError: a tensor that `supports` refuses
            RuntimeError: a rank that calls something else, died or does not arrive in time
        """
        out = self._result("all_gather", inp, self.world_size, 1, out)
        _gather(inp.view(1, -1), self._workspace, [inp.numel()] * self.world_size, out.view(1, -1))
        return out


class PcieIpcReduceScatterWorkspace(_Rows):
    """Reduce-scatters of a group's rows, with the sums of allreduce_fusion. Making one is collective; a context manager.

    Args:
        group: of torch.distributed, or a communicator; any number of ranks
        max_numel: elements of a rank's largest result, a multiple of 16 bytes; the same on all ranks
        dtype: float16, bfloat16 or float32; None: bfloat16
        max_blocks: of GPU kernels; changes no result
        tune_batches, tune_cache: of FlashInfer's choice of a kernel; not used

    Raises:
        ValueError: arguments that are not possible, or differ between ranks
    """

    def _why_not(self, inp, elements):
        if inp.dim() == 2 and inp.shape[0] % self.world_size:
            return f"inp.shape[0] is {inp.shape[0]}, but must be a multiple of the {self.world_size} ranks"
        return super()._why_not(inp, elements)

    def supports(self, inp):
        """Whether reduce_scatter takes a tensor."""
        return self._why_not(inp, inp.numel() // self.world_size) is None

    @flashinfer_api(trace=_trace("reduce_scatter", "total_rows", "local_rows", _of_one_rank))
    def reduce_scatter(self, inp, *, out=None, config=None):
        """[rows / ranks, hidden]: this rank's block of the sum of all ranks' inp. Collective.

        Args:
            inp: [rows, hidden], contiguous, the same shape on every rank
            out: memory for the result
            config: of a GPU kernel; changes no result

        Raises:
            ValueError: a tensor that `supports` refuses
            RuntimeError: a rank that calls something else, died or does not arrive in time
        """
        out = self._result("reduce_scatter", inp, 1, self.world_size, out)
        _scatter(inp, self._workspace, out=out)
        return out
