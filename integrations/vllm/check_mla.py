# SPDX-License-Identifier: Apache-2.0
"""Greedy tokens of small DeepSeek V2 and V3 models with random weights, in f32: transformers, vLLM, and vLLM with this plugin.

    python check_mla.py        exit status 1 where tokens differ

The latent is 512 + 64 wide, as in the models: vLLM's own CPU kernel takes no other, and on CPUs with AMX no f32 at all: then the plugin is compared
with transformers alone. Requests have prompts of several lengths, so that steps mix
prompts and single tokens."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

LENGTHS = [5, 33, 70, 1, 16]
TOKENS = 24
VOCABULARY = 512


def prompts():
    import torch

    g = torch.Generator().manual_seed(5)
    return [torch.randint(0, VOCABULARY, (n,), generator=g).tolist() for n in LENGTHS]


def make_models(root):
    """{name: folder} of models saved by transformers, and the tokens that it generates: V2 with plain RoPE, V3 with q_lora and YaRN."""
    import torch
    from transformers import AutoModelForCausalLM, DeepseekV2Config, DeepseekV3Config

    common = dict(hidden_size=256, intermediate_size=384, moe_intermediate_size=64, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4,
                  vocab_size=VOCABULARY, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128, max_position_embeddings=512,
                  n_routed_experts=8, first_k_dense_replace=3,  # no experts
                  bos_token_id=0, eos_token_id=1)
    yarn = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0,
            "mscale_all_dim": 1.0}
    configs = {"DeepSeek-V2": DeepseekV2Config(**common, q_lora_rank=None, n_group=1, topk_group=1, topk_method="greedy"),
               "DeepSeek-V3": DeepseekV3Config(**common, q_lora_rank=128, n_group=2, topk_group=1, rope_parameters=yarn)}
    made = {}
    for name, config in configs.items():
        torch.manual_seed(3)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
        for parameter in model.parameters():  # the usual small weights give nearly equal logits
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
        folder = pathlib.Path(root) / name
        model.save_pretrained(folder)
        tokens = [model.generate(torch.tensor([p]), max_new_tokens=TOKENS, min_new_tokens=TOKENS, do_sample=False)[0, len(p):].tolist() for p in prompts()]
        made[name] = (folder, tokens)
    return made


def serve(folder):
    """One process of vLLM: prints its greedy tokens as JSON."""
    from vllm import LLM, SamplingParams

    llm = LLM(folder, dtype="float32", enforce_eager=True, max_model_len=256, max_num_seqs=4, skip_tokenizer_init=True, seed=0)
    greedy = SamplingParams(temperature=0, max_tokens=TOKENS, min_tokens=TOKENS, ignore_eos=True, detokenize=False)
    outputs = llm.generate([{"prompt_token_ids": p} for p in prompts()], greedy, use_tqdm=False)
    print("RESULT " + json.dumps([list(o.outputs[0].token_ids) for o in outputs]))


def one(folder, plugin):
    """Tokens, or None where vLLM ended with an error, which it has printed."""
    environment = {**os.environ, "FLASHINFER_VLLM": plugin, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
    done = subprocess.run([sys.executable, __file__, "serve", str(folder)], env=environment, stdout=subprocess.PIPE, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    return json.loads(lines[0][7:]) if lines and done.returncode == 0 else None


def equal(a, b):
    return sum(x == y for s, t in zip(a, b) for x, y in zip(s, t, strict=True))


def main():
    if sys.argv[1:2] == ["serve"]:
        return serve(sys.argv[2])
    failed = False
    with tempfile.TemporaryDirectory() as root:
        for name, (folder, expected) in make_models(root).items():
            stock, ours = one(folder, "0"), one(folder, "1")
            count = sum(map(len, expected))
            if ours is None:
                print(f"{name}: vLLM with the plugin ended with an error")
                failed = True
                continue
            # vLLM's kernel for CPUs with AMX takes no weights of f32.
            own = "vLLM's own ended with an error" if stock is None else f"{equal(ours, stock)} as vLLM's own, which has {equal(stock, expected)} as transformers"
            print(f"{name}: of {count} greedy tokens vLLM with the plugin has {equal(ours, expected)} as transformers; {own}", flush=True)
            failed |= equal(ours, expected) < count
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
