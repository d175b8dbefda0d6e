# SPDX-License-Identifier: Apache-2.0
# All rows of the case tables again for other instruction sets than this machine's: cases.<ISA>. Values are what is checked,
# so kernels are compiled in a third of the time, at -O1 (the last -O holds); those of `cases` have the flags of users.
set(FLASHINFER_TEST_ISAS "x86-64-v3" CACHE STRING "Instruction sets, beside the machine's, for which all case rows run: x86-64-v3;portable")
if(FLASHINFER_SANITIZE OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  return()
endif()
set(cpu_flags "")
if(EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo cpu_flags REGEX "^flags.* avx512f" LIMIT_COUNT 1)
endif()
foreach(isa IN LISTS FLASHINFER_TEST_ISAS)
  if(isa STREQUAL "x86-64-v3" AND NOT cpu_flags)
    message(STATUS "Not a test here: cases.${isa} (this CPU has no more than its instructions, with which `cases` runs)")
    continue()
  endif()
  add_test(NAME cases.${isa} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}
           COMMAND cases_tests --gtest_filter=-*Targets.*:*Extensions.*:*RecordReplay*:Runner.*:Compare.*:Parse.*:CaseTables.*)
  set_tests_properties(cases.${isa} PROPERTIES TIMEOUT 1800 ENVIRONMENT
    "${fi_test_environment};FLASHINFER_CPU_ISA=${isa};FLASHINFER_EXTRA_CFLAGS=-O1;GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/test-results/cases.${isa}.xml")
  fi_set_cost(cases.${isa} cases)
endforeach()
