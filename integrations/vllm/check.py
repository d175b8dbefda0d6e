# SPDX-License-Identifier: Apache-2.0
"""Compares vLLM with and without this plugin on one model, in turns: greedy tokens and tokens a second.

    python check.py convert MODEL.gguf DIR     the model as bf16 safetensors, which vLLM loads (needs transformers and gguf)
    python check.py compare DIR [--rounds 3]   prints a row a round and the medians; exit status 1 below 99 % equal tokens in f32
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SUBJECTS = ["the sea", "a mountain village", "how bread is made", "the history of the compass", "a lost key", "winter in the city", "two brothers",
            "a machine that sorts letters"]
FORMS = ["Write a short story about {}.", "Explain {} to a child.", "List five facts about {}.", "What would a scientist say about {}?",
         "Compare {} with something else.", "Write a letter that mentions {}.", "Ask three questions about {}.", "Describe {} in detail."]


def convert(gguf, folder):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    gguf = pathlib.Path(gguf).resolve()
    loaded = AutoModelForCausalLM.from_pretrained(str(gguf.parent), gguf_file=gguf.name, dtype=torch.bfloat16)
    config = loaded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    fresh = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)  # the loaded one would be saved as quantised
    fresh.load_state_dict(loaded.state_dict())
    fresh.save_pretrained(folder)
    AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name).save_pretrained(folder)


def best_tokens(llm, answers):
    """The most likely token at each place of `answers` [(prompt's tokens, answer's)], whatever was chosen there: errors do not add up."""
    from vllm import SamplingParams

    outputs = llm.generate([{"prompt_token_ids": p + a} for p, a in answers], SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=1), use_tqdm=False)
    return [[next(token for token, x in places.items() if x.rank == 1) for places in o.prompt_logprobs[len(p):]] for (p, _), o in zip(answers, outputs)]


def serve(folder, tokens, long_prompts, dtype, answers):
    """One process of vLLM: prints its greedy tokens, its best tokens along `answers` (else along its own) and times as JSON."""
    from vllm import LLM, SamplingParams

    llm = LLM(folder, dtype=dtype, enforce_eager=True, max_model_len=2048, max_num_seqs=64, enable_prefix_caching=False, seed=0)
    prompts = [f.format(s) for s in SUBJECTS for f in FORMS]
    greedy = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True)
    llm.generate(prompts[:2], greedy, use_tqdm=False)  # compiles kernels
    begin = time.monotonic()
    outputs = llm.generate(prompts, greedy, use_tqdm=False)
    seconds = time.monotonic() - begin
    text = " ".join(prompts)
    first = SamplingParams(temperature=0, max_tokens=1)
    words = [f"{i}. {text}" for i in range(long_prompts)]
    count = sum(len(llm.get_tokenizer().encode(w)) for w in words)
    llm.generate(words[:1], first, use_tqdm=False)
    begin = time.monotonic()
    llm.generate(words, first, use_tqdm=False)
    prefill = count / (time.monotonic() - begin)
    own = [[list(o.prompt_token_ids), list(o.outputs[0].token_ids)] for o in outputs]
    answers = json.loads(pathlib.Path(answers).read_text()) if answers else own
    print("RESULT " + json.dumps({"answers": own, "tokens": [a for _, a in own], "best": best_tokens(llm, answers), "whole": len(prompts) * tokens / seconds, "prefill": prefill}))


def one(folder, plugin, arguments, dtype, answers=""):
    environment = {**os.environ, "FLASHINFER_VLLM": plugin, "VLLM_CPU_KVCACHE_SPACE": os.environ.get("VLLM_CPU_KVCACHE_SPACE", "2"),
                   "VLLM_LOGGING_LEVEL": "WARNING"}
    command = [sys.executable, __file__, "serve", folder, "--tokens", str(arguments.tokens), "--long-prompts", str(arguments.long_prompts), "--dtype", dtype,
               "--answers", str(answers)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise SystemExit(f"check.py: vLLM with FLASHINFER_VLLM={plugin} ended with {done.returncode}")
    if done.returncode:  # vLLM's threads may end the process when it is done
        print(f"check.py: vLLM with FLASHINFER_VLLM={plugin} ended with {done.returncode} after its results", flush=True)
    return json.loads(lines[0][7:])


def equal(a, b, kind="tokens"):
    pairs = [(x, y) for s, t in zip(a[kind], b[kind]) for x, y in zip(s, t)]
    return sum(x == y for x, y in pairs) / len(pairs)


def compare(arguments):
    """Tokens in f32, where rounding does not decide between two of them; times in the dtype asked for."""
    exact = [one(arguments.folder, plugin, arguments, "float32") for plugin in ("0", arguments.plugin)]
    print(f"float32: {100 * equal(*exact):.2f} % of {sum(map(len, exact[0]['tokens']))} greedy tokens equal", flush=True)
    whole, prefill = [], []
    with tempfile.NamedTemporaryFile("w", suffix=".json") as answers:
        json.dump(exact[0]["answers"], answers)
        answers.flush()
        for i in range(arguments.rounds):
            stock, ours = (one(arguments.folder, plugin, arguments, arguments.dtype, answers.name) for plugin in ("0", arguments.plugin))
            whole.append(ours["whole"] / stock["whole"])
            prefill.append(ours["prefill"] / stock["prefill"])
            print(f"{arguments.dtype} {i + 1}: tokens/s {stock['whole']:.0f} -> {ours['whole']:.0f} ({whole[-1]:.2f}x), prompt tokens/s {stock['prefill']:.0f} -> "
                  f"{ours['prefill']:.0f} ({prefill[-1]:.2f}x), {100 * equal(stock, ours):.2f} % of the tokens equal", flush=True)
    pairs = {"the plugin's and vLLM's": (ours, stock), "vLLM's and f32's": (stock, exact[0]), "the plugin's and f32's": (ours, exact[0])}
    for name, (x, y) in pairs.items():
        print(f"{arguments.dtype}, the most likely token after the same tokens, {name}: {100 * equal(x, y, 'best'):.2f} % equal")
    print(f"medians: tokens/s {statistics.median(whole):.2f}x, prompt tokens/s {statistics.median(prefill):.2f}x of vLLM's own")
    return 0 if equal(*exact) >= 0.99 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    c = commands.add_parser("convert")
    c.add_argument("gguf")
    c.add_argument("folder")
    for name in ("compare", "serve"):
        c = commands.add_parser(name)
        c.add_argument("folder")
        c.add_argument("--tokens", type=int, default=32, help="generated for each of the 64 prompts")
        c.add_argument("--long-prompts", type=int, default=8, help="prompts of about 700 tokens whose first token is timed")
        c.add_argument("--rounds", type=int, default=3)
        c.add_argument("--plugin", default="1", help="FLASHINFER_VLLM of the plugin's runs")
        c.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float32"])
        c.add_argument("--answers", default="", help="serve: a JSON file of [prompt's tokens, answer's tokens]")
    arguments = parser.parse_args()
    if arguments.command == "convert":
        return convert(arguments.gguf, arguments.folder)
    if arguments.command == "serve":
        return serve(arguments.folder, arguments.tokens, arguments.long_prompts, arguments.dtype, arguments.answers)
    return compare(arguments)


if __name__ == "__main__":
    sys.exit(main())
