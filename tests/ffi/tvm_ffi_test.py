# SPDX-License-Identifier: Apache-2.0
"""Ops through TVM-FFI with PyTorch tensors, compared with PyTorch's own arithmetic."""
import ctypes
import math
import os
import pathlib
import tempfile
import unittest

import torch
import tvm_ffi

BUILD = pathlib.Path(os.environ["FLASHINFER_BUILD_DIR"])
ctypes.CDLL(str(BUILD / "lib" / "libflashinfer_tvm_ffi.so"), mode=ctypes.RTLD_GLOBAL)


def function(name):
    return tvm_ffi.get_global_func("flashinfer." + name)


def to_torch(value):
    return value if isinstance(value, torch.Tensor) else torch.from_dlpack(value)


def rms(x, w, eps):
    x = x.double()
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * w.double()


class TvmFfi(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def test_rmsnorm_by_position_and_by_name(self):
        x, w = torch.randn(5, 256).bfloat16(), torch.randn(256).bfloat16()
        for y in (function("rmsnorm")(x, w, 1e-3), function("rmsnorm")(x, {"weight": w, "eps": 1e-3})):
            torch.testing.assert_close(to_torch(y).double(), rms(x, w, 1e-3), rtol=1e-2, atol=1e-2)
            self.assertEqual(to_torch(y).dtype, torch.bfloat16)

    def test_strided_input_and_given_output(self):
        wide, w = torch.randn(5, 300), torch.randn(256)
        x, out = wide[:, :256], torch.zeros(5, 256)
        function("rmsnorm")(x, w, {"out": out})
        torch.testing.assert_close(out.double(), rms(x, w, 1e-6), rtol=1e-5, atol=1e-5)

    def test_in_place_op(self):
        x, residual, w = torch.randn(3, 64), torch.randn(3, 64), torch.randn(64)
        total = x + residual
        function("fused_add_rmsnorm")(x, residual, w)
        torch.testing.assert_close(residual, total)
        torch.testing.assert_close(x.double(), rms(total, w, 1e-6), rtol=1e-5, atol=1e-5)

    def test_errors_are_pythons(self):
        x, w = torch.randn(2, 16), torch.randn(8)
        with self.assertRaisesRegex(ValueError, r"rmsnorm: weight.shape\[0\] is 8, but d is 16 \(from input.shape\[1\]\)"):
            function("rmsnorm")(x, w)
        with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'colour'"):
            function("rmsnorm")(x, w, {"colour": 1})
        with self.assertRaisesRegex(TypeError, "missing required arguments: 'weight'"):
            function("rmsnorm")(x)

    def test_an_object_with_state_decodes(self):
        heads, kv_heads, dim, page = 4, 2, 64, 4
        pool = torch.randn(5, 2, page, kv_heads, dim)
        q = torch.randn(2, heads, dim)
        indptr = torch.tensor([0, 3, 5], dtype=torch.int32)
        pages = torch.tensor([4, 1, 0, 2, 3], dtype=torch.int32)
        last = torch.tensor([2, 3], dtype=torch.int32)
        name = "BatchDecodeWithPagedKVCacheWrapper"
        decode = function(name)(torch.empty(0, dtype=torch.uint8), "NHD")
        function(name + ".plan")(decode, indptr, pages, last, heads, kv_heads, dim, page,
                                 {"q_data_type": torch.float32, "kv_data_type": "float32"})
        split = (pool[:, 0].contiguous(), pool[:, 1].contiguous())
        for cache in (pool, split):  # stacked, and as a pair
            out, lse = (to_torch(t) for t in function(name + ".run")(decode, q, cache, {"return_lse": True}))
            for r in range(2):
                ids = pages[indptr[r]:indptr[r + 1]].long()
                n = (len(ids) - 1) * page + int(last[r])
                k, v = (pool[ids, i].reshape(-1, kv_heads, dim)[:n].double().repeat_interleave(heads // kv_heads, 1) for i in (0, 1))
                logits = torch.einsum("hd,nhd->hn", q[r].double(), k) / math.sqrt(dim)
                expected = torch.einsum("hn,nhd->hd", logits.softmax(-1), v)
                torch.testing.assert_close(out[r].double(), expected, rtol=1e-4, atol=1e-5)
                torch.testing.assert_close(lse[r].double(), logits.logsumexp(-1) / math.log(2), rtol=1e-4, atol=1e-5)

    def test_recorder_starts_and_stops(self):
        x, w = torch.randn(2, 16), torch.randn(16)
        with tempfile.TemporaryDirectory() as folder:
            function("record_set")("dest=" + folder + "/log")
            function("record_start")(10, folder + "/dumps")
            y = to_torch(function("rmsnorm")(x, w))
            function("record_stop")()
            function("rmsnorm")(x, w)
            calls = [p for p in pathlib.Path(folder, "dumps").iterdir() if p.is_dir()]
            self.assertEqual(1, len(calls))
            inputs = torch.load(calls[0] / "inputs.pt", weights_only=True)
            outputs = torch.load(calls[0] / "outputs.pt", weights_only=True)
            self.assertTrue(torch.equal(inputs["arg_0"], x))
            self.assertTrue(torch.equal(outputs["result"], y))


if __name__ == "__main__":
    unittest.main()
