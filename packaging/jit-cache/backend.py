# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel (PEP 517; no packages are needed): `flashinfer aot` fills a folder, which becomes flashinfer/lib/flashinfer/aot."""
import base64
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import zipfile

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_AOT = "flashinfer/lib/flashinfer/aot"
_TIME = (2026, 1, 1, 0, 0, 0)  # of all files: the same kernels make the same wheel


def _command():
    """The command of FLASHINFER_BUILD_DIR, of the newest build of the checkout, or on the PATH."""
    build = os.environ.get("FLASHINFER_BUILD_DIR")
    found = [pathlib.Path(build)] if build else sorted(_ROOT.glob("build/*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in found:
        if (folder / "bin/flashinfer").exists():
            return str(folder / "bin/flashinfer")
    command = None if build else shutil.which("flashinfer")
    if command is None:
        raise SystemExit("flashinfer-cpp-jit-cache: the command `flashinfer`, which compiles kernels, was not found: run `make`, or let "
                         "FLASHINFER_BUILD_DIR name a build folder")
    return command


def _targets(settings):
    """What `flashinfer aot` is told to compile for."""
    if settings.get("targets"):
        return ["--targets", settings["targets"]]
    archs = os.environ.get("FLASHINFER_CUDA_ARCH_LIST", "").replace(",", " ").split()
    if not archs:
        raise SystemExit("flashinfer-cpp-jit-cache: FLASHINFER_CUDA_ARCH_LIST is not set: name architectures with it (\"8.0 9.0a\"), or targets with "
                         "-C targets=sm_80,sm_90a")
    return ["--targets", ",".join("sm_" + arch.replace(".", "") for arch in archs)]


def _compile(folder, settings):
    command = [_command(), "aot", "--quiet", "--out-dir", str(folder), *_targets(settings)]
    if settings.get("op"):
        command += ["--op", settings["op"]]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"flashinfer-cpp-jit-cache: `{' '.join(command)}` failed:\n{done.stdout}{done.stderr}")


def _metadata(version):
    info = f"flashinfer_cpp_jit_cache-{version}.dist-info"
    return info, {
        f"{info}/METADATA": "Metadata-Version: 2.4\nName: flashinfer-cpp-jit-cache\n"
                            f"Version: {version}\nSummary: Precompiled kernels of flashinfer-cpp\nLicense-Expression: Apache-2.0\n"
                            f"Requires-Python: >=3.9\nRequires-Dist: flashinfer-cpp=={version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: flashinfer-cpp\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n",
    }


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """`-C targets=`, `-C op=`: README.md."""
    version = (_ROOT / "version.txt").read_text().strip()
    info, texts = _metadata(version)
    name = f"flashinfer_cpp_jit_cache-{version}-py3-none-linux_x86_64.whl"
    with tempfile.TemporaryDirectory() as folder:
        _compile(folder, config_settings or {})
        files = {f"{_AOT}/{p.relative_to(folder)}": p for p in sorted(pathlib.Path(folder).rglob("*")) if p.is_file() and not p.name.startswith(".")}
        contents = {**{path: p.read_bytes() for path, p in files.items()}, **{path: text.encode() for path, text in texts.items()}}
    lines = []
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in contents.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{path},sha256={digest},{len(content)}\n")
            wheel.writestr(zipfile.ZipInfo(path, _TIME), content, zipfile.ZIP_DEFLATED)
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD", _TIME), "".join([*lines, f"{info}/RECORD,,\n"]))
    return name
