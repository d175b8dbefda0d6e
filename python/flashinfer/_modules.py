# SPDX-License-Identifier: Apache-2.0
"""Modules of the package that have no file: those of the library's ops, and those of the table `_names`, which are made when they
are first imported.

A name of the table is, in this order, what the library exports under it (an op, a class of ops, an enum), what a file of the package
has (`HOMES`), a generator of JIT specs, and else a function or class whose call raises NotImplementedError and says why. It is looked
up at its first use, so that a table of a thousand names costs an import nothing. Every module has a spec, before and after its import
(`importlib.util.find_spec`); parents are packages.

Engines ask by `hasattr(module, name)` and `getattr(module, name, None)` what they may use, and import whole lists of names from modules
of which they use a few. So a name without an implementation is there where a program writes it out (`from module import name`,
`module.name`) and is not there for hasattr, getattr and dir: the instruction that the calling frame executes tells which it is.
"""
import dis
import fnmatch
import functools
import importlib
import importlib.machinery
import os
import sys
import types

from ._names import HOMES, MODULES, PACKAGES, REASONS

_PACKAGE = __package__
_homes = {name: home for home, names in HOMES.items() for name in names.split()}
_missing = {}
_FOLDER = os.path.dirname(__file__)
_SHARED = ("utils", "jit", "api_logging", "autotuner", "tllm_enums")  # modules whose public names the others have as well
_HELPERS = frozenset(("_check_kv_layout", "_check_pos_encoding_mode", "_expand_4d", "_expand_5d", "_get_cache_buf", "_get_range_buf",
                      "_unpack_paged_kv_cache"))  # of utils, which FlashInfer's other modules import and programs take from there
_WRITTEN_OUT = frozenset(dis.opmap[n] for n in ("IMPORT_FROM", "IMPORT_STAR", "CALL_INTRINSIC_1", "LOAD_ATTR", "LOAD_METHOD")
                         if n in dis.opmap)  # CALL_INTRINSIC_1: `import *` from Python 3.12 on


class Module(types.ModuleType):
    """A module without a file. A function keeps its name when a submodule of the same name is imported."""

    def __setattr__(self, name, value):
        if isinstance(value, types.ModuleType) and (name in listed(self.__name__) or callable(self.__dict__.get(name))):
            value = self.__dict__[name] if name in self.__dict__ else resolve(self.__name__, name)
            if is_missing(value):
                return
        super().__setattr__(name, value)

    def __getattr__(self, name):
        if name == "__all__":  # of a module of ops that the table gives more names
            return sorted({*(n for n in self.__dict__ if not n.startswith("_")), *listed(self.__name__)})
        return resolve(self.__name__, name, sys._getframe(1))

    def __dir__(self):
        return sorted({*self.__dict__, *(n for n in listed(self.__name__) if hasattr(self, n))})


def _short(module):
    return module[len(_PACKAGE) + 1:]


@functools.lru_cache(maxsize=None)
def listed(module):
    """The names that the table gives a module, each with the name that it has in this package."""
    pairs = (item.partition("=") for item in MODULES.get(_short(module), "").split())
    return {name: other or name for name, _, other in pairs}


def is_file(module):
    """Whether the module `flashinfer.<...>` is a file or folder of the package."""
    path = os.path.join(_FOLDER, *_short(module).split("."))
    return os.path.exists(path + ".py") or os.path.exists(os.path.join(path, "__init__.py"))


def _spec(module):
    loader = importlib.machinery.ModuleSpec(module, _Finder, is_package=_short(module) in PACKAGES)
    loader.origin = "the library's registry"
    return loader


