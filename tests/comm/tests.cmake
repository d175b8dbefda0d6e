# SPDX-License-Identifier: Apache-2.0
# An NCCL without GPUs, loaded by the tests; the driver is that of tests/cuda.
list(FILTER test_sources EXCLUDE REGEX "/fake_[a-z]+\\.cc$")
set_property(TARGET comm_tests PROPERTY SOURCES ${test_sources})
add_library(fake_nccl MODULE ${CMAKE_CURRENT_LIST_DIR}/fake_nccl.cc)
target_include_directories(fake_nccl PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(fake_nccl PRIVATE fi::options Threads::Threads)
set_target_properties(fake_nccl PROPERTIES PREFIX "" CXX_STANDARD 20)
add_dependencies(comm_tests fake_nccl fake_libcuda)
# All of it again with windows whose bytes go through sockets, but for a test whose counterpart is in transport_test.cc and GPUs.
add_test(NAME comm.tcp COMMAND comm_tests --gtest_filter=-Window.ARankKilled*:GpuAllReduce.*:GpuFaults.* WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
set_tests_properties(comm.tcp PROPERTIES TIMEOUT 1800 ENVIRONMENT
  "${fi_test_environment};FLASHINFER_COMM_TRANSPORT=tcp;GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/test-results/comm.tcp.xml")
