# SPDX-License-Identifier: Apache-2.0
"""Solutions as callables: their sources are written to a cache folder, Python is imported, C++ and CUDA are built by TVM-FFI."""
import importlib.util
import os
import sys
import tempfile

from ..trace.solution import SupportedBindings


def _write(solution):
    """The folder of the sources, made whole: files under another name, then a rename."""
    from . import cache_folder

    parent = cache_folder()
    folder = os.path.join(parent, solution.hash[:16])
    if os.path.isdir(folder):
        return folder
    os.makedirs(parent, mode=0o700, exist_ok=True)
    made = tempfile.mkdtemp(dir=parent, prefix="new-")
    for source in solution.sources:
        path = os.path.join(made, source.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(source.content)
    try:
        os.rename(made, folder)
    except OSError:
        if not os.path.isdir(folder):
            raise
    return folder


def load(solution):
    """ValueError: a solution that cannot be loaded here, with the reason."""
    spec = solution.spec
    if spec.destination_passing_style:
        raise ValueError(f"Solution {solution.name}: destination_passing_style solutions, which get their outputs as arguments, are not supported; "
                         "let it return its outputs")
    folder = _write(solution)
    entry = os.path.join(folder, solution.entry_file)
    if spec.is_python_family:
        name = f"_flashinfer_solution_{solution.hash[:16]}"
        module_spec = importlib.util.spec_from_file_location(name, entry, submodule_search_locations=None)
        module = importlib.util.module_from_spec(module_spec)
        sys.modules[name] = module
        sys.path.insert(0, os.path.dirname(entry))
        try:
            module_spec.loader.exec_module(module)
        finally:
            sys.path.remove(os.path.dirname(entry))
        found = getattr(module, solution.entry_symbol, None)
        if found is None:
            raise ValueError(f"Solution {solution.name}: {solution.entry_file} has no {solution.entry_symbol}")
        return found
    if spec.binding is not SupportedBindings.TVM_FFI:
        raise ValueError(f"Solution {solution.name}: {spec.language.value} with the binding "
                         f"{spec.binding.value if spec.binding else None} cannot be built here; tvm-ffi can")
    import tvm_ffi.cpp

    files = [os.path.join(folder, s.path) for s in solution.sources]
    module = tvm_ffi.cpp.load(name=f"solution_{solution.hash[:16]}", cpp_files=[f for f in files if f.endswith((".cc", ".cpp"))],
                              cuda_files=[f for f in files if f.endswith(".cu")], extra_include_paths=[folder])
    native = module[solution.entry_symbol]

    def call(**inputs):
        return native(*inputs.values())  # by position: C++ has no names

    call.needs_warm_up = False
    return call
