# SPDX-License-Identifier: Apache-2.0
"""measure.py PACKAGE MODEL THREADS: tokens per second of llama.cpp through the C API in a Python package, llama_cpp or ik_llama_cpp, as `llm --bench --json` prints its own:
prefill of 512 tokens, decode alone and of a batch of 8, 64 tokens each after prompts of 16; medians of three."""
import importlib
import json
import statistics
import sys
import time

import numpy as np

REPEATS = 3
lc = importlib.import_module({"llama_cpp": "llama_cpp", "ik_llama_cpp": "ik_llama_cpp._ctypes_api"}[sys.argv[1]])


class Runner:
    def __init__(self, path, threads, sequences):
        self.model = lc.llama_model_load_from_file(path.encode(), lc.llama_model_default_params())
        params = lc.llama_context_default_params()
        params.n_ctx = 1024 * sequences
        params.n_batch = params.n_ubatch = 512
        params.n_seq_max = sequences
        params.n_threads = params.n_threads_batch = threads
        self.context = lc.llama_init_from_model(self.model, params)
        self.vocabulary = lc.llama_vocab_n_tokens(lc.llama_model_get_vocab(self.model))
        self.batch = lc.llama_batch_init(512, 0, 1)

    def clear(self):
        if hasattr(lc, "llama_get_memory"):
            lc.llama_memory_clear(lc.llama_get_memory(self.context), True)
        else:
            lc.llama_kv_cache_clear(self.context)

    def step(self, rows):
        """rows: (token, position, sequence, wants logits). The next token of each row that wants one, greedy."""
        b = self.batch
        b.n_tokens = len(rows)
        for i, (token, position, sequence, logits) in enumerate(rows):
            b.token[i], b.pos[i], b.n_seq_id[i], b.logits[i] = token, position, 1, logits
            b.seq_id[i][0] = sequence
        if lc.llama_decode(self.context, b) != 0:
            sys.exit("llama_decode failed")
        wanted = [i for i, row in enumerate(rows) if row[3]]
        rows = (lc.llama_get_logits_ith(self.context, i) for i in wanted)
        return [int(np.argmax(np.ctypeslib.as_array(row, (self.vocabulary,)))) for row in rows]

    def once(self, sequences, prompt, generated, prefill):
        self.clear()
        rows = [((i * 7919 + s * 104729 + 1) % self.vocabulary, i, s, i == prompt - 1)
                for s in range(sequences) for i in range(prompt)]
        begin = time.perf_counter()
        tokens = self.step(rows)
        between = time.perf_counter()
        if prefill:
            return len(rows) / (between - begin)
        for n in range(generated):
            tokens = self.step([(t, prompt + n, s, True) for s, t in enumerate(tokens)])
        return sequences * generated / (time.perf_counter() - between)

    def median(self, *what):
        return statistics.median(self.once(*what) for _ in range(REPEATS))


def main():
    silent = lc.llama_log_callback(lambda *_: None) if hasattr(lc, "llama_log_callback") else None  # must outlive its use
    if silent:
        lc.llama_log_set(silent, None)
    lc.llama_backend_init()
    path, threads = sys.argv[2], int(sys.argv[3])
    one, eight = Runner(path, threads, 1), Runner(path, threads, 8)
    one.once(1, 16, 4, False)
    print(json.dumps({"prefill_512": one.median(1, 512, 0, True), "decode_alone": one.median(1, 16, 64, False),
                      "decode_batch_8": eight.median(8, 16, 64, False)}))


if __name__ == "__main__":
    main()
