# SPDX-License-Identifier: Apache-2.0
"""What other libraries take for the work of an op: torch, oneDNN and zentorch through torch, llama.cpp and ik_llama.cpp through the ggml in
their Python packages. `flashinfer bench --peers` runs this text in a process for each library; benchmarks/ calls the functions.

    peers.py --answer LIBRARY THREADS     says "ready" or "absent", then answers lines:
        row OP THREADS CASE     makes inputs as the case text describes them -> "ready", "nothing" (to compare with), "error TEXT"
        run CALLS               the median seconds of so many calls

Weights take turns on at least 128 MB, as a model's do. Inputs are random; what is compared are times."""
import ctypes
import glob
import importlib.util
import itertools
import os
import re
import statistics
import sys
import time

PEERS = ("torch", "onednn", "zentorch", "llama.cpp", "ik_llama.cpp")
ROTATED = 128 << 20


# ---- case text (flashinfer/cases/parse.h) ----------------------------------------------------------------------------------------------
class Array:
    """dtype:extents[:fill][^layout]"""

    def __init__(self, text):
        text = text.partition("^")[0]
        self.dtype, rest = text.split(":", 1)
        self.literal = [float(x) for x in rest.strip("[]").split(",") if x] if rest.startswith("[") else None
        extents, _, self.fill = rest.partition(":")
        self.shape = [len(self.literal)] if self.literal is not None else [int(x) for x in extents.split("x") if x]

    def values(self):
        """Of vectors whose fill says them: literal, const(v), range(first,step); else None."""
        name, _, arguments = self.fill.rstrip(")").partition("(")
        numbers = [float(x) for x in arguments.split(",") if x] if name in ("const", "range") else []
        count = self.shape[0] if self.shape else 1
        if self.literal is not None:
            return self.literal
        if name == "const":
            return numbers[:1] * count
        if name == "range":
            step = numbers[1] if len(numbers) > 1 else 1
            return [numbers[0] + step * i for i in range(count)]
        return None

    def packed(self):
        """(k, n) of a packed weight, else None."""
        found = re.search(r"\((\d+),(\d+)\)$", self.fill)
        return found and tuple(map(int, found.groups()))


def parse(text):
    """{argument: Array, list of them, or text} of a case."""
    words, depth, quoted, word = [], 0, False, ""
    for c in text + " ":
        quoted ^= c == "'"
        depth += (c in "([") - (c in ")]")
        if c == " " and not quoted and depth == 0:
            words += [word] if word else []
            word = ""
        else:
            word += c
    fields = {}
    for word in words:
        name, _, value = word.partition("=")
        if re.match(r"\w+:", value) and not value.startswith("'"):
            fields[name] = Array(value)
        elif value.startswith("(") and re.match(r"\w+:", value[1:]):
            fields[name] = [Array(v) for v in re.split(r",(?=\w+:)", value[1:-1])]
        else:
            fields[name] = value.strip("'")
    return fields


def only(fields, *names):
    """Whether a case has no other arguments: another one may be more work."""
    return set(fields) <= set(names)


