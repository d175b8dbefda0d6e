# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel (PEP 517; no packages are needed): the module flashinfer_cubin, kernels for GPUs and their index."""
import hashlib
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import kernels  # noqa: E402

sys.path.pop(0)

_NAME = "flashinfer-cpp-cubin"
_MODULE = '''# SPDX-License-Identifier: Apache-2.0
"""Precompiled GPU kernels of flashinfer-cpp, which finds them here. `index.json` in get_cubin_dir() lists them."""
import os

DISTRIBUTION = "{name}"
__version__ = "{version}"


def get_cubin_dir():
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "cubins")
'''


def _index(made):
    """{"version", "cubins": [{"path", "kernel", "target", "bytes", "sha256"}]}, which flashinfer/jit/cubins.h reads."""
    listed = []
    for path, content in made.items():
        if path.endswith("/kernel.cubin"):
            about = json.loads(made[path.replace("kernel.cubin", "meta.json")])
            listed.append({"path": path, "kernel": about["name"] + about["config"], "target": about["target"], "bytes": len(content),
                           "sha256": hashlib.sha256(content).hexdigest()})
    return json.dumps({"version": kernels.VERSION, "cubins": listed}, indent=1).encode()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """`-C targets=`, `-C op=`: README.md."""
    settings = config_settings or {}
    wanted = kernels.targets(_NAME, settings)
    others = [t for t in wanted if not t.startswith("sm_")]
    if others:
        raise SystemExit(f"{_NAME}: targets are GPUs (sm_80, sm_90a, ...), but {', '.join(others)} is among them: packaging/jit-cache takes those of CPUs, too")
    with tempfile.TemporaryDirectory() as folder:
        made = kernels.compile_into(_NAME, folder, wanted, settings)
    # What a lookup reads, and the sources that listings name. meta.json has the command.
    made = {path: content for path, content in made.items() if path.endswith(("/kernel.cubin", "/meta.json", "/kernel.cu"))}
    made["index.json"] = _index(made)
    module = _MODULE.format(name=_NAME, version=kernels.VERSION).encode()
    return kernels.write_wheel(wheel_directory, _NAME, "py3-none-any", "Precompiled GPU kernels of flashinfer-cpp",
                               {"flashinfer_cubin/__init__.py": module, **{f"flashinfer_cubin/cubins/{path}": content for path, content in made.items()}})
