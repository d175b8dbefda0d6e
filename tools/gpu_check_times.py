# SPDX-License-Identifier: Apache-2.0
"""The steps of gpu_check.py that time: ceilings, rows beside torch and against goals, hardware counters, compiler settings."""
import csv
import json
import os
import pathlib
import re
import sys

from gpu_check_lib import find_tool, last_json, tail

HERE = pathlib.Path(__file__).resolve().parent
GDN = ("q=bf16:64x1x16x128 k=bf16:64x1x16x128 v=bf16:64x1x32x128 state={state}:64x32x128x128 A_log=f32:32 a=bf16:64x1x32 dt_bias=f32:32 "
       "b=bf16:64x1x32")
SSU = ("state=bf16:64x128x64x128 x=bf16:64x128x64 dt=bf16:64x128x1 A=f32:128x1x1:uniform(-8,-0.1) B=bf16:64x8x128 C=bf16:64x8x128 D=bf16:128x1 "
       "dt_bias=f32:128x1 dt_softplus=True")
COPY = [("copy", 0.85)]
FP8 = "a=e4m3:8192x4096 b=e4m3:8192x4096"
FP8_BLOCKS = FP8 + " a_scale=f32:8192x32:uniform(0.01,0.1) b_scale=f32:64x32:uniform(0.01,0.1) scale_major_mode='K'"
# Named here and not in the ops' tables: which shapes have a goal, and what of torch they are compared with, is this check's choice.
# name, op, case or args, rows of torch to compare with, goals: at least this share of the copy rate or of torch's matmul, or so many "TFLOP/s"; at most
# so many "us", or this multiple of another row's time. A row that begins with "library:" runs cuBLASLt's kernel, others of FP8 products run ours.
TIMED = [("rmsnorm 16384x4096", "rmsnorm", "bench", ["rmsnorm"], COPY),
         ("fused_add_rmsnorm 16384x4096", "fused_add_rmsnorm", "bench", [], COPY),
         ("silu_and_mul 16384x8192", "silu_and_mul", "bench", ["silu_and_mul"], COPY),
         ("rope 8192x(32+8)x128", "apply_rope_pos_ids", "bench", [], COPY),
         ("fp4_quantize 16384x4096", "fp4_quantize", "bench", [], COPY),
         ("mxfp8_quantize 16384x4096", "mxfp8_quantize", "bench", [], COPY),
         ("per_token_group_quant_8bit 16384x4096", "per_token_group_quant_8bit", "bench", [], COPY),
         ("rmsnorm_quant 16384x4096", "rmsnorm_quant", "bench", [], COPY),
         ("append 8192x8x128", "append_paged_kv_cache", "bench", [], COPY),
         ("gdn decode f32 states 16/32 D128 batch 64", "gated_delta_rule_decode_pretranspose", GDN.format(state="f32"), [], COPY),
         ("gdn decode bf16 states 16/32 D128 batch 64", "gated_delta_rule_decode_pretranspose", GDN.format(state="bf16"), [], COPY),
         ("ssu decode bf16 states 128 x 64 x 128 batch 64", "selective_state_update", SSU, [], COPY),
         ("gdn chunks 16/32 D128 2048 tokens", "chunk_gated_delta_rule", "bench", [], []),
         ("mm_bf16 8192^3 (cuBLASLt)", "mm_bf16", "a=bf16:8192x8192 b=bf16:8192x8192", ["matmul"], []),
         ("library: mm_fp8 8192x8192x4096", "mm_fp8", FP8, ["matmul"], []),
         ("mm_fp8 8192x8192x4096", "mm_fp8", FP8, ["matmul"], [("library: mm_fp8 8192x8192x4096", 1 / 0.9)]),
         ("library: gemm_fp8_nt_groupwise 8192x8192x4096", "gemm_fp8_nt_groupwise", FP8_BLOCKS, ["matmul"], []),
         ("gemm_fp8_nt_groupwise 8192x8192x4096", "gemm_fp8_nt_groupwise", FP8_BLOCKS, ["matmul"], [("library: mm_fp8 8192x8192x4096", 1 / 0.9)]),
         ("softmax 256x131072", "softmax", "logits=f32:256x131072", ["softmax"], []),
         ("top_k 64x131072 k=2048", "top_k", "input=f32:64x131072 k=2048", [], []),
         ("top_k_top_p 64x131072", "top_k_top_p_sampling_from_probs", "probs=f32:64x131072:softmax(3) top_k=40 top_p=0.9 seed=1 offset=0", [], [("us", 120)]),
         ("top_p 64x131072", "top_p_sampling_from_probs", "probs=f32:64x131072:softmax(3) top_p=0.9 seed=1 offset=0", [], [("us", 120)]),
         ("sampling_from_logits 64x131072", "sampling_from_logits", "logits=f32:64x131072:normal(0,3) seed=1 offset=0", [], [("us", 120)])]
