# SPDX-License-Identifier: Apache-2.0
"""tools/bench_compare.py: what it says of two builds whose times are given."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A build whose `flashinfer bench` prints the next line of `times` for each call, the last one again and again.
PROGRAM = """#!{python}
import json, pathlib, sys
here = pathlib.Path(__file__).parent
op = sys.argv[sys.argv.index("--op") + 1]
lines = json.loads((here / "times").read_text())
count = here / ("count." + op)
n = int(count.read_text()) if count.exists() else 0
count.write_text(str(n + 1))
rows = [dict(op=o, case=c, median_s=t[min(n, len(t) - 1)]) for o, c, t in lines if op in (o, "all")]
print(json.dumps(rows))
sys.exit(0 if rows else 2)
"""


class BenchCompare(unittest.TestCase):
    def compare(self, ours, base, *more):
        with tempfile.TemporaryDirectory() as folder:
            for name, times in (("ours", ours), ("base", base)):
                program = pathlib.Path(folder) / name / "bin/flashinfer"
                program.parent.mkdir(parents=True)
                program.write_text(PROGRAM.format(python=sys.executable))
                program.chmod(0o755)
                (program.parent / "times").write_text(json.dumps(times))
            done = subprocess.run([sys.executable, ROOT / "tools/bench_compare.py", "--build", pathlib.Path(folder) / "ours", "--base-build",
                                   pathlib.Path(folder) / "base", "--rounds", "1", *more], capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

    def test_equal_and_new_rows(self):
        status, text = self.compare([["a", "one", [1.0]], ["a", "new", [9.0]], ["b", "one", [1.04]], ["c", "one", [1.0]]],
                                    [["a", "one", [1.0]], ["b", "one", [1.0]]])
        self.assertEqual(status, 0, text)
        self.assertIn("2 rows, none slower than 1.05", text)
        self.assertIn("c " + " " * 48 + " not in both builds", text)

    def test_slower(self):
        status, text = self.compare([["a", "one", [1.06]], ["b", "one", [1.0]]], [["a", "one", [1.0]], ["b", "one", [1.0]]])
        self.assertEqual(status, 1, text)
        self.assertIn("1 of 2 rows are slower than 1.05 times the base: a one: 1.060", text)
        self.assertEqual(self.compare([["a", "one", [1.06]]], [["a", "one", [1.0]]], "--limit", "1.1")[0], 0)
        self.assertEqual(self.compare([["a", "one", [1.06]], ["b", "one", [1.0]]], [["a", "one", [1.0]], ["b", "one", [1.0]]], "--ops", "b")[0], 0)

    def test_a_disturbed_round_is_measured_again(self):
        # With --ops nothing but the rounds runs: the first is disturbed, the three of the second measurement are not.
        status, text = self.compare([["a", "one", [2.0, 1.0]]], [["a", "one", [1.0]]], "--ops", "a")
        self.assertEqual(status, 0, text)
        self.assertIn("1.000", text)

    def test_a_failure_of_this_build(self):
        """A wrong name, or an op that fails, is not an op that the other build lacks."""
        status, text = self.compare([["a", "one", [1.0]]], [["a", "one", [1.0]], ["b", "one", [1.0]]], "--ops", "a", "b")
        self.assertEqual(status, 1, text)
        self.assertIn("bench --op b --seconds 0.2 --json: exit status 2", text)

    def test_nothing_to_compare(self):
        status, text = self.compare([["a", "one", [1.0]]], [["b", "one", [1.0]]])
        self.assertNotEqual(status, 0)
        self.assertIn("no row is in both builds", text)


if __name__ == "__main__":
    unittest.main()
