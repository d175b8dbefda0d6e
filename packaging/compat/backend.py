# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel: its own metadata and that of flashinfer-python (PEP 517; no packages are needed).

A wheel has one .dist-info folder, so the second one lies under .data/purelib, which installers copy beside the first. It has no
RECORD: pip then neither replaces nor removes it by the name flashinfer-python, only with flashinfer-cpp-compat, whose RECORD lists it.
"""
import base64
import hashlib
import pathlib
import sysconfig
import zipfile

INTERFACE = "0.7.2.post1"  # the version of flashinfer-python whose interface the package has
_ROOT = pathlib.Path(__file__).resolve().parents[2]
_LICENSE = "License-Expression: Apache-2.0\n"


def _version():
    return (_ROOT / "version.txt").read_text().strip()


def _real_package(folder):
    """The .dist-info of a flashinfer-python with files of its own, in `folder`."""
    for info in pathlib.Path(folder).glob("flashinfer_python-*.dist-info"):
        record = info / "RECORD"
        if record.exists() and "flashinfer/__init__.py" in record.read_text():
            return info
    return None


def _refuse_beside_the_real_package():
    for scheme in ("purelib", "platlib"):
        info = _real_package(sysconfig.get_path(scheme))
        if info:
            raise SystemExit(f"flashinfer-cpp-compat: FlashInfer's own package is installed ({info}). Programs find its version already; to use "
                             "flashinfer-cpp in its place, uninstall flashinfer-python first.")


def _files(version):
    own, other = f"flashinfer_cpp_compat-{version}.dist-info", f"flashinfer_python-{INTERFACE}.dist-info"
    data = f"flashinfer_cpp_compat-{version}.data/purelib/{other}"
    return {
        f"{data}/METADATA": f"Metadata-Version: 2.4\nName: flashinfer-python\nVersion: {INTERFACE}\n"
                            "Summary: Not FlashInfer's own package: flashinfer-cpp has its interface (installed by flashinfer-cpp-compat)\n" + _LICENSE,
        f"{data}/INSTALLER": "flashinfer-cpp-compat\n",
        f"{own}/METADATA": f"Metadata-Version: 2.4\nName: flashinfer-cpp-compat\nVersion: {version}\n"
                           f"Summary: Answers importlib.metadata.version('flashinfer_python') with {INTERFACE}\n{_LICENSE}"
                           f"Requires-Python: >=3.9\nRequires-Dist: flashinfer-cpp=={version}\n",
        f"{own}/WHEEL": "Wheel-Version: 1.0\nGenerator: flashinfer-cpp\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }, f"{own}/RECORD"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """`for=other-environments` (as `make wheel` passes): the wheel is not for this one, which is not looked at."""
    if (config_settings or {}).get("for") != "other-environments":
        _refuse_beside_the_real_package()
    version = _version()
    files, record = _files(version)
    name = f"flashinfer_cpp_compat-{version}-py3-none-any.whl"
    lines = []
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, text in files.items():
            content = text.encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{path},sha256={digest},{len(content)}\n")
            wheel.writestr(zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0)), content)  # the same bytes at every build
        wheel.writestr(zipfile.ZipInfo(record, (2026, 1, 1, 0, 0, 0)), "".join([*lines, f"{record},,\n"]))
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("there is no sdist: install the wheel, or the folder packaging/compat of a checkout")
