# SPDX-License-Identifier: Apache-2.0
# The program's own parts, tested in process; cli_test.cc runs the program itself.
target_link_libraries(llm_tests PRIVATE example_llm_parts fi::pcre2)
add_dependencies(llm_tests example_llm)
