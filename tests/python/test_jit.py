# SPDX-License-Identifier: Apache-2.0
"""Libraries of a program's own sources (flashinfer.jit.gen_jit_spec)."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import torch
from conftest import environment

from flashinfer import jit
from flashinfer.jit import core, cpp_ext, env

ADD = """#include <tvm/ffi/tvm_ffi.h>
#include "amount.h"
void add(tvm::ffi::TensorView x, tvm::ffi::TensorView y) {
  for (int64_t i = 0; i < x.size(0); ++i)
    static_cast<float*>(y.data_ptr())[i] = static_cast<const float*>(x.data_ptr())[i] + AMOUNT;
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(add, add);
"""
NUMBER = """#include <tvm/ffi/tvm_ffi.h>
int {name}() {{ return NUMBER; }}
TVM_FFI_DLL_EXPORT_TYPED_FUNC({name}, {name});
"""


@pytest.fixture
def sources(tmp_path):
    (tmp_path / "amount.h").write_text("#define AMOUNT 1.0f\n")
    (tmp_path / "add.cc").write_text(ADD)
    return tmp_path


def added(module):
    out = torch.empty(2)
    module.add(torch.tensor([1.0, 2.0]), out)
    return (out - torch.tensor([1.0, 2.0])).tolist()


# ---- folders ----
def test_folders_are_those_of_the_library(cache):
    version = env.FLASHINFER_WORKSPACE_DIR
    assert env.FLASHINFER_BASE_DIR == cache.parent.parent and version.parent == cache == env.FLASHINFER_CACHE_DIR
    assert env.FLASHINFER_JIT_DIR == version / "modules" and env.FLASHINFER_GEN_SRC_DIR == version / "generated"
    assert (env.FLASHINFER_CSRC_DIR / "flashinfer/kernels/cpu/vec.h").is_file() and env.FLASHINFER_INCLUDE_DIR == env.FLASHINFER_CSRC_DIR
    assert not version.exists()  # asking makes nothing


def test_folders_follow_the_environment_after_a_call(tmp_path):
    """An op's call makes the library read its variables before anything of flashinfer.jit is used."""
    program = ("import os, torch, flashinfer\n"
               "flashinfer.rmsnorm(torch.ones(1, 64), torch.ones(64))\n"
               f"os.environ['FLASHINFER_WORKSPACE_BASE'] = {str(tmp_path)!r}\n"
               "from flashinfer.jit import env\n"
               "print(env.FLASHINFER_BASE_DIR)\n")
    done = subprocess.run([sys.executable, "-c", program], env=environment("ours"), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(tmp_path)


def test_the_precompiled_folder_follows_its_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("FLASHINFER_AOT_DIR", str(tmp_path))
    assert env.FLASHINFER_AOT_DIR == tmp_path.resolve()


def test_a_program_may_choose_another_folder(cache, sources, tmp_path):
    env.FLASHINFER_JIT_DIR = tmp_path / "elsewhere"
    try:
        spec = jit.gen_jit_spec("adder", [sources / "add.cc"])
        assert added(spec.build_and_load()) == [1.0, 1.0]
        assert spec.get_library_path().is_relative_to(tmp_path / "elsewhere") and spec.build_dir == tmp_path / "elsewhere/adder"
    finally:
        del env.FLASHINFER_JIT_DIR
    assert not spec.is_compiled and not env.FLASHINFER_JIT_DIR.exists()


# ---- a library of sources ----
def test_build_load_call(cache, sources):
    spec = jit.gen_jit_spec("adder", [sources / "add.cc"])
    assert isinstance(spec, jit.JitSpec) and not spec.is_compiled and not spec.is_aot and spec.try_load() is None
    assert added(spec.build_and_load()) == [1.0, 1.0]
    path = spec.get_library_path()
    assert spec.is_compiled and path.name == "adder.so" and path.is_relative_to(env.FLASHINFER_JIT_DIR)
    assert spec.get_library_paths() == (path,) and sorted(p.name for p in path.parent.iterdir()) == [
        "adder.so", "build.ninja", "compile_commands.json", "dependencies.txt", "meta.json"]
    status = core.jit_spec_registry.get_spec_status("adder")
    assert (status.status, status.library_path, status.sources) == ("Compiled", path, [sources / "add.cc"])


def test_rebuilt_when_a_header_source_or_flag_changes_and_only_then(cache, sources):
    spec = jit.gen_jit_spec("adder", [sources / "add.cc"])
    assert added(spec.build_and_load()) == [1.0, 1.0]
    first, stamp = spec.get_library_path(), spec.get_library_path().stat().st_mtime_ns
    os.utime(sources / "add.cc"), os.utime(sources / "amount.h")  # a time is no change
    spec.build()
    assert (spec.get_library_path(), spec.get_library_path().stat().st_mtime_ns) == (first, stamp)

    (sources / "amount.h").write_text("#define AMOUNT 2.0f\n")
    assert not spec.is_compiled
    assert added(spec.build_and_load()) == [2.0, 2.0]
    (sources / "amount.h").write_text("#define AMOUNT 1.0f\n")  # back again: both are kept
    assert spec.is_compiled and (spec.get_library_path(), spec.get_library_path().stat().st_mtime_ns) == (first, stamp)

    (sources / "add.cc").write_text(ADD.replace("+ AMOUNT", "+ 3 * AMOUNT"))
    assert not spec.is_compiled
    assert added(spec.build_and_load()) == [3.0, 3.0]

    other = jit.gen_jit_spec("adder", [sources / "add.cc"], extra_cflags=["-UNDEBUG"])
    assert not other.is_compiled and spec.is_compiled


def test_a_damaged_library_is_rebuilt(cache, sources):
    spec = jit.gen_jit_spec("adder", [sources / "add.cc"])
    spec.build()
    spec.get_library_path().write_bytes(b"torn")
    assert not spec.is_compiled
    assert added(spec.build_and_load()) == [1.0, 1.0]


def test_several_sources_flags_and_an_adapter(cache, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.cc").write_text(NUMBER.format(name=name))
    (tmp_path / "include").mkdir()
    spec = jit.gen_jit_spec("numbers", [tmp_path / "one/same.cc", str(tmp_path / "two/same.cc")], extra_cflags=["-DNUMBER=7"],
                            extra_include_paths=[tmp_path / "include"], post_load_adapter=lambda m: (m.one(), m.two()))
    assert spec.build_and_load() == (7, 7)
    commands = spec.get_compile_commands()
    assert [c["file"] for c in commands] == [str(s) for s in spec.sources] and all("-DNUMBER=7" in c["arguments"] for c in commands)
    assert all(str(tmp_path / "include") in c["arguments"] for c in commands)


def test_errors_hold_the_compilers_output(cache, tmp_path):
    source = tmp_path / "broken.cc"
    source.write_text("int f() {\n  return nothing_of_that_name;\n}\n")
    spec = jit.gen_jit_spec("broken", [source])
    with pytest.raises(RuntimeError, match=r"(?s)^jit: broken: compiling .*broken.cc failed \(exit code 1\).*broken.cc:2:10.*nothing_of_that_name.*command: "):
        spec.build_and_load()
    assert not spec.is_compiled and not list(env.FLASHINFER_JIT_DIR.glob(".build-*"))
    source.write_text("int f() { return 1; }\n")
    with pytest.raises(RuntimeError, match="unlinked: linking failed"):
        jit.gen_jit_spec("unlinked", [source], extra_ldflags=["-lno_such_library_as_this"]).build()


def test_wrong_names_and_sources(cache, tmp_path):
    (tmp_path / "a.cc").write_text("")
    for name in ("", "../up", "a b", ".hidden", "x" * 201):
        with pytest.raises(ValueError, match="must be 1 to 200 letters"):
            jit.gen_jit_spec(name, [tmp_path / "a.cc"]).build()
    with pytest.raises(ValueError, match="the source .*missing.cc does not exist"):
        jit.gen_jit_spec("m", [tmp_path / "missing.cc"]).build()
    with pytest.raises(ValueError, match="has no sources"):
        jit.gen_jit_spec("m", []).build()
    with pytest.raises(ValueError, match="CUDA flags refer to a source outside this JIT spec"):
        jit.gen_jit_spec("m", [tmp_path / "a.cu"], extra_cuda_cflags_by_source={tmp_path / "b.cu": ["-G"]})


def test_without_the_compiler(cache, sources, monkeypatch):
    spec = jit.gen_jit_spec("adder", [sources / "add.cc"])
    monkeypatch.setenv("FLASHINFER_DISABLE_JIT", "1")
    for attempt in (spec.build_and_load, spec.build):
        with pytest.raises(jit.MissingJITCacheError) as e:
            attempt()
        assert e.value.spec is spec
    monkeypatch.delenv("FLASHINFER_DISABLE_JIT")
    spec.build()
    monkeypatch.setenv("FLASHINFER_DISABLE_JIT", "1")
    assert added(spec.build_and_load()) == [1.0, 1.0]
    monkeypatch.setenv("FLASHINFER_CXX", "/no/compiler")
    monkeypatch.delenv("FLASHINFER_DISABLE_JIT")
    with pytest.raises(RuntimeError, match="no C\\+\\+ compiler: FLASHINFER_CXX is"):
        jit.gen_jit_spec("other", [sources / "add.cc"]).build()


def test_precompiled_libraries(cache, sources, tmp_path, monkeypatch):
    from flashinfer.aot import copy_built_kernels

    spec = jit.gen_jit_spec("adder", [sources / "add.cc"])
    spec.build()
    copy_built_kernels([spec], tmp_path / "ahead")
    jit.clear_cache_dir()
    assert not spec.is_compiled
    monkeypatch.setenv("FLASHINFER_AOT_DIR", str(tmp_path / "ahead"))
    monkeypatch.setenv("FLASHINFER_DISABLE_JIT", "1")
    assert spec.is_aot and spec.get_library_path() == tmp_path / "ahead/adder/adder.so"
    assert added(spec.build_and_load()) == [1.0, 1.0]
    (sources / "add.cc").write_text(ADD + "// changed\n")
    assert not spec.is_aot


def test_two_processes_compile_once(cache, sources):
    program = (f"import flashinfer.jit as jit; s = jit.gen_jit_spec('adder', [{str(sources / 'add.cc')!r}]); s.build_and_load(); "
               "print(s.get_library_path(), s.get_library_path().stat().st_mtime_ns)")
    env_ = environment("ours", FLASHINFER_WORKSPACE_BASE=os.environ["FLASHINFER_WORKSPACE_BASE"])
    both = [subprocess.Popen([sys.executable, "-c", program], env=env_, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = {p.communicate(timeout=300)[0] for p in both}
    assert len(said) == 1 and "adder.so" in said.pop()


def test_specs_are_built_together(cache, tmp_path):
    specs = []
    for name in ("left", "right"):
        (tmp_path / f"{name}.cc").write_text(NUMBER.format(name=name))
        specs.append(jit.gen_jit_spec(name, [tmp_path / f"{name}.cc"], extra_cflags=["-DNUMBER=4"]))
    jit.build_jit_specs(specs)
    assert all(s.is_compiled for s in specs) and specs[1].load().right() == 4
    for wrong in ("left", object()):
        with pytest.raises(TypeError, match="takes specs of sources or kernels"):
            jit.build_jit_specs([wrong])


def test_the_registry(cache, tmp_path):
    registry = jit.JitSpecRegistry()
    (tmp_path / "n.cc").write_text(NUMBER.format(name="n"))
    spec = jit.gen_jit_spec("registered", [tmp_path / "n.cc"], extra_cflags=["-DNUMBER=1"])
    assert jit.jit_spec_registry.get_all_specs()["registered"] is spec
    registry.register(spec)
    assert registry.get_stats() == {"total": 1, "compiled": 0, "not_compiled": 1}
    assert [s.status for s in registry.get_all_statuses()] == ["Not Compiled"]
    spec.build()
    assert registry.get_stats()["compiled"] == 1 and registry.get_spec_status("nothing") is None


def test_the_command_shows_libraries(cache, sources):
    spec = jit.gen_jit_spec("adder", [sources / "add.cc"])
    spec.build()
    spec.write_ninja()

    def flashinfer(*args):
        program = pathlib.Path(os.environ["FLASHINFER_BUILD_DIR"]) / "bin/flashinfer"
        return subprocess.run([program, *args], capture_output=True, text=True, check=True).stdout

    assert "  adder - Compiled\n" in flashinfer("list-modules")
    assert f"Library Path: {spec.get_library_path()}\n" in flashinfer("list-modules", "adder")
    assert "adder" in flashinfer("module-status", "--filter", "jit")
    assert "Total modules: 1\ncompiled: 1\n" in flashinfer("show-config")
    assert "1 artifacts" in flashinfer("list-cache")
    flashinfer("export-compile-commands", "-o", str(sources / "out.json"))
    assert [c["file"] for c in json.loads((sources / "out.json").read_text())] == [str(sources / "add.cc")]
    flashinfer("clear-cache")
    assert not spec.is_compiled and not env.FLASHINFER_JIT_DIR.exists()


def test_debug_information_comes_with_assertions(cache, sources, monkeypatch):
    release = jit.gen_jit_spec("adder", [sources / "add.cc"])
    assert {"-DNDEBUG", "-O3"} <= set(release.extra_cflags) & set(release.extra_cuda_cflags)
    monkeypatch.setenv("FLASHINFER_JIT_DEBUG", "1")
    debug = jit.gen_jit_spec("adder", [sources / "add.cc"])
    for flags in (debug.extra_cflags, debug.extra_cuda_cflags):
        assert {"-O0", "-g"} <= set(flags) and not {"-DNDEBUG", "-O3"} & set(flags)
    assert "--device-debug" in debug.extra_cuda_cflags


@pytest.mark.skipif(shutil.which("ninja") is None, reason="no ninja")
def test_ninja_runs_the_same_commands(cache, sources):
    spec = jit.gen_jit_spec("adder", [sources / "add.cc"])
    assert not spec.is_ninja_generated
    spec.write_ninja()
    assert spec.is_ninja_generated and not spec.is_compiled
    stamp = spec.ninja_path.stat().st_mtime_ns
    spec.write_ninja()
    assert spec.ninja_path.stat().st_mtime_ns == stamp
    jit.core.run_ninja(spec.build_dir, spec.ninja_path, False)
    assert added(spec.load(spec.build_dir / "adder.so")) == [1.0, 1.0]
    assert [p.name for p in spec.get_object_paths()] == ["add.o"] and spec.get_object_paths()[0].exists()
    (sources / "add.cc").write_text("oops")
    with pytest.raises(RuntimeError, match="(?s)Ninja build failed.*oops"):
        jit.core.run_ninja(spec.build_dir, spec.ninja_path, False)


# ---- CUDA ----
CUDA = """#include <cuda_runtime.h>
#include <tvm/ffi/tvm_ffi.h>
__global__ void scale(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= FACTOR;
}
int devices() { int n = 0; return cudaGetDeviceCount(&n) == cudaSuccess ? n : 0; }
void launch(tvm::ffi::TensorView x) { scale<<<1, 32>>>(static_cast<float*>(x.data_ptr()), static_cast<int>(x.size(0))); }
TVM_FFI_DLL_EXPORT_TYPED_FUNC(devices, devices);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(launch, launch);
"""


@pytest.mark.skipif(cpp_ext._nvcc() is None, reason="no nvcc")
@pytest.mark.parametrize("device_linking", [False, True])
def test_cuda_sources(cache, tmp_path, monkeypatch, device_linking):
    (tmp_path / "scale.cu").write_text(CUDA)
    make = lambda: jit.gen_jit_spec("scaler", [tmp_path / "scale.cu"], extra_cuda_cflags=["-DFACTOR=2.0f"],  # noqa: E731
                                    needs_device_linking=device_linking)
    monkeypatch.setenv("FLASHINFER_CUDA_ARCH_LIST", "9.0a")
    jit.core.refresh_current_compilation_context()
    spec = make()
    module = spec.build_and_load()
    assert module.devices() == (torch.cuda.device_count() if torch.cuda.is_available() else 0)
    assert any("sm_90a" in a for a in spec.get_compile_commands()[0]["arguments"])
    monkeypatch.setenv("FLASHINFER_NVCC_THREADS", "3")  # changes the time alone
    assert spec.is_compiled and "--threads=3" in spec.get_compile_commands()[0]["arguments"]
    assert jit.core.get_nvcc_parallelism_flags() == ["--threads=3"]
    monkeypatch.setenv("FLASHINFER_CUDA_ARCH_LIST", "8.0")
    jit.core.refresh_current_compilation_context()
    assert not spec.is_compiled
    by_source = jit.gen_jit_spec("scaler", [tmp_path / "scale.cu"], extra_cuda_cflags=["-arch=sm_90a"],
                                 extra_cuda_cflags_by_source={tmp_path / "scale.cu": ["-DFACTOR=3.0f"]})
    assert "-DFACTOR=3.0f" in by_source.get_compile_commands()[0]["arguments"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_cuda_sources_need_an_architecture(cache, tmp_path, monkeypatch):
    (tmp_path / "scale.cu").write_text(CUDA)
    monkeypatch.delenv("FLASHINFER_CUDA_ARCH_LIST", raising=False)
    jit.core.refresh_current_compilation_context()
    with pytest.raises(RuntimeError, match="FLASHINFER_CUDA_ARCH_LIST"):
        jit.gen_jit_spec("scaler", [tmp_path / "scale.cu"]).build()
    with pytest.raises(RuntimeError, match=r"^No supported CUDA architectures found for major versions \[9\]\."):
        jit.current_compilation_context.get_nvcc_flags_list(supported_major_versions=[9])


def test_a_text_in_place_of_a_list(cache, sources, monkeypatch):
    with pytest.raises(TypeError, match="extra_cflags is '-O2', but must be a list"):
        jit.gen_jit_spec("text", list(sources.glob("*.cc")), extra_cflags="-O2")
    with pytest.raises(TypeError, match="sources is 'a.cc', but must be a list"):
        jit.gen_jit_spec("text", "a.cc")
    monkeypatch.setenv("MAX_JOBS", "two")
    with pytest.raises(ValueError, match="MAX_JOBS is 'two', but must be a number"):
        jit.build_jit_specs([])
    monkeypatch.setenv("FLASHINFER_NVCC_THREADS", "many")
    with pytest.warns(UserWarning, match="FLASHINFER_NVCC_THREADS is 'many'"):
        assert jit.cpp_ext.get_nvcc_parallelism_flags() == ["--threads=1"]
