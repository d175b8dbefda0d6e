# SPDX-License-Identifier: Apache-2.0
# All of it again with windows whose bytes go through sockets, but for a test whose counterpart is in transport_test.cc and GPUs.
add_test(NAME comm.tcp COMMAND comm_tests --gtest_filter=-Window.ARankKilled*:GpuAllReduce.* WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
set_tests_properties(comm.tcp PROPERTIES TIMEOUT 1800 ENVIRONMENT
  "${fi_test_environment};FLASHINFER_COMM_TRANSPORT=tcp;GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/test-results/comm.tcp.xml")
