# SPDX-License-Identifier: Apache-2.0
"""Who may include whom. Reads #include lines; needs nothing but the sources."""
import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A folder may include itself and folders of a lower rank; two folders of one rank do not know each other.
RANKS = {"core": 0, "comm": 1, "formats": 1, "op": 2, "jit": 3, "record": 3, "ops": 4, "cases": 5, "replay": 6, "bench": 6,
         "trace": 7, "ffi": 8, "cli": 8}
KERNEL_SYSTEM_HEADERS = {"stdint.h", "stddef.h", "math.h", "string.h", "immintrin.h", "arm_neon.h", "cuda_fp16.h", "cuda_bf16.h"}
KERNEL_CORE_HEADERS = {"flashinfer/core/int_math.h", "flashinfer/core/scalar.h", "flashinfer/core/cuda_launch.h"}
THIRD_PARTY = {"flashinfer/core/dlpack.h"}  # unchanged from their projects (NOTICE)
PUBLIC_THIRD_PARTY = re.compile(r"nlohmann|CLI/|xxhash|libdeflate|pcre2|gtest|benchmark/|tvm/")
ROUNDING = "flashinfer/core/int_math.h"
CUT_GRID = re.compile(r"grid(\[\d\])? *= *\{? *static_cast<(unsigned|uint32_t)>\((?!std::(min|clamp)\b)")
BY_HAND = re.compile(r"\+ ([\w.:>()-]+) - 1\) / \1(?!\w)")  # (a + b - 1) / b
BY_CONSTANT = re.compile(r"\+ ([1-9]\d+|[3-9])\) / (\d+)\b")  # (a + 15) / 16
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(path):
    """[(line number, is_system, header)] of one file."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            found.append((number, match[1] == "<", match[2]))
    return found


def sources(root):
    return sorted(p for p in (root / "flashinfer").rglob("*") if p.suffix in (".h", ".cc", ".cuh", ".c"))


def folder_of(header):
    parts = header.split("/")
    return parts[1] if len(parts) > 2 and parts[0] == "flashinfer" else None


def is_emulator(relative):
    """The emulator is a part of the library; only the wrappers that kernels include are kernel headers."""
    return relative.parts[1:3] == ("kernels", "emu") and relative.name not in ("api.h", "hooks.h", "system.h")


def is_kernel(relative):
    """Freestanding files: everything below a folder `kernels`, of the library or of a family, but the emulator's own."""
    return relative.suffix == ".cuh" or ("kernels" in relative.parts and not is_emulator(relative))


def direction_errors(root):
    errors = []
    for path in sources(root):
        relative = path.relative_to(root)
        folder = folder_of(str(relative))
        for number, system, header in includes(path):
            where = f"{relative}:{number}: "
            if is_kernel(relative):
                allowed = header in KERNEL_SYSTEM_HEADERS if system else (
                    header in KERNEL_CORE_HEADERS or "/kernels/" in header)
                if not allowed:
                    errors.append(where + f"a kernel header is freestanding and may not include {header}")
                continue
            target = folder_of(header)
            if system or target is None or folder is None or target == folder:
                continue
            if is_emulator(relative):
                if target not in ("core", "kernels"):
                    errors.append(where + f"the emulator may not include {target}/ ({header})")
            elif target == "kernels":
                if header == "flashinfer/kernels/emu/emu.h" and RANKS.get(folder, 0) >= RANKS["jit"]:
                    continue  # the emulator is a part of the library, not of its kernels
                if folder not in ("ops", "jit", "bench"):
                    errors.append(where + f"{folder}/ may not include a kernel header ({header})")
            elif target not in RANKS:
                errors.append(where + f"{header} lies in a folder that has no rank")
            elif folder not in RANKS:
                errors.append(where + f"{folder}/ has no rank")
            elif RANKS[target] >= RANKS[folder]:
                errors.append(where + f"{folder}/ may not include {target}/ ({header})")
    return errors


def public_errors(root):
    """flashinfer.h and what it includes need no header but the standard library's and ours."""
    errors, seen = [], set()
    todo = [root / "flashinfer/flashinfer.h"]
    while todo:
        path = todo.pop()
        if path in seen or not path.exists():  # generated headers lie elsewhere
            continue
        seen.add(path)
        for number, _, header in includes(path):
            if PUBLIC_THIRD_PARTY.search(header):
                errors.append(f"{path.relative_to(root)}:{number}: a public header includes {header}")
            elif header.startswith("flashinfer/"):
                todo.append(root / header)
    return errors


def style_errors(root):
    """A licence line in every file. tools/format.sh --check looks at the width."""
    errors = []
    for folder in ("flashinfer", "tests", "bench", "examples", "fuzz", "tools", "cmake"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".h", ".cc", ".c", ".cuh", ".py", ".sh", ".cmake"):
                continue
            lines = path.read_text(encoding="utf-8").splitlines()
            relative = path.relative_to(root)
            if str(relative) in THIRD_PARTY:
                continue
            if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:2]):
                errors.append(f"{relative}:1: no licence line")
    return errors


