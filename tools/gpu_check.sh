#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/gpu_check.sh [--part 1|2|3] [--device cuda:0|emu] [--tree DIR] [--out DIR]: checks and times everything that only a GPU shows, and writes a table.
# tools/gpu_check.sh --pack DIR [--cubins sm_90a] makes a tree that another machine can run without building: DIR/gpu_check.sh. See docs/cuda.md.
exec "${PYTHON:-python3}" -B "$(dirname "$0")/gpu_check.py" "$@"
