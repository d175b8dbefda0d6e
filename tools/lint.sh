#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/lint.sh [FILE...]: clang-tidy 19 with the checks of .clang-tidy on the library, its command and the examples, or on the
# files given. BUILD names the configured build folder whose compile_commands.json it reads. Exit status 1 on a finding.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
tidy=$(command -v clang-tidy-19 || true)
[ -n "$tidy" ] || { echo "lint.sh: clang-tidy-19 was not found: run tools/setup.sh lint" >&2; exit 2; }
[ -e "$build/compile_commands.json" ] || { echo "lint.sh: $build is not configured" >&2; exit 2; }
[ $# -gt 0 ] || set -- 'flashinfer/*.cc' 'examples/*.cc'
# Without the TVM-FFI package there are no compile commands for flashinfer/ffi/tvm.
git ls-files -- "$@" | while read -r file; do
  if grep -qF "$PWD/$file\"" "$build/compile_commands.json"; then echo "$file"; fi
done | xargs -r -n 1 -P "${JOBS:-$(nproc)}" "$tidy" -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option \
  --extra-arg=-Wno-deprecated-declarations  # of libstdc++ 12, in its own headers
