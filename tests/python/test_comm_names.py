# SPDX-License-Identifier: Apache-2.0
"""Every function and class of flashinfer.comm and its modules that is implemented, and every method of the classes, is used by a test that runs several ranks,
or is named here as the matter of one process, with a test of its own."""
import ast
import enum
import fnmatch
import importlib
import inspect
import pathlib

import pytest

from flashinfer import _names

TESTS = pathlib.Path(__file__).resolve().parent
FILES = [*TESTS.glob("test_comm*.py"), TESTS / "test_moe_ep.py", *(TESTS.parent / "comm").glob("test_*.py")]

# No other rank has a part in these.
ALONE = ("AllReduceFusionOp", "AllReduceStrategy*", "CommBackend", "Mapping.*", "MpiComm*", "QuantizationSFLayout", "ShmBackend", "UlyssesBackendDecision", "UlyssesRankTopology", "compute_fp4_swizzled_layout_sf_size",
         "decide_ulysses_backend", "is_mnnvl_cutedsl_supported", "probe_ulysses_rank_topology")


def names_in(ranks):
    """Names in the functions of ranks (check_* and what they call; all of tests/comm), or in all functions."""
    names = set()
    for file in FILES:
        for function in ast.parse(file.read_text()).body:
            if not ranks or isinstance(function, ast.FunctionDef) and (file.parent.name == "comm" or not function.name.startswith("test_")):
                names.update(node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else node.value
                             for node in ast.walk(function) if isinstance(node, (ast.Attribute, ast.Name)) or isinstance(node, ast.Constant))
    return names


def public():
    """Names of functions and classes, and Class.method of what each class and its bases define."""
    found = set()
    for module, names in _names.MODULES.items():
        if module.split(".")[0] != "comm":
            continue
        for name, _, meant in (n.partition("=") for n in names.split() if not n.startswith("gen_")):  # of flashinfer.jit
            value = getattr(importlib.import_module(f"flashinfer.{module}"), name, None)
            if not callable(value) or inspect.isclass(value) and issubclass(value, enum.Enum):
                continue
            found.add(meant or name)
            if inspect.isclass(value):
                found.update(f"{name}.{m}" for c in value.__mro__ if c.__module__.startswith("flashinfer") for m, f in vars(c).items()
                             if not m.startswith("_") and (inspect.isroutine(f) or isinstance(f, (staticmethod, classmethod, property))))
    return sorted(found)


OF_RANKS, OF_ALL = names_in(True), names_in(False)


@pytest.mark.parametrize("name", public())
def test_a_test_uses(name):
    alone = any(fnmatch.fnmatchcase(name, pattern) for pattern in ALONE)
    assert name.rpartition(".")[2] in (OF_ALL if alone else OF_RANKS)


def test_the_walk_finds_names():
    assert {"allreduce_fusion", "vllm_all_reduce", "MoeAlltoAll.dispatch", "PcieIpcAllReduceWorkspace.destroy", "barrier_all"} <= set(public())
