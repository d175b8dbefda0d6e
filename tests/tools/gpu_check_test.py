# SPDX-License-Identifier: Apache-2.0
"""tools/gpu_check.sh without a GPU: the steps that the emulator supports pass; a step that fails is a row and the run goes on."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ.get("FLASHINFER_BUILD_DIR", str(ROOT / "build" / "release"))


ENOUGH = ["--budget", "100000"]  # whatever else the machine does


def check(*arguments):
    """(exit status, gpu_check.json, gpu_check.md, output)"""
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run(["sh", str(ROOT / "tools" / "gpu_check.sh"), "--out", out, *ENOUGH, *arguments], capture_output=True, text=True)
        folder = pathlib.Path(out)
        return done.returncode, json.loads((folder / "gpu_check.json").read_text()), (folder / "gpu_check.md").read_text(), done.stdout


class GpuCheck(unittest.TestCase):
    def test_the_emulator_passes(self):
        status, result, table, output = check("--device", "emu", "--tree", BUILD)
        failed = [r for r in result["rows"] if r["status"] != "ok"]
        self.assertEqual((status, failed), (0, []))
        steps = [r["step"] for r in result["rows"]]
        self.assertEqual({s: steps.count(s) for s in steps}, {"facts": 1, "cases": 5, "replay": 4, "killed": 1, "counts": 1})
        self.assertEqual(result["summary"], {"ok": 12, "failed": 0, "skipped": 0})
        self.assertTrue(output.endswith("12 passed, 0 failed, 0 skipped\n"))
        self.assertRegex(table, r"\| ok \| killed \| single_prefill of \d+ tokens \|")

    def test_a_carried_tree_runs_elsewhere(self):
        """What --pack copies is enough: no build folder, no source tree, its own third-party libraries; at most 60 MB."""
        with tempfile.TemporaryDirectory() as place:
            packed = subprocess.run(["sh", str(ROOT / "tools" / "gpu_check.sh"), "--tree", BUILD, "--pack", place + "/carried"],
                                    capture_output=True, text=True)
            self.assertEqual(packed.returncode, 0, packed.stderr)
            carried = pathlib.Path(place) / "carried"
            self.assertLess(sum(p.stat().st_size for p in carried.rglob("*") if p.is_file()), 60e6)
            environment = {"PATH": os.environ["PATH"], "HOME": place, "OUT": place + "/out"}
            done = subprocess.run(["sh", str(carried / "gpu_check.sh"), "--device", "emu", "--steps", "facts,cases,recordings", "--only",
                                   "^(rmsnorm|merge_state)$", *ENOUGH], capture_output=True, text=True, env=environment, cwd=place)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertTrue(done.stdout.endswith("7 passed, 0 failed, 0 skipped\n"), done.stdout)

    def test_failures_are_rows(self):
        with tempfile.TemporaryDirectory() as tree:
            status, result, _, output = check("--device", "cuda:0", "--tree", tree, "--steps", "device,facts,ceilings,probes,killed,timings")
        self.assertEqual(status, 1)
        rows = {(r["step"], r["name"]): r for r in result["rows"]}
        for key in (("cases", "list"), ("device", "driver, GPU, NVRTC"), ("graph", "decode step captured and replayed, also after another plan"),
                    ("graph_record", "recorded under capture, flushed after a replay, replayed on the CPU"), ("facts", "as kernels and emulator assume"), ("ceiling", "launch"),
                    ("timing", "mm_bf16 8192^3 (cuBLASLt)"),
                    ("timing", "prefill 8192"), ("timing", "decode e4m3 64 x 4096")):
            self.assertEqual(rows[key]["status"], "failed", key)
            self.assertIn("No such file", rows[key]["detail"], key)
        self.assertEqual(result["summary"]["ok"], 0)
        self.assertTrue(output.splitlines()[-1].startswith(f"0 passed, {result['summary']['failed']} failed"))

    def test_a_crash_is_said(self):
        with tempfile.TemporaryDirectory() as tree:
            program = pathlib.Path(tree) / "bin" / "flashinfer"
            program.parent.mkdir()
            program.write_text('#!/bin/sh\nif [ "$2" = --list ]; then echo "rmsnorm decode: x=1"; else kill -SEGV $$; fi\n')
            program.chmod(0o755)
            status, result, _, _ = check("--device", "emu", "--tree", tree, "--steps", "cases,recordings")
        self.assertEqual(status, 1)
        rows = {r["step"]: (r["status"], r["detail"]) for r in result["rows"]}
        self.assertEqual({k: v[0] for k, v in rows.items()}, {"cases": "failed", "record": "failed", "replay": "failed"})
        for step, (_, detail) in rows.items():
            self.assertIn("exit status -11", detail, step)

    def test_output_of_what_fails_or_hangs_is_kept(self):
        """The output is in files while the run goes on, so that a second run on the GPU is not needed to see it."""
        with tempfile.TemporaryDirectory() as tree, tempfile.TemporaryDirectory() as out:
            program = pathlib.Path(tree) / "bin" / "flashinfer"
            program.parent.mkdir()
            program.write_text('#!/bin/sh\nif [ "$2" = --list ]; then echo "rmsnorm decode: x=1"; else seq 1000 1999; sleep 60; fi\n')
            program.chmod(0o755)
            done = subprocess.run(["sh", str(ROOT / "tools" / "gpu_check.sh"), "--device", "emu", "--tree", tree, "--out", out, "--steps", "cases",
                                   "--budget", "14"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            log, table = (pathlib.Path(out, name).read_text() for name in ("gpu_check.log", "gpu_check.md"))
        self.assertIn("==== exit status none after", log)
        self.assertIn("\n1000\n1001\n", log)
        self.assertIn("\n1999\n", log)
        self.assertIn("| failed | cases | rmsnorm |", table)

    def test_a_slower_machine_may_take_longer(self):
        """A budget beyond the usual one stretches the limit of each process."""
        sys.path.insert(0, str(ROOT / "tools"))
        import types

        import gpu_check
        with tempfile.TemporaryDirectory() as out:
            for pace, status in ((1, "failed"), (30, "ok")):
                one = gpu_check.Check(types.SimpleNamespace(device="emu", out=out, budget=1e5), pace)
                one.run("step", "a process of three seconds", ["sleep", "3"], 2)
                shutil.rmtree(one.work)
                self.assertEqual([r["status"] for r in one.rows], [status])

    def test_parts_are_all_of_it(self):
        """Each step is in one part; the parts fit into 25 minutes, and each into 10."""
        sys.path.insert(0, str(ROOT / "tools"))
        import gpu_check
        self.assertEqual(len(gpu_check.STEPS), sum(len(part) for part in gpu_check.PARTS))
        seconds = [sum(s for _, s in part) for part in gpu_check.PARTS]
        self.assertLessEqual(sum(seconds), 25 * 60)
        self.assertLess(max(seconds), 600)
        with tempfile.TemporaryDirectory() as tree:
            _, result, _, _ = check("--device", "cuda:0", "--tree", tree, "--part", "3")
        self.assertLessEqual({"graph", "sweep", "killed"}, {r["step"] for r in result["rows"]})
        self.assertFalse({"facts", "timing"} & {r["step"] for r in result["rows"]})

    def test_counters_are_read_by_name(self):
        sys.path.insert(0, str(ROOT / "tools"))
        import gpu_check_times
        table = ('==PROF== Connected\n"ID","Kernel Name","dram__throughput.avg.pct_of_peak_sustained_elapsed","gpu__time_duration.sum"\n'
                 '"","","%","ns"\n"0","flashinfer_kernel","81.5","1,250.00"\n')
        self.assertEqual(gpu_check_times.counters(table), {"us": 1.25, "dram %": 81.5})
        self.assertEqual(gpu_check_times.counters("==ERROR== no counters"), {})

    def test_goals_are_judged(self):
        """Shares of a ceiling and rates from below, times from above, also relative to a row that was timed before; a ceiling that is missing is no goal met."""
        sys.path.insert(0, str(ROOT / "tools"))
        import types

        import gpu_check_times
        checked = types.SimpleNamespace(torch={"matmul": {"tflop_per_s": 700.0}}, times={})

        def goals(name, us, wanted, share=0.9):
            timed = [{"median_s": us * 1e-6, "gb_per_s": 1.0, "gflop_per_s": 290e3, "share_of_copy": share}]
            status, _, data = gpu_check_times.judge_timing(checked, name, 0, json.dumps(timed), [], wanted)
            self.assertEqual(status, "ok")
            return [text.split(":")[0] for text in data.get("goals", [])]
        self.assertEqual(goals("bf16", 100, [("copy", 0.85), ("TFLOP/s", 300), ("matmul", 0.4)]), ["met", "missed", "met"])
        self.assertEqual(goals("e4m3", 61, [("copy", 0.95), ("bf16", 0.6), ("us", 62)]), ["missed", "missed", "met"])
        self.assertEqual(goals("e4m3", 59, [("bf16", 0.6), ("absent", 0.6), ("copy", 0.1)], None), ["met", "not measured", "not measured"])
        rows = gpu_check_times.timed_rows()
        known = {"copy", "matmul", "TFLOP/s", "us"}
        for name, _, _, _, wanted in rows:  # what a row is compared with was timed before it
            self.assertLessEqual({what for what, _ in wanted}, known, name)
            known.add(name)

    def test_sizes_of_attention(self):
        """A batch's page table holds each page once, and no cache is larger than 4 GB."""
        sys.path.insert(0, str(ROOT / "tools"))
        import gpu_check_times
        for batch, keys in gpu_check_times.DECODE:
            _, _, args, torch, _ = gpu_check_times.decode_row("bf16", batch, keys)
            self.assertIn(f"plan.indices=i32:{batch * keys // 16}:perm", args)
            self.assertLessEqual(batch * keys * 2 * 8 * 128 * 2, 4 << 30)
            self.assertEqual(torch[0], f"decode_flash {batch}x{keys}")
        names = [row[0] for row in gpu_check_times.timed_rows()]
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual(set(gpu_check_times.COUNTED) | set(gpu_check_times.SWEPT), set(names))

    def test_only_names_ops(self):
        _, result, _, _ = check("--device", "emu", "--tree", BUILD, "--steps", "cases", "--only", "^merge_state$")
        self.assertEqual([(r["name"], r["status"]) for r in result["rows"]], [("merge_state", "ok")])

    def test_no_time_is_said(self):
        _, result, _, _ = check("--device", "emu", "--tree", BUILD, "--steps", "cases", "--budget", "1")
        self.assertEqual({(r["status"], r["detail"]) for r in result["rows"]}, {("skipped", "no time left")})


if __name__ == "__main__":
    unittest.main()
