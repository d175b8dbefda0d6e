# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.22)
# cmake -DROOT=<source> -DOUT=<file> -P write_commit.cmake
execute_process(COMMAND git -C ${ROOT} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
                ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY
     CONTENT "namespace flashinfer::build { const char* commit() { return \"@commit@\"; } }\n")
