#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the library's functions with the routines, flags, output and CSV columns of FlashInfer's tool of the same name, on the CPU and on
GPUs (benchmarks/README.md).

    python3 benchmarks/flashinfer_benchmark.py --routine rmsnorm --batch_size 32 --hidden_size 4096 --refcheck -v
    python3 benchmarks/flashinfer_benchmark.py --testlist FILE --output_path results.csv
"""
import argparse
import csv
import importlib
import pathlib
import shlex
import sys

_HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE))
if (_HERE.parent / "python/flashinfer").is_dir():  # a checkout: its own package, with the newest build
    sys.path.insert(1, str(_HERE.parent / "python"))

from routines import columns, flags  # noqa: E402


class WrongUsage(Exception):
    """A command line that the parser does not take, inside a test list."""


class _ListParser(argparse.ArgumentParser):
    def error(self, message):
        raise WrongUsage(message)


def parse_args(line, in_list=False):
    """The arguments of one command; wrong ones end the program with status 2, or raise WrongUsage in a test list."""
    parser = (_ListParser if in_list else argparse.ArgumentParser)(allow_abbrev=False)
    parser.add_argument("--routine", "-R", required=True, choices=list(columns.FAMILY_OF))
    routine = parser.parse_known_args([token for token in line if token not in ("-h", "--help")])[0].routine
    if not in_list:
        parser.add_argument("--testlist", help="file of commands, one a line")
    flags.add(parser, routine, columns.FAMILY_OF[routine])
    args = parser.parse_args(line)
    if args.generate_repro_command:
        args.repro_command = "python3 flashinfer_benchmark.py " + shlex.join(line)
    if args.use_cupti:
        print("[WARNING] --use_cupti is deprecated and will be removed in a future release. CUPTI is now enabled by default.")
    args.use_cupti = not args.use_cuda_events
    return args


def names(extra):
    return columns.COLUMNS + (list(columns.EXTRA_COLUMNS) if extra else [])


def append_rows(path, args, rows):
    """One line for each row: its own value, else that of the argument of the name, else nothing."""
    with open(path, "a", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        for row in rows:
            values = [row[name] if row.get(name, "") != "" else getattr(args, name, "") for name in names(args.extra_columns)]
            out.writerow([str(v) for v in values])


def run_command(args, output_path):
    from routines import case

    module = importlib.import_module(f"routines.{columns.FAMILIES[columns.FAMILY_OF[args.routine]][0]}")
    args.output_path = output_path
    rows = case.run(args, module)
    if output_path is not None:
        append_rows(output_path, args, rows)


def run_list(path, output_path, extra):
    """The commands of a file; the exit status: 1 when one failed."""
    failed = 0
    for line in pathlib.Path(path).read_text().splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        try:
            args = parse_args(shlex.split(line), in_list=True)
            args.extra_columns = extra
            run_command(args, output_path)
        except Exception as e:  # the next command runs whatever ended this one
            failed = 1
            print(f"[ERROR] Error running test: {line}")
            print(f"[ERROR] Error: {e}")
    return failed


def main(argv):
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--testlist")
    first.add_argument("--output_path")
    first.add_argument("--extra_columns", action="store_true")
    options, _ = first.parse_known_args(argv)
    if options.output_path is not None:
        with open(options.output_path, "w") as f:
            f.write(",".join(names(options.extra_columns)) + "\n")
    if options.testlist is not None:
        return run_list(options.testlist, options.output_path, options.extra_columns)
    args = parse_args(argv)
    try:
        run_command(args, options.output_path)
    except NotImplementedError as e:
        print(f"[ERROR] {e}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
