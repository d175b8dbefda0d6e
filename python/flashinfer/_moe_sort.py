# SPDX-License-Identifier: Apache-2.0
"""The steps of a mixture of experts one by one (`flashinfer.fused_moe.cute_dsl.moe_utils`): rows sorted by expert into tiles, gathered, activated and
added up again. torch on any device, without a wait for a GPU. `enable_pdl` is of GPU kernels; nothing here."""
import enum


class MoeActivationType(enum.IntEnum):
    Gelu = 0
    Relu = 1
    Silu = 2
    Swiglu = 3
    Geglu = 4
    Identity = 5


def get_max_num_tiles(num_tokens, top_k, num_local_experts, tile_size):
    """The most tiles that moe_sort makes for any routing: one for each expert but one, and the other rows."""
    rows = num_tokens * top_k
    return rows if rows <= num_local_experts else (rows + (tile_size - 1) * num_local_experts) // tile_size


def get_max_num_permuted_tokens(num_tokens, top_k, num_local_experts, tile_size):
    """Rows of that many tiles."""
    return get_max_num_tiles(num_tokens, top_k, num_local_experts, tile_size) * tile_size


def allocate_moe_sort_buffers(num_tokens, num_experts, top_k, num_local_experts=None, tile_tokens_dim=128, device="cuda"):
    """Memory for the results of moe_sort, as its keyword arguments."""
    import torch

    tiles = get_max_num_tiles(num_tokens, top_k, num_experts if num_local_experts is None else num_local_experts, tile_tokens_dim)
    shapes = {"tile_idx_to_expert_idx": (tiles,), "tile_idx_to_mn_limit": (tiles,), "expanded_idx_to_permuted_idx": (num_tokens, top_k),
              "permuted_idx_to_expanded_idx": (tiles * tile_tokens_dim,), "total_num_padded_tokens": (1,), "num_non_exiting_tiles": (1,)}
    return {f"out_{name}": torch.empty(shape, dtype=torch.int32, device=device) for name, shape in shapes.items()}


def moe_sort(token_selected_experts, token_final_scales, num_experts, top_k, local_expert_offset=0, num_local_experts=None, tile_tokens_dim=128,
             enable_pdl=False, out_tile_idx_to_expert_idx=None, out_tile_idx_to_mn_limit=None, out_expanded_idx_to_permuted_idx=None,
             out_permuted_idx_to_expanded_idx=None, out_total_num_padded_tokens=None, out_num_non_exiting_tiles=None):
    """Choices [tokens, top_k] sorted by local expert, each expert's padded to whole tiles; within an expert by token, then by choice.

    Returns:
        int32, in the given memory where there is some: tile_idx_to_expert_idx [tiles] (-1: the tile has no rows), tile_idx_to_mn_limit [tiles] (the end of
        its rows without padding; 0: none), expanded_idx_to_permuted_idx [tokens, top_k] (-1: the expert is not here), permuted_idx_to_expanded_idx [rows]
        (-1: padding), total_num_padded_tokens [1], num_non_exiting_tiles [1]

    Raises:
        ValueError: other shapes or dtypes; experts here that are not among num_experts
    """
    import torch

    ids, tile = token_selected_experts, tile_tokens_dim
    here = num_experts if num_local_experts is None else num_local_experts
    if ids.dtype != torch.int32 or ids.dim() != 2 or ids.shape[1] != top_k:
        raise ValueError(f"moe_sort: token_selected_experts is {ids.dtype} of shape {tuple(ids.shape)}, but must be torch.int32 [tokens, {top_k}]")
    if token_final_scales.shape != ids.shape:
        raise ValueError(f"moe_sort: token_final_scales has shape {tuple(token_final_scales.shape)}, but token_selected_experts {tuple(ids.shape)}")
    if local_expert_offset < 0 or here < 1 or local_expert_offset + here > num_experts:
        raise ValueError(f"moe_sort: local_expert_offset is {local_expert_offset} and num_local_experts {here}, but there are {num_experts} experts")
    if tile < 1 or tile & (tile - 1):
        raise ValueError(f"moe_sort: tile_tokens_dim is {tile}, but must be a power of two")
    local = ids.flatten().long() - local_expert_offset
    local = torch.where((local >= 0) & (local < here), local, here)  # `here`: elsewhere
    counts = torch.zeros(here + 1, dtype=torch.int64, device=ids.device).scatter_add_(0, local, torch.ones_like(local))
    tiles_of = (counts[:here] + tile - 1) // tile
    tile_end = tiles_of.cumsum(0)
    order = torch.sort(local, stable=True).indices
    place = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=ids.device))  # among all choices
    first = torch.cat([(tile_end - tiles_of) * tile, tile_end.new_zeros(1)])
    row = torch.where(local < here, first[local] + place - (counts.cumsum(0) - counts)[local], -1)
    most = get_max_num_tiles(ids.shape[0], top_k, here, tile)
    number = torch.arange(most, device=ids.device)
    expert = torch.searchsorted(tile_end, number, right=True)
    used = expert < here
    expert = torch.where(used, expert, 0)
    limit = torch.minimum((number + 1) * tile, first[expert] + counts[expert])
    back = torch.full((most * tile + 1,), -1, dtype=torch.int64, device=ids.device)
    back[torch.where(row >= 0, row, most * tile)] = torch.arange(len(row), device=ids.device)
    found = (torch.where(used, expert, -1), torch.where(used, limit, 0), row.view(ids.shape), back[:-1], tile_end[-1:] * tile, tile_end[-1:])
    given = (out_tile_idx_to_expert_idx, out_tile_idx_to_mn_limit, out_expanded_idx_to_permuted_idx, out_permuted_idx_to_expanded_idx,
             out_total_num_padded_tokens, out_num_non_exiting_tiles)
    return tuple(value.to(torch.int32) if out is None else out.copy_(value) for value, out in zip(found, given))


