# SPDX-License-Identifier: Apache-2.0
"""count_tests.py BUILD: sums the cases of the last test run and names those skipped; exits 1 when one failed or none ran."""
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


def of_results(file, ok):
    """(passed, failed, [skipped: reason]) of GoogleTest's or pytest's report; a program that died reports nothing failed."""
    passed, failed, skipped = 0, 0, []
    for case in ElementTree.parse(file).getroot().iter("testcase"):
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif skip is not None or case.get("status") == "notrun":
            reason = skip.get("message", "") if skip is not None else "disabled"
            skipped.append(f"{case.get('classname')}.{case.get('name')}: {reason.strip().splitlines()[-1] if reason.strip() else ''}")
        else:
            passed += 1
    return passed, failed if ok else max(failed, 1), skipped


def cases_of(build, test):
    """(passed, failed, [skipped: reason]) of one test program of ctest's report."""
    ok = test.get("status") == "run"
    name = test.get("name")
    results = build / "test-results" / (name + ".xml")
    if results.exists():
        try:
            return of_results(results, ok)
        except ElementTree.ParseError:
            return 0, 1, []
    if test.get("status") == "disabled":
        return 0, 0, [f"{name}: disabled"]
    output = test.findtext("system-out") or ""
    ran = re.search(r"^Ran (\d+) tests? in", output, re.M)  # unittest
    if not ran:
        return int(ok), int(not ok), []
    wrong = sum(int(n) for n in re.findall(r"(?:failures|errors)=(\d+)", output))
    skipped = sum(int(n) for n in re.findall(r"skipped=(\d+)", output))
    return int(ran[1]) - wrong - skipped, wrong if ok else max(wrong, 1), [f"{name}: a unittest"] * skipped


def main():
    build = pathlib.Path(sys.argv[1])
    tests = list(ElementTree.parse(build / "tests.xml").getroot().iter("testcase"))
    counts = [cases_of(build, t) for t in tests]
    passed, failed, skipped = sum(c[0] for c in counts), sum(c[1] for c in counts), sum((c[2] for c in counts), [])
    for text in skipped:
        print("skipped:", text)
    print(f"{len(tests)} test programs: {passed} passed, {failed} failed, {len(skipped)} skipped")
    return 0 if passed > 0 and failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
