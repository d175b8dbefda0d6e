# SPDX-License-Identifier: Apache-2.0
# tests/<name>/*.cc -> <name>_tests (one GoogleTest program per folder that has a *_test.cc); tests/<name>/*_test.py -> a
# test run by the project's Python. tests/<name>/tests.cmake, if there, is included for what is special (flags of one source).
find_package(GTest QUIET)
if(NOT GTest_FOUND)
  message(STATUS "No tests: GoogleTest was not found (tools/setup.sh test installs it)")
  return()
endif()
set(fi_python ${PROJECT_SOURCE_DIR}/.venv/bin/python CACHE FILEPATH "Python with the packages of tools/setup.sh test")
find_program(PYTHON3 python3)

# One entry per program: a process per case would cost more than most cases. GTEST_OUTPUT lets tools/test.sh count cases.
set(fi_test_environment
    FLASHINFER_WORKSPACE_BASE=${FLASHINFER_TEST_JIT_CACHE}
    FLASHINFER_BUILD_DIR=${PROJECT_BINARY_DIR}
    ASAN_OPTIONS=detect_stack_use_after_return=0:allocator_may_return_null=1
    UBSAN_OPTIONS=print_stacktrace=1
    "TSAN_OPTIONS=halt_on_error=1 die_after_fork=0")

# ctest starts what costs most first, so that no long program runs alone at the end. Seconds, roughly, with an empty JIT cache.
set(fi_cost_device 750)
set(fi_cost_cases 400)
set(fi_cost_ops 400)
set(fi_cost_comm 300)
set(fi_cost_llm 100)
function(fi_set_cost test name)
  if(fi_cost_${name})
    set_tests_properties(${test} PROPERTIES COST ${fi_cost_${name}})
  endif()
endfunction()

file(GLOB test_dirs CONFIGURE_DEPENDS LIST_DIRECTORIES true ${PROJECT_SOURCE_DIR}/tests/*)
foreach(dir IN LISTS test_dirs)
  if(NOT IS_DIRECTORY ${dir})
    continue()
  endif()
  get_filename_component(name ${dir} NAME)
  file(GLOB test_sources CONFIGURE_DEPENDS ${dir}/*.cc)
  file(GLOB python_tests CONFIGURE_DEPENDS ${dir}/*_test.py)
  if(test_sources MATCHES "_test\\.cc")
    add_executable(${name}_tests ${test_sources})
    target_link_libraries(${name}_tests PRIVATE flashinfer_internals fi::options fi::json fi::xxhash fi::deflate GTest::gtest
                                                GTest::gtest_main Threads::Threads ${CMAKE_DL_LIBS})
    target_compile_definitions(${name}_tests PRIVATE FI_TEST_SOURCE_ROOT="${PROJECT_SOURCE_DIR}"
                                                     FI_TEST_BUILD_ROOT="${PROJECT_BINARY_DIR}"
                                                     FI_TEST_PYTHON="${fi_python}")
    target_compile_options(${name}_tests PRIVATE ${fi_sanitizer_test_flags})
    add_test(NAME ${name} COMMAND ${name}_tests WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT 1800
      ENVIRONMENT "${fi_test_environment};GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/test-results/${name}.xml")
    fi_set_cost(${name} ${name})
  endif()
  if(FLASHINFER_SANITIZE AND name STREQUAL "install")
    continue()  # a consumer without the sanitizer cannot load the library
  endif()
  foreach(script IN LISTS python_tests)
    get_filename_component(stem ${script} NAME_WE)
    # gpu_check: processes with time limits, one killed by the clock; tests/device and tests/replay run the same code. sass: the
    # compiler is the same, and so is what it makes.
    if(FLASHINFER_SANITIZE AND stem MATCHES "^(gpu_check|sass)_test$")
      continue()
    endif()
    file(STRINGS ${script} needs_venv REGEX "^ *(import|from) (torch|numpy|safetensors|tvm_ffi|flashinfer)" LIMIT_COUNT 1)
    set(interpreter ${PYTHON3})
    if(needs_venv)
      # A sanitized library cannot be loaded into a plain interpreter, and a fresh clone may not have the packages yet.
      if(NOT EXISTS ${fi_python} OR FLASHINFER_SANITIZE)
        message(STATUS "Not a test here: ${name}/${stem}.py (needs the packages of `tools/setup.sh test`, no sanitizer)")
        continue()
      endif()
      set(interpreter ${fi_python})
    endif()
    add_test(NAME ${name}.${stem} COMMAND ${interpreter} ${script} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name}.${stem} PROPERTIES TIMEOUT 1800 ENVIRONMENT "${fi_test_environment};PYTHONDONTWRITEBYTECODE=1")
  endforeach()
  include(${dir}/tests.cmake OPTIONAL)
endforeach()