# ---- torch -----------------------------------------------------------------------------------------------------------------------------
def turns(make, nbytes):
    """Values made so often that they have ROTATED bytes, in turns."""
    return itertools.cycle([make() for _ in range(min(200, max(2, ROTATED // max(1, nbytes) + 1)))])


class Torch:
    """torch's own operations."""

    def __init__(self, threads):
        import torch

        self.torch = torch
        self.functional = torch.nn.functional
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)

    def array(self, a, shape=None):
        t = self.torch
        kinds = {"bf16": t.bfloat16, "f16": t.float16, "f32": t.float32}
        return t.randn(*(shape or a.shape)).to(kinds[a.dtype]) if a.dtype in kinds else None

    def linear(self, x, weight, bias=None):
        """A function without arguments: x times each of weight's rows, by this library."""
        return lambda: self.functional.linear(x, weight, bias)

    def row(self, op, fields):
        """A function without arguments, or None."""
        made = getattr(self, "_" + op.rpartition(".")[0].rpartition(".")[2].lower() + "_" + op.rpartition(".")[2] if "Wrapper" in op else "_" + op, None)
        return made and made(fields)

    def _mm_bf16(self, f):
        if not only(f, "a", "b"):
            return None
        n = (f["b"].packed() or f["b"].shape)[1]
        a = self.array(f["a"])
        weights = turns(lambda: self.linear(a, self.torch.randn(n, a.shape[1]).to(a.dtype)), 2 * n * a.shape[1])
        return lambda: next(weights)()


class TorchOnly(Torch):
    def _rows(self, f, call):
        x = self.array(f["input"])
        return None if x is None else lambda: call(x)

    def _rmsnorm(self, f):
        w = self.array(f["weight"])
        return self._rows(f, lambda x: self.functional.rms_norm(x, w.shape, w, 1e-6)) if only(f, "input", "weight", "eps") else None

    def _fused_add_rmsnorm(self, f):
        w, r = self.array(f["weight"]), self.array(f["residual"])
        return self._rows(f, lambda x: self.functional.rms_norm(r.add_(x), w.shape, w, 1e-6))

    def _gated(self, f, act):
        return self._rows(f, lambda x: act(x[..., :x.shape[-1] // 2]) * x[..., x.shape[-1] // 2:])

    def _silu_and_mul(self, f):
        return self._gated(f, self.functional.silu)

    def _gelu_and_mul(self, f):
        return self._gated(f, self.functional.gelu)

    def _gelu_tanh_and_mul(self, f):
        return self._gated(f, lambda x: self.functional.gelu(x, approximate="tanh"))

    def _softmax(self, f):
        x = self.array(f["logits"])
        return (lambda: self.torch.softmax(x, -1)) if only(f, "logits") else None

    def _top_k(self, f):
        return self._rows(f, lambda x: self.torch.topk(x, int(f["k"]), sorted=f.get("sorted") == "True"))

    def _attention(self, q, k, v, new, keys):
        """The faster of SDPA with enable_gqa and, for one query, with the heads of a group as rows. [batch, heads, rows, D]."""
        sdpa = self.functional.scaled_dot_product_attention
        if new == 1:
            folded = q.reshape(q.shape[0], k.shape[1], -1, q.shape[3])
            ways = [lambda: sdpa(q, k, v, enable_gqa=True), lambda: sdpa(folded, k, v)]
            for way in ways:
                way()
            return min(ways, key=seconds_of)
        mask = self.torch.ones(new, keys, dtype=self.torch.bool).tril(keys - new) if keys > new else None
        return lambda: sdpa(q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=True)

    def _paged(self, f, new, keys, value_dim=None):
        cache = f["paged_kv_cache"]
        cache = cache[0] if isinstance(cache, list) else cache
        if cache.dtype != f["q"].dtype or new is None or keys is None:
            return None
        hkv, d = cache.shape[-2:] if f.get("init.kv_layout") != "HND" else (cache.shape[-3], cache.shape[-1])
        batch = f["q"].shape[0] // new
        q = self.array(f["q"], (batch, f["q"].shape[1], new, d))
        k, v = (self.array(cache, (1, hkv, keys, d)).repeat(batch, 1, 1, 1) for _ in range(2))
        return self._attention(q, k, v, new, keys)

    def _batchdecodewithpagedkvcachewrapper_run(self, f):
        return self._paged(f, 1, length(f["plan.indptr"], f["plan.last_page_len"], f["plan.page_size"]))

    def _batchprefillwithpagedkvcachewrapper_run(self, f):
        if f.get("plan.causal") != "True":
            return None
        return self._paged(f, step(f["plan.qo_indptr"]), length(f["plan.paged_kv_indptr"], f["plan.paged_kv_last_page_len"], f["plan.page_size"]))

    def _batchmlapagedattentionwrapper_run(self, f):
        """Two products and a softmax over contiguous latents, heads as rows."""
        keys, rows = f["plan.kv_len_arr"].values(), step(f["plan.qo_indptr"])
        query = f["query"] if "query" in f else f["q_nope"]
        if rows != 1 or not keys or len(set(keys)) > 1 or query.dtype != (f["kv_cache"] if "kv_cache" in f else f["ckv_cache"]).dtype:
            return None
        ckv, width = int(f["plan.head_dim_ckv"]), int(f["plan.head_dim_ckv"]) + int(f["plan.head_dim_kpe"])
        q = self.array(query, (*query.shape[:2], width))
        kv = self.array(query, (query.shape[0], int(keys[0]), width))

        def call():
            p = self.torch.softmax(self.torch.matmul(q, kv.transpose(1, 2)).float() * 0.07, -1).to(q.dtype)
            return self.torch.matmul(p, kv[:, :, :ckv])

        return call


class OneDnn(Torch):
    """oneDNN's product of a weight in the layout that it chooses, as torch.compile's freezing calls it."""

    def linear(self, x, weight, bias=None):
        ops = self.torch.ops.mkldnn
        packed = ops._reorder_linear_weight(weight, x.shape[0])
        return lambda: ops._linear_pointwise(x, packed, bias, "none", [], "")


class ZenTorch(Torch):
    def __init__(self, threads):
        super().__init__(threads)
        import zentorch  # noqa: F401

        self.torch.ops.zentorch  # the operators of a version that fits this torch

    def linear(self, x, weight, bias=None):
        ops = self.torch.ops.zentorch
        packed = ops.zentorch_weight_prepack_for_linear(weight)
        return lambda: ops.zentorch_linear_unary(x, packed, bias, is_weight_prepacked=True)


def step(indptr):
    """The rows of each request, when all have as many; else None."""
    values = indptr.values() or []
    found = {b - a for a, b in zip(values, values[1:])}
    return int(found.pop()) if len(found) == 1 else None


def length(indptr, last, page_size):
    """The keys of each request, when all have as many; else None."""
    pages, ends = step(indptr), set(last.values() or [])
    return (pages - 1) * int(page_size) + int(ends.pop()) if pages and len(ends) == 1 else None


# ---- ggml ------------------------------------------------------------------------------------------------------------------------------
class _Init(ctypes.Structure):
    _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool)]


class Ggml:
    """The operations of llama.cpp, by graphs of one of them."""
    TYPES = {"f32": 0, "f16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "Q2_K": 10, "Q3_K": 11, "Q4_K": 12, "Q5_K": 13,
             "Q6_K": 14, "bf16": 30}

    def __init__(self, package, threads):
        where = os.path.dirname(importlib.util.find_spec(package).origin)
        found = [p for name in ("libggml-base.so", "libggml-cpu*.so", "libggml.so") for p in sorted(glob.glob(f"{where}/lib/{name}"))]
        if not found:
            raise ImportError(f"{where} has no ggml")
        for d in glob.glob(where + ".libs/libgomp*"):
            ctypes.CDLL(d, mode=ctypes.RTLD_GLOBAL)
        self.libraries = [ctypes.CDLL(p, mode=ctypes.RTLD_GLOBAL) for p in found]
        self.threads, self.context, self.weights = threads, None, []
        self._call("ggml_time_init", None)

    def _call(self, name, result, *arguments):
        function = next(getattr(lib, name) for lib in self.libraries if hasattr(lib, name))
        function.restype = result
        return function(*arguments)

    def _tensor(self, kind, *extents):
        ext = (ctypes.c_int64 * len(extents))(*extents)
        t = self._call("ggml_new_tensor", ctypes.c_void_p, self.context, kind, len(extents), ext)
        data, size = self._call("ggml_get_data", ctypes.c_void_p, ctypes.c_void_p(t)), self._call("ggml_nbytes", ctypes.c_size_t, ctypes.c_void_p(t))
        ctypes.memset(data, 0x2a, size)  # small values in every type
        return ctypes.c_void_p(t)

    def _graphs(self, nbytes, make):
        """The computed nodes of make(), in turns, as a function; `nbytes`: of the memory that one of them takes."""
        if self.context:
            self._call("ggml_free", None, self.context)
        count = min(200, max(2, ROTATED // max(1, nbytes) + 1))
        self.context = ctypes.c_void_p(self._call("ggml_init", ctypes.c_void_p, _Init(count * (nbytes + (1 << 20)) + (64 << 20), None, False)))
        graphs = []
        for _ in range(count):
            graph = ctypes.c_void_p(self._call("ggml_new_graph_custom", ctypes.c_void_p, self.context, ctypes.c_size_t(8), False))
            self._call("ggml_build_forward_expand", None, graph, make())
            graphs.append(graph)
        rotating = itertools.cycle(graphs)

        def call():
            self._call("ggml_graph_compute_with_ctx", ctypes.c_int, self.context, next(rotating), ctypes.c_int(self.threads))

        return call

    def _node(self, name, *arguments):
        return ctypes.c_void_p(self._call(name, ctypes.c_void_p, self.context, *arguments))

    def _product(self, kind, m, n, k):
        if kind not in self.TYPES:
            return None

        def make():
            weight, x = self._tensor(self.TYPES[kind], k, n), self._tensor(self.TYPES["f32"], k, m)
            return self._node("ggml_mul_mat", weight, x)

        return self._graphs(2 * n * k + 4 * m * (n + 3 * k), make)

    def row(self, op, f):
        if op == "mm_bf16" and only(f, "a", "b"):
            return self._product("bf16", *f["a"].shape[:1], (f["b"].packed() or f["b"].shape)[1], f["a"].shape[1])
        if op == "mm_gguf":
            weight = f["b_blocks"]
            n = weight.packed()[1] if weight.packed() else weight.shape[0]
            return self._product(f["format"], f["a"].shape[0], n, f["a"].shape[1])
        if op == "rmsnorm":
            rows, width = f["input"].shape[0], f["input"].shape[-1]

            def norm():
                x, w = self._tensor(self.TYPES["f32"], width, rows), self._tensor(self.TYPES["f32"], width)
                return self._node("ggml_mul", self._node("ggml_rms_norm", x, ctypes.c_float(1e-6)), w)

            return self._graphs(12 * rows * width, norm)
        if op == "softmax":
            rows, width = f["logits"].shape
            return self._graphs(8 * rows * width, lambda: self._node("ggml_soft_max", self._tensor(self.TYPES["f32"], width, rows)))
        return None


# ---- the process -----------------------------------------------------------------------------------------------------------------------
def seconds_of(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def first_line(e):
    return (str(e).splitlines() or [type(e).__name__])[0]


def library(name, threads):
    """The library, or None where it is not installed, or in a version that does not fit its packages."""
    makers = {"torch": TorchOnly, "onednn": OneDnn, "zentorch": ZenTorch, "llama.cpp": lambda n: Ggml("llama_cpp", n),
              "ik_llama.cpp": lambda n: Ggml("ik_llama_cpp", n)}
    try:
        return makers[name](threads)
    except Exception:  # an import may fail in any way
        return None


def answer(name, threads):
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    found = library(name, threads)
    print("ready" if found else "absent", file=out)
    call = None
    for line in sys.stdin:
        what, _, rest = line.strip().partition(" ")
        try:
            if what == "row":
                call = None
                op, _, case = rest.split(" ", 2)
                call = found.row(op, parse(case))
                if call and seconds_of(call) < 0.1:
                    call()
                print("ready" if call else "nothing", file=out)
            else:
                times = [seconds_of(call) for _ in range(int(rest))]
                print(f"{statistics.median(times):.9f}", file=out)
        except Exception as e:
            print(f"{name}: {line.strip()[:200]}: {first_line(e)}", file=sys.stderr)
            print("error", first_line(e), file=out)


if __name__ == "__main__" and sys.argv[1:2] == ["--answer"]:
    answer(sys.argv[2], int(sys.argv[3]))
