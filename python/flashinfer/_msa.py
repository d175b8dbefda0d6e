# SPDX-License-Identifier: Apache-2.0
"""What `flashinfer.msa_ops` has beside its ops."""

SUPPORTS_PACKED_KV = True


def supports_packed_kv(device):
    """Whether K and V may be views of one paged cache: on the CPU, where rows may have any strides."""
    kind = getattr(device, "type", None) or str(device).partition(":")[0]
    return kind == "cpu"


class MSASparseAttentionWorkspace:
    """Memory of GPU kernels under CUDA graphs, which this library's ops have no use for.

    Raises:
        ValueError: the device is no CUDA device
        NotImplementedError: else, because there is no GPU kernel
    """

    def __init__(self, device):
        if (getattr(device, "type", None) or str(device).partition(":")[0]) != "cuda":
            raise ValueError(f"MSASparseAttentionWorkspace requires a CUDA device, but device is {device}")
        raise NotImplementedError("MSASparseAttentionWorkspace belongs to GPU kernels, which are not implemented: on the CPU leave workspace out")
