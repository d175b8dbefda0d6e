#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/demo.sh: serves eight prompts with a language model, records a short request, replays the recording. `make demo` builds
# first. BUILD names the build folder, MODEL a GGUF file of your own, DEVICE where the operators run (cpu; cuda, cuda:1; emu), NP the
# number of processes that share the model (1). Exit status 0 only when everything worked.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
program=$build/examples/llm
command=$build/bin/flashinfer
for file in "$program" "$command"; do
  [ -x "$file" ] || { echo "demo: $file is not built: run make demo" >&2; exit 1; }
done
device=${DEVICE:-cpu}
ranks=${NP:-1}
model=${MODEL:-}
[ -n "$model" ] || model=$(tools/get_model.sh)

if [ "$ranks" = 1 ]; then echo "== Eight prompts at once =="; else echo "== Eight prompts at once, $ranks processes =="; fi
"$program" --model "$model" --device "$device" --tensor-parallel "$ranks" --max-new 48 \
  --prompt "Name the capital of France." \
  --prompt "Write a haiku about the sea." \
  --prompt "Explain in two sentences why the sky is blue." \
  --prompt "Give me three ideas for a birthday present for a friend who likes gardening and old films." \
  --prompt "Translate 'good morning' into Spanish." \
  --prompt "A train leaves at nine in the morning and arrives at noon. It stops twice on the way, ten minutes each time. For how long does it move? Explain your steps." \
  --prompt "List the planets of the solar system, from the one nearest to the sun to the farthest one." \
  --prompt "Here is a short story. A fox lived at the edge of a forest, and each evening it walked to the river to drink. One evening the river was dry. The fox asked the owl what had happened, and the owl said that the beavers had built a dam upstream. The fox went to the beavers and asked them to let a little water through, and they did. What is this story about?"

echo
echo "== Record a short request, replay it =="
recording=$(mktemp -d "${TMPDIR:-/tmp}/flashinfer-demo-XXXXXX")
trap 'rm -rf "$recording"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
begin=$(date +%s)
FLASHINFER_LOGLEVEL=10 FLASHINFER_LOGDEST="$recording/log.txt" FLASHINFER_DUMP_DIR="$recording/dump" FLASHINFER_DUMP_DEDUP=1 \
  FLASHINFER_DUMP_PAGES=used FLASHINFER_DUMP_MAX_COUNT=100000 FLASHINFER_DUMP_MAX_SIZE_GB=1 FLASHINFER_DUMP_EXCLUDE=prepare_mm_weights \
  "$program" --model "$model" --device "$device" --tensor-parallel "$ranks" --no-warmup --max-new 4 --prompt "Hi" >"$recording/answer.txt"
# The first two rules enclose the warning that a recording holds all data.
awk '/^=+$/ { rules++; next } rules == 2 && $0 != "" { print "answer: " $0; exit }' "$recording/answer.txt"
calls=$(find "$recording/dump" -name metadata.jsonl | wc -l)
bytes=$(du -sk "$recording/dump" | cut -f1)
recorded=$(date +%s)
echo "recorded $calls calls, $((bytes / 1024)) MiB on disk, in $((recorded - begin)) s"
if [ "$bytes" -ge 1048576 ]; then
  echo "demo: the recording is larger than 1 GiB" >&2
  exit 1
fi
# A session prints "[1] function (folder): outcome" for each call: counted by function and outcome; the rest is shown as it is.
status=0
digest=$({ "$command" replay --dir "$recording/dump" || echo "exit status $?"; } | awk -v calls="$calls" '
  /^exit status / { status = $3; next }
  /^Replaying / { next }
  match($0, /^\[[0-9]+\] /) {
    if (++lines % 400 == 0) printf "replayed %d of %d\n", lines, calls > "/dev/stderr"
    line = substr($0, RLENGTH + 1)
    name = line; sub(/ \(.*/, "", name); sub(/^.*: ❌/, "❌", name)
    outcome = line; if (!sub(/^.*\): /, "", outcome)) outcome = ""; sub(/ \(.*/, "", outcome)
    key = sprintf("%-46s %s", name, outcome)
    if (!(key in count)) order[++n] = key
    count[key]++
    next
  }
  $0 != "" { rest[++m] = $0 }
  END {
    for (i = 1; i <= n; i++) printf "%6d x %s\n", count[order[i]], order[i]
    for (i = 1; i <= m; i++) if (i > m - 40) print rest[i]
    exit status
  }') || status=$?
echo "replayed in $(($(date +%s) - recorded)) s"
echo "$digest"
exit $status
