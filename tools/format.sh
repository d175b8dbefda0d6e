#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/format.sh [--check] [FILE...]: formats the C and C++ of the repository, or the files given, with clang-format; --check
# changes nothing and lists what is not formatted (exit status 1). Case tables are tables: a row is a line, not formatted.
set -eu
cd "$(dirname "$0")/.."
mode=-i
if [ "${1:-}" = --check ]; then
  mode="--dry-run -Werror --ferror-limit=1"
  shift
fi
version=19.1.7
clang_format=.venv/bin/clang-format
[ -x "$clang_format" ] || clang_format=$(command -v clang-format-19 || command -v clang-format || true)
case $("${clang_format:-false}" --version 2>/dev/null) in
  *" ${version%%.*}."*) ;;
  *) echo "format.sh: clang-format ${version%%.*} was not found: run tools/setup.sh lint" >&2; exit 2 ;;
esac
[ $# -gt 0 ] || set -- '*.h' '*.cc' '*.c' '*.cuh'
git ls-files -z --cached --others --exclude-standard -- "$@" | grep -zE '\.(h|cc|c|cuh)$' | grep -zvE 'cases[^/]*\.cc$|/dlpack\.h$' |
  xargs -0 -r -n 40 -P "${JOBS:-$(nproc)}" "$clang_format" --style=file $mode
