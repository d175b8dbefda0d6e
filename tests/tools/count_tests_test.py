# SPDX-License-Identifier: Apache-2.0
"""tools/count_tests.py on reports of ctest, GoogleTest, pytest and unittest: what passed, failed and was skipped."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "count_tests.py"
GOOGLETEST = """<testsuites><testsuite name="A"><testcase name="One" status="run" result="completed" classname="A"/>
<testcase name="Two" status="run" result="skipped" classname="A"><skipped message="/x/y.cc:3&#x0A;needs two CPUs"/></testcase>
<testcase name="Three" status="run" result="completed" classname="A"><failure message="x.cc:3&#x0A;wrong"/></testcase></testsuite></testsuites>"""
PYTEST = """<testsuites><testsuite><testcase classname="p" name="one"/><testcase classname="p" name="two">
<skipped type="pytest.skip" message="this machine has a GPU">here</skipped></testcase></testsuite></testsuites>"""
UNITTEST = "Ran 5 tests in 1s\n\nOK (skipped=1)\n"


def count(programs, results):
    """(exit status, output) for {program: (ctest's status, output)} and {program: its report}."""
    with tempfile.TemporaryDirectory() as folder:
        build = pathlib.Path(folder)
        (build / "test-results").mkdir()
        cases = "".join(f'<testcase name="{name}" status="{status}"><system-out>{output}</system-out></testcase>'
                        for name, (status, output) in programs.items())
        (build / "tests.xml").write_text(f"<testsuite>{cases}</testsuite>")
        for name, text in results.items():
            (build / "test-results" / f"{name}.xml").write_text(text)
        done = subprocess.run([sys.executable, str(SCRIPT), folder], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout


class CountTests(unittest.TestCase):
    def test_skips_are_named_and_do_not_fail(self):
        status, output = count({"p": ("run", ""), "u": ("run", UNITTEST)}, {"p": PYTEST})
        self.assertEqual(output, "skipped: p.two: this machine has a GPU\nskipped: u: a unittest\n"
                                 "2 test programs: 5 passed, 0 failed, 2 skipped\n")
        self.assertEqual(status, 0)

    def test_failures_fail(self):
        status, output = count({"g": ("fail", "")}, {"g": GOOGLETEST})
        self.assertEqual(output, "skipped: A.Two: needs two CPUs\nfailed: A.Three: x.cc:3 | wrong\n"
                                 "1 test programs: 1 passed, 1 failed, 1 skipped\n")
        self.assertEqual(status, 1)

    def test_failures_of_unittest_are_named(self):
        output = "FAIL: test_x (__main__.X)\nRan 5 tests in 1s\n\nFAILED (failures=1)\n"
        self.assertEqual(count({"u": ("fail", output)}, {})[1], "failed: u: test_x\n1 test programs: 4 passed, 1 failed, 0 skipped\n")

    def test_what_a_passing_program_prints_is_no_failure(self):
        self.assertIn(": 4 passed, 0 failed, 1 skipped", count({"u": ("run", "ERROR: no (such) file\nERROR: x (y)\n" + UNITTEST)}, {})[1])

    def test_a_program_that_dies_or_is_missing_has_failed(self):
        passing = PYTEST.replace("skipped", "system-out")
        self.assertIn(": 4 passed, 2 failed, 0 skipped", count({"a": ("fail", "killed"), "b": ("notrun", ""), "p": ("run", ""),
                                                               "q": ("run", "")}, {"p": passing, "q": passing})[1])
        self.assertEqual(count({"p": ("fail", "x\nkilled")}, {"p": passing})[1],
                         "failed: p: the program failed: killed\n1 test programs: 2 passed, 1 failed, 0 skipped\n")
        self.assertIn(": 0 passed, 1 failed, 0 skipped", count({"p": ("run", "")}, {"p": "<testsuites>"})[1])

    def test_nothing_run_is_a_failure(self):
        self.assertEqual(count({}, {})[0], 1)


if __name__ == "__main__":
    unittest.main()
