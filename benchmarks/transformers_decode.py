# SPDX-License-Identifier: Apache-2.0
"""Decode and prefill of HF transformers' models on this library against transformers' own torch code, in turns.

    python benchmarks/transformers_decode.py [--model llama qwen3.5 mamba2] [--batch_size 1 8] [--rounds 3] [--dtype bfloat16]

Random weights; each side of a round is a process of its own. Prints a row a model and batch size: tokens a second of both, and the
median ratio. Needs transformers and kernels in versions that fit (docs/integrations.md)."""

import argparse
import json
import statistics
import subprocess
import sys
import time

WIDE = dict(vocab_size=4096, hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=4,
            max_position_embeddings=8192, pad_token_id=0, bos_token_id=1, eos_token_id=None)
DELTA = dict(WIDE, head_dim=64, linear_num_key_heads=8, linear_num_value_heads=16, linear_key_head_dim=128, linear_value_head_dim=128,
             layer_types=["linear_attention", "linear_attention", "linear_attention", "full_attention"] * 2)
MODELS = {
    "llama": ("Llama", WIDE),
    "qwen3.5": ("Qwen3_5Text", DELTA),  # gated delta rule and attention
    "mamba2": ("Mamba2", dict(vocab_size=4096, hidden_size=1024, num_hidden_layers=8, num_heads=32, head_dim=64, expand=2, state_size=128, n_groups=1,
                              chunk_size=256, pad_token_id=0, bos_token_id=1, eos_token_id=None)),
}


def measure(side, name, batch, prompt, tokens, dtype):
    """Seconds of the prompt's forward and of a generated token."""
    import torch
    import transformers

    torch.manual_seed(0)
    kind, options = MODELS[name]
    model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, kind + "Config")(**options), dtype=getattr(torch, dtype)).eval()
    if side == "flashinfer":
        import flashinfer.integrations.transformers as fi

        fi.apply(model)
    ids = torch.randint(2, 4096, (batch, prompt))
    run = lambda n: model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=n, min_new_tokens=n, do_sample=False)
    with torch.inference_mode():
        run(2)  # compiles kernels
        times = {}
        for n in (1, 1 + tokens):
            begin = time.monotonic()
            run(n)
            times[n] = time.monotonic() - begin
    return {"prefill": batch * prompt / times[1], "decode": batch * tokens / (times[1 + tokens] - times[1])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--batch_size", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float32"])
    parser.add_argument("--side", choices=["torch", "flashinfer"], help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.side:
        print("RESULT " + json.dumps(measure(a.side, a.model[0], a.batch_size[0], a.prompt, a.tokens, a.dtype)))
        return
    print(f"{'model':<12}{'batch':>6}  {'tokens/s':<10}{'torch':>9}{'flashinfer':>12}{'ratio':>8}")
    for name in a.model:
        for batch in a.batch_size:
            results = {"torch": [], "flashinfer": []}
            for _ in range(a.rounds):
                for side in results:
                    command = [sys.executable, __file__, "--side", side, "--model", name, "--batch_size", str(batch), "--prompt", str(a.prompt),
                               "--tokens", str(a.tokens), "--dtype", a.dtype]
                    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
                    if not lines:
                        sys.exit(f"transformers_decode.py: {name} on {side} ended with {done.returncode}:\n{done.stderr[-2000:]}")
                    results[side].append(json.loads(lines[0][7:]))
            for what in ("prefill", "decode"):
                torch_side, ours = ([r[what] for r in results[s]] for s in results)
                ratio = statistics.median(b / t for t, b in zip(torch_side, ours))
                print(f"{name:<12}{batch:>6}  {what:<10}{statistics.median(torch_side):>9.1f}{statistics.median(ours):>12.1f}{ratio:>7.2f}x", flush=True)


if __name__ == "__main__":
    main()
