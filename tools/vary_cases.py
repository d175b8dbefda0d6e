#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes rows of the case tables at random and runs them: extents, element types, memory layouts, numbers, flags, absent arguments.

    tools/vary_cases.py --tries 500                               # rows of all ops on the CPU
    tools/vary_cases.py --op 'bgmv_moe.*|mm_.*' --tries 200 --seed 7
    tools/vary_cases.py --device emu --tries 100                  # the GPU kernels, on the emulator

A changed row is either refused with an error or must pass all that a row of the tables passes: the
double-precision reference, guard bytes, padded rows, other thread counts. What ends by a signal, runs into the time limit or differs is
printed with the command that repeats it, and the exit status is 1. The same seed makes the same calls. For developers; not a part of `make test`."""
import argparse
import collections
import pathlib
import random
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TENSOR = re.compile(r"(?<![\w'])(f32|f16|bf16|e4m3|e5m2|f64|[ui](?:8|16|32|64)|bool|fp4x2):(\d+(?:x\d+)*)?")
FLOATS = ["f32", "f16", "bf16", "e4m3", "e5m2"]
INTEGERS = ["i32", "i64", "u8", "u32"]
MOST_ELEMENTS = {"cpu": 1 << 23, "emu": 1 << 17}  # of a tensor


def split(args):
    """[(name, value)] of a row's text; spaces within brackets and quotes do not separate."""
    parts, depth, quoted, word = [], 0, False, ""
    for c in args + " ":
        if c == " " and depth == 0 and not quoted:
            if word:
                parts.append(tuple(word.split("=", 1)))
            word = ""
            continue
        quoted ^= c == "'"
        depth += 0 if quoted else (c in "([") - (c in ")]")
        word += c
    return parts


def tensors_in(value):
    """The tensors of a value, which may be a list of them: [(start, end, dtype, shape or None)] by position in the text."""
    return [(m.start(), m.end(), m[1], m[2]) for m in TENSOR.finditer(value)]


class Row:
    """A row whose text is changed step by step."""

    def __init__(self, op, args):
        self.op, self.parts = op, split(args)

    def text(self):
        return " ".join(f"{name}={value}" for name, value in self.parts)

    def extents(self):
        return [int(e) for _, value in self.parts for *_, shape in tensors_in(value) if shape for e in shape.split("x")]

    def change_shapes(self, change):
        """change(shape text) for each tensor's shape."""
        def of(value):
            for start, end, dtype, shape in reversed(tensors_in(value)):
                if shape:
                    value = value[:start] + f"{dtype}:{change(shape)}" + value[end:]
            return value
        self.parts = [(name, of(value)) for name, value in self.parts]

    def elements(self):
        most = 0
        for _, value in self.parts:
            for *_, shape in tensors_in(value):
                product = 1
                for e in (shape or "1").split("x"):
                    product *= int(e)
                most = max(most, product)
        return most


