# SPDX-License-Identifier: Apache-2.0
"""The machine code of kernels for sm_90a, and of some for sm_89, as nvdisasm prints it: what a register count does not show. Bounds are what was measured when a row
was written, rounded up; a kernel that got better should tighten its row."""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("FLASHINFER_BUILD_DIR", ROOT / "build" / "release"))
OPS = ["single_decode_with_kv_cache", "single_prefill_with_kv_cache", "rmsnorm", "append_paged_kv_cache", "merge_state"]
SAMPLERS = ["top_k_top_p_sampling_from_probs", "top_k_top_p_sampling_from_logits", "top_p_renorm_probs", "chain_speculative_sampling"]
PRODUCT_OPS = ["mm_bf16", "mm_fp8", "mm_fp4", "mm_mxfp8", "gemm_fp8_nt_groupwise", "mm_gguf"]
OF_SM_89 = ["single_prefill_with_kv_cache"]
DIVISION = "I2F.U32.RP"  # begins each integer division
# Target, kernel, pattern of its config, and of the main loop: instructions, integer divisions, loads from shared memory and conversions for each
# product, HMMA or QMMA (a product of 16 rows takes two of B from one LDSM, and A from another; of an 8-bit cache B is two conversions). Masks and a last, incomplete
# tile of keys are in the loop too, and are branches that most tiles do not take; so are inner loops, once.
LOOPS = [("sm_90a", "attention.attention", r"kv=b?float16,.*warps_k=4,.*dqk=128", 1350, 0, 0.75, 0.35),
         ("sm_90a", "attention.attention", r"kv=b?float16,.*warps_k=1,wide=0,.*dqk=128", 3700, 0, 0.6, 0.35),
         ("sm_90a", "attention.attention", r"kv=b?float16,.*warps_k=4,.*dqk=64", 1150, 0, 0.75, 0.35),
         ("sm_89", "attention.attention", r"kv=b?float16,.*warps_k=1,wide=0,.*dqk=64", 3300, 0, 0.6, 0.35),
         # 32 rows a warp: at D 64 Q is in registers.
         ("sm_90a", "attention.attention", r"kv=b?float16,.*wide=1,held=0,.*dqk=128", 6500, 0, 0.32, 0.2),
         ("sm_90a", "attention.attention", r"kv=b?float16,.*wide=1,held=4,.*dqk=64", 5600, 0, 0.25, 0.25),
         ("sm_89", "attention.attention", r"kv=b?float16,.*wide=1,held=0,.*dqk=128,dvo=128,threads=256", 6500, 0, 0.32, 0.2),
         # e4m3 queries and caches: logits are half as many products, of which nothing is converted.
         ("sm_89", "attention.attention", r"q=float8_e4m3fn,kv=float8_e4m3fn,.*wide=1,.*e4m3=1,dqk=128", 6500, 0, 0.25, 1.1),
         ("sm_90a", "attention.attention", r"kv=float8_e4m3fn,.*warps_k=4,.*dqk=128", 2300, 0, 0.4, 2.3)]

# Of products: parts of the config; of the loop along k: instructions; of the kernel: registers. 16 x 32 (warps_k=4): a warp's share of a step of 128
# along k, 8 products; 128 x 128: a step of 64, 64 products.
PRODUCTS = [("a=0,b=0,half=0,a_wide=1,b_wide=1", "warps_k=4", 125, 150),
            ("a=0,b=0,half=0,a_wide=1,b_wide=1", "warps_m=2,warps_n=4", 230, 215),
            ("a=1,b=1,half=1,a_wide=1,b_wide=1", "warps_k=4,spread=0,grid=0", 150, 110),
            ("a=1,b=1,half=1,a_wide=1,b_wide=1", "warps_m=2,warps_n=4,warps_k=1,spread=0,grid=0", 225, 190),
            ("a=1,b=1,half=1,a_wide=1,b_wide=1", "warps_k=4,spread=0,grid=128", 230, 130),
            ("a=1,b=1,half=1,a_wide=1,b_wide=1", "warps_m=2,warps_n=4,warps_k=1,spread=0,grid=128", 500, 250),
            ("a=3,b=3,half=1", "warps_k=4", 300, 180),
            ("a=3,b=3,half=1", "warps_m=2,warps_n=4", 420, 195),
            ("a=3,b=3,half=0", "warps_k=4", 320, 180),
            ("a=1,b=1,half=0", "warps_k=4", 360, 180),
            ("a=0,b=8,half=0,a_wide=1", "warps_m=2,warps_n=2", 270, 170),
            ("a=0,b=9,half=0,a_wide=1,b_wide=16", "warps_k=4", 425, 165)]


def find_nvdisasm():
    return shutil.which("nvdisasm") or next((str(p) for p in ROOT.glob(".venv/lib/python3*/site-packages/nvidia/*/bin/nvdisasm")), None)


