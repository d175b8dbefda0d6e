# SPDX-License-Identifier: Apache-2.0
"""The machine code of kernels for sm_90a, and of some for sm_89, as nvdisasm prints it: what a register count does not show. Bounds are what was measured when a row
was written, rounded up; a kernel that got better should tighten its row."""
import collections
import concurrent.futures
import functools
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
# Beside the kernels that `flashinfer aot` compiles by default.
OTHER_OPS = ["append_paged_kv_cache", "get_batch_indices_positions", "get_seq_lens", "gguf_dequantize", "concat_mla_kv_quant_fp8", "trtllm_gen_routing"]
CALLING = ("sampling.sample", "sampling.filter", "sampling.chain", "topk.top_k", "sampling.gumbel")  # their passes are functions
PRODUCT_OPS = ["mm_bf16", "mm_fp8", "mm_fp4", "mm_mxfp8", "gemm_fp8_nt_groupwise", "mm_gguf"]
OF_SM_89 = ["single_prefill_with_kv_cache"]
DIVISION = ("I2F.U32.RP", "I2F.RP", "I2F.S32.RP")  # one of them begins each integer division
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
            ("a=1,b=1,half=1,a_wide=1,b_wide=1", "warps_k=4,spread=0,shuffled=0,grid=0", 150, 110),
            ("a=1,b=1,half=1,a_wide=1,b_wide=1", "warps_m=2,warps_n=4,warps_k=1,spread=0,shuffled=0,grid=0", 225, 190),
            ("a=1,b=1,half=1,a_wide=1,b_wide=1", "warps_k=4,spread=0,shuffled=0,grid=128", 230, 130),
            ("a=1,b=1,half=1,a_wide=1,b_wide=1", "warps_m=2,warps_n=4,warps_k=1,spread=0,shuffled=0,grid=128", 500, 250),
            ("a=3,b=3,half=1", "warps_k=4", 300, 180),
            ("a=3,b=3,half=1", "warps_m=2,warps_n=4", 420, 195),
            ("a=3,b=3,half=0", "warps_k=4", 320, 180),
            ("a=1,b=1,half=0", "warps_k=4", 360, 180),
            ("a=0,b=8,half=0,a_wide=1", "warps_m=2,warps_n=2", 270, 170),
            ("a=0,b=9,half=0,a_wide=1,b_wide=16", "warps_k=4", 425, 165)]


