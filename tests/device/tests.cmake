# SPDX-License-Identifier: Apache-2.0
# With an empty JIT cache the rows on the emulator compile for most of half an hour on two cores that other tests share.
set_tests_properties(device PROPERTIES TIMEOUT 3600)
# Compiling every kernel for GPUs is a test of its own: a third of the program's time, beside the rest of it.
if(NOT FLASHINFER_SANITIZE)
  set_property(TEST device APPEND PROPERTY ENVIRONMENT "GTEST_FILTER=-Gpus.*")
  add_test(NAME device.gpus COMMAND device_tests --gtest_filter=Gpus.* WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
  set_tests_properties(device.gpus PROPERTIES TIMEOUT 1800 COST 500 ENVIRONMENT
    "${fi_test_environment};GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/test-results/device.gpus.xml")
endif()
