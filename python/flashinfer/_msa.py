# SPDX-License-Identifier: Apache-2.0
"""What `flashinfer.msa_ops` has beside its ops.

The planar pages of NVFP4 that cache writers make have scale factors in an order of their own: K's token by token, [pages, heads, 128, 8],
and V's with 4 x 4 tokens and factors exchanged: the factor s of token t lies at [t // 4 * 4 + s // 2, s % 2 * 4 + t % 4].
"""

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


def _tiled(linear):
    """[..., 128, 8] scale factors, token by token, in the tiles of 128x4 of `nvfp4_quantize`, in bytes [..., 1024]."""
    return linear.unflatten(-1, (2, 4)).unflatten(-3, (4, 32)).permute(0, 1, 4, 3, 2, 5).flatten(2)


def _unswizzled(v_scale):
    """V's scale factors token by token."""
    return v_scale.unflatten(-1, (2, 4)).unflatten(-3, (32, 4)).permute(0, 1, 2, 5, 3, 4).reshape(v_scale.shape)


class MSANvfp4DecodeRunner:
    """A decode step over fixed tensors, whose contents may change between calls. Made by `prepare_msa_nvfp4_sparse_decode`.

    A call computes `out` (and `lse`, when it was given) and returns `out`.
    """

    def __init__(self, arguments, scales, out, lse):
        import torch

        self.out, self.lse = out, lse
        self._arguments, self._scales = arguments, scales
        pages, heads = scales[0].shape[:2]
        self._tiles = [torch.zeros(pages, heads, 1024, dtype=torch.uint8, device=s.device) for s in scales]

    def _used_pages(self):
        import torch

        table, lengths = self._arguments["page_table"], self._arguments["seqused_k"]
        blocks = torch.arange(table.shape[1], device=table.device)
        return table[blocks * 128 < lengths[:, None]].unique().long()

    def __call__(self):
        from .msa_ops import msa_sparse_decode_attention

        used = self._used_pages()
        if used.numel() and not 0 <= used.min() <= used.max() < len(self._tiles[0]):
            raise ValueError(f"prepare_msa_nvfp4_sparse_decode: page_table names page {int(used.max() if used.min() >= 0 else used.min())}, "
                             f"but the pool has {len(self._tiles[0])} pages")
        k, v = (s[used] for s in self._scales)
        self._tiles[0][used], self._tiles[1][used] = _tiled(k), _tiled(_unswizzled(v))
        wants_lse = self.lse is not None
        result = msa_sparse_decode_attention(**self._arguments, k_scale=self._tiles[0], v_scale=self._tiles[1], out=self.out,
                                             return_softmax_lse=wants_lse)
        if wants_lse:
            self.lse.copy_(result[1])
        return self.out


def prepare_msa_nvfp4_sparse_decode(q, k, v, q2k_indices, *, k_scale, v_scale, page_table, seqused_k, k_global_scale, v_global_scale,
                                    seqlen_q=1, softmax_scale=None, out=None, lse=None, backend="cake"):
    """A decode step of `msa_sparse_decode_attention` over planar pages of NVFP4, with their scale factors as cache writers lay them out.

    Args:
        q: bfloat16 [batch * seqlen_q, heads, 128]
        k, v: uint8 [pages, KV heads, 128, 64], two values a byte, any strides but the last
        q2k_indices: int32 [KV heads, batch * seqlen_q, topk], ascending, -1 behind the last
        k_scale, v_scale: float8_e4m3fn or uint8 [pages, KV heads, 128, 8]: K's token by token, V's swizzled (the module's text)
        page_table, seqused_k: int32 [batch, pages of a request] and [batch]
        k_global_scale, v_global_scale: positive factors of all K and of all V
        seqlen_q: query tokens of a request, 1 to 32; token i stands at position seqused_k - seqlen_q + i, attention is causal
        softmax_scale: 1 / sqrt(128) when absent
        out: bfloat16, as q; made when absent
        lse: float32 [batch * seqlen_q, heads] for the LSE in base e, or None
        backend: "cake"

    Returns:
        a MSANvfp4DecodeRunner: calling it computes and returns out

    Raises:
        ValueError: shapes, dtypes or values other than these; at a call, what `msa_sparse_decode_attention` rejects
    """
    import torch

    who = "prepare_msa_nvfp4_sparse_decode"
    if backend != "cake":
        raise ValueError(f"{who}: backend is {backend!r}, but must be 'cake'")
    if q.dtype != torch.bfloat16 or q.dim() != 3 or q.shape[2] != 128:
        raise ValueError(f"{who}: q is {q.dtype} of shape {tuple(q.shape)}, but must be torch.bfloat16 [batch * seqlen_q, heads, 128]")
    if not 1 <= seqlen_q <= 32:
        raise ValueError(f"{who}: seqlen_q is {seqlen_q}, but must be in [1, 32]")
    if not (k_global_scale > 0 and v_global_scale > 0):
        raise ValueError(f"{who}: k_global_scale is {k_global_scale} and v_global_scale {v_global_scale}, but must be positive")
    for name, x, width, kinds in (("k", k, 64, (torch.uint8,)), ("v", v, 64, (torch.uint8,)), ("k_scale", k_scale, 8, (torch.uint8, torch.float8_e4m3fn)),
                                  ("v_scale", v_scale, 8, (torch.uint8, torch.float8_e4m3fn))):
        if x.dtype not in kinds or x.dim() != 4 or tuple(x.shape) != (*k.shape[:2], 128, width):
            raise ValueError(f"{who}: {name} is {x.dtype} of shape {tuple(x.shape)}, but must be {kinds[0]} [pages, KV heads, 128, {width}], as k's")
    for name, x, kind, shape in (("out", out, torch.bfloat16, q.shape), ("lse", lse, torch.float32, q.shape[:2])):
        if x is not None and (x.dtype != kind or x.shape != shape or not x.is_contiguous()):
            raise ValueError(f"{who}: {name} is {x.dtype} of shape {tuple(x.shape)}, but must be {kind} {list(shape)}, contiguous")
    arguments = dict(q=q, k=k, v=v, q2k_indices=q2k_indices, page_table=page_table, seqused_k=seqused_k, seqlen_q=seqlen_q, softmax_scale=softmax_scale,
                     k_global_scale=float(k_global_scale), v_global_scale=float(v_global_scale))
    scales = [s.view(torch.uint8) for s in (k_scale, v_scale)]
    return MSANvfp4DecodeRunner(arguments, scales, torch.empty_like(q) if out is None else out, lse)