def _rows(tile_idx_to_mn_limit, num_non_exiting_tiles, max_num_permuted_tokens, tile_size):
    """Whether each permuted row is one of a choice."""
    import torch

    row = torch.arange(max_num_permuted_tokens, device=tile_idx_to_mn_limit.device)
    tile = row // tile_size
    return (tile < num_non_exiting_tiles) & (row < tile_idx_to_mn_limit[tile.clamp(max=len(tile_idx_to_mn_limit) - 1)])


def _put(to, valid, rows):
    """Those of `rows` that are valid; the others keep what they have."""
    import torch

    at = to[:len(rows)]
    bits = {1: torch.uint8, 2: torch.int16}.get(to.element_size(), to.dtype)  # torch has few functions for 8-bit numbers
    at.view(bits).copy_(torch.where(valid.view(-1, *[1] * (rows.dim() - 1)), rows.view(bits), at.view(bits)))


def moe_permute(input, permuted_output, tile_idx_to_mn_limit, permuted_idx_to_expanded_idx, num_non_exiting_tiles, max_num_permuted_tokens, top_k,
                tile_size, enable_pdl=False, input_sf=None, permuted_sf=None):
    """Copies each row's token to `permuted_output` [rows, columns]; rows of padding keep what they have. `input_sf` [tokens, scales] (linear) goes to
    `permuted_sf` in the 128x4 layout, whose padding becomes 0."""
    import torch

    valid = _rows(tile_idx_to_mn_limit, num_non_exiting_tiles, max_num_permuted_tokens, tile_size)
    token = permuted_idx_to_expanded_idx[:max_num_permuted_tokens].long().clamp(min=0) // top_k
    _put(permuted_output, valid, input[token])
    if (input_sf is None) != (permuted_sf is None):
        raise ValueError("moe_permute: input_sf and permuted_sf belong together")
    if input_sf is None:
        return
    from . import block_scale_interleave

    scales = torch.where(valid[:, None], input_sf.view(torch.uint8)[token], 0)
    laid = block_scale_interleave(torch.nn.functional.pad(scales, (0, -scales.shape[1] % 4, 0, -len(scales) % 128)).contiguous()).flatten()
    permuted_sf.view(torch.uint8).flatten()[:len(laid)].copy_(laid[:permuted_sf.numel()])


def moe_unpermute(permuted_input, output, expanded_idx_to_permuted_idx, topk_scales, num_tokens, top_k, enable_pdl=False, input_is_expanded=False):
    """output[t] = sum of topk_scales[t, k] * the row of choice k, in float32 in the order of the choices; choices without a row (-1) add nothing.
    `input_is_expanded`: row t * top_k + k is that of choice k."""
    import torch

    place = expanded_idx_to_permuted_idx[:num_tokens].long()
    rows = torch.arange(num_tokens * top_k, device=place.device).view(num_tokens, top_k) if input_is_expanded else place.clamp(min=0)
    total = torch.zeros(num_tokens, output.shape[1], device=output.device)
    for k in range(top_k):
        here = permuted_input[rows[:, k]].float() * topk_scales[:num_tokens, k, None].float()
        total += torch.where(place[:, k, None] >= 0, here, 0)
    output[:num_tokens].copy_(total)


def moe_output_memset(output, tile_idx_to_mn_limit, expanded_idx_to_permuted_idx, permuted_idx_to_expanded_idx, num_non_exiting_tiles,
                      max_num_permuted_tokens, top_k, tile_size, enable_pdl=False):
    """Zeros the rows of `output` [tokens, hidden] whose token has a row here."""
    output.masked_fill_((expanded_idx_to_permuted_idx >= 0).any(1)[:, None], 0)


def moe_output_memset_inplace(output):
    """output.zero_()"""
    output.zero_()


def moe_activation(input, output, tile_idx_to_mn_limit, num_non_exiting_tiles, activation_type, max_num_permuted_tokens, tile_size, enable_pdl=False):
    """The activation of `input`'s rows, in float32; rows of padding keep what they have. With a gate, the linear half comes first.

    Raises:
        ValueError: no MoeActivationType
    """
    import torch
    from torch.nn import functional

    kind = MoeActivationType(activation_type)
    x = input[:max_num_permuted_tokens].float()
    if kind in (MoeActivationType.Swiglu, MoeActivationType.Geglu):
        x, gate = x.chunk(2, 1)
        y = x * (functional.silu(gate) if kind == MoeActivationType.Swiglu else functional.gelu(gate))
    else:
        y = {MoeActivationType.Gelu: functional.gelu, MoeActivationType.Relu: torch.relu, MoeActivationType.Silu: functional.silu,
             MoeActivationType.Identity: lambda t: t}[kind](x)
    _put(output, _rows(tile_idx_to_mn_limit, num_non_exiting_tiles, len(y), tile_size), y.to(output.dtype))


def _activation(kind):
    def function(input, output, tile_idx_to_mn_limit, num_non_exiting_tiles, max_num_permuted_tokens, tile_size, enable_pdl=False):
        moe_activation(input, output, tile_idx_to_mn_limit, num_non_exiting_tiles, kind, max_num_permuted_tokens, tile_size, enable_pdl)

    function.__name__ = function.__qualname__ = f"moe_{kind.name.lower()}"
    function.__doc__ = f"`moe_activation` of MoeActivationType.{kind.name}"
    return function


moe_gelu, moe_relu, moe_silu, moe_swiglu, moe_geglu = map(_activation, (MoeActivationType.Gelu, MoeActivationType.Relu, MoeActivationType.Silu,
                                                                         MoeActivationType.Swiglu, MoeActivationType.Geglu))
