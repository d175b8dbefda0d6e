# SPDX-License-Identifier: Apache-2.0
"""count_tests.py BUILD: sums the cases of the last test run; exits 1 when one failed, was skipped, or none ran."""
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


def cases_of(build, test):
    """(passed, failed, skipped) of one test program."""
    ok = test.get("status") == "run"
    pytest_results = build / "test-results" / (test.get("name") + ".xml")
    if pytest_results.exists():
        suite = next(ElementTree.parse(pytest_results).getroot().iter("testsuite"))
        count = {k: int(suite.get(k)) for k in ("tests", "failures", "errors", "skipped")}
        wrong = count["failures"] + count["errors"]
        return count["tests"] - wrong - count["skipped"], max(wrong, 0 if ok else 1), count["skipped"]
    results = build / "test-results" / (test.get("name") + ".json")
    if results.exists():
        try:
            r = json.loads(results.read_text())
        except json.JSONDecodeError:
            return 0, 1, 0
        states = [c for s in r.get("testsuites", []) for c in s["testsuite"]]
        skipped = sum(c["result"] in ("SKIPPED", "SUPPRESSED") or c["status"] == "NOTRUN" for c in states)
        failed = sum(bool(c.get("failures")) for c in states)
        passed = len(states) - failed - skipped
        return passed, max(failed, 0 if ok else 1), skipped
    output = test.findtext("system-out") or ""
    ran = re.search(r"^Ran (\d+) tests? in", output, re.M)  # unittest
    if not ran:
        return int(ok), int(not ok), int(test.get("status") not in ("run", "fail"))
    wrong = sum(int(n) for n in re.findall(r"(?:failures|errors)=(\d+)", output))
    skipped = sum(int(n) for n in re.findall(r"skipped=(\d+)", output))
    return int(ran[1]) - wrong - skipped, max(wrong, 0 if ok else 1), skipped


def main():
    build = pathlib.Path(sys.argv[1])
    tests = list(ElementTree.parse(build / "tests.xml").getroot().iter("testcase"))
    total = [sum(column) for column in zip(*(cases_of(build, t) for t in tests))] or [0, 0, 0]
    print(f"{len(tests)} test programs: {total[0]} passed, {total[1]} failed" + (f", {total[2]} skipped" if total[2] else ""))
    return 0 if total[0] > 0 and total[1] == 0 and total[2] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
