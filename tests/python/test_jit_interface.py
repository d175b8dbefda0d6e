# SPDX-License-Identifier: Apache-2.0
"""The JIT's names, signatures and texts against FlashInfer's own package; helpers; modules about downloads and reports."""
import json
import os
import subprocess
import sys

import pytest
import torch
from conftest import ROOT, environment

from flashinfer import jit


# ---- helpers ----
def test_write_if_different(tmp_path):
    path = tmp_path / "deep/er/a.txt"
    jit.utils.write_if_different(path, "one")
    os.utime(path, ns=(1, 1))
    jit.utils.write_if_different(path, "one")
    assert path.stat().st_mtime_ns == 1
    jit.utils.write_if_different(path, "two")
    assert path.read_text() == "two" and os.listdir(path.parent) == ["a.txt"]


def test_submodules_are_there_without_an_import_of_their_own():
    program = """
import flashinfer
modules = "norm cascade page rope sampling topk mla xqa fused_moe gemm mamba quantization fp8_quantization attention.variants attention.utils gemm.core spdlog cpp_ext".split()
for name in modules:
    found = flashinfer.jit
    for part in name.split("."):
        found = getattr(found, part)
    assert found.__name__ == "flashinfer.jit." + name
assert flashinfer.jit.norm.gen_norm_module().name and not hasattr(flashinfer.jit, "nothing") and not hasattr(flashinfer.jit.attention, "nothing")
"""
    subprocess.run([sys.executable, "-c", program], env=environment("ours"), cwd="/", check=True)


def test_nothing_is_downloaded():
    from flashinfer import artifacts

    assert artifacts.get_artifacts_status() == () and artifacts.download_artifacts() is None and artifacts.clear_cubin() is None
    assert list(artifacts.get_subdir_file_list()) == [] and artifacts.get_checksums(["a"]) == {}
    with pytest.raises(NotImplementedError, match="a.cubin: nothing is downloaded here"):
        jit.cubin_loader.get_cubin("a.cubin", "00")
    assert jit.setup_cubin_loader("any.so") is None


def test_the_report_from_python():
    from flashinfer import collect_env

    report = collect_env.collect_env_info()
    text = collect_env.format_report(report)
    assert report["Python / Platform"]["executable"] == sys.executable and "==== PyTorch ====" in text
    assert text.startswith("### FlashInfer environment report\n")


def test_precompiling_by_flashinfers_options(cache, tmp_path):
    from flashinfer import aot

    assert aot.parse_head_dim("128,64") == (128, 64) and aot.parse_bool("True") and not aot.parse_bool("0")
    with pytest.raises(ValueError, match="Invalid boolean value: yes"):
        aot.parse_bool("yes")
    nothing = dict.fromkeys(("add_comm", "add_gemma", "add_oai_oss", "add_moe", "add_act", "add_misc", "add_xqa"), False)
    chosen = {**aot.get_default_config(), "f16_dtype": [torch.bfloat16], "f8_dtype": [], "fa2_head_dim": [(64, 64)], "fa3_head_dim": [],
              "use_sliding_window": [False], "use_logits_soft_cap": [False], **nothing}
    names = [s.name for s in aot.gen_all_modules(**aot._arguments(chosen))]
    assert len(names) == len(set(names)) == 6 and any(n.startswith("batch_decode_with_kv_cache_dtype_q_bf16") for n in names)


# ---- FlashInfer's own interface ----
@pytest.fixture(scope="module")
def interfaces(tmp_path_factory):
    found = {}
    for who in ("theirs", "ours"):
        base = tmp_path_factory.mktemp(who)
        done = subprocess.run([sys.executable, str(ROOT / "tests/python/oracle/jit_interface.py")], capture_output=True, text=True, cwd="/",
                              env=environment(who, FLASHINFER_WORKSPACE_BASE=base, FLASHINFER_CUDA_ARCH_LIST="9.0a"))
        assert done.returncode == 0, done.stderr
        found[who] = json.loads(done.stdout.rpartition("\n")[2])
    return found["theirs"], found["ours"]


def can_be_imported(module, name):
    """A name without an implementation can, though hasattr and dir do not show it."""
    try:
        exec(f"from flashinfer.{module} import {name}", {})
    except ImportError:
        return False
    return True


def test_the_jit_interface_is_flashinfers(interfaces):
    theirs, ours = (i["signatures"] for i in interfaces)
    wrong, compared = [], 0
    for module, functions in theirs.items():
        for name, wanted in functions.items():
            mine = ours[module].get(name)
            if mine is None:
                if wanted["here"] and not can_be_imported(module, name):
                    wrong.append(f"{module}.{name} is absent")
            elif mine["available"] and wanted["parameters"] is not None:
                compared += 1
                for i, what in ((0, "names"), (2, "defaults")):
                    a, b = ([p[i] for p in side["parameters"] or []] for side in (mine, wanted))
                    if a != b:
                        wrong.append(f"{module}.{name}: {what} {a} instead of {b}")
    assert not wrong, "\n".join(wrong)
    assert compared > 180


def test_the_jit_texts_are_flashinfers(interfaces):
    theirs, ours = (i["texts"] for i in interfaces)
    assert ours == theirs
