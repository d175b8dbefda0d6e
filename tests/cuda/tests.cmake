# SPDX-License-Identifier: Apache-2.0
# A driver without a GPU, loaded by the tests as libcuda.
list(REMOVE_ITEM test_sources ${CMAKE_CURRENT_LIST_DIR}/fake_libcuda.cc)
add_library(fake_libcuda MODULE ${CMAKE_CURRENT_LIST_DIR}/fake_libcuda.cc)
target_include_directories(fake_libcuda PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(fake_libcuda PRIVATE fi::options)
set_target_properties(fake_libcuda PROPERTIES PREFIX "" CXX_STANDARD 20)
set_property(TARGET cuda_tests PROPERTY SOURCES ${test_sources})
add_dependencies(cuda_tests fake_libcuda)
target_compile_definitions(cuda_tests PRIVATE FI_TEST_FAKE_LIBCUDA="$<TARGET_FILE:fake_libcuda>")