# Batch and keys of decode: at most 4 GB of bf16 cache, since every value of it is drawn on the host.
DECODE = [(batch, keys) for keys in (1024, 4096, 16384, 131072) for batch in (1, 8, 64, 256) if batch * keys <= 1 << 20]
PREFILL = [512, 2048, 8192, 16384]
# Head dim, types of queries and caches of prefill of 8192 tokens, beside bf16 at 128.
PREFILL_KINDS = [(64, "bf16", "bf16"), (256, "bf16", "bf16"), (128, "bf16", "e4m3"), (128, "e4m3", "e4m3")]
# Rows whose hardware counters are read, and that are compiled for other numbers of resident blocks.
COUNTED = ["rmsnorm 16384x4096", "silu_and_mul 16384x8192", "fp4_quantize 16384x4096", "softmax 256x131072", "top_k 64x131072 k=2048",
           "gdn decode bf16 states 16/32 D128 batch 64", "decode bf16 64 x 4096", "prefill 8192"]
# Prefill is also timed with 16 rows a warp in place of 32.
SWEPT_ROWS = ["prefill 512", "prefill 8192", *(f"prefill 8192 D{dim} {q}, cache {kv}" for dim, q, kv in PREFILL_KINDS if dim <= 128)]
SWEPT = ["decode bf16 64 x 4096", "decode e4m3 64 x 4096", "prefill 8192", "gdn chunks 16/32 D128 2048 tokens", "top_k 64x131072 k=2048"]
BLOCKS = [1, 2, 4, 6, 8]
STALLS = ("long_scoreboard", "short_scoreboard", "barrier", "mio_throttle", "math_pipe_throttle", "wait", "lg_throttle")
METRICS = {"us": "gpu__time_duration.sum", "dram %": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
           "sm %": "sm__throughput.avg.pct_of_peak_sustained_elapsed", "issue %": "smsp__issue_active.avg.pct_of_peak_sustained_active",
           "warps %": "sm__warps_active.avg.pct_of_peak_sustained_active", "registers": "launch__registers_per_thread",
           "shared conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
           **{f"stall {s}": f"smsp__average_warps_issue_stalled_{s}_per_issue_active.ratio" for s in STALLS}}


