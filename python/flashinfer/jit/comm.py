# SPDX-License-Identifier: Apache-2.0
"""Communication."""
from .. import _modules
from .kernels import family

__getattr__ = _modules.refusing(__name__, "gen_pcie_ipc_comm_debug_module")


def gen_comm_alltoall_module():
    """Kernels of `flashinfer.comm`. NotImplementedError where the library has none."""
    return family("comm", "@comm*")


def gen_trtllm_comm_module():
    """Kernels of `flashinfer.comm`. NotImplementedError where the library has none."""
    return family("trtllm_comm", "@comm*")


def gen_trtllm_mnnvl_comm_module():
    """Kernels of `flashinfer.comm`. NotImplementedError where the library has none."""
    return family("trtllm_mnnvl_comm", "@comm*")


def gen_vllm_comm_module():
    """Kernels of `flashinfer.comm`. NotImplementedError where the library has none."""
    return family("vllm_comm", "@comm*")


def gen_moe_alltoall_module(target="legacy"):
    """Kernels of `flashinfer.comm`. NotImplementedError where the library has none."""
    return family("mnnvl_moe_alltoall", "@comm*")


def gen_dcp_alltoall_module():
    """Kernels of `flashinfer.comm`. NotImplementedError where the library has none."""
    return family("dcp_alltoall_generated", "@comm*")


def gen_dcp_alltoall_helix_module():
    """Kernels of `flashinfer.comm`. NotImplementedError where the library has none."""
    return family("dcp_alltoall", "@comm*")


def gen_dcp_lse_reduce_module():
    """Kernels of `flashinfer.comm`. NotImplementedError where the library has none."""
    return family("dcp_lse_reduce", "@comm*")


def gen_mixed_comm_module():
    """Kernels of `flashinfer.comm`. NotImplementedError where the library has none."""
    return family("mixed_comm", "@comm*")


def gen_pcie_ipc_comm_module():
    """Kernels of `flashinfer.comm`. NotImplementedError where the library has none."""
    return family("pcie_ipc_comm", "@comm*")


def gen_pcie_ipc_ag_rs_module():
    """Kernels of `flashinfer.comm`. NotImplementedError where the library has none."""
    return family("pcie_ipc_ag_rs", "@comm*")


def gen_ulysses_a2a_module():
    """Kernels of `flashinfer.comm`. NotImplementedError where the library has none."""
    return family("ulysses_a2a", "@comm*")
