# SPDX-License-Identifier: Apache-2.0
"""`flashinfer` and `python -m flashinfer`: the library's own commands as a click group, made from their table.

Parsing here gives help and shell completion; what the user wrote goes to the library as it is, which does the work and decides
the exit code (0 all well, 1 a failure the command looks for, 2 wrong usage or unreadable input)."""

import ctypes
import json
import os
import platform
import signal
import sys
import threading
from importlib import metadata

import click

from . import _native
from .version import __version__  # noqa: F401: FlashInfer has it here

PACKAGES = ("torch", "numpy", "safetensors", "apache-tvm-ffi", "click", "triton", "nvidia-cudnn-frontend", "nvidia-cuda-nvrtc",
            "flashinfer-cpp-cubin")


def _version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _torch_lines():
    try:
        import torch
    except ImportError as e:
        return {"status": f"cannot be imported: {e}"}
    return {"version": torch.__version__, "CUDA": str(torch.version.cuda), "CUDA available": str(torch.cuda.is_available()),
            "threads": str(torch.get_num_threads())}


def _sections():
    """What the reports of the library cannot know without Python: {title: {key: value}}."""
    return {"Python / Platform": {"Python": platform.python_version(), "implementation": platform.python_implementation(),
                                  "executable": sys.executable},
            "PyTorch": _torch_lines(),
            "cuDNN Frontend": {"nvidia-cudnn-frontend": _version("nvidia-cudnn-frontend")},
            "Relevant Packages": {p: _version(p) for p in PACKAGES}}


_WRITE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)
_TAKE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
_SECTIONS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, _TAKE, ctypes.c_void_p)


class _Host(ctypes.Structure):  # flashinfer/cli/run_c.h
    _fields_ = [("self", ctypes.c_void_p), ("write", _WRITE), ("terminal", ctypes.c_int), ("sections", _SECTIONS)]


_library = ctypes.CDLL(os.path.join(_native.folder, "libflashinfer_commands.so"))
_library.flashinfer_commands.restype = ctypes.c_char_p


def run(args, take=None):
    """Runs `flashinfer <args>`; what it says goes through click as it says it, or its output to `take`. Returns the exit code."""
    failures = []

    @_WRITE
    def write(_, error, text, size):
        if failures:
            return  # the reader has closed the pipe
        try:
            text = ctypes.string_at(text, size).decode("utf-8", "replace")
            if take is not None and not error:
                take(text)
            else:
                click.echo(text, err=bool(error), nl=False)
        except BaseException as e:  # raised below: nothing may pass through the library
            failures.append(e)

    @_SECTIONS
    def sections(_, take, to):
        text = json.dumps(_sections()).encode()
        take(to, text, len(text))

    host = _Host(None, write, sys.stdout.isatty(), sections)
    texts = (ctypes.c_char_p * len(args))(*map(os.fsencode, args))
    # Long commands run inside the library, where Python's handler for Ctrl-C would wait for their end.
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_DFL) if in_main else None
    try:
        code = _library.flashinfer_run_command(len(args), texts, ctypes.byref(host))
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
    if failures:
        raise failures[0]
    return code


class Command(click.Command):
    """One command of the library."""

    def parse_args(self, ctx, args):
        ctx.meta[__name__] = [self.name, *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx):
        ctx.exit(run(ctx.meta[__name__]))


def _type(text):
    if "{" in text:
        return click.Choice(text[text.index("{") + 1:text.index("}")].split(","))
    return click.INT if text.startswith("INT") else click.FLOAT if text.startswith("FLOAT") else click.STRING


def _parameters(row):
    """click's parameters for one of the library's, which may be an argument, an option or either."""
    help_text = row["help"] + (f"  [default: {row['default']}]" if row["default"] else "")
    if row["names"]:
        required = row["required"] and not row["positional"]
        kind = {} if row["flag"] else {"type": _type(row["type"])}
        yield click.Option(row["names"], is_flag=row["flag"], multiple=row["multiple"], required=required, help=help_text, **kind)
    if row["positional"]:
        yield click.Argument(["positional_" + row["positional"]], required=row["required"] and not row["names"],
                             metavar=f"[{row['positional'].upper()}]")


def _show_version(ctx, _, wanted):
    if wanted and not ctx.resilient_parsing:
        ctx.exit(run(["--version"]))


def _download_cubin(ctx, _, wanted):
    if wanted and not ctx.resilient_parsing:
        ctx.exit(run(["--download-cubin"]))


@click.group(invoke_without_command=True, help="Kernels for LLM serving, with a call log, a flight recorder and a replayer.")
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Show the version and exit.")
@click.option("--download-cubin", is_flag=True, expose_value=False, is_eager=True, callback=_download_cubin, help="As the command download-cubin.")
@click.pass_context
def cli(ctx):
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for _row in json.loads(_library.flashinfer_commands()):
    cli.add_command(Command(_row["name"], help=_row["help"], params=[p for r in _row["parameters"] for p in _parameters(r)]))


if __name__ == "__main__":
    cli(prog_name="flashinfer")
