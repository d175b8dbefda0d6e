# SPDX-License-Identifier: Apache-2.0
"""Writes the definitions of tests/trace/fi_trace_out: `python tests/trace/example.py` (docs/trace.md); `--check` compares instead and
exits 1 where a file differs. Tensors have no memory and nothing runs."""
import argparse
import json
import os
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))
for variable in ("FLASHINFER_TRACE_DUMP", "FLASHINFER_TRACE_DUMP_DIR", "FLASHINFER_TRACE_DUMP_STRICT"):
    os.environ.pop(variable, None)

import torch  # noqa: E402

import flashinfer  # noqa: E402

BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn


def t(*shape, dtype=BF16):
    return torch.empty(shape, dtype=dtype, device="meta")


def definitions(folder):
    """The ten of FlashInfer's documentation and one in strict mode."""
    at = {"save_dir": folder}
    flashinfer.rmsnorm.fi_trace(**at, input=t(32, 7168), weight=t(7168))
    flashinfer.fused_add_rmsnorm.fi_trace(**at, input=t(32, 5120), residual=t(32, 5120), weight=t(5120))
    cache = (t(128, 64, 8, 128), t(128, 64, 8, 128))
    flashinfer.BatchDecodeWithPagedKVCacheWrapper.run.fi_trace(**at, q=t(32, 32, 128), paged_kv_cache=cache)
    flashinfer.BatchPrefillWithRaggedKVCacheWrapper.run.fi_trace(**at, q=t(512, 32, 128), k=t(512, 8, 128), v=t(512, 8, 128))
    cache = (t(128, 16, 8, 128), t(128, 16, 8, 128))
    flashinfer.BatchPrefillWithPagedKVCacheWrapper.run.fi_trace(**at, q=t(512, 32, 128), paged_kv_cache=cache)
    flashinfer.mla.BatchMLAPagedAttentionWrapper.run.fi_trace(**at, q_nope=t(32, 16, 512), q_pe=t(32, 16, 64), ckv_cache=t(128, 64, 512),
                                                              kpe_cache=t(128, 64, 64))
    flashinfer.top_k_top_p_sampling_from_probs.fi_trace(**at, probs=t(32, 128256, dtype=torch.float32), top_k=t(32, dtype=torch.int32),
                                                        top_p=t(32, dtype=torch.float32))
    flashinfer.mm_fp8.fi_trace(**at, a=t(32, 7168, dtype=FP8), b=t(56, 1536, 128, dtype=FP8))
    flashinfer.fused_moe.trtllm_fp8_block_scale_moe.fi_trace(
        **at, routing_logits=t(64, 256, dtype=torch.float32), routing_bias=t(256), hidden_states=t(64, 7168, dtype=FP8),
        hidden_states_scale=t(56, 64, dtype=torch.float32), gemm1_weights=t(32, 4096, 7168, dtype=FP8),
        gemm1_weights_scale=t(32, 32, 56, dtype=torch.float32), gemm2_weights=t(32, 7168, 2048, dtype=FP8),
        gemm2_weights_scale=t(32, 56, 16, dtype=torch.float32), num_experts=256, top_k=8, n_group=8, topk_group=4, intermediate_size=2048,
        local_expert_offset=0, local_num_experts=32, routed_scaling_factor=2.5, routing_method_type=2)
    flashinfer.gdn_decode.gated_delta_rule_decode.fi_trace(
        **at, q=t(4, 1, 4, 128), k=t(4, 1, 4, 128), v=t(4, 1, 8, 128), state=t(4, 8, 128, 128, dtype=torch.float32), b=t(4, 1, 8), a=t(4, 1, 8),
        A_log=t(8, dtype=torch.float32), dt_bias=t(8, dtype=torch.float32))
    flashinfer.rmsnorm.fi_trace(**at, name="rmsnorm_h4096_strict", strict=True, input=t(32, 4096), weight=t(4096))


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--check", action="store_true")
    stored = HERE / "fi_trace_out"
    if not arguments.parse_args().check:
        for file in stored.glob("*.json"):
            file.unlink()
        definitions(stored)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        definitions(folder)
        made = {p.name: p.read_text() for p in pathlib.Path(folder).iterdir()}
    kept = {p.name: p.read_text() for p in stored.glob("*.json")}
    wrong = sorted(name for name in made.keys() | kept.keys() if made.get(name) != kept.get(name))
    for name in wrong:
        print(f"{name} differs from tests/trace/fi_trace_out: run python tests/trace/example.py")
    assert all(json.loads(text)["name"] + ".json" == name for name, text in made.items())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
