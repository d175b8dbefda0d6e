# SPDX-License-Identifier: Apache-2.0
# The same kernel headers once per ISA, as the JIT compiles them; tests of what the machine cannot run are skipped.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # GCC 12 takes the "undefined" operands inside its own AVX-512 intrinsics for uses of uninitialised variables (its bug 105593).
  set(quiet "-Wno-uninitialized;-Wno-maybe-uninitialized")
  set(level -O3)
  set(portable_level -O2)
  if(FLASHINFER_SANITIZE)
    set(level -O0)
    set(portable_level -O0)  # gemm_v4.cc: 3.1 s of CPU time, 16.6 s at -O3
  endif()
  foreach(kernel vec gemm)
    set_source_files_properties(${dir}/${kernel}_portable.cc PROPERTIES COMPILE_OPTIONS "${portable_level};-Wno-psabi")
    set_source_files_properties(${dir}/${kernel}_v3.cc PROPERTIES COMPILE_OPTIONS "${level};-march=x86-64-v3")
    set_source_files_properties(${dir}/${kernel}_v4.cc PROPERTIES COMPILE_OPTIONS "${level};-march=x86-64-v4;${quiet}")
    set_source_files_properties(${dir}/${kernel}_bf16.cc PROPERTIES COMPILE_OPTIONS "${level};-march=x86-64-v4;-mavx512bf16;${quiet}")
  endforeach()
  set_source_files_properties(${dir}/gemm_amx.cc PROPERTIES COMPILE_OPTIONS "${level};-march=x86-64-v4;-mavx512bf16;-mavx512vnni;-mavx512vbmi;-mamx-tile;-mamx-bf16;${quiet}")
endif()
