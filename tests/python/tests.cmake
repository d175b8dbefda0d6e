# SPDX-License-Identifier: Apache-2.0
# tests/python/test_<name>.py -> python.<name>, by pytest with the project's Python on the checkout's package and this build's
# libraries. A sanitized library cannot be loaded into a plain interpreter.
if(NOT TARGET flashinfer_tvm_ffi OR FLASHINFER_SANITIZE OR NOT EXISTS ${fi_python})
  message(STATUS "Not tests here: tests/python (need the packages of `tools/setup.sh test`, no sanitizer)")
  return()
endif()
file(GLOB pytest_files CONFIGURE_DEPENDS ${dir}/test_*.py)
foreach(file IN LISTS pytest_files)
  get_filename_component(stem ${file} NAME_WE)
  string(REGEX REPLACE "^test_" "python." test ${stem})
  add_test(NAME ${test} COMMAND ${fi_python} -m pytest -q -p no:cacheprovider ${file}
                                --junit-xml=${PROJECT_BINARY_DIR}/test-results/${test}.xml
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${test} PROPERTIES TIMEOUT 1800 SKIP_RETURN_CODE 5 ENVIRONMENT
    "${fi_test_environment};PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${PROJECT_SOURCE_DIR}/python")
endforeach()
