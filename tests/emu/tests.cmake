# SPDX-License-Identifier: Apache-2.0
# The planted kernels, built as the emulator's toolchain builds an artifact: instrumented, without a sanitizer's runtime.
add_library(emu_planted MODULE ${CMAKE_CURRENT_LIST_DIR}/kernels/planted.cc)
target_include_directories(emu_planted PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(emu_planted PRIVATE -O2 -g1 -fvisibility=hidden -fno-exceptions -fno-rtti -ffp-contract=off -fno-tree-vectorize
  -fno-tree-slp-vectorize -fno-strict-aliasing -fno-optimize-sibling-calls -fsanitize=thread -w -DFI_EMU=1
  $<$<CXX_COMPILER_ID:GNU>:--param=tsan-instrument-func-entry-exit=0 -fno-store-merging>
  $<$<CXX_COMPILER_ID:Clang>:-mllvm> $<$<CXX_COMPILER_ID:Clang>:-tsan-instrument-func-entry-exit=0>)
target_link_options(emu_planted PRIVATE -nodefaultlibs)
target_link_libraries(emu_planted PRIVATE m c gcc)
target_compile_definitions(emu_tests PRIVATE FI_EMU_PLANTED="$<TARGET_FILE:emu_planted>")
add_dependencies(emu_tests emu_planted)
