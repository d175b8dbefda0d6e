# SPDX-License-Identifier: Apache-2.0
"""torch's times on a GPU for tools/gpu_check.py: one JSON object {row: {"seconds": ..., ...} or {"error": ...}} on stdout.

Every row: 3 calls to warm up, then the median of 20, each timed by two events behind an overwriting of the L2 cache (as
`flashinfer bench --device cuda --cold`). Eager: silu_and_mul is two kernels."""
import json
import statistics
import sys


def main():
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    import torch.nn.functional as F

    device = torch.device("cuda:0")
    torch.manual_seed(0)
    l2 = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 64 << 20)
    flush = torch.empty(2 * l2, dtype=torch.uint8, device=device)

    def seconds(call, repeats=20):
        for _ in range(3):
            call()
        pairs = []
        for _ in range(repeats):
            flush.fill_(0x5a)
            pairs.append((torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)))
            pairs[-1][0].record()
            call()
            pairs[-1][1].record()
        torch.cuda.synchronize()
        return statistics.median(a.elapsed_time(b) for a, b in pairs) * 1e-3

    def bf16(*shape):
        return torch.randn(*shape, device=device, dtype=torch.bfloat16)

    rows = {"device": {"name": torch.cuda.get_device_name(0), "torch": torch.__version__, "cuda": torch.version.cuda}}

    def row(name, make, flops=0.0):
        try:
            call = make()
            t = seconds(call)
            rows[name] = {"seconds": t}
            if flops:
                rows[name]["tflop_per_s"] = flops / t * 1e-12
        except Exception as error:  # an unsupported back end is a row, too
            rows[name] = {"error": str(error).splitlines()[0][:300] if str(error) else type(error).__name__}
        torch.cuda.empty_cache()

    def matmul():
        a, b, c = bf16(8192, 8192), bf16(8192, 8192), bf16(8192, 8192)
        return lambda: torch.matmul(a, b, out=c)

    def sdpa(backend, batch, queries, keys, causal):
        def make():
            q, k, v = bf16(batch, 32, queries, 128), bf16(batch, 8, keys, 128), bf16(batch, 8, keys, 128)

            def call():
                with sdpa_kernel([backend]):
                    return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
            return call
        return make

    def norm():
        x, w = bf16(16384, 4096), bf16(4096)
        return lambda: F.rms_norm(x, (4096,), w, 1e-6)

    def silu():
        x = bf16(16384, 16384 // 2)
        return lambda: F.silu(x[:, :4096]) * x[:, 4096:]

    def copy():
        a, b = torch.empty(1 << 29, dtype=torch.int16, device=device).random_(), torch.empty(1 << 29, dtype=torch.int16, device=device)
        return lambda: b.copy_(a)

    def softmax():
        x = torch.randn(256, 131072, device=device)
        return lambda: torch.softmax(x, -1)

    causal_flops = 4 * 32 * 128 * 8192 * 8193 / 2
    row("matmul_8192", matmul, 2 * 8192.0 ** 3)
    for name, backend in (("flash", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION)):
        row("prefill_" + name, sdpa(backend, 1, 8192, 8192, True), causal_flops)
        row("decode_" + name, sdpa(backend, 64, 1, 4096, False))
    row("rmsnorm", norm)
    row("silu_and_mul", silu)
    row("softmax", softmax)
    row("copy", copy)
    if "seconds" in rows["copy"]:
        rows["copy"]["gb_per_s"] = 2 * (1 << 30) / rows["copy"]["seconds"] * 1e-9
    print(json.dumps(rows))


if __name__ == "__main__":
    try:
        main()
    except Exception as failure:
        print(json.dumps({"error": f"{type(failure).__name__}: {failure}"}))
        sys.exit(1)