# Every kernel of those lists, in its bf16 configuration where it has one: instructions up to its end and in its longest loop, integer divisions in both,
# registers. Code behind the end is for rare cases: a division's denormals, an angle beyond all tables. Kernels of CALLING have functions there. The longest loop
# of attention_pair is over tiles.
HELD = {"activation.act_and_mul": (540, 160, 7, 4, 38), "attention.attention_cores": (5270, 3395, 11, 8, 242),
        "attention.attention_pair": (2700, 2530, 10, 8, 128), "cascade.merge_states": (900, 310, 2, 0, 38),
        "comm.all_reduce": (560, 125, 0, 0, 46), "comm.cp_reduce": (1640, 1100, 0, 0, 46), "comm.mixed_comm": (800, 390, 0, 0, 60),
        "comm.moe_combine": (630, 335, 0, 0, 46), "comm.moe_plan": (510, 465, 0, 0, 26), "comm.moe_sanitize": (140, 25, 1, 0, 26),
        "comm.moe_send": (1510, 730, 1, 0, 52), "comm.moe_share": (70, 20, 0, 0, 20), "comm.move_columns": (1330, 720, 0, 0, 38),
        "comm.quantized_sum": (1730, 895, 0, 0, 54), "common.print_statistics": (2030, 170, 0, 0, 30),
        "cuda.nvfp4_dequantize": (900, 0, 11, 0, 30), "cuda.nvfp4_quantize": (1570, 0, 17, 0, 38), "gemm.gguf_dequantize": (400, 100, 1, 0, 30),
        "gemm.grid_layout": (230, 0, 1, 0, 24),
        "linear_attention.causal_conv1d": (1100, 775, 0, 0, 70), "linear_attention.causal_conv1d_states": (440, 110, 0, 0, 50),
        "linear_attention.causal_conv1d_update": (1960, 205, 9, 4, 58), "linear_attention.gdn_channels": (15020, 4385, 3, 1, 246),
        "linear_attention.gdn_chunk": (25930, 15800, 10, 8, 209), "linear_attention.gdn_columns": (1910, 1505, 2, 0, 164),
        "linear_attention.gdn_commit": (550, 275, 2, 0, 46), "linear_attention.gdn_decode": (1720, 1305, 3, 1, 90),
        "linear_attention.gdn_front": (2870, 275, 11, 4, 86), "linear_attention.kda": (3390, 2270, 2, 0, 142),
        "linear_attention.kda_chunk": (3860, 3165, 2, 0, 244), "linear_attention.kda_fused_conv": (540, 130, 2, 0, 30),
        "linear_attention.kda_fused_norm": (480, 105, 1, 0, 30), "linear_attention.kda_fused_rows": (390, 90, 0, 0, 30),
        "linear_attention.mamba_replay": (2970, 1085, 5, 1, 118), "linear_attention.selective_state_update": (1970, 1200, 3, 1, 126),
        "linear_attention.ssd_chunk": (3930, 2905, 3, 0, 196), "mhc.mhc_post": (380, 295, 0, 0, 70), "mhc.mhc_pre": (820, 205, 0, 0, 30),
        "mla.concat_mla_kv_quant": (150, 0, 2, 0, 16), "mla.mla": (2170, 565, 6, 1, 164), "mla.mla_cores": (2180, 425, 9, 2, 78),
        "moe.moe_activate": (1350, 825, 5, 4, 30), "moe.moe_cast": (90, 0, 0, 0, 10), "moe.moe_choices": (230, 0, 1, 0, 18),
        "moe.moe_gen_choices": (160, 0, 1, 0, 14), "moe.moe_gen_counts": (240, 75, 0, 0, 30), "moe.moe_gen_rows": (1470, 225, 10, 4, 26),
        "moe.moe_lora_step": (510, 375, 0, 0, 66), "moe.moe_lora_tokens": (100, 0, 0, 0, 22), "moe.moe_permute": (700, 145, 1, 1, 30),
        "moe.moe_route": (2350, 300, 7, 3, 70), "moe.moe_sum": (780, 315, 8, 0, 30), "msa.msa_attention": (3210, 1505, 3, 1, 166),
        "msa.msa_scores": (2330, 2065, 17, 14, 124), "norm.dit_norm": (2310, 220, 7, 0, 96), "norm.gated_residual_norm": (1760, 175, 0, 0, 108),
        "norm.layernorm": (1180, 90, 2, 0, 62), "norm.layernorm_quant": (2860, 355, 2, 0, 126), "norm.qk_norm_rope": (740, 540, 6, 1, 36),
        "norm.rmsnorm": (570, 75, 2, 0, 68), "norm.rmsnorm_fp4": (2290, 310, 7, 1, 76), "norm.rmsnorm_fp8_blocks": (1600, 230, 3, 0, 94),
        "norm.rmsnorm_quant": (1250, 200, 2, 0, 58), "norm.sigmoid_gate_norm": (1260, 190, 3, 0, 92), "page.advance_step": (80, 0, 0, 0, 20),
        "page.append_paged": (280, 30, 3, 0, 24), "page.batch_positions": (150, 35, 0, 0, 18), "page.gather_rows": (280, 130, 0, 0, 26),
        "page.seq_lens": (100, 0, 0, 0, 22), "quantization.block_dequantize": (300, 115, 4, 1, 26), "quantization.block_quantize": (830, 0, 5, 0, 45),
        "quantization.group8": (690, 0, 5, 0, 30), "quantization.nvfp4_cache_scales": (100, 10, 0, 0, 16),
        "quantization.nvfp4_quantize_cache": (640, 0, 6, 0, 38), "quantization.pack_bits": (230, 0, 0, 0, 26),
        "quantization.sage_blocks": (780, 320, 5, 1, 38), "quantization.sage_channels": (490, 235, 0, 0, 48),
        "quantization.sage_finish": (150, 40, 0, 0, 30), "quantization.sage_partials": (230, 90, 0, 0, 28), "quantization.swiglu_mxfp8": (820, 0, 1, 0, 38),
        "quantization.tensor8": (530, 330, 2, 2, 36), "quantization.tensor_most": (150, 70, 2, 1, 16), "rope.rope": (920, 760, 1, 0, 70),
        "rope.rope_quantize": (520, 330, 2, 1, 62), "sampling.chain": (2420, 1240, 1, 0, 62), "sampling.filter": (2880, 740, 3, 1, 46),
        "sampling.gumbel": (1590, 1010, 1, 0, 86), "sampling.gumbel_last": (140, 35, 0, 0, 24), "sampling.sample": (10620, 1020, 5, 1, 78),
        "sampling.softmax": (1350, 510, 1, 0, 48), "topk.top_k": (7260, 1110, 14, 2, 70)}


