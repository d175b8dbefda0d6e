#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# new_op.sh NAME: a new family of ops, flashinfer/ops/NAME with the op NAME in it, copied from flashinfer/ops/skeleton. No other file
# needs an edit: the next build finds the folder. docs/adding-an-op.md says what to write.
set -eu
cd "$(dirname "$0")/.."
name=${1-}
if [ $# -ne 1 ] || ! [[ $name =~ ^[a-z][a-z0-9]*(_[a-z0-9]+)*$ ]]; then
  echo "usage: tools/new_op.sh NAME, e.g. scale_rows: small letters, digits and single underscores" >&2
  exit 2
fi
to=flashinfer/ops/$name
problem=
if [ -e "$to" ]; then
  problem="$to exists"
elif grep -qs "^| \`$name\` |" docs/ops.md; then
  problem="there is an op $name (docs/ops.md)"
elif grep -rqE "^namespace flashinfer::$name\b" flashinfer --include='*.h'; then
  problem="$name is a namespace of the library"
elif ! echo "int $name;" | ${CXX:-c++} -std=c++20 -fsyntax-only -x c++ - 2>/dev/null; then
  problem="$name is no name in C++"
fi
if [ "$problem" ]; then
  echo "new_op.sh: $problem: choose another name" >&2
  exit 1
fi
type=$(sed -E 's/(^|_)([a-z0-9])/\U\2/g' <<< "$name")

cp -r flashinfer/ops/skeleton "$to"
rm "$to/README.md"
find "$to" -type f -exec sed -i "s/skeleton/$name/g; s/Skeleton/$type/g" {} +
find "$to" -type f -name 'skeleton.*' | while read -r file; do
  mv "$file" "$(dirname "$file")/$name.${file##*.}"
done
find "$to" -type f | sort
echo "Next: cmake --build --preset release && build/release/bin/flashinfer cases $name; docs/adding-an-op.md says what to change."
