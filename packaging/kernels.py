# SPDX-License-Identifier: Apache-2.0
"""What the wheels of precompiled kernels share (jit-cache, cubin): `flashinfer aot` fills a folder, a wheel takes its files."""
import base64
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
VERSION = (ROOT / "version.txt").read_text().strip()
_TIME = (2026, 1, 1, 0, 0, 0)  # of all files: the same kernels make the same wheel


def _command(who):
    """The command of FLASHINFER_BUILD_DIR, of the newest build of the checkout, or on the PATH."""
    build = os.environ.get("FLASHINFER_BUILD_DIR")
    found = [pathlib.Path(build)] if build else sorted(ROOT.glob("build/*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in found:
        if (folder / "bin/flashinfer").exists():
            return str(folder / "bin/flashinfer")
    command = None if build else shutil.which("flashinfer")
    if command is None:
        raise SystemExit(f"{who}: the command `flashinfer`, which compiles kernels, was not found: run `make`, or let FLASHINFER_BUILD_DIR name a "
                         "build folder")
    return command


def targets(who, settings):
    """The targets of `-C targets=`, else those of FLASHINFER_CUDA_ARCH_LIST."""
    if settings.get("targets"):
        return settings["targets"].replace(",", " ").split()
    archs = os.environ.get("FLASHINFER_CUDA_ARCH_LIST", "").replace(",", " ").split()
    if not archs:
        raise SystemExit(f'{who}: FLASHINFER_CUDA_ARCH_LIST is not set: name architectures with it ("8.0 9.0a"), or targets with -C targets=sm_80,sm_90a')
    return ["sm_" + arch.replace(".", "") for arch in archs]


def compile_into(who, folder, wanted, settings):
    """The kernels of the case tables that are marked for precompiling, those of `-C op=` alone where it is given. {path below folder: content}"""
    command = [_command(who), "aot", "--quiet", "--out-dir", str(folder), "--targets", ",".join(wanted)]
    if settings.get("op"):
        command += ["--op", settings["op"].replace(" ", ",")]
    # NVRTC is looked for in the environment of this Python and in the checkout's .venv.
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={"VIRTUAL_ENV": sys.prefix, **os.environ})
    if done.returncode != 0:
        raise SystemExit(f"{who}: `{' '.join(command)}` failed:\n{done.stdout}{done.stderr}")
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(pathlib.Path(folder).rglob("*")) if p.is_file() and not p.name.startswith(".")}


def write_wheel(folder, distribution, tag, summary, contents):
    """The wheel's name. It goes with flashinfer-cpp of its version alone."""
    name = distribution.replace("-", "_")
    info = f"{name}-{VERSION}.dist-info"
    pure = str(tag.endswith("-any")).lower()
    contents = {**contents,
                f"{info}/METADATA": f"Metadata-Version: 2.4\nName: {distribution}\nVersion: {VERSION}\nSummary: {summary}\n"
                                    "License-Expression: Apache-2.0\nRequires-Python: >=3.9\n"
                                    f"Requires-Dist: flashinfer-cpp=={VERSION}\n".encode(),
                f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: flashinfer-cpp\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode()}
    file, lines = f"{name}-{VERSION}-{tag}.whl", []
    with zipfile.ZipFile(pathlib.Path(folder) / file, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in contents.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{path},sha256={digest},{len(content)}\n")
            wheel.writestr(zipfile.ZipInfo(path, _TIME), content, zipfile.ZIP_DEFLATED)
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD", _TIME), "".join([*lines, f"{info}/RECORD,,\n"]))
    return file
