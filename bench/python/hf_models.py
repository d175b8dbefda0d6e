# SPDX-License-Identifier: Apache-2.0
"""A model of HF transformers with this library beside its own code (sdpa attention), in turns:

    FLASHINFER_BUILD_DIR=build/release PYTHONPATH=python python bench/python/hf_models.py [--model SmolLM2 Llama-1B] [--rounds 5]

Random weights in bfloat16: times depend on shapes alone. Prefill is one forward of a prompt, decode a greedy `generate` less its prefill. A
turn is each part with each code, in an order that changes; printed are medians and, of the turns' ratios, the median."""
import argparse
import copy
import logging
import statistics
import time

import torch
import transformers

import flashinfer.integrations.transformers as fi

# The shapes of models; layers and vocabulary are cut, so that a turn takes seconds.
MODELS = {
    "SmolLM2": dict(hidden_size=576, intermediate_size=1536, num_attention_heads=9, num_key_value_heads=3, num_hidden_layers=30, vocab_size=49152),
    "Llama-1B": dict(hidden_size=2048, intermediate_size=8192, num_attention_heads=32, num_key_value_heads=8, num_hidden_layers=4, vocab_size=8192),
}


def model_of(shape):
    torch.manual_seed(1)
    config = transformers.LlamaConfig(**shape, max_position_embeddings=8192, bos_token_id=1, eos_token_id=None, pad_token_id=0)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa").eval()


def seconds(f):
    begin = time.perf_counter()
    f()
    return time.perf_counter() - begin


def parts(requests, prompt, tokens, vocabulary):
    """{name: (tokens, function of a model)}; the second part contains one step of prefill, which is subtracted."""
    ids = torch.randint(2, vocabulary, (requests, prompt))
    mask = torch.ones_like(ids)
    generate = lambda m, n: m.generate(ids, attention_mask=mask, max_new_tokens=n, min_new_tokens=n, do_sample=False)
    return {f"prefill of {requests} x {prompt}": (requests * prompt, lambda m: seconds(lambda: m(ids, attention_mask=mask, logits_to_keep=1))),
            f"decode of {requests} x {tokens} after {prompt}":
                (requests * tokens, lambda m: seconds(lambda: generate(m, tokens + 1)) - seconds(lambda: generate(m, 1)))}


@torch.inference_mode()
def measure(name, o):
    theirs = model_of(MODELS[name])
    sides = {"transformers": theirs, "flashinfer": fi.apply(copy.deepcopy(theirs))}
    measured = {}
    for requests, prompt in o.batches:
        measured.update(parts(requests, prompt, o.tokens, MODELS[name]["vocab_size"]))
    times = {(part, side): [] for part in measured for side in sides}
    for turn in range(o.rounds + 1):  # the first compiles kernels
        for part, (_, run) in measured.items():
            for side in list(sides)[::1 if turn % 2 else -1]:
                taken = run(sides[side])
                if turn:
                    times[part, side].append(taken)
    for part, (count, _) in measured.items():
        ratio = statistics.median(a / b for a, b in zip(times[part, "transformers"], times[part, "flashinfer"]))
        rates = [count / statistics.median(times[part, side]) for side in sides]
        print(f"{name:9} {part:28} {rates[0]:8.0f} -> {rates[1]:8.0f} tokens/s  {ratio:5.2f}x", flush=True)


def batch(text):
    requests, _, prompt = text.partition("x")
    return int(requests), int(prompt)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--batches", nargs="*", type=batch, default=[(1, 1024), (8, 256)], help="requests x tokens of their prompts: 8x256")
    parser.add_argument("--tokens", type=int, default=16, help="generated for each request")
    parser.add_argument("--rounds", type=int, default=3)
    o = parser.parse_args()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    for name in o.model:
        measure(name, o)


if __name__ == "__main__":
    main()
