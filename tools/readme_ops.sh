#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/readme_ops.sh [BUILD]: writes the README's table of ops anew from the registry.
set -eu
cd "$(dirname "$0")/.."
text=$(sed '/^<!-- ops -->$/q' README.md)
{ printf '%s\n' "$text"; "${1:-build/release}/bin/flashinfer" list-ops --markdown; } >README.md.new
mv README.md.new README.md
