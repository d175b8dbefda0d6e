# SPDX-License-Identifier: Apache-2.0
"""torch's times on a GPU for tools/gpu_check.py: one JSON object {row: {"seconds": ..., ...} or {"error": ...}} on stdout. The argument
is a JSON list of rows; without one all but the attention of given sizes are timed:

    matmul, rmsnorm, silu_and_mul, softmax, copy, decode_flash 64x4096, decode_cudnn 8x16384, prefill_flash 8192, ...

Every row: 3 calls to warm up, then the median of 20, each timed by two events behind an overwriting of the L2 cache (as
`flashinfer bench --device cuda --cold`). Eager: silu_and_mul is two kernels."""
import json
import statistics
import sys

PLAIN = ["matmul", "rmsnorm", "silu_and_mul", "softmax", "copy"]


class Rows:
    """Each makes its inputs and returns (call, floating-point operations, bytes)."""

    def __init__(self, torch, device):
        self.torch, self.device, self.F = torch, device, torch.nn.functional

    def bf16(self, *shape):
        return self.torch.randn(*shape, device=self.device, dtype=self.torch.bfloat16)

    def matmul(self):
        a, b, c = self.bf16(8192, 8192), self.bf16(8192, 8192), self.bf16(8192, 8192)
        return lambda: self.torch.matmul(a, b, out=c), 2 * 8192.0 ** 3, 0

    def rmsnorm(self):
        x, w = self.bf16(16384, 4096), self.bf16(4096)
        return lambda: self.F.rms_norm(x, (4096,), w, 1e-6), 0, 0

    def silu_and_mul(self):
        x = self.bf16(16384, 8192)
        return lambda: self.F.silu(x[:, :4096]) * x[:, 4096:], 0, 0

    def softmax(self):
        x = self.torch.randn(256, 131072, device=self.device)
        return lambda: self.torch.softmax(x, -1), 0, 0

    def copy(self):
        a = self.torch.empty(1 << 29, dtype=self.torch.int16, device=self.device).random_()
        b = self.torch.empty_like(a)
        return lambda: b.copy_(a), 0, 2 << 30

    def attention(self, kind, backend, size):
        """32 query heads over 8 of 128; decode has a token a request, prefill is one causal request."""
        from torch.nn.attention import SDPBackend, sdpa_kernel
        chosen = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}[backend]
        batch, keys = (int(n) for n in size.split("x")) if kind == "decode" else (1, int(size))
        queries = 1 if kind == "decode" else keys
        q, k, v = self.bf16(batch, 32, queries, 128), self.bf16(batch, 8, keys, 128), self.bf16(batch, 8, keys, 128)

        def call():
            with sdpa_kernel([chosen]):
                return self.F.scaled_dot_product_attention(q, k, v, is_causal=kind == "prefill", enable_gqa=True)
        pairs = keys * (keys + 1) / 2 if kind == "prefill" else batch * keys
        return call, 4 * 32 * 128 * pairs, 0

    def make(self, name):
        if name in PLAIN:
            return getattr(self, name)()
        which, size = name.split(" ")
        return self.attention(*which.split("_"), size)


def main(names):
    import torch

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

    rows = {"device": {"name": torch.cuda.get_device_name(0), "torch": torch.__version__, "cuda": torch.version.cuda}}
    maker = Rows(torch, device)
    for name in names:
        try:
            call, flops, moved = maker.make(name)
            t = seconds(call)
            rows[name] = {"seconds": t, **({"tflop_per_s": flops / t * 1e-12} if flops else {}), **({"gb_per_s": moved / t * 1e-9} if moved else {})}
            del call
        except Exception as error:  # an unsupported back end is a row, too
            rows[name] = {"error": str(error).splitlines()[0][:300] if str(error) else type(error).__name__}
        torch.cuda.empty_cache()
    print(json.dumps(rows))


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]) if len(sys.argv) > 1 else PLAIN)
    except Exception as failure:
        print(json.dumps({"error": f"{type(failure).__name__}: {failure}"}))
        sys.exit(1)
