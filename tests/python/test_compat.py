# SPDX-License-Identifier: Apache-2.0
"""flashinfer-cpp-compat, the wheel with the metadata of flashinfer-python alone, and what happens beside the real package."""
import pathlib
import shutil
import subprocess
import sys
import venv
import zipfile

import pytest
from conftest import ROOT, environment

COMPAT = ROOT / "packaging" / "compat"
PIP = [sys.executable, "-m", "pip"]
OFFLINE = ["--no-index", "--no-deps", "--disable-pip-version-check", "--no-cache-dir"]


def run(*command, check=True, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compat")
    run(*PIP, "wheel", COMPAT, *OFFLINE, "--no-build-isolation", "-w", folder, "-C", "for=other-environments")
    return next(folder.glob("flashinfer_cpp_compat-*-py3-none-any.whl"))


def real_package(site, version):
    """What installing FlashInfer's own package leaves."""
    info = site / f"flashinfer_python-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: flashinfer-python\nVersion: {version}\n")
    (info / "RECORD").write_text(f"flashinfer/__init__.py,,\n{info.name}/METADATA,,\n{info.name}/RECORD,,\n")


def test_the_version_that_engines_ask_for(wheel, tmp_path):
    run(*PIP, "install", *OFFLINE, "--target", tmp_path, wheel)
    program = "import importlib.metadata as m; print(m.version('flashinfer_python'), m.version('flashinfer-python'), m.requires('flashinfer-cpp-compat'))"
    version = wheel.name.split("-")[1]
    assert run(sys.executable, "-S", "-c", program, env={"PYTHONPATH": str(tmp_path)}).stdout.split() == [
        "0.7.2.post1", "0.7.2.post1", f"['flashinfer-cpp=={version}']"]
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"flashinfer_cpp_compat-{version}.dist-info", "flashinfer_python-0.7.2.post1.dist-info"]
    names = zipfile.ZipFile(wheel).namelist()
    assert not [n for n in names if n.endswith(".py")] and len({n.split("/")[0] for n in names if ".dist-info" in n.split("/")[0]}) == 1


def test_installing_and_removing(wheel, tmp_path):
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    python = tmp_path / "env/bin/python"
    site = next((tmp_path / "env").glob("lib/python*/site-packages"))
    pip = [*PIP, "--python", python]
    run(*pip, "install", *OFFLINE, wheel)
    asked = [python, "-c", "import importlib.metadata as m; print(m.version('flashinfer_python'))"]
    assert run(*asked).stdout == "0.7.2.post1\n"
    assert run(*pip, "uninstall", "-y", "flashinfer-python", check=False).returncode != 0, "it belongs to flashinfer-cpp-compat"
    run(*pip, "uninstall", "-y", "flashinfer-cpp-compat")
    assert not list(site.glob("flashinfer*"))
    real_package(site, "0.7.1")
    refused = run(*pip, "install", *OFFLINE, "--no-build-isolation", COMPAT, check=False)
    assert refused.returncode != 0 and "FlashInfer's own package is installed" in refused.stdout + refused.stderr
    assert not list(site.glob("flashinfer_cpp_compat*"))


def imported(site):
    return run(sys.executable, "-c", "import flashinfer; print(flashinfer.__file__)", check=False,
               env=environment("theirs", PYTHONPATH=site, PYTHONDONTWRITEBYTECODE=1), cwd=site)


def test_importing_beside_the_real_package(wheel, tmp_path):
    shutil.copytree(ROOT / "python" / "flashinfer", tmp_path / "flashinfer", ignore=shutil.ignore_patterns("__pycache__"))
    run(*PIP, "install", *OFFLINE, "--target", tmp_path, wheel)
    assert pathlib.Path(imported(tmp_path).stdout.strip()).parent == tmp_path / "flashinfer", "the metadata alone is no reason to stop"
    real_package(tmp_path, "0.7.1")
    done = imported(tmp_path)
    assert done.returncode != 0
    assert (f"ImportError: flashinfer: flashinfer-python 0.7.1 and flashinfer-cpp are both installed in {tmp_path}, and both are the module "
            "`flashinfer`: their files are mixed. Run `pip uninstall flashinfer-python flashinfer-cpp`, then install the one you want.") in done.stderr
