# SPDX-License-Identifier: Apache-2.0
# Kernels built as the emulator's toolchain builds an artifact: instrumented, without a sanitizer's runtime, and a second
# time in the guarded form, which is found beside the first by its name.
set(fi_gnu $<CXX_COMPILER_ID:GNU>)
set(fi_clang $<CXX_COMPILER_ID:Clang>)
function(fi_emulated_module name file)
  add_library(${name} MODULE ${file})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE -g1 -fvisibility=hidden -fno-exceptions -fno-rtti -ffp-contract=off -fno-tree-vectorize
    -fno-tree-slp-vectorize -fno-strict-aliasing -fno-finite-loops -ftrivial-auto-var-init=pattern -fno-optimize-sibling-calls -w -DFI_EMU=1
    $<${fi_gnu}:-fno-store-merging> $<${fi_gnu}:-fsanitize=bounds-strict$<COMMA>object-size>
    $<${fi_clang}:-fsanitize=array-bounds$<COMMA>object-size> ${ARGN})
  target_link_options(${name} PRIVATE -nodefaultlibs)
  target_link_libraries(${name} PRIVATE m c gcc)
  add_dependencies(emu_tests ${name})
endfunction()
set(fi_stack_shadow 0x200000000000)  # kStackShadow (kernels/emu/api.h)
foreach(module planted families protocols forms locals attention wrappers peers)
  set(file ${CMAKE_CURRENT_LIST_DIR}/kernels/${module}.cc)
  fi_emulated_module(emu_${module} ${file} -O2 -fsanitize=thread $<${fi_gnu}:--param=tsan-instrument-func-entry-exit=0>
    "$<${fi_clang}:SHELL:-mllvm -tsan-instrument-func-entry-exit=0>")
  fi_emulated_module(emu_${module}_guarded ${file} -O1 -DFI_EMU_GUARDED=1 -fsanitize=kernel-address -fsanitize-address-use-after-scope
    "$<${fi_gnu}:SHELL:-fasan-shadow-offset=${fi_stack_shadow} --param=asan-stack=1 --param=asan-globals=0 --param=asan-instrumentation-with-call-threshold=0>"
    "$<${fi_clang}:SHELL:-mllvm -asan-mapping-offset=${fi_stack_shadow} -mllvm -asan-stack=1 -mllvm -asan-globals=0 -mllvm -asan-use-after-scope=1 -mllvm -asan-instrumentation-with-call-threshold=0>")
  set_target_properties(emu_${module}_guarded PROPERTIES OUTPUT_NAME emu_${module}.guarded)
endforeach()
