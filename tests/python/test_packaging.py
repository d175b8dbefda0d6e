# SPDX-License-Identifier: Apache-2.0
"""The wheel of this build in a fresh environment: only its two dependencies, no compiler, nothing of the checkout in reach.

The wheel is made from the build folder (as `make wheel` does), with kernels precompiled for two ops, to be quick."""
import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import venv
import zipfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import try_wheel  # noqa: E402
import wheel_tag  # noqa: E402

sys.path.pop(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["FLASHINFER_BUILD_DIR"])
AHEAD = ["--op", "rmsnorm,bmm_fp8", "--target", "x86-64-v3"]

PACKAGES = try_wheel.PACKAGES

PROGRAM = """
import sys
import numpy as np
import flashinfer
assert {prefix!r} in flashinfer.__file__, flashinfer.__file__
assert "torch" not in sys.modules
x, w = np.full((2, 4096), 3, np.float16), np.full(4096, 0.5, np.float16)
out = np.zeros_like(x)
assert flashinfer.norm.rmsnorm(x, w, out=out) is out
assert isinstance(flashinfer.rmsnorm(x, w), np.ndarray)
print(out.min(), out.max())
try:
    flashinfer.rmsnorm(x, w[:100])
except ValueError as e:
    print(e)
"""


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(BUILD / "bin/flashinfer", "aot", "--quiet", "--out-dir", BUILD / "aot", *AHEAD)
    run(sys.executable, ROOT / "tools/make_stubs.py", BUILD / "stubs")
    run(sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-w", folder,
        "-C", f"cmake.define.FLASHINFER_PREBUILT={BUILD}", "-C", f"build-dir={folder}/build", cwd=folder)
    run(sys.executable, ROOT / "tools/wheel_tag.py", next(folder.glob("*.whl")), "--out", folder / "tagged", "--limit-mb", 40)
    return next(folder.glob("tagged/*.whl"))


def test_the_version_is_that_of_the_file(wheel):
    version = (ROOT / "version.txt").read_text().strip()
    assert wheel.name.startswith(f"flashinfer_cpp-{version}-")
    assert version in run(BUILD / "bin/flashinfer", "--version").split()
    import flashinfer

    assert flashinfer.__version__ == version


