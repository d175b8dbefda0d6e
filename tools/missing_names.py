# SPDX-License-Identifier: Apache-2.0
"""Writes the names that exist without an implementation into docs/python.md, between the two marks, or
fails when the file says something else. Needs PYTHONPATH=python and FLASHINFER_BUILD_DIR."""
import argparse
import pathlib
import sys
import textwrap

import flashinfer
from flashinfer import _modules

FILE = pathlib.Path(__file__).resolve().parents[1] / "docs/python.md"
BEGIN, END = "<!-- missing names: tools/missing_names.py -->", "<!-- end of missing names -->"


def table():
    """One paragraph for each module of the first level, with the reason before its names."""
    by_reason, seen = {}, set()
    for module, names in _modules.unavailable_names().items():
        for name in names:
            if name not in seen:
                seen.add(name)
                top = module.split(".")[1] if "." in module else "flashinfer"
                by_reason.setdefault((top, _modules.value_of(module, name).not_available.partition(": ")[2]), []).append(name)
    lines = [f"{len(seen)} names, by module:", ""]
    for (top, reason), names in sorted(by_reason.items()):
        lines += textwrap.wrap(f"- `{top}` ({reason}): " + ", ".join(f"`{n}`" for n in sorted(names)), 160, subsequent_indent="  ",
                               break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the file says something else")
    check = parser.parse_args().check
    text = FILE.read_text()
    before, _, rest = text.partition(BEGIN + "\n")
    _, _, after = rest.partition(END)
    wanted = f"{before}{BEGIN}\n{table()}\n{END}{after}"
    if not check:
        FILE.write_text(wanted)
    elif text != wanted:
        sys.exit("docs/python.md does not list the names that are missing now: run tools/missing_names.py")


if __name__ == "__main__":
    assert flashinfer
    main()
