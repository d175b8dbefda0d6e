# SPDX-License-Identifier: Apache-2.0
"""count_tests.py BUILD: sums the cases of the last test run and names those that were skipped or failed; exits 1 when one
failed or none ran."""
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


def text_of(case, outcome):
    """CLASS.NAME: the message, on one line."""
    message = outcome.get("message") or outcome.text or ""
    return f"{case.get('classname')}.{case.get('name')}: {' | '.join(message.split(chr(10)))[:500].strip()}"


def of_results(file):
    """(passed, [failed], [skipped]) of GoogleTest's or pytest's report."""
    passed, failed, skipped = 0, [], []
    for case in ElementTree.parse(file).getroot().iter("testcase"):
        skip = case.find("skipped")
        wrong = [x for x in (case.find("failure"), case.find("error")) if x is not None]
        if wrong:
            failed.append(text_of(case, wrong[0]))
        elif skip is not None or case.get("status") == "notrun":
            reason = (skip.get("message", "") if skip is not None else "disabled").strip()
            skipped.append(f"{case.get('classname')}.{case.get('name')}: {reason.splitlines()[-1] if reason else ''}")
        else:
            passed += 1
    return passed, failed, skipped


def cases_of(build, test):
    """(passed, [failed], [skipped]) of one test program of ctest's report."""
    ok = test.get("status") == "run"
    name = test.get("name")
    output = test.findtext("system-out") or ""
    end = output.strip().splitlines()[-1:]
    died = [] if ok else [": ".join([name, "the program failed", *end])]
    results = build / "test-results" / (name + ".xml")
    if results.exists():
        try:
            passed, failed, skipped = of_results(results)
        except ElementTree.ParseError:
            return 0, died or [f"{name}: {results.name} is not complete"], []
        return passed, failed or died, skipped
    if test.get("status") == "disabled":
        return 0, [], [f"{name}: disabled"]
    ran = re.search(r"^Ran (\d+) tests? in", output, re.M)  # unittest
    if not ran:
        return int(ok), died, []
    wrong = re.findall(r"^(?:FAIL|ERROR): (\w+) \(", output, re.M) if re.search(r"^FAILED \(", output, re.M) else []
    skipped = sum(int(n) for n in re.findall(r"skipped=(\d+)", output))
    failed = [f"{name}: {w}" for w in wrong] or died
    return int(ran[1]) - len(wrong) - skipped, failed, [f"{name}: a unittest"] * skipped


def main():
    build = pathlib.Path(sys.argv[1])
    tests = list(ElementTree.parse(build / "tests.xml").getroot().iter("testcase"))
    counts = [cases_of(build, t) for t in tests]
    passed, failed, skipped = sum(c[0] for c in counts), sum((c[1] for c in counts), []), sum((c[2] for c in counts), [])
    for text in skipped:
        print("skipped:", text)
    for text in failed:
        print("failed:", text)
    print(f"{len(tests)} test programs: {passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 0 if passed > 0 and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
