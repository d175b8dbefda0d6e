# SPDX-License-Identifier: Apache-2.0
# The program's own parts, tested in process; cli_test.cc runs the program itself.
foreach(part gguf dequantize tokenizer model engine sampler)
  target_sources(llm_tests PRIVATE ${PROJECT_SOURCE_DIR}/examples/llm/${part}.cc)
endforeach()
target_link_libraries(llm_tests PRIVATE fi::pcre2)
add_dependencies(llm_tests example_llm)
