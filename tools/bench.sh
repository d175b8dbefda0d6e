#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench.sh BUILD [PYTHON]: measures the lists of bench/ and the programs that measure something else than an op, and writes the results into
# docs/performance.md. SECONDS_A_ROW: the time of a row (0.2). PEERS: other libraries beside it, of those that PYTHON has (all).
set -eu
cd "$(dirname "$0")/.."
build=$1
python=${2:-python3}
[ $# -gt 1 ] || [ ! -x .venv/bin/python ] || python=$PWD/.venv/bin/python
out=$build/bench-results
rm -rf "$out"
mkdir -p "$out"
export FLASHINFER_BUILD_DIR="$PWD/$build" PYTHONPATH=python
status=0
for list in bandwidth sampling products attention linear_attention; do
  echo "== bench/$list.txt"
  "$build/bin/flashinfer" bench --testlist "bench/$list.txt" --seconds "${SECONDS_A_ROW:-0.2}" --peers "${PEERS:-all}" --python "$python" \
    --csv "$out/$list.csv" || status=1
done
# What a program prints; one that needs something that is not here (the model, a package) is left out.
say() {
  name=$1
  shift
  echo "== $name"
  if "$@" > "$out/$name.txt" 2> "$out/$name.log"; then
    cat "$out/$name.txt"
  else
    tail -n 2 "$out/$name.log"
    rm -f "$out/$name.txt"
  fi
}
for program in call_path jit_lookup log_cost decode_step; do
  [ ! -x "$build/bin/bench_$program" ] || say "bench_$program" "$build/bin/bench_$program"
done
for part in call import gil alternate; do
  say "overhead.py $part" "$python" bench/python/overhead.py "$part"
done
say "recorder_cost.py" "$python" bench/python/recorder_cost.py
say "linear_attention.py time" "$python" benchmarks/linear_attention.py time --tokens 2048
say hf_models.py "$python" bench/python/hf_models.py
say all_reduce.py "$python" bench/python/all_reduce.py --turns 3 --kb 16 256 4096 65536
say moe_all_to_all.py "$python" bench/python/moe_all_to_all.py
if [ -f models/SmolLM2-135M-Instruct.Q4_1.gguf ] && [ -x "$build/examples/llm" ]; then
  say llm_vs_llamacpp "$python" bench/llm_vs_llamacpp/run.py --program "$build/examples/llm" --python "$python"
fi
python3 tools/performance_table.py "$out"
exit "$status"