def decode_row(dtype, batch, keys):
    """Pages of 16, in any order; 32 heads over 8 of 128."""
    pages = batch * keys // 16
    indptr = ",".join(str(keys // 16 * i) for i in range(batch + 1))
    args = (f"init.float_workspace_buffer=u8:0 plan.q_data_type=bfloat16 plan.kv_data_type={'float8_e4m3fn' if dtype == 'e4m3' else 'bfloat16'} "
            f"plan.indptr=i32:[{indptr}] plan.indices=i32:{pages}:perm plan.last_page_len=i32:{batch}:const(16) plan.num_qo_heads=32 "
            f"plan.num_kv_heads=8 plan.head_dim=128 plan.page_size=16 q=bf16:{batch}x32x128 "
            f"paged_kv_cache={dtype}:{pages}x2x16x8x128:uniform(-1,1)")
    torch = [f"decode_{kind} {batch}x{keys}" for kind in ("flash", "cudnn")] if dtype == "bf16" else []
    # One request of a few keys is a launch, not a copy.
    goals = [] if batch * keys < 1 << 17 else COPY if dtype == "bf16" else [("copy", 0.8), (f"decode bf16 {batch} x {keys}", 0.6)]
    return f"decode {dtype} {batch} x {keys}", "BatchDecodeWithPagedKVCacheWrapper.run", args, torch, goals


def prefill_row(tokens):
    args = f"q=bf16:{tokens}x32x128 k=bf16:{tokens}x8x128 v=bf16:{tokens}x8x128 causal=True"
    return (f"prefill {tokens}", "single_prefill_with_kv_cache", args, [f"prefill_flash {tokens}", f"prefill_cudnn {tokens}"],
            [("TFLOP/s", 300), ("matmul", 0.40)] if tokens == 8192 else [])


def prefill_kind(dim, q, kv):
    args = f"q={q}:8192x32x{dim} k={kv}:8192x8x{dim} v={kv}:8192x8x{dim} causal=True"
    return f"prefill 8192 D{dim} {q}, cache {kv}", "single_prefill_with_kv_cache", args, [], []


def timed_rows():
    """The shapes with goals first, then the lists of attention, from the middle outwards in value."""
    attention = [decode_row("bf16", 64, 4096), prefill_row(8192), decode_row("e4m3", 64, 4096)]
    rest = [decode_row("bf16", *shape) for shape in DECODE] + [prefill_row(n) for n in PREFILL] + [prefill_kind(*k) for k in PREFILL_KINDS] + [decode_row("e4m3", *s) for s in DECODE]
    names = {row[0] for row in attention}
    return attention + TIMED + [row for row in rest if row[0] not in names]


def bench_command(check, op, what, *options):
    return [check.tool("flashinfer"), "bench", "--op", op, "--case" if what == "bench" else "--args", what, "--device", check.args.device, *options]


def candidate_of(name, op):
    return ["--candidates", "cuda_cublaslt" if name.startswith("library:") else "cuda"] if op in ("mm_fp8", "gemm_fp8_nt_groupwise") else []


def ceilings(check):
    """The copy rate, the launch, and torch's times: what every other row is compared with."""
    if check.emulated:
        return
    for name in ("copy", "launch"):
        check.run("ceiling", name, [check.tool("bench_cuda_probe"), name], 60, check.judge_json)
    run_torch(check, "ceiling", ["matmul", "copy"], 60)


def run_torch(check, step, rows, timeout):
    script = next((p for p in (HERE / "gpu_torch.py", HERE.parent / "bench" / "gpu_torch.py") if p.exists()), HERE / "gpu_torch.py")

    def judge(status, output):
        measured = last_json(output) or {}
        check.torch.update(measured)
        wrong = measured.get("error", "")
        if "No module named 'torch'" in wrong:
            return "skipped", "torch is not installed", {}
        rates = ", ".join(f"{k} {v['tflop_per_s']:.0f} TFLOP/s" for k, v in measured.items() if "tflop_per_s" in v)
        return ("ok" if status == 0 and measured else "failed"), wrong or (tail(output) if status else rates), measured
    check.run(step, "torch: " + ", ".join(rows)[:60], [sys.executable, script, json.dumps(rows)], timeout, judge, os.environ)  # its own libraries alone


def timings(check):
    if check.emulated:
        return check.run("counts", "rmsnorm", [check.tool("flashinfer"), "bench", "--op", "rmsnorm", "--device", "emu", "--counts", "--json",
                                               "--args", "input=bf16:4x1024 weight=bf16:1024"], 30)
    rows = [row for row in timed_rows() if re.search(check.args.only, row[1])]
    wanted = [name for row in rows for name in row[3]]
    run_torch(check, "timing", list(dict.fromkeys(["matmul", *wanted])), 150)
    for name, op, what, torch_rows, goals in rows:
        check.run("timing", name, bench_command(check, op, what, "--cold", "--seconds", "0.3", "--json", *candidate_of(name, op)), 90,
                  lambda s, o, n=name, t=torch_rows, g=goals: judge_timing(check, n, s, o, t, g))


def judge_timing(check, name, status, output, torch_rows, goals):
    rows = last_json(output)
    if status != 0 or not rows:
        return "failed", tail(output, status) or f"exit status {status}", {}
    r = rows[0]
    data = {"us": r["median_s"] * 1e6, "gb_per_s": r["gb_per_s"], "tflop_per_s": r["gflop_per_s"] * 1e-3, "of_copy": r["share_of_copy"]}
    if name:
        check.times[name] = data["us"]
    for t in torch_rows:
        if "seconds" in check.torch.get(t, {}):
            data[f"{t} / ours"] = check.torch[t]["seconds"] / r["median_s"]
    matmul = check.torch.get("matmul", {}).get("tflop_per_s")
    if matmul:
        data["of_matmul"] = data["tflop_per_s"] / matmul
    if goals:
        data["goals"] = [judge_goal(check, data, *goal) for goal in goals]
    words = [f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in data.items() if k != "goals"]
    return "ok", ", ".join(words + data.get("goals", [])), data


def judge_goal(check, data, what, bound):
    """A sentence that begins with met, missed or not measured."""
    if what in ("copy", "matmul", "TFLOP/s"):
        value, most = data.get("tflop_per_s" if what == "TFLOP/s" else "of_" + what), False
        unit = "TFLOP/s" if what == "TFLOP/s" else "of " + what
    else:
        value, most = data["us"] if what == "us" else data["us"] / check.times[what] if what in check.times else None, True
        unit = "us" if what == "us" else f"of the time of {what}"
    if value is None:
        return f"not measured: {unit}"
    met = value <= bound if most else value >= bound
    return f"{'met' if met else 'missed'}: {value:.3g} {unit}, goal {'<=' if most else '>='} {bound:.3g}"


def ncu(check):
    """Hardware counters of one launch of each row's kernel; clocks stay as they are."""
    if check.emulated:
        return
    tool = find_tool("ncu")
    if tool is None:
        return check.add("ncu", "Nsight Compute", "skipped", "is not installed")

    def judge(status, output):
        values = counters(output)
        if not values:
            return "failed", tail(output, status) or f"exit status {status}", {}
        return "ok", ", ".join(f"{k} {v:.4g}" for k, v in values.items()), values
    for name, op, what, _, _ in chosen(check, COUNTED):
        check.run("ncu", name, [tool, "--clock-control", "none", "--csv", "--page", "raw", "--metrics", ",".join(METRICS.values()), "-k",
                                "regex:flashinfer", "--launch-skip", "2", "--launch-count", "1", *bench_command(check, op, what, "--seconds", "0.01", *candidate_of(name, op))],
                  60, judge)


def chosen(check, names):
    return [row for row in timed_rows() if row[0] in names and re.search(check.args.only, row[1])]


def counters(output):
    """{name: value} of the last row of ncu's table, whose second line holds the units."""
    lines = [line for line in output.splitlines() if line.startswith('"')]
    table = list(csv.reader(lines))
    if len(table) < 3:
        return {}
    values = {}
    for name, metric in METRICS.items():
        text = table[-1][table[0].index(metric)] if metric in table[0] else ""
        try:
            values[name] = float(text.replace(",", ""))
        except ValueError:
            continue  # a counter that this GPU does not have
        unit = table[1][table[0].index(metric)]
        values[name] *= {"nsecond": 1e-3, "ns": 1e-3, "msecond": 1e3, "ms": 1e3}.get(unit, 1) if name == "us" else 1
    return values


def sweep(check):
    """The same kernels compiled with registers for more, or fewer, blocks at once on a multiprocessor, and prefill with half of the rows a warp:
    whether another choice would pay."""
    if check.emulated:
        return
    for name, op, what, _, _ in chosen(check, SWEPT_ROWS):
        for rows in ("32", "16"):
            check.run("sweep", f"{name}, {rows} rows a warp", bench_command(check, op, what, "--cold", "--seconds", "0.1", "--json"), 60,
                      lambda s, o: judge_timing(check, None, s, o, [], []), dict(check.env, FLASHINFER_CUDA_PREFILL_ROWS=rows))
    for name, op, what, _, _ in chosen(check, SWEPT):
        for blocks in [None, *BLOCKS]:
            env = dict(check.env, FLASHINFER_WORKSPACE_BASE=str(check.work / f"blocks{blocks}"))
            env.pop("FLASHINFER_AOT_DIR", None)
            if blocks:
                env["FLASHINFER_EXTRA_CUDAFLAGS"] = f"-DFI_MIN_BLOCKS={blocks}"
            check.run("sweep", f"{name}, " + (f"registers for {blocks} blocks" if blocks else "as it is"),
                      bench_command(check, op, what, "--cold", "--seconds", "0.1", "--json"), 60,
                      lambda s, o: judge_timing(check, None, s, o, [], []), env)
