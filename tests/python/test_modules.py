# SPDX-License-Identifier: Apache-2.0
"""Every module of the table can be found and imported; a name without an implementation says so when it is called."""
import importlib
import importlib.util
import pathlib
import pickle
import subprocess
import sys

import conftest
import pytest

import flashinfer
from flashinfer import _modules

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALL = sorted(f"flashinfer.{short}" for short in _modules.MODULES if short)


def run(program, **variables):
    done = subprocess.run([sys.executable, "-c", program], env=conftest.environment("ours", **variables), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_modules_have_specs_before_and_after_their_import():
    # What vLLM asks before it uses a family; then what it imports from submodules.
    assert run("""
from importlib.util import find_spec
for name in ("flashinfer.fused_moe", "flashinfer.fused_moe.core", "flashinfer.comm", "flashinfer.norm"):
    before = find_spec(name)
    assert before is not None and before.name == name
    __import__(name)
    assert find_spec(name).name == name
import sys
for name in ("flashinfer.fused_moe", "flashinfer.norm", "flashinfer.comm"):
    module = sys.modules[name]
    assert list(module.__path__) == [] and module.__package__ == name and module.__spec__.parent == name, name
assert sys.modules["flashinfer.decode"].__package__ == "flashinfer" and not hasattr(sys.modules["flashinfer.decode"], "__path__")
from flashinfer.fused_moe.core import ActivationType, cutlass_fused_moe
from flashinfer.cute_dsl.blockscaled_gemm import grouped_gemm_nt_masked
from flashinfer.quantization.fp4_quantization import fp4_quantize
from flashinfer.comm.mnnvl import TorchDistBackend
import flashinfer
assert grouped_gemm_nt_masked is flashinfer.gemm.grouped_gemm_nt_masked and fp4_quantize is flashinfer.fp4_quantize
print("done")
""") == "done\n"


@pytest.mark.parametrize("name", ALL)
def test_every_module_gives_all_its_names(name):
    module = importlib.import_module(name)
    assert importlib.util.find_spec(name) is not None
    for wanted in _modules.listed(name):
        value = _modules.value_of(name, wanted)
        assert _modules.value_of(name, wanted) is value
        assert hasattr(module, wanted) == (wanted in dir(module)) == (not hasattr(value, "not_available"))
    parent, _, leaf = name.rpartition(".")
    if leaf not in _modules.listed(parent):
        assert getattr(sys.modules[parent], leaf) is module or callable(getattr(sys.modules[parent], leaf))


def test_the_package_lists_what_upstream_has():
    upstream = {line.split("(")[0].rpartition(".")[0] for line in (ROOT / "tests/data/upstream_interface.txt").read_text().splitlines()
                if line.startswith("flashinfer.")}
    for module in sorted(upstream):
        importlib.import_module(module)
    assert len([name for name in ALL if name.count(".") == 1]) >= 80


def test_a_missing_function_says_what_to_use():
    with pytest.raises(NotImplementedError, match=r"^flashinfer\.comm\.trtllm_custom_all_reduce is not available: .*allreduce_fusion"):
        importlib.import_module("flashinfer.comm").trtllm_custom_all_reduce(1, group=2)


def test_engines_that_ask_what_is_there_find_only_what_has_an_implementation():
    # vLLM: find_spec, then hasattr and getattr with a fallback; what is imported by name all the same is there.
    assert run("""
import contextlib, importlib, importlib.util
assert importlib.util.find_spec("flashinfer.comm") is not None
import flashinfer
import flashinfer.comm as flashinfer_comm
assert not hasattr(flashinfer_comm, "trtllm_custom_all_reduce") and hasattr(flashinfer_comm, "trtllm_allreduce_fusion")
for module, name in (("flashinfer.comm", "CudaRTLibrary"), ("flashinfer.comm.cuda_ipc", "CudaRTLibrary"), ("flashinfer.comm.trtllm_alltoall", "MnnvlMoe")):
    assert not hasattr(importlib.import_module(module), name)
mega = importlib.import_module("flashinfer.mega_mhc")
assert getattr(mega, "prepare_mega_mhc", None) is None and not callable(getattr(mega, "prepare_mega_mhc", None)) and callable(flashinfer.green_ctx.get_sm_count_constraint)
assert getattr(importlib.import_module("flashinfer.fp4_gemm"), "prepare_fp4_gemm", contextlib.nullcontext) is contextlib.nullcontext
assert callable(flashinfer.fused_moe.cutlass_fused_moe) and hasattr(importlib.import_module("flashinfer.autotuner"), "autotune")
from flashinfer.comm import MoeAlltoAll, trtllm_custom_all_reduce
from flashinfer.comm import *
from flashinfer.jit import gen_flash_kda_m64_module
from flashinfer.mega_gate import prepare_mega_gate
assert flashinfer_comm.trtllm_custom_all_reduce is trtllm_custom_all_reduce and Mapping is flashinfer.comm.mapping.Mapping
assert not hasattr(flashinfer_comm, "trtllm_custom_all_reduce") and not hasattr(flashinfer.jit, "gen_flash_kda_m64_module")
try:
    from flashinfer.comm import nothing_of_this_name
except ImportError:
    print("done")""") == "done\n"


def test_a_missing_class_says_so_when_it_is_made_and_an_error_can_be_caught():
    comm, moe_ep = importlib.import_module("flashinfer.comm"), importlib.import_module("flashinfer.moe_ep")
    with pytest.raises(NotImplementedError, match="CudaRTLibrary is not available"):
        comm.CudaRTLibrary(so_file="a")
    assert comm.CudaRTLibrary is importlib.import_module("flashinfer.comm.cuda_ipc").CudaRTLibrary
    assert issubclass(moe_ep.MoEEpNotBuiltError, Exception)


def test_a_name_in_no_list_is_an_attribute_error():
    for module in (flashinfer, flashinfer.norm, flashinfer.topk, flashinfer.sampling, importlib.import_module("flashinfer.comm")):
        with pytest.raises(AttributeError, match="nothing_of_this_name"):
            module.nothing_of_this_name
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("flashinfer.nothing_of_this_name")
    assert importlib.util.find_spec("flashinfer.nothing_of_this_name") is None


def test_ops_keep_their_names_beside_submodules():
    # A submodule and a function of one name, as upstream's packages have them: the function stays.
    assert run("""
import flashinfer, types
import flashinfer.fused_moe.trtllm_gen_routing
assert not isinstance(flashinfer.fused_moe.trtllm_gen_routing, types.ModuleType)
from flashinfer.fused_moe.trtllm_gen_routing import trtllm_gen_routing
assert trtllm_gen_routing is flashinfer.fused_moe.trtllm_gen_routing
print("done")""") == "done\n"


def test_enums_can_be_pickled():
    for value in (flashinfer.RoutingMethodType.DeepSeekV3, flashinfer.ActivationType.Swiglu):
        assert pickle.loads(pickle.dumps(value)) is value


def test_import_does_not_load_torch_or_the_table_modules():
    assert run("""
import sys, flashinfer
print([n for n in sys.modules if n in ("torch", "numpy", "flashinfer.comm.mapping", "flashinfer.tllm_enums", "flashinfer.autotuner")])""") == "[]\n"


def test_the_documentation_lists_what_is_missing():
    done = subprocess.run([sys.executable, ROOT / "tools/missing_names.py", "--check"], env=conftest.environment("ours"), capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_modules_have_the_shared_names_that_programs_take_from_them():
    # Examples of 640: generators and helpers that FlashInfer's modules import, and that its tests and engines take from there.
    assert flashinfer.decode.gen_batch_decode_module is flashinfer.jit.gen_batch_decode_module
    assert flashinfer.page.gen_page_module is flashinfer.jit.gen_page_module
    assert flashinfer.sampling.gen_sampling_module is flashinfer.jit.gen_sampling_module
    assert flashinfer.prefill.MaskMode is importlib.import_module("flashinfer.utils").MaskMode
    assert importlib.import_module("flashinfer.gemm.gemm_base").TunableRunner is importlib.import_module("flashinfer.autotuner").TunableRunner
    assert flashinfer.norm.flashinfer_api is importlib.import_module("flashinfer.api_logging").flashinfer_api
    assert importlib.import_module("flashinfer.cudnn.prefill").CUDNN_AVAILABLE is False
    utils = importlib.import_module("flashinfer.utils")
    for module in ("decode", "pod", "prefill", "page", "sparse"):  # helpers whose names begin with "_", which vLLM imports from flashinfer.decode
        assert importlib.import_module("flashinfer." + module)._get_range_buf is utils._get_range_buf
        assert importlib.import_module("flashinfer." + module)._check_kv_layout is utils._check_kv_layout
    assert not hasattr(flashinfer.decode, "_alibi_slopes") and not hasattr(flashinfer, "_get_range_buf")
    assert not hasattr(flashinfer, "gen_page_module") and not hasattr(flashinfer.norm, "core")  # not the package, and no modules


def test_modules_have_names_that_are_elsewhere_here():
    assert flashinfer.norm.rmsnorm_sigmoid_gate is flashinfer.rmsnorm_sigmoid_gate
    layer = importlib.import_module("flashinfer.fused_moe.layer")
    assert layer.MoEConfig is flashinfer.fused_moe.MoEConfig and layer.CuTileBf16Config is flashinfer.fused_moe.CuTileBf16Config
    from flashinfer.logits_processor.fusion_rules import MinPOp
    assert MinPOp is importlib.import_module("flashinfer._logits_ops").MinPOp
    assert not hasattr(flashinfer.norm, "no_such_name") and not hasattr(flashinfer, "MinPOp")
    from flashinfer.decode import get_batch_decode_module
    assert not hasattr(flashinfer.decode, "get_batch_decode_module")
    with pytest.raises(NotImplementedError, match="flashinfer.jit describes what is compiled"):
        get_batch_decode_module()


def test_the_version_and_the_commit_of_the_library():
    version = importlib.import_module("flashinfer.version")
    assert flashinfer.__version__ == version.__version__ and flashinfer.__git_version__ == version.__git_commit__ == flashinfer.__git_commit__
    assert flashinfer.__version__ == (pathlib.Path(__file__).parents[2] / "version.txt").read_text().strip()
    assert version.__git_commit__ == "unknown" or len(version.__git_commit__) == 12 and int(version.__git_commit__, 16) >= 0


def test_the_extents_of_latent_attention_are_values():
    mla = importlib.import_module("flashinfer.mla")
    assert mla.deepseek_mla_dimensions == mla.MLAHeadDimensions(128, 64, 128, kv_lora_rank=512)
    assert [(d.num_heads, d.head_dimensions.kv_lora_rank) for d in mla.supported_mla_layer_dimensions] == [(128, 512), (64, 512), (32, 256)]
    with pytest.raises(AttributeError):
        mla.deepseek_mla_dimensions.v_head_dim = 1
