# SPDX-License-Identifier: Apache-2.0
"""flashinfer-cpp-cubin (packaging/cubin): a wheel of precompiled GPU kernels, which programs find without any setting."""
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["FLASHINFER_BUILD_DIR"])
DRIVER = BUILD / "lib/fake_libcuda.so"  # of one sm_90a
PROGRAM = """
import json, flashinfer
from flashinfer import artifacts
from flashinfer.jit import env, norm
kernels = [k for k in norm.gen_norm_module().kernels if k["target"] == "sm_90a" and k["kind"] == "aot"]
print(json.dumps({"used": env.has_flashinfer_cubin(), "folder": str(env.FLASHINFER_CUBIN_DIR), "status": artifacts.get_artifacts_status(),
                  "aot": sorted(k["library"] for k in kernels), "listed": [path for path, _ in artifacts.get_subdir_file_list()]}))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The package of rmsnorm's kernels, installed in a folder of its own."""
    if importlib.util.find_spec("nvidia.cuda_nvrtc") is None and importlib.util.find_spec("nvidia.cu13") is None:
        pytest.skip("the wheel nvidia-cuda-nvrtc is not installed: no kernel can be compiled")
    if not DRIVER.exists():
        pytest.skip(f"{DRIVER} is not there: it is built with the tests")
    folder = tmp_path_factory.mktemp("cubins")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    for command in ([*pip, "wheel", ROOT / "packaging/cubin", "--no-index", "--no-deps", "--no-build-isolation", "-w", folder, "-C", "targets=sm_90a", "-C",
                     "op=rmsnorm"],
                    [*pip, "install", "--no-index", "--no-deps", "--target", folder / "site", f"flashinfer-cpp-cubin=={version()}", "--find-links", folder]):
        done = subprocess.run(command, env={**os.environ, "FLASHINFER_BUILD_DIR": str(BUILD)}, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def version():
    return (ROOT / "version.txt").read_text().strip()


def run(site, program=PROGRAM, **env):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(site)]), "FLASHINFER_LIBCUDA": str(DRIVER), **env}
    env.pop("FLASHINFER_AOT_DIR", None)
    return subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)


def test_kernels_of_the_package_are_found(site):
    done = run(site)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    said, cubins = json.loads(done.stdout), site / "flashinfer_cubin/cubins"
    files = sorted(str(p.relative_to(cubins)) for p in cubins.rglob("kernel.cubin"))
    assert said["used"] and said["folder"] == str(cubins) and len(files) > 2
    assert said["aot"] == [str(cubins / f) for f in files]  # the library's lookup takes each of them
    assert sorted(map(tuple, said["status"])) == [(f, True) for f in files] and sorted(said["listed"]) == files


def test_the_listings_name_the_package_and_what_it_lacks(site, tmp_path):
    copy = tmp_path / "site"
    shutil.copytree(site, copy)
    first = sorted((copy / "flashinfer_cubin/cubins").rglob("kernel.cubin"))[0]
    first.write_bytes(first.read_bytes()[:-1])  # damaged
    count = len(list(copy.rglob("kernel.cubin")))
    config = run(copy, "import sys; from flashinfer.__main__ import cli; cli(['show-config'])").stdout
    assert f"Downloaded {count - 1}/{count} cubins: installed in {copy}/flashinfer_cubin/cubins" in config
    listed = run(copy, "from flashinfer.__main__ import cli; cli(['list-cubins'])").stdout
    assert len(re.findall(r"sm_90a +\| Missing ", listed)) == 1, listed
    (copy / "flashinfer_cubin/cubins/index.json").write_text("{")
    assert json.loads(run(copy).stdout)["status"] == [["index.json", False]]


def test_a_package_of_another_version_is_not_used(site, tmp_path):
    copy = tmp_path / "site"
    shutil.copytree(site, copy)
    module = copy / "flashinfer_cubin/__init__.py"
    module.write_text(module.read_text().replace(version(), "0.0.9"))
    done = run(copy)
    assert f"flashinfer-cpp-cubin 0.0.9 is not used: flashinfer-cpp is {version()}" in done.stderr
    said = json.loads(done.stdout)
    assert not said["used"] and said["aot"] == said["status"] == []
    unchecked = run(copy, FLASHINFER_DISABLE_VERSION_CHECK="1")
    assert unchecked.stderr == "" and json.loads(unchecked.stdout)["aot"]  # the same kernels, each compared by the library


def test_the_module_of_flashinfer_cubin_is_left_alone(site, tmp_path):
    (tmp_path / "flashinfer_cubin.py").write_text("__version__ = '0.7.2.post1'\n")
    done = run(tmp_path)
    assert done.stderr == "" and not json.loads(done.stdout)["used"]


def test_targets_are_gpus(tmp_path):
    program = (f"import sys; sys.path.insert(0, {str(ROOT / 'packaging/cubin')!r}); import backend; "
               f"backend.build_wheel({str(tmp_path)!r}, {{'targets': 'sm_90a,portable'}})")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1 and "targets are GPUs (sm_80, sm_90a, ...), but portable is among them" in done.stderr and not list(tmp_path.iterdir())
