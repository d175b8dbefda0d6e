# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.22)
# cmake -DROOT=<source> -DOUT=<file> -P write_commit.cmake
# A source archive (`make dist`, git archive) has no git folder, or lies in that of another project: git has written the commit into a file.
execute_process(COMMAND git -C ${ROOT} rev-parse --show-prefix --short=12 HEAD OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE status)
set(commit unknown)
file(STRINGS ${ROOT}/cmake/commit.txt archived REGEX "^[0-9a-f]+$" LIMIT_COUNT 1)
if(archived)
  string(SUBSTRING ${archived} 0 12 commit)
elseif(status EQUAL 0 AND text MATCHES "^\n([0-9a-f]+)\n$")
  set(commit ${CMAKE_MATCH_1})
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY
     CONTENT "#include \"flashinfer/core/version.h\"\n\nnamespace flashinfer::build { const char* commit() { return \"@commit@\"; } }\n")