class _Finder:
    """Finds and loads modules of the table. First of the finders: a folder with stubs alone would pass for a namespace package."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if not fullname.startswith(_PACKAGE + ".") or _short(fullname) not in MODULES or is_file(fullname):
            return None
        return _spec(fullname)

    @staticmethod
    def create_module(spec):
        return Module(spec.name)

    @staticmethod
    def exec_module(module):
        module.__doc__ = f"Names of {module.__name__} that are defined elsewhere in the package, or not available (docs/python.md)."
        module.__all__ = list(listed(module.__name__))


def install():
    """Puts the finder in place of one of an earlier import of the package."""
    sys.meta_path[:] = [_Finder, *(f for f in sys.meta_path if getattr(f, "__module__", "") != __name__)]


def make(name, doc):
    """A module of ops: in sys.modules, with a spec, an attribute of its parent."""
    spec = _spec(name)
    module = sys.modules[name] = Module(name, doc)
    module.__spec__, module.__loader__, module.__package__ = spec, spec.loader, spec.parent
    if spec.submodule_search_locations is not None:
        module.__path__ = spec.submodule_search_locations
    parent, _, leaf = name.rpartition(".")
    if parent != _PACKAGE and parent not in sys.modules:
        importlib.import_module(parent)
    setattr(sys.modules[parent], leaf, module)
    return module


def names_of(module):
    """A `__getattr__` for a file of the package that the table gives more names."""
    return lambda name: resolve(module, name, sys._getframe(1))


def is_missing(value):
    return hasattr(value, "not_available")


def shown(module, name, value, frame):
    """`value`, which has no implementation, unless `frame` asks by hasattr or getattr: an AttributeError."""
    if frame is not None and frame.f_code.co_code[frame.f_lasti] not in _WRITTEN_OUT:
        raise AttributeError(f"module {module!r} has no attribute {name!r}: {value.not_available}")
    return value


def resolve(module, name, frame=None):
    """The object that `name` stands for in `module`, kept in the module if it has an implementation: a name of the table, a submodule,
    or a public name of `_SHARED`. `frame` is the one that asks; None: any name of the table is wanted.

    Raises:
        AttributeError: the table does not have that name, or it has no implementation and the program asks by hasattr or getattr
    """
    if name not in listed(module):
        if f"{_short(module)}.{name}" in MODULES:
            return importlib.import_module(f"{module}.{name}")
        value = _shared(module, name)
        if value is None:
            value = _elsewhere(module, name)
        if value is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
    else:
        value = _find(module, listed(module)[name])
    if is_missing(value):
        return shown(module, name, value, frame)
    if module in sys.modules:
        sys.modules[module].__dict__[name] = value
    return value


def value_of(module, name):
    """The object of that name of the table, with or without an implementation."""
    made = sys.modules[module].__dict__
    return made[name] if name in made else resolve(module, name)


def _shared(module, name):
    """What FlashInfer's module has because its file imports it: 640 names, such as `flashinfer.decode.gen_batch_decode_module`, which
    programs take from there. None when no module of `_SHARED` has it."""
    if name.startswith("_") and name not in _HELPERS or module == _PACKAGE or _short(module).split(".")[0] in _SHARED:
        return None
    for home in _SHARED:
        value = getattr(importlib.import_module(f"{_PACKAGE}.{home}"), name, None)
        if value is not None and not isinstance(value, types.ModuleType):
            return value
    return None


def _elsewhere(module, name):
    """What this package has under another module: FlashInfer's modules have each other's names, and its files other borders. A loader of
    FlashInfer's own module of kernels (`get_norm_module`) is a name without an implementation. None for everything else."""
    from . import _make

    if name.startswith("_") or module == _PACKAGE or not isinstance(sys.modules.get(module), Module):
        return None
    if fnmatch.fnmatchcase(name, "get_*_module") and name not in _homes:
        return missing(module, name)
    if name in _make.package.exports:
        return _make.package.exports[name]
    return getattr(importlib.import_module(f"{_PACKAGE}.{_homes[name]}"), name) if name in _homes else None


def _find(module, name):
    from . import _make

    exports = _make.package.exports
    if name in exports:
        return exports[name]
    parent = sys.modules[module.rpartition(".")[0] or module]
    if name in parent.__dict__ and parent.__name__ != _PACKAGE:  # what the library makes beside its functions: tuples, structures
        return parent.__dict__[name]
    if name in _homes:
        return getattr(importlib.import_module(f"{_PACKAGE}.{_homes[name]}"), name)
    if name.startswith("gen_"):
        found = getattr(importlib.import_module(_PACKAGE + ".jit"), name, None)
        if found is not None:
            return found
    return missing(module, name)


def reason(module, name):
    """Why `name` is not available, and what to use."""
    for keys, why in REASONS:
        for key in keys.split():
            if fnmatch.fnmatchcase(name, key) or key == "@" + _short(module) or key.startswith("@") and _short(module).startswith(key[1:] + "."):
                return why
    return "it is not implemented"


def missing(module, name):
    """A function or class (an exception where the name says so) that raises NotImplementedError when it is called."""
    if name not in _missing:
        text = f"{module}.{name} is not available: {reason(module, name)}"

        def unavailable(*args, **kwargs):
            raise NotImplementedError(text)

        if name.endswith("Error"):
            made = type(name, (RuntimeError,), {})
        elif name[0].isupper():
            made = type(name, (), {"__init__": unavailable})
        else:
            made = unavailable
            made.__name__ = made.__qualname__ = name
        made.__module__, made.__doc__, made.not_available = module, text + ".", text
        _missing[name] = made
    return _missing[name]


def refusing(module, names):
    """`__getattr__` of a module that has names of FlashInfer without a counterpart, a text."""
    names = frozenset(names.split())

    def __getattr__(name):
        if name in names:
            return shown(module, name, missing(module, name), sys._getframe(1))
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__


def unavailable_names():
    """{module: [name, ...]} of all that raises NotImplementedError, for docs/python.md."""
    found = {}
    for short in sorted(MODULES):
        module = f"{_PACKAGE}.{short}" if short else _PACKAGE
        importlib.import_module(module)
        names = [n for n in listed(module) if is_missing(value_of(module, n))]
        if names:
            found[module] = names
    return found