def find_nvdisasm():
    return shutil.which("nvdisasm") or next((str(p) for p in ROOT.glob(".venv/lib/python3*/site-packages/nvidia/*/bin/nvdisasm")), None)


class Code:
    """Instructions of a cubin's one kernel, without predicates, and its loops as (first, last) instruction. A branch back to code behind the end, which is
    how a call for a rare case returns, is no loop."""

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

    def measured(self, functions):
        """(instructions, of the longest loop, integer divisions, in loops, registers); with `functions`, of those behind the end too."""
        end = len(self.instructions) if functions else max(i for i, x in enumerate(self.instructions) if x.startswith("EXIT")) + 1
        loops = [(first, last + 1) for first, last in self.loops if last < end]

        def divisions(begin, end):
            return sum(x.startswith(DIVISION) for x in self.instructions[begin:end])
        return (end, max((last - first for first, last in loops), default=0), divisions(0, end), max((divisions(*loop) for loop in loops), default=0),
                self.registers())

    def count(self, begin=0, end=None):
        return collections.Counter(x.split()[0].split(".")[0] for x in self.instructions[begin:end])

    def main_loop(self):
        """The shortest of the loops with most products: (first, last)."""
        with_products = [(self.products(first, last + 1), first - last, first, last) for first, last in self.loops]
        return max(with_products)[2:]


class Kernel:
    """A cubin; it is disassembled when its code is asked for."""

    def __init__(self, meta):
        about = json.loads(meta.read_text())
        self.name, self.config, self.cubin = about["name"], about["config"], meta.parent / "kernel.cubin"

    @functools.cached_property
    def code(self):
        return Code(subprocess.run([find_nvdisasm(), "-c", self.cubin], capture_output=True, text=True, check=True).stdout)


