// SPDX-License-Identifier: Apache-2.0
// Python of trace definitions.
#pragma once

namespace flashinfer::ops::gemm {

inline constexpr char kMatmulReference[] = R"py(import torch


def reference(A, B):
    return (A.double() @ B.double()).to(A.dtype)
)py";

inline constexpr char kFp8Reference[] = R"py(import torch


def reference(A, B):
    """B is a weight [N, K], or one [N, K] in blocks of columns, whose row 4 * c + r of 32 is stored at 8 * r + c; alpha is 1."""
    if B.dim() == 2:
        weight = B.double()
    else:
        weight = B.double().permute(1, 0, 2).flatten(1).unflatten(0, (-1, 4, 8)).transpose(1, 2).flatten(0, 2)
    return (A.double() @ weight.t()).to(torch.bfloat16)
)py";

inline constexpr char kFp8Init[] = R"py(import torch


def init(*, M, N=1536, K=7168, block_size=128, device="cuda" if torch.cuda.is_available() else "cpu", seed=0):
    """A weight [N, K] in blocks of columns."""
    generator = torch.Generator().manual_seed(seed)
    make = lambda rows, columns: torch.randn(rows, columns, generator=generator).to(torch.float8_e4m3fn)
    b = make(N, K).view(torch.uint8).reshape(N, K // block_size, block_size).permute(1, 0, 2).contiguous().view(torch.float8_e4m3fn)
    return {"a": make(M, K).to(device), "b": b.to(device)}
)py";

}  // namespace flashinfer::ops::gemm
