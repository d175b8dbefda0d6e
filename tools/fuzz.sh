#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/fuzz.sh [SECONDS] [BUILD_DIR]: builds the fuzz targets with clang (libFuzzer, ASan, UBSan) and runs each for SECONDS
# (default 10) on a corpus that starts from generated seeds. What it finds stays in BUILD_DIR/crashes. Exit status 1 on a finding.
# Its inputs are the same each time, as far as the time reaches; FUZZ_SEED (default 1) gives others.
set -eu
seconds=${1:-10}
root=$(cd "$(dirname "$0")/.." && pwd)
build=${2:-$root/build/fuzz}
cxx=${FUZZ_CXX:-$(command -v clang++-19 || command -v clang++ || true)}
[ -n "$cxx" ] || { echo "fuzz.sh: no clang++ was found (Debian: clang-19)" >&2; exit 2; }
mkdir -p "$build/obj" "$build/crashes"

# A small makefile: only what the readers need, instrumented as a whole.
sources="$(cd "$root" && ls flashinfer/core/*.cc flashinfer/core/cuda/*.cc flashinfer/formats/*.cc flashinfer/op/*.cc | tr '\n' ' ') \
  flashinfer/replay/session.cc flashinfer/replay/place.cc flashinfer/replay/inputs.cc"
flags="-std=c++20 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -I$root"
compile=$cxx
if command -v ccache > /dev/null; then compile="ccache $cxx"; fi
facts='-DFI_VERSION="\"0\"" -DFI_SOURCE_ROOT="\"\"" -DFI_BUILD_ROOT="\"\"" -DFI_STATIC_PREFIX="\"\"" -DFI_SANITIZER_FLAGS="\"\"" -DFI_BUILD_TYPE="\"\""'
cat > "$build/stubs.cc" <<EOF
#include <span>
#include "flashinfer/comm/share.h"
#include "flashinfer/op/registry.h"
namespace flashinfer::build { const char* commit() { return ""; } }
namespace flashinfer::comm {
std::shared_ptr<Window> window_at(const void*) { return nullptr; }
void Window::abandon(const std::string&) {}
}
namespace flashinfer::op {
std::span<const Family> families() { return {}; }
void start_observing() {}
void start_tracing() {}
}
EOF
{
  echo "all: pickle pt safetensors metadata seeds"
  objects=""
  for s in $sources; do
    o="obj/$(echo "$s" | tr / _).o"
    objects="$objects $o"
    printf '%s: %s/%s\n\t%s %s %s -fsanitize=fuzzer-no-link -MMD -c %s/%s -o $@\n-include %s.d\n' \
      "$o" "$root" "$s" "$compile" "$flags" "$facts" "$root" "$s" "${o%.o}"
  done
  printf 'OBJECTS = obj/stubs.o %s\n' "$objects"
  printf 'obj/stubs.o: stubs.cc\n\t%s %s -fsanitize=fuzzer-no-link -c $< -o $@\n' "$cxx" "$flags"
  for t in pickle pt safetensors metadata; do
    printf '%s: $(OBJECTS) %s/fuzz/%s_fuzzer.cc\n\t%s %s -fsanitize=fuzzer $^ -o $@ -ldeflate -lxxhash -lpthread -ldl\n' \
      "$t" "$root" "$t" "$cxx" "$flags"
  done
  printf 'seeds: $(OBJECTS) %s/fuzz/seeds.cc\n\t%s %s $^ -o $@ -ldeflate -lxxhash -lpthread -ldl\n' "$root" "$cxx" "$flags"
} > "$build/Makefile"
make -s -j"${FUZZ_JOBS:-$(nproc)}" -C "$build" all

"$build/seeds" "$build/seed"

fuzz() {  # fuzz TARGET, in the background: what is left of TARGET.failed says that it did not end well
  t=$1
  mkdir -p "$build/corpus/$t"
  touch "$build/$t.failed"
  log="$build/$t.log"
  if "$build/$t" -seed="${FUZZ_SEED:-1}" -max_total_time="$seconds" -max_len=8192 -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
      -artifact_prefix="$build/crashes/$t-" "$build/corpus/$t" "$build/seed/$t" > "$log" 2>&1; then
    echo "fuzz $t: $(grep -o 'number_of_executed_units: *[0-9]*' "$log" | grep -o '[0-9]*$') runs in $seconds s, nothing found"
    rm "$build/$t.failed"
  else
    echo "fuzz $t: FAILED; $log ends with:"
    tail -n 20 "$log"
  fi
}
for pair in "pickle pt" "safetensors metadata"; do  # two at a time
  for t in $pair; do fuzz "$t" & done
  wait
done
[ -z "$(ls "$build"/*.failed 2>/dev/null)" ]
