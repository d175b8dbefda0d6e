# SPDX-License-Identifier: Apache-2.0
"""tools/performance_table.py: the section that a run writes, and that the rest of the document stays."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD = ("op,case,candidate,args,calls,median_s,p10_s,p90_s,bytes,flops,gb_per_s,gflop_per_s,copy_gb_per_s,share_of_copy,peak_gflop_per_s,"
        "share_of_peak,check,over_first,threads,read_gb_per_s,share_of_read,over,over_s,over_ratio,torch_s,torch_ratio,goal,repro_command\n")


class PerformanceTable(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.document = pathlib.Path(folder.name), pathlib.Path(folder.name) / "doc.md"
        self.document.write_text("# Performance\n\nby hand\n")

    def write(self, name, *rows):
        (self.folder / f"{name}.csv").write_text(HEAD + "".join(row + "\n" for row in rows))

    def run_tool(self):
        return subprocess.run([sys.executable, ROOT / "tools/performance_table.py", self.folder, "--file", self.document], capture_output=True, text=True)

    def test_a_run_replaces_the_one_before(self):
        frame = "=" * 80 + "\n"
        (self.folder / "bench_empty.txt").write_text(f"a program's | text\nCall/repeats:5_mean    5 ns\nCall/repeats:5_median  4 ns\n{frame}WARNING\n{frame}end\n")
        for median in (2e-3, 1.5e-6):
            self.write("bandwidth", f'rmsnorm,bench,cpu,"input=f32:2x64, more",9,{median},1e-6,3e-3,0,0,12.34,5.0,20,0.617,0,0.0,,0.0,2,0,0,,,,,,share_of_copy>=0.8,x',
                       "top_k,given,cpu,k=1,9,1e-3,1e-3,1e-3,0,0,1,5.0,20,0.5,9,0.25,,0.0,2,0,0,,,,,,share_of_peak>=0.2,x")
            self.write("other", "mm,label,cpu,k=1,9,1e-3,1e-3,1e-3,0,0,1,5.0,20,0.5,9,0.25,,0.0,2,3,0.75,one thread,1,1.875,1,2.5,torch_ratio<=2,x")
            done = self.run_tool()
            self.assertEqual(done.returncode, 0, done.stderr)
        text = self.document.read_text()
        self.assertTrue(text.startswith("# Performance\n\nby hand\n\n<!-- measured rows"))
        self.assertEqual(text.count("## Measured"), 1)
        self.assertIn("### Ops that move memory, beside a copy of as many bytes in turns", text)
        self.assertIn("| rmsnorm | bench | cpu | 1.5 us | 1-3000 | 12.3 | **0.62** |  |  | of the copy >= 0.8 |", text)
        self.assertIn("| top_k | `k=1` | cpu | 1000 us | 1000-1000 | 1.0 | 0.50 | 5.0 | 0.25 | of the peak >= 0.2 |", text)
        self.assertIn("| mm | label | cpu | 1000 us | 1000-1000 | 1.0 | 0.75 | 5.0 | 0.25 | **2.50** | 1.88 (one thread) | torch's time <= 2 |", text)
        self.assertIn("### bench_empty\n\n```\na program's | text\nCall                   4 ns\nend\n```", text)
        self.assertRegex(text, r"on 20\d\d-\d\d-\d\d, commit \w+")

    def test_small_shares_are_left_out(self):
        row = "mm,{0},cpu,k=1,9,1e-3,1e-3,1e-3,0,0,1,5.0,20,0.05,9,0.05,,0.0,2,0,0,,,,,,{1},x"
        self.write("bandwidth", row.format("a", ""), row.format("b", "share_of_peak>=0.2"))
        self.assertEqual(self.run_tool().returncode, 0)
        text = self.document.read_text()
        self.assertIn("| mm | a | cpu | 1000 us | 1000-1000 | 1.0 |  |  |  |", text)
        self.assertIn("| mm | b | cpu | 1000 us | 1000-1000 | 1.0 | 5.0 | **0.05** | of the peak >= 0.2 |", text)

    def test_a_peer_that_is_not_installed_misses_nothing(self):
        self.write("bandwidth", "mm,label,cpu,k=1,9,1e-3,1e-3,1e-3,0,0,1,5.0,20,0.5,9,0.25,,0.0,2,0,0,,,,,,torch_ratio>=2,x")
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertNotIn("**", self.document.read_text())

    def test_a_run_without_rows_writes_nothing(self):
        self.write("bandwidth")
        self.assertEqual(self.run_tool().returncode, 2)
        self.assertEqual(self.document.read_text(), "# Performance\n\nby hand\n")


if __name__ == "__main__":
    unittest.main()