def vary_extent(row, rng):
    """An extent becomes another one: wherever it stands (numbers of that value too), or in one tensor alone."""
    extents = row.extents()
    if not extents:
        return
    old = rng.choice(extents)
    new = rng.choice([0, 1, 2, 3, 5, 7, 8, 16, 17, 31, 33, 64, 65, 100, 128, 129, 200, 256, 513, old - 1, old + 1, old + 8, 2 * old, old // 2])
    if new < 0 or new == old:
        return
    everywhere = rng.random() < 0.85
    left = [rng.randrange(extents.count(old))]  # of occurrences to pass before the one that changes

    def change(shape):
        axes = shape.split("x")
        for i, e in enumerate(axes):
            if int(e) == old:
                if everywhere or left[0] == 0:
                    axes[i] = str(new)
                left[0] -= 1
        return "x".join(axes)

    row.change_shapes(change)
    if everywhere:
        row.parts = [(name, str(new) if value == str(old) else value) for name, value in row.parts]


def vary_dtype(row, rng):
    """An element type becomes another one: of all tensors that have it, or of one argument."""
    dtypes = [dtype for _, value in row.parts for _, _, dtype, _ in tensors_in(value)]
    if not dtypes:
        return
    old = rng.choice(dtypes)
    new = rng.choice(FLOATS if old in FLOATS else INTEGERS if old in INTEGERS else FLOATS + INTEGERS)
    only = rng.randrange(len(row.parts)) if rng.random() < 0.4 else None
    row.parts = [(name, re.sub(rf"(?<![\w'])(?:{old}):", f"{new}:", value) if only in (None, i) else value)
                 for i, (name, value) in enumerate(row.parts)]


def vary_layout(row, rng):
    """A tensor is padded or has its axes in another order."""
    fit = [i for i, (_, value) in enumerate(row.parts) if len(tensors_in(value)) == 1 and "^" not in value and not value.startswith("[")]
    if not fit:
        return
    i = rng.choice(fit)
    name, value = row.parts[i]
    rank = (tensors_in(value)[0][3] or "").count("x") + 1
    layouts = ["pad8"] + (["t"] if rank >= 2 else [])
    if rank >= 3:
        axes = list(range(rank))
        rng.shuffle(axes)
        layouts.append(f"perm({','.join(map(str, axes))})")
    row.parts[i] = (name, f"{value}^{rng.choice(layouts)}")


def vary_number(row, rng):
    """A number or a flag takes another value."""
    fit = [i for i, (_, value) in enumerate(row.parts) if re.fullmatch(r"-?\d+|True|False", value)]
    if not fit:
        return
    i = rng.choice(fit)
    name, value = row.parts[i]
    if value in ("True", "False"):
        row.parts[i] = (name, "False" if value == "True" else "True")
    else:
        n = int(value)
        row.parts[i] = (name, str(rng.choice([-1, 0, 1, 2, 3, n - 1, n + 1, 2 * n, n // 2, 7, 64])))


def drop(row, rng):
    """An argument is left out."""
    if len(row.parts) > 1:
        del row.parts[rng.randrange(len(row.parts))]


def vary_values(row, rng):
    """An element of a vector given by its values becomes another."""
    fit = [(i, m) for i, (_, value) in enumerate(row.parts) for m in [re.search(r":\[([-\d,]+)\]", value)] if m]
    if not fit:
        return
    i, m = rng.choice(fit)
    name, value = row.parts[i]
    numbers = m[1].split(",")
    j = rng.randrange(len(numbers))
    numbers[j] = str(rng.choice([-1, 0, 1, int(numbers[j] or 0) + 1, int(numbers[j] or 0) - 1, int(numbers[j] or 0) * 2, 1 << 20]))
    row.parts[i] = (name, value[:m.start(1)] + ",".join(numbers) + value[m.end(1):])


CHANGES = [(vary_extent, 10), (vary_dtype, 4), (vary_layout, 3), (vary_number, 3), (drop, 1), (vary_values, 2)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--op", default=".*", help="a regular expression of names")
    parser.add_argument("--device", default="cpu", choices=list(MOST_ELEMENTS))
    parser.add_argument("--tries", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=120, help="seconds a call may take")
    args = parser.parse_args()

    tool = args.build / "bin/flashinfer"
    listed = subprocess.run([tool, "cases", "--list", "--device", args.device], text=True, capture_output=True, check=True).stdout
    rows = collections.defaultdict(list)
    for line in listed.splitlines():
        m = re.fullmatch(r"(\S+) ([^:]*): (.*)", line)
        if m and re.fullmatch(args.op, m[1]):
            rows[m[1]].append((m[2], m[3]))
    if not rows:
        sys.exit(f"vary_cases: no op matches {args.op!r}")

    rng = random.Random(args.seed)
    counts, found = collections.Counter(), 0
    for _ in range(args.tries):
        op = rng.choice(list(rows))
        case, original = rng.choice(rows[op])
        row = Row(op, original)
        for change in rng.choices([c for c, _ in CHANGES], [w for _, w in CHANGES], k=rng.choice([1, 1, 2, 3])):
            change(row, rng)
        if row.text() == original or row.elements() > MOST_ELEMENTS[args.device]:
            counts["unchanged or too large"] += 1
            continue
        command = [str(tool), "cases", op, "--case", case, "--device", args.device, "--seeds", "1", "--args", row.text()]
        try:
            done = subprocess.run(command, text=True, errors="replace", capture_output=True, timeout=args.limit)
            output, status = done.stdout + done.stderr, done.returncode
        except subprocess.TimeoutExpired:
            output, status = f"no end after {args.limit:g} s", None
        refused = re.search(r"^FAIL \S+ given: (?:threw|run by)|^no ", output, re.MULTILINE)
        planned = re.search(r"init\.\w+: byte \d+ of \S+ was changed", output)  # plan writes into a graph wrapper's buffers
        internal = re.search(r"threw .*(?:InternalError|compil|bad_alloc|std::)", output)
        if (status == 0 and not refused) or (status == 1 and planned):
            counts["passed"] += 1
        elif status in (0, 1) and refused and not internal:
            counts["refused"] += 1
        else:
            found += 1
            how = "too slow" if status is None else "ended by a signal" if status < 0 else "internal error" if internal else "differs"
            print(f"{how}: {shlex.join(command)}\n    from: {original}\n    {output.strip()[-600:]}", flush=True)
    print(f"vary_cases: {', '.join(f'{n} {what}' for what, n in sorted(counts.items()))}, {found} found")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
