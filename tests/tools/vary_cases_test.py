# SPDX-License-Identifier: Apache-2.0
"""tools/vary_cases.py over a stand-in for the flashinfer command: what it changes, and which outcomes count as found."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "vary_cases.py"
ROW = "x=bf16:4x64 w=[bf16:64,bf16:64] indptr=i32:[0,2,4] axis=64 flag=True"
STAND_IN = """#!/bin/sh
[ "$2" = --list ] && echo "scale_rows one row: {row}" && exit 0
for last; do :; done
echo "$last" >> {calls}
case "{outcome}" in
  signal) kill -SEGV $$ ;;
  passed) ;;
  *) echo "FAIL scale_rows given: {outcome}"; exit 1 ;;
esac
"""


def vary(outcome, tries=40):
    """(exit status, output, texts of the calls) where each call ends as `outcome` says."""
    with tempfile.TemporaryDirectory() as folder:
        tool, calls = pathlib.Path(folder) / "bin/flashinfer", pathlib.Path(folder) / "calls"
        tool.parent.mkdir()
        tool.write_text(STAND_IN.format(row=ROW, calls=calls, outcome=outcome))
        tool.chmod(0o755)
        done = subprocess.run([sys.executable, str(SCRIPT), "--build", folder, "--tries", str(tries)], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, calls.read_text().splitlines()


class VaryCases(unittest.TestCase):
    def test_rows_change_and_the_same_seed_makes_the_same_calls(self):
        status, output, calls = vary("passed", 150)
        self.assertEqual(status, 0, output)
        self.assertNotIn(ROW, calls)
        self.assertGreater(len(set(calls)), 20)
        self.assertEqual(calls, vary("passed", 150)[2])

    def test_an_extent_changes_wherever_it_stands(self):
        shared = [c for c in vary("passed", 150)[2] if "bf16:4x64" not in c and c.count("bf16:65") == 2]
        self.assertTrue(any("x=bf16:4x65" in c and "axis=65" in c for c in shared), shared)

    def test_an_error_of_the_call_is_a_refusal(self):
        for outcome in ["threw ValueError: x has 3 axes", "run by reference instead of cpu; cpu: d is 3"]:
            status, output, calls = vary(outcome, 5)
            self.assertEqual(status, 0, output)
            self.assertIn("refused, ", output)

    def test_differences_crashes_and_internal_errors_are_found(self):
        for outcome, how in [("against the reference: out differs in 2 of 8 elements", "differs"), ("signal", "ended by a signal"),
                             ("threw std::bad_alloc", "internal error")]:
            status, output, calls = vary(outcome, 5)
            self.assertEqual(status, 1, output)
            self.assertEqual(output.count(f"{how}: "), len(calls), output)


if __name__ == "__main__":
    unittest.main()
