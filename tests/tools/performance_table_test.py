# SPDX-License-Identifier: Apache-2.0
"""tools/performance_table.py: the section that a run writes, and that the rest of the document stays."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD = ("op,case,candidate,args,calls,median_s,p10_s,p90_s,bytes,flops,gb_per_s,gflop_per_s,copy_gb_per_s,share_of_copy,peak_gflop_per_s,"
        "share_of_peak,check,over_first,repro_command\n")


class PerformanceTable(unittest.TestCase):
    def test_a_run_replaces_the_one_before(self):
        with tempfile.TemporaryDirectory() as folder:
            document, results = pathlib.Path(folder) / "doc.md", pathlib.Path(folder) / "out.csv"
            document.write_text("# Performance\n\nby hand\n")
            for median in (2e-3, 1.5e-6):
                results.write_text(HEAD + f'rmsnorm,bench,cpu,"input=f32:2x64, more",9,{median},1e-6,3e-3,0,0,12.34,5.0,20,0.617,0,0.0,,0.0,x\n'
                                   'top_k,given,cpu,k=1,9,1e-3,1e-3,1e-3,0,0,1,5.0,20,0.5,9,0.25,,0.0,x\n')
                done = subprocess.run([sys.executable, ROOT / "tools/performance_table.py", results, "--file", document], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
            text = document.read_text()
            self.assertTrue(text.startswith("# Performance\n\nby hand\n\n<!-- measured rows"))
            self.assertEqual(text.count("## Rows of the case tables"), 1)
            self.assertIn("| rmsnorm | bench | cpu | 1.5 us | 1-3000 | 12.3 | 0.62 | 5.0 |  |", text)
            self.assertIn("| top_k | `k=1` | cpu | 1000 us | 1000-1000 | 1.0 | 0.50 | 5.0 | 0.25 |", text)
            self.assertRegex(text, r"on 20\d\d-\d\d-\d\d, commit \w+")
            results.write_text(HEAD)
            self.assertEqual(subprocess.run([sys.executable, ROOT / "tools/performance_table.py", results, "--file", document],
                                            capture_output=True).returncode, 2)
            self.assertEqual(document.read_text(), text)


if __name__ == "__main__":
    unittest.main()
