# SPDX-License-Identifier: Apache-2.0
# The program whose log oracle_test.py compares with the Python library's.
add_executable(record_values ${CMAKE_CURRENT_LIST_DIR}/tool/values.cc)
target_link_libraries(record_values PRIVATE flashinfer fi::options)
