#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the library's functions with the routines, flags, output and CSV columns of FlashInfer's tool of the same name, on the CPU and on
GPUs (benchmarks/README.md).

    python3 benchmarks/flashinfer_benchmark.py --routine rmsnorm --batch_size 32 --hidden_size 4096 --refcheck -v
    python3 benchmarks/flashinfer_benchmark.py --testlist FILE --output_path results.csv
"""
import argparse
import contextlib
import csv
import importlib
import os
import pathlib
import shlex
import sys

_HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE))
if (_HERE.parent / "python/flashinfer").is_dir():  # a checkout: its own package, with the newest build
    sys.path.insert(1, str(_HERE.parent / "python"))

from routines import columns, flags, ranks  # noqa: E402


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
    rows = module.run(args) if hasattr(module, "run") else case.run(args, module)
    if output_path is not None:
        append_rows(output_path, args, rows)


def list_lines(path):
    lines = [line.strip() for line in pathlib.Path(path).read_text().splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def communicates(words):
    """Whether a command's words have a routine that runs on several processes."""
    return any(columns.FAMILY_OF.get(word.rpartition("=")[2]) in columns.COMMUNICATION for word in words)


def run_list(path, output_path, extra, follows=False):
    """The commands of a file, or, on a rank that follows, those that communicate; the exit status: 1 when one failed."""
    failed = 0
    for line in list_lines(path):
        try:
            args = parse_args(shlex.split(line), in_list=True)
            if follows and columns.FAMILY_OF[args.routine] not in columns.COMMUNICATION:
                continue
            args.extra_columns = extra
            run_command(args, output_path)
        except Exception as e:  # the next command runs whatever ended this one
            failed = 1
            print(f"[ERROR] Error running test: {line}")
            print(f"[ERROR] Error: {e}")
    return failed


def run_as_follower(argv, options):
    """A rank beside rank 0: takes part in the commands that communicate, prints and writes nothing. Rank 0 has the exit status: launchers
    end a job at the first rank whose status is not 0."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        try:
            if options.testlist is not None:
                run_list(options.testlist, None, False, follows=True)
            else:
                run_command(parse_args(argv), None)
        except (AssertionError, NotImplementedError, ValueError):  # rank 0 has it too
            pass
    return 0


def main(argv):
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--testlist")
    first.add_argument("--output_path")
    first.add_argument("--extra_columns", action="store_true")
    options, _ = first.parse_known_args(argv)
    if ranks.launched()[0] > 0 and communicates(argv if options.testlist is None else " ".join(list_lines(options.testlist)).split()):
        return run_as_follower(argv, options)
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
