# SPDX-License-Identifier: Apache-2.0
# Kernels built as the emulator's toolchain builds an artifact: instrumented, without a sanitizer's runtime.
foreach(module planted families protocols forms attention wrappers peers)
  add_library(emu_${module} MODULE ${CMAKE_CURRENT_LIST_DIR}/kernels/${module}.cc)
  target_include_directories(emu_${module} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(emu_${module} PRIVATE -O2 -g1 -fvisibility=hidden -fno-exceptions -fno-rtti -ffp-contract=off -fno-tree-vectorize
    -fno-tree-slp-vectorize -fno-strict-aliasing -fno-finite-loops -fno-optimize-sibling-calls -fsanitize=thread -w -DFI_EMU=1
    $<$<CXX_COMPILER_ID:GNU>:-fsanitize=bounds-strict$<COMMA>object-size> $<$<CXX_COMPILER_ID:Clang>:-fsanitize=array-bounds$<COMMA>object-size>
    $<$<CXX_COMPILER_ID:GNU>:--param=tsan-instrument-func-entry-exit=0> $<$<CXX_COMPILER_ID:GNU>:-fno-store-merging>
    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-mllvm -tsan-instrument-func-entry-exit=0>")
  target_link_options(emu_${module} PRIVATE -nodefaultlibs)
  target_link_libraries(emu_${module} PRIVATE m c gcc)
  add_dependencies(emu_tests emu_${module})
endforeach()
