# SPDX-License-Identifier: Apache-2.0
# The program's own parts, tested in process; cli_test.cc runs the program itself.
target_link_libraries(llm_tests PRIVATE example_llm_parts fi::pcre2)
add_dependencies(llm_tests example_llm)
if(FLASHINFER_SANITIZE)  # thirty layers in plain loops, which at -O0 take most of the test's time
  set_source_files_properties(${dir}/reference.cc PROPERTIES COMPILE_OPTIONS -O1)
endif()
