#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/screenshots.sh: makes docs/report.png from a recording of the demo's model and docs/bench.png from a benchmark of this machine, with
# a headless Chromium (tools/setup.sh test). BUILD names the build folder, MODEL a GGUF file of your own.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
command=$build/bin/flashinfer
program=$build/examples/llm
browser=$(command -v chromium-headless-shell || command -v chromium) || { echo "screenshots: no chromium: run tools/setup.sh test" >&2; exit 1; }
for file in "$program" "$command"; do
  [ -x "$file" ] || { echo "screenshots: $file is not built: run make demo" >&2; exit 1; }
done
model=${MODEL:-}
[ -n "$model" ] || model=$(tools/get_model.sh)
work=$(mktemp -d "${TMPDIR:-/tmp}/flashinfer-screenshots-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

shoot() {  # page, image, height
  "$browser" --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" --window-size="1300,$3" --virtual-time-budget=5000 \
    --screenshot="$2" "file://$work/$1" >"$work/browser.txt" 2>&1 || { cat "$work/browser.txt" >&2; exit 1; }
  echo "$2: $(($(wc -c <"$2") / 1024)) kB"
}

FLASHINFER_LOGLEVEL=10 FLASHINFER_LOGDEST="$work/log.txt" FLASHINFER_DUMP_DIR="$work/smollm2" FLASHINFER_DUMP_DEDUP=1 FLASHINFER_DUMP_MAX_COUNT=100000 \
  FLASHINFER_DUMP_MAX_SIZE_GB=1 FLASHINFER_DUMP_EXCLUDE=prepare_mm_weights,prepare_gguf_weights,gguf_dequantize \
  "$program" --model "$model" --no-warmup --max-new 4 --prompt "Hi" >"$work/answer.txt"
"$command" report --dir "$work/smollm2" --replay -o "$work/report.html"
shoot "report.html#op=BatchPrefillWithPagedKVCacheWrapper.run&call=8" docs/report.png 1200

cat >"$work/list.txt" <<END
--op rmsnorm --candidates cpu,reference --args "input=bf16:512x4096 weight=bf16:4096" --seconds 0.2
--op fused_add_rmsnorm --candidates cpu,reference --args "input=bf16:512x4096 residual=bf16:512x4096 weight=bf16:4096" --seconds 0.2
--op silu_and_mul --candidates cpu,reference --args "input=bf16:128x8192" --seconds 0.2
--op mm_bf16 --candidates cpu --args "a=bf16:64x2048 b=bf16:2048x2048^t" --seconds 0.2
--op mm_bf16 --candidates cpu --args "a=bf16:1x2048 b=bf16:2048x2048^t" --seconds 0.2
--op top_k --candidates cpu --args "input=f32:128x49152 k=50 sorted=True" --seconds 0.2
END
"$command" bench --testlist "$work/list.txt" --html "$work/bench.html"
shoot bench.html docs/bench.png 1000