def test_tests_are_collected_from_the_root_without_variables():
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" and not k.startswith("FLASHINFER_")}
    text = run(sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests", cwd=ROOT, env=env)
    assert "test_packaging.py::test_the_command" in text and "test_errors.py::" in text


def test_an_editable_install_runs_the_checkout(tmp_path):
    """The modules are those of the checkout, the libraries those of its newest build, or of FLASHINFER_BUILD_DIR."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    site = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    for name in (*PACKAGES, "scikit-build-core", "packaging", "pathspec"):
        link_distribution(name, site)
    python = tmp_path / "venv/bin/python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-build-isolation", "--no-deps", "--disable-pip-version-check",
        "-e", ROOT, "-C", f"cmake.define.FLASHINFER_PREBUILT={BUILD}", "-C", f"build-dir={tmp_path}/build", cwd=tmp_path)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "FLASHINFER_BUILD_DIR": str(BUILD)}
    text = run(python, "-c", "import flashinfer; print(flashinfer.__file__, flashinfer._native.folder, flashinfer.__version__)", env=env, cwd=tmp_path)
    assert text.split() == [str(ROOT / "python/flashinfer/__init__.py"), str(BUILD / "lib"), (ROOT / "version.txt").read_text().strip()]
    assert "flashinfer.norm.rmsnorm" in run(tmp_path / "venv/bin/flashinfer", "list-ops", env=env, cwd=tmp_path)


def link_distribution(name, site):
    """What an index would install: the installed package and its metadata."""
    for top in {f.parts[0] for f in importlib.metadata.files(name) if not f.parts[0].startswith("..")}:
        target = pathlib.Path(importlib.metadata.distribution(name).locate_file(top))
        (site / top).symlink_to(target)


@pytest.fixture(scope="session")
def environment(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    for name in PACKAGES:
        link_distribution(name, site)
    run(sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--no-index", "--disable-pip-version-check", wheel)
    return folder


def bare(environment, **more):
    """No compiler, no cache, no variable of the build."""
    home = environment.parent / "home"
    return {"PATH": str(environment / "bin"), "HOME": str(home), "FLASHINFER_CPU_ISA": "x86-64-v3", **more}


def test_what_the_wheel_holds(wheel):
    assert wheel.name.endswith("-py3-none-manylinux_2_28_x86_64.whl" if (BUILD / "wheel").exists() else "_x86_64.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in ("flashinfer/__init__.py", "flashinfer/__main__.py", "flashinfer/py.typed", "flashinfer/norm/__init__.pyi", "flashinfer/comm/mnnvl.pyi", "flashinfer/decode.pyi", "flashinfer/lib/libflashinfer_tvm_ffi.so",
                   "flashinfer/share/flashinfer/include/flashinfer/ops/norm/kernels/cpu/norm.h", "flashinfer/include/flashinfer/flashinfer.h",
                   "flashinfer/include/flashinfer/ops.h"):
        assert wanted in names
    assert {n.rsplit("/", 1)[1] for n in names if ".dist-info/licenses/" in n} == {"LICENSE", "NOTICE"}
    assert not [n for n in names if n.startswith("flashinfer/include/") and "/kernels/" in n]
    assert any(n.startswith("flashinfer/lib/flashinfer/aot/x86-64-v3/") and n.endswith("kernel.so") for n in names)
    assert not [n for n in names if n.endswith((".cc", ".o", "CMakeLists.txt")) and "/aot/" not in n]
    metadata = zipfile.ZipFile(wheel).read(next(n for n in names if n.endswith("METADATA"))).decode()
    assert "Name: flashinfer-cpp\n" in metadata
    required = [line.split()[1].split(">")[0].split("<")[0] for line in metadata.splitlines()
                if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert sorted(required) == ["apache-tvm-ffi", "click"]


def test_the_tag_is_that_of_the_newest_symbol(tmp_path):
    """Of what a library calls of glibc, and `linux` for one that needs a library which not every system has."""
    (tmp_path / "other.c").write_text("int other(void) { return 2; }\n")
    (tmp_path / "old.c").write_text('#include <stdlib.h>\nint old(void) { return abs(-1); }\n')
    (tmp_path / "new.c").write_text("#include <dlfcn.h>\nvoid* new(void) { return dlopen(0, RTLD_NOW); }\n")
    (tmp_path / "strange.c").write_text("int other(void);\nint strange(void) { return other(); }\n")
    run("cc", "-shared", "-fPIC", tmp_path / "other.c", "-o", tmp_path / "libother.so")
    for name, extra in (("old", []), ("new", []), ("strange", [tmp_path / "libother.so"])):
        folder = tmp_path / name
        folder.mkdir()
        run("cc", "-shared", "-fPIC", "-Wl,-soname,x", tmp_path / f"{name}.c", *extra, "-o", folder / f"{name}.so")
    assert wheel_tag.tag_of(tmp_path / "old") == ("manylinux_2_28_x86_64", [])
    tag, against = wheel_tag.tag_of(tmp_path / "new")
    versions, _ = wheel_tag.needs([tmp_path / "new/new.so"])
    newest = max(versions["GLIBC"])
    assert (tag == "manylinux_2_28_x86_64") == (newest <= (2, 28)) and (not against or "new.so needs GLIBC_2." in against[0])
    tag, against = wheel_tag.tag_of(tmp_path / "strange")
    assert tag == "linux_x86_64" and "libother.so" in against[0]


def test_runs_without_compiler_and_cache(environment):
    program = PROGRAM.format(prefix=str(environment))
    done = run(environment / "bin/python", "-c", program, env=bare(environment), cwd=environment)
    assert done == "0.5 0.5\nrmsnorm: weight.shape[0] is 100, but d is 4096 (from input.shape[1])\n"
    # The same with the kernels out of reach: the reference runs, with a warning.
    ahead = next(environment.glob("lib/python*/site-packages/flashinfer/lib/flashinfer/aot"))
    ahead.rename(ahead.with_name("hidden"))
    try:
        slow = subprocess.run([environment / "bin/python", "-c", program], env=bare(environment), cwd=environment, capture_output=True,
                              text=True)
    finally:
        ahead.with_name("hidden").rename(ahead)
    assert slow.stdout == done and "no C++ compiler" in slow.stderr


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can run programs as another user")
def test_another_user_without_compiler_network_and_home(wheel):
    """What a service runs: the rows of the case tables whose kernels the wheel has, none by the reference."""
    with try_wheel.environment(wheel) as root:
        text = try_wheel.run_bare(root, ["python", "-c", try_wheel.PROGRAM.format(prefix=str(root))], "x86-64-v3")
        assert text.startswith(f"0.5 uid {try_wheel.NOBODY} home read-only\n")
        if "unshare" in "".join(try_wheel.as_another()):
            assert text.endswith("\nno network\n")
        for op, least in (("rmsnorm", 4), ("bmm_fp8", 1)):
            text = try_wheel.run_bare(root, ["flashinfer", "cases", "--precompiled", op], "x86-64-v3")
            passed, failed = re.search(r"(\d+) passed, (\d+) failed", text).groups()
            assert int(passed) >= least and failed == "0", text
        assert not list((root / "home").iterdir())


def test_the_command(environment):
    command = environment / "bin/flashinfer"
    text = run(command, "show-config", env=bare(environment))
    assert "C++ compiler: no C++ compiler" in text
    assert f"Precompiled: {environment}" in text
    assert "Torch Version Info" in text and "cannot be imported" in text
    version = run(command, "--version", env=bare(environment))
    assert version == run(environment / "bin/python", "-m", "flashinfer", "--version", env=bare(environment))
    # A case must be run by the compiled kernels (a product needs two), not by the reference.
    assert "1 passed, 0 failed" in run(command, "cases", "bmm_fp8", "--case", "e4m3", env=bare(environment))
    assert "1 passed, 0 failed" in run(command, "cases", "rmsnorm", "--args", "input=f16:4x4096 weight=f16:4096", env=bare(environment))


def test_libraries_need_only_what_every_debian_has(environment):
    folder = next(environment.glob("lib/python*/site-packages/flashinfer/lib"))
    everywhere = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "linux-vdso.so.1"}
    for library in folder.glob("*.so*"):
        for line in run("ldd", library).splitlines():
            name, _, target = line.strip().partition(" => ")
            name = pathlib.Path(name.split(" (")[0]).name
            # TVM-FFI's library is in memory when ours is loaded: its package was imported.
            assert name in everywhere | {"libtvm_ffi.so"} or target.startswith(str(folder)), f"{library.name}: {line}"


def test_pip_sees_all_requirements(environment):
    run(sys.executable, "-m", "pip", "--python", environment / "bin/python", "check", "--disable-pip-version-check")


def test_with_a_compiler_the_package_compiles_from_its_own_headers(environment, tmp_path):
    env = bare(environment, HOME=str(tmp_path), PATH=f"{environment}/bin:{os.environ['PATH']}", FLASHINFER_JIT_VERBOSE="1",
               FLASHINFER_CPU_ISA="portable")  # precompiled for x86-64-v3 only
    done = subprocess.run([environment / "bin/flashinfer", "cases", "rmsnorm", "--args", "input=f32:4x768 weight=f32:768"], env=env,
                          capture_output=True, text=True)
    assert "1 passed, 0 failed" in done.stdout
    assert str(environment) in done.stderr and str(ROOT / "flashinfer") not in done.stderr


def test_a_wheel_of_kernels(environment, tmp_path):
    """packaging/jit-cache: kernels of a second wheel are found beside those of the first, and go with it."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    offline = ["--no-index", "--no-deps"]
    run(*pip, "wheel", ROOT / "packaging/jit-cache", *offline, "--no-build-isolation", "-w", tmp_path, "-C", "targets=portable", "-C", "op=packbits",
        env={**os.environ, "FLASHINFER_BUILD_DIR": str(BUILD)})
    made = next(tmp_path.glob("flashinfer_cpp_jit_cache-*.whl"))
    run(*pip, "--python", environment / "bin/python", "install", *offline, made)
    site = next(environment.glob("lib/python*/site-packages"))
    added = site / "flashinfer/lib/flashinfer/aot/portable"
    assert list(added.glob("quantization.pack_bits-*/kernel.so"))
    program = "import numpy, flashinfer; print(flashinfer.packbits(numpy.ones(16, bool)).tolist())"
    env = {**bare(environment), "FLASHINFER_CPU_ISA": "portable", "FLASHINFER_LOGLEVEL": "0"}
    done = subprocess.run([environment / "bin/python", "-W", "error", "-c", program], env=env, capture_output=True, text=True)
    assert done.stdout == "[255, 255]\n", done.stderr  # with -W error: the reference, which warns, did not run
    run(*pip, "--python", environment / "bin/python", "uninstall", "-y", "flashinfer-cpp-jit-cache")
    assert not [p for p in added.rglob("*") if p.is_file()] and (site / "flashinfer/__init__.py").exists()


def test_a_wheel_of_kernels_needs_targets(tmp_path):
    env = {k: v for k, v in os.environ.items() if k != "FLASHINFER_CUDA_ARCH_LIST"}
    program = f"import sys; sys.path.insert(0, {str(ROOT / 'packaging/jit-cache')!r}); import backend; backend.build_wheel({str(tmp_path)!r})"
    done = subprocess.run([sys.executable, "-c", program], env={**env, "FLASHINFER_BUILD_DIR": str(BUILD)}, capture_output=True, text=True)
    assert done.returncode == 1 and "FLASHINFER_CUDA_ARCH_LIST is not set" in done.stderr and not list(tmp_path.iterdir())