class Code:
    """Instructions of a cubin's one kernel, without predicates, and its loops as (first, last) instruction."""

    def registers(self):
        """One more than the highest that an instruction names."""
        return 1 + max(int(r) for x in self.instructions for r in re.findall(r"\bR(\d+)\b", x))

    def products(self, begin=0, end=None):
        """Of tensor cores: of 16 bits, of 8 bits."""
        found = self.count(begin, end)
        return found["HMMA"] + found["QMMA"]

    def loop_along_k(self):
        """The shortest loop with products."""
        return min((last - first, first, last) for first, last in self.loops if self.products(first, last + 1))[1:]

    def __init__(self, text):
        labels, self.instructions = {}, []
        for line in text.splitlines():
            if label := re.match(r"\s*(\.L_x_\d+):", line):
                labels[label.group(1)] = len(self.instructions)
            elif found := re.search(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(.*?)\s*;", line):
                self.instructions.append(found.group(1))
        targets = [(labels.get(m.group(1)), i) for i, x in enumerate(self.instructions) if (m := re.match(r"BRA\b.*?(\.L_x_\d+)", x))]
        self.loops = [(first, last) for first, last in targets if first is not None and first <= last]

    def count(self, begin=0, end=None):
        return collections.Counter(x.split()[0].split(".")[0] for x in self.instructions[begin:end])

    def main_loop(self):
        """The shortest of the loops with most products: (first, last)."""
        with_products = [(self.products(first, last + 1), first - last, first, last) for first, last in self.loops]
        return max(with_products)[2:]


@unittest.skipIf(find_nvdisasm() is None, "nvdisasm is not installed: tools/setup.sh test")
class Sass(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kernels = cls.compiled(OPS) + cls.compiled(PRODUCT_OPS, "--all")
        cls.of_sm_89 = cls.compiled(OF_SM_89, "--all", target="sm_89")
        cls.samplers = cls.compiled(SAMPLERS)

    @staticmethod
    def compiled(ops, *which, target="sm_90a"):
        kernels = []
        with tempfile.TemporaryDirectory() as out:
            named = [word for op in ops for word in ("--op", op)]
            done = subprocess.run([BUILD / "bin" / "flashinfer", "aot", "--targets", target, *named, *which, "--out", out, "--quiet"], capture_output=True,
                                  text=True, env=dict(os.environ, VIRTUAL_ENV=str(ROOT / ".venv")), timeout=600)
            if done.returncode:
                raise AssertionError(done.stderr[-2000:])
            for meta in sorted(pathlib.Path(out).glob(f"{target}/*/meta.json")):
                about = json.loads(meta.read_text())
                text = subprocess.run([find_nvdisasm(), "-c", meta.parent / "kernel.cubin"], capture_output=True, text=True, check=True).stdout
                kernels.append((about["name"], about["config"], Code(text)))
        return kernels

    def test_no_spill_and_no_generic_access(self):
        """Local memory is a spill. A generic load, store or atomic has lost the address space: it is slower than one of global or shared memory. Attention of
        32 rows a warp merges cut requests in a function that is called, once for a group of rows, and gets at the launch's parameters and counters so."""
        self.assertGreater(len(self.kernels), 10)
        for name, config, code in self.kernels + self.of_sm_89:
            with self.subTest(name + config):
                self.assertGreater(len(code.instructions), 50)
                found = code.count()
                merges = {"LD": 30, "ST": 2, "ATOM": 1} if name == "attention.attention" and "wide=1" in config else {}
                self.assertEqual({k: found[k] for k in ("LDL", "STL", "LD", "ST", "ATOM") if found[k] > merges.get(k, 0)}, {})

    def test_samplers_have_no_generic_access_in_loops(self):
        """Their passes are functions, which see of a pointer neither whether it is of shared nor of global memory, unless they are told. What they store in
        the other blocks of a cluster (two words for 1,024 elements, and a load and a store for a bin of all blocks) has a generic instruction on the chip."""
        self.assertGreater(len(self.samplers), 3)
        for name, config, code in self.samplers:
            with self.subTest(name + config):
                self.assertGreater(code.count()["LDS"], 5)
                for first, last in code.loops:
                    found = code.count(first, last + 1)
                    self.assertEqual(found["ATOM"], 0, f"instructions {first} to {last}")
                    self.assertLessEqual(found["LD"] + found["ST"], 2, f"instructions {first} to {last}")

    def test_the_main_loop_of_attention(self):
        for target, name, pattern, length, divisions, loads, conversions in LOOPS:
            codes = [c for n, config, c in (self.of_sm_89 if target == "sm_89" else self.kernels) if n == name and re.search(pattern, config)]
            self.assertTrue(codes, f"no kernel {name} with {pattern}")
            for code in codes:
                with self.subTest(target + " " + pattern):
                    first, last = code.main_loop()
                    found, products = code.count(first, last + 1), code.products(first, last + 1)
                    self.assertGreater(products, 0)
                    self.assertLessEqual(found["LDSM"] / products, loads)
                    self.assertLessEqual(found["F2FP"] / products, conversions)
                    self.assertLessEqual(sum(x.startswith(DIVISION) for x in code.instructions[first:last + 1]), divisions)
                    self.assertLessEqual(last + 1 - first, length)

    def test_the_loop_of_products(self):
        """A step's conversions, loads and addresses beside its products: no division, no call, no branch into one, few instructions."""
        for part, tile, length, registers in PRODUCTS:
            codes = [c for n, config, c in self.kernels if n == "gemm.gemm" and part in config and tile in config]
            self.assertTrue(codes, f"no product with {part} and {tile}")
            for code in codes:
                with self.subTest(part + " " + tile):
                    first, last = code.loop_along_k()
                    found = code.count(first, last + 1)
                    self.assertLessEqual(found["LDSM"] / code.products(first, last + 1), 0.75)
                    self.assertEqual({k: found[k] for k in ("CALL", "MUFU", "F2I") if found[k]}, {})
                    self.assertLessEqual(last + 1 - first, length)
                    self.assertLessEqual(code.registers(), registers)


if __name__ == "__main__":
    unittest.main()