def name_errors(root):
    """A program that takes an option for the name of what it writes leaves a file or folder of that name where it was started."""
    return [f"{p.name}: begins with -" for p in sorted(root.iterdir()) if p.name.startswith("-")]


def rounding_errors(root):
    """Rounded divisions are written once, in core/int_math.h."""
    errors = []
    for folder in ("flashinfer", "tests", "bench", "examples", "fuzz"):
        for path in sorted((root / folder).rglob("*")):
            relative = path.relative_to(root)
            if path.suffix not in (".h", ".cc", ".c", ".cuh") or str(relative) in THIRD_PARTY | {ROUNDING}:
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                code = line.split("//")[0]
                if BY_HAND.search(code) or any(int(m[1]) + 1 == int(m[2]) for m in BY_CONSTANT.finditer(code)):
                    errors.append(f"{relative}:{number}: use ceil_div or round_up of {ROUNDING}")
    return errors


def grid_errors(root):
    """What is cut to 32 bits as it is would launch some of the blocks alone; cuda::grid_size gives a number that no launch takes."""
    errors = []
    for path in sorted((root / "flashinfer").rglob("*")):
        if path.suffix not in (".h", ".cc"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if CUT_GRID.search(line):
                errors.append(f"{path.relative_to(root)}:{number}: use cuda::grid_size, or std::min or std::clamp, for a grid")
    return errors


class Rules(unittest.TestCase):
    maxDiff = None

    def test_dependencies_go_one_way(self):
        self.assertGreater(len(sources(ROOT)), 10)
        self.assertEqual("", "\n".join(direction_errors(ROOT)))

    def test_public_headers_need_only_the_standard_library(self):
        self.assertTrue((ROOT / "flashinfer/flashinfer.h").exists())
        self.assertEqual("", "\n".join(public_errors(ROOT)))

    def test_rounded_divisions_are_written_once(self):
        self.assertTrue((ROOT / ROUNDING).exists())
        self.assertEqual("", "\n".join(rounding_errors(ROOT)))

    def test_grids_are_checked(self):
        self.assertEqual("", "\n".join(grid_errors(ROOT)))

    def test_no_file_is_named_like_an_option(self):
        self.assertEqual("", "\n".join(name_errors(ROOT)))

    def test_licence_line(self):
        self.assertEqual("", "\n".join(style_errors(ROOT)))


class TheCheckItself(unittest.TestCase):
    """A check that finds nothing anywhere would pass for ever."""

    def check(self, files):
        with tempfile.TemporaryDirectory() as temporary:
            root = pathlib.Path(temporary)
            for name, text in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return direction_errors(root) + public_errors(root) + rounding_errors(root) + grid_errors(root) + name_errors(root)

    def test_finds_what_is_wrong(self):
        for name, line in {"flashinfer/core/a.h": '#include "flashinfer/op/op.h"',
                           "flashinfer/jit/a.cc": '#include "flashinfer/record/r.h"',
                           "flashinfer/op/a.cc": '#include "flashinfer/ops/norm/op.h"',
                           "flashinfer/record/a.cc": '#include "flashinfer/kernels/cpu/vec.h"',
                           "flashinfer/kernels/cpu/a.h": "#include <vector>",
                           "flashinfer/ops/norm/kernels/cpu/norm.h": '#include "flashinfer/core/tensor.h"',
                           "flashinfer/ops/norm/kernels/params.h": '#include "flashinfer/ops/norm/op.h"',
                           "flashinfer/bench/kernels/peak_params.h": "#include <vector>",
                           "flashinfer/op/b.cc": "int c = (a.n() + b.n() - 1) / b.n();",
                           "flashinfer/ops/norm/c.cc": "int c = (a + 15) / 16 * 16;",
                           "flashinfer/ops/norm/d.cc": "l.grid[0] = static_cast<unsigned>(rows);",
                           "flashinfer/ops/norm/e.cc": ".grid = {static_cast<uint32_t>(ceil_div(n, 2)), 1, 1},",
                           "--help/activation.pyi": "",
                           "flashinfer/flashinfer.h": "#include <nlohmann/json.hpp>"}.items():
            self.assertEqual(1, len(self.check({name: line + "\n"})), name)

    def test_accepts_what_is_right(self):
        self.assertEqual([], self.check({
            "flashinfer/ops/norm/op.cc": '#include "flashinfer/jit/jit.h"\n#include "flashinfer/ops/norm/op.h"\n#include <vector>\n',
            "flashinfer/ops/norm/kernels/cpu/norm.h": '#include <stdint.h>\n#include "flashinfer/kernels/cpu/vec.h"\n',
            "flashinfer/ops/norm/d.cc": "l.grid[0] = cuda::grid_size(n), l.grid[1] = static_cast<unsigned>(std::min<int64_t>(m, 9));\n",
            "flashinfer/op/b.cc": "int c = (first + n - 1) / size + (a + 6) / 3;  // (a + b - 1) / b",
            "flashinfer/cli/cmd_replay.cc": '#include <CLI/CLI.hpp>\n#include "flashinfer/replay/replay.h"\n'}))


if __name__ == "__main__":
    unittest.main()