@unittest.skipIf(find_nvdisasm() is None, "nvdisasm is not installed: tools/setup.sh test")
class Sass(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.usual = cls.compiled("usual") + cls.compiled("others", OTHER_OPS, "--all")
        cls.products = cls.compiled("products", PRODUCT_OPS, "--all")
        cls.of_sm_89 = cls.compiled("of_sm_89", OF_SM_89, "--all", target="sm_89")

    @classmethod
    def compiled(cls, folder, ops=(), *which, target="sm_90a"):
        out = pathlib.Path(cls.folder.name) / folder
        named = [word for op in ops for word in ("--op", op)]
        done = subprocess.run([BUILD / "bin" / "flashinfer", "aot", "--targets", target, *named, *which, "--out", out, "--quiet"], capture_output=True,
                              text=True, env=dict(os.environ, VIRTUAL_ENV=str(ROOT / ".venv")), timeout=600)
        if done.returncode:
            raise AssertionError(done.stderr[-2000:])
        return [Kernel(meta) for meta in sorted(out.glob(f"{target}/*/meta.json"))]

    @classmethod
    def attention(cls):
        return [k for k in cls.usual if k.name == "attention.attention"]

    @classmethod
    def held(cls):
        """One kernel of each name."""
        chosen = {}
        own = ("attention.attention", "gemm.gemm")  # tables of their own
        for k in sorted(cls.usual, key=lambda k: ("bfloat16" not in k.config, "aligned=1" not in k.config, k.config)):
            if k.name not in own:
                chosen.setdefault(k.name, k)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(lambda k: k.code, chosen.values()))
        return chosen

    def test_no_spill_and_no_generic_access(self):
        """Local memory is a spill. A generic load, store or atomic has lost the address space: it is slower than one of global or shared memory. Attention of
        32 rows a warp merges cut requests in a function that is called, once for a group of rows, and gets at the launch's parameters and counters so."""
        of_one = [k for k in self.held().values() if k.name not in CALLING]
        for name, config, code in [(k.name, k.config, k.code) for k in of_one + self.attention() + self.products + self.of_sm_89]:
            with self.subTest(name + config):
                self.assertGreater(len(code.instructions), 50)
                found = code.count()
                merges = {"LD": 30, "ST": 2, "ATOM": 1} if name == "attention.attention" and "wide=1" in config else {}
                if name == "sampling.softmax":
                    merges = {"ST": 1}  # into the other blocks of a cluster
                if name.startswith("comm."):
                    merges = {"LD": 2, "ST": 5}  # what a wait for another rank that fails says (meet.cuh)
                if name == "common.print_statistics":
                    merges = {"STL": 7}  # what it prints
                self.assertEqual({k: found[k] for k in ("LDL", "STL", "LD", "ST", "ATOM") if found[k] > merges.get(k, 0)}, {})

    def test_samplers_have_no_generic_access_in_loops(self):
        """Their passes are functions, which see of a pointer neither whether it is of shared nor of global memory, unless they are told. What they store in
        the other blocks of a cluster (two words for 1,024 elements, and a load and a store for a bin of all blocks) has a generic instruction on the chip."""
        samplers = [k for k in self.usual if k.name in ("sampling.sample", "sampling.filter", "sampling.chain")]
        self.assertGreater(len(samplers), 8)
        for name, config, code in [(k.name, k.config, k.code) for k in samplers]:
            with self.subTest(name + config):
                self.assertGreater(code.count()["LDS"], 5)
                for first, last in code.loops:
                    found = code.count(first, last + 1)
                    self.assertEqual(found["ATOM"], 0, f"instructions {first} to {last}")
                    self.assertLessEqual(found["LD"] + found["ST"], 2, f"instructions {first} to {last}")

    def check_loops(self, kernels, name, patterns, loop_of, length, loads, check):
        """Of each kernel that has all patterns in its config: the loop's instructions, and its loads of shared memory for each product, are within the bounds;
        then check(code, first, last)."""
        codes = [k.code for k in kernels if k.name == name and all(re.search(p, k.config) for p in patterns)]
        self.assertTrue(codes, f"no kernel {name} with {patterns}")
        for code in codes:
            with self.subTest(f"{name} {patterns}"):
                first, last = loop_of(code)
                self.assertGreater(code.products(first, last + 1), 0)
                self.assertLessEqual(code.count(first, last + 1)["LDSM"] / code.products(first, last + 1), loads)
                self.assertLessEqual(last + 1 - first, length)
                check(code, first, last)

    def test_the_main_loop_of_attention(self):
        for target, name, pattern, length, divisions, loads, conversions in LOOPS:
            def check(code, first, last, divisions=divisions, conversions=conversions):
                self.assertLessEqual(code.count(first, last + 1)["F2FP"] / code.products(first, last + 1), conversions)
                self.assertLessEqual(sum(x.startswith(DIVISION) for x in code.instructions[first:last + 1]), divisions)
            self.check_loops(self.of_sm_89 if target == "sm_89" else self.usual, name, [pattern], Code.main_loop, length, loads, check)

    def test_the_loop_of_products(self):
        """A step's conversions, loads and addresses beside its products: no division, no call, no branch into one, few instructions."""
        for part, tile, length, registers in PRODUCTS:
            def check(code, first, last, registers=registers):
                found = code.count(first, last + 1)
                self.assertEqual({k: found[k] for k in ("CALL", "MUFU", "F2I") if found[k]}, {})
                self.assertLessEqual(code.registers(), registers)
            self.check_loops(self.products, "gemm.gemm", [part, tile], Code.loop_along_k, length, 0.75, check)

    def test_every_kernel_keeps_its_size(self):
        """Of kernels without a table of their own: what a launch executes, and what a compiler or a change adds to it."""
        for name, kernel in self.held().items():
            with self.subTest(name + kernel.config):
                self.assertIn(name, HELD, f"measured {kernel.code.measured(name in CALLING)}")
                self.assertTrue(all(x <= most for x, most in zip(kernel.code.measured(name in CALLING), HELD[name])),
                                f"{kernel.code.measured(name in CALLING)} is more than {HELD[name]}")
        self.assertEqual(HELD.keys() - self.held().keys(), set())


if __name__ == "__main__":
    unittest.main()
