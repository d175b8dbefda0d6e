# SPDX-License-Identifier: Apache-2.0
"""The generated .pyi files say what the functions are: same names, order, kinds and defaults, and nothing is left out."""
import ast
import importlib
import inspect
import os
import pathlib
import subprocess
import sys
import types

import pytest

import flashinfer

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def stubs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stubs")
    # In an interpreter without site packages: a wheel is built where there is no torch.
    done = subprocess.run([sys.executable, "-S", ROOT / "tools/make_stubs.py", folder], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    assert done.returncode == 0, done.stderr
    return {name_of(path.relative_to(folder)): ast.parse(path.read_text()) for path in folder.rglob("*.pyi")}


def name_of(path):
    """"norm" for norm.pyi and norm/__init__.pyi, "fused_moe.core" for fused_moe/core.pyi; "__init__" for the package."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


def test_an_option_is_no_folder(tmp_path):
    done = subprocess.run([sys.executable, ROOT / "tools/make_stubs.py", "--help"], capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    assert done.returncode == 0 and done.stdout.startswith("usage:"), done.stderr
    assert not list(tmp_path.iterdir())


def shape_of_stub(node):
    """[(name, kind, default text)] of a `def`."""
    a = node.args
    positional = a.posonlyargs + a.args
    defaults = [None] * (len(positional) - len(a.defaults)) + a.defaults
    found = [(p.arg, "POSITIONAL_OR_KEYWORD", d) for p, d in zip(positional, defaults)]
    found += [(a.vararg.arg, "VAR_POSITIONAL", None)] if a.vararg else []
    found += [(p.arg, "KEYWORD_ONLY", d) for p, d in zip(a.kwonlyargs, a.kw_defaults)]
    found += [(a.kwarg.arg, "VAR_KEYWORD", None)] if a.kwarg else []
    return [(name, kind, None if d is None else ast.unparse(d)) for name, kind, d in found]


def shape_of(function):
    return [(p.name, p.kind.name, None if p.default is p.empty else ast.unparse(ast.parse("..." if repr(p.default).startswith("<") else repr(p.default), mode="eval")))
            for p in inspect.signature(function).parameters.values()]


def defined(tree):
    return {n.name: n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


def made_modules():
    return {name.partition(".")[2]: module for name, module in sys.modules.items()
            if name.startswith("flashinfer.") and isinstance(module, types.ModuleType) and not getattr(module, "__file__", None)}


def test_every_function_and_method_agrees(stubs):
    checked = 0
    for module_name, module in made_modules().items():
        nodes = defined(stubs[module_name])
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", None) != module.__name__ or hasattr(value, "not_available"):
                continue
            if hasattr(value, "_fields"):  # a tuple of results by name
                assert tuple(n.target.id for n in nodes[name].body) == value._fields
                continue
            pairs = [(nodes[name], value)] if isinstance(value, types.FunctionType) else \
                [(m, getattr(vars(value)[m.name], "__func__", vars(value)[m.name])) for m in nodes[name].body if isinstance(m, ast.FunctionDef)]
            for node, function in pairs:
                assert shape_of_stub(node) == shape_of(function), f"{module_name}.{name}"
                checked += 1
            if isinstance(value, type):
                public = {n for n, m in vars(value).items() if isinstance(m, (types.FunctionType, classmethod)) and (n == "__init__" or n[0] != "_")}
                assert {m.name for m in nodes[name].body if isinstance(m, ast.FunctionDef)} == public
    assert checked > 60


def test_the_package_reexports_what_it_has(stubs):
    imported = {alias.asname: node.module for node in stubs["__init__"].body if isinstance(node, ast.ImportFrom) for alias in node.names}
    own = defined(stubs["__init__"])  # of ops that are at top level alone
    for name in flashinfer.__all__:
        assert name == "__version__" or (name in own) != (name in imported), name
        if imported.get(name):
            assert getattr(sys.modules["flashinfer." + imported[name]], name) is getattr(flashinfer, name)
    for name in made_modules():
        assert name in imported or "." in name
    assert shape_of_stub(own["prepare_low_latency_gemm_weights"]) == shape_of(flashinfer.prepare_low_latency_gemm_weights)


def test_annotations_follow_the_schema(stubs):
    function = defined(stubs["norm"])["rmsnorm"]
    annotations = {a.arg: ast.unparse(a.annotation) for a in function.args.args}
    assert annotations == {"input": "_T", "weight": "Array", "eps": "float", "out": "Optional[Array]", "enable_pdl": "Optional[bool]"}
    assert ast.unparse(function.returns) == "_T"
    assert "dtype of input" in ast.get_docstring(function)
    run = next(m for m in defined(stubs["decode"])["BatchDecodeWithPagedKVCacheWrapper"].body if getattr(m, "name", "") == "run")
    assert ast.unparse(run.returns) == "Union[_T, Any]"  # one tensor, two with return_lse


def test_names_of_the_table_are_in_the_stubs(stubs):
    from flashinfer import _modules

    for short in filter(None, _modules.MODULES):
        module = importlib.import_module("flashinfer." + short)
        if getattr(module, "__file__", None) and short not in stubs:
            continue
        tree = stubs[short]
        names = {a.asname for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names} | set(defined(tree))
        names |= {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)}
        assert set(_modules.listed(module.__name__)) <= names, short
    missing = defined(stubs["comm"])["trtllm_custom_all_reduce"]
    assert ast.unparse(missing.returns) == "NoReturn" and "allreduce_fusion" in ast.get_docstring(missing)
    assert "ActivationType" in {a.asname for n in stubs["fused_moe.core"].body if isinstance(n, ast.ImportFrom) for a in n.names}
