#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/test.sh BUILD [ctest options]: runs the tests of a build folder and prints how many cases passed and failed.
set -u
build=$1
shift
rm -rf "$build/test-results" "$build/tests.xml"
mkdir -p "$build/test-results"
ctest --test-dir "$build" --output-on-failure -j "${JOBS:-$(nproc)}" --output-junit tests.xml --no-tests=error "$@"
status=$?
python3 tools/count_tests.py "$build" || status=1
exit $status
