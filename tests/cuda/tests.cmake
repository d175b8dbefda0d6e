# SPDX-License-Identifier: Apache-2.0
# A driver without a GPU, loaded by the tests as libcuda.
list(FILTER test_sources EXCLUDE REGEX "/fake_[a-z]+\\.cc$")
foreach(fake fake_libcuda fake_cublaslt fake_nvrtc)
  add_library(${fake} MODULE ${CMAKE_CURRENT_LIST_DIR}/${fake}.cc)
  target_include_directories(${fake} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${fake} PRIVATE fi::options)
  set_target_properties(${fake} PROPERTIES PREFIX "" CXX_STANDARD 20)
endforeach()
set_property(TARGET cuda_tests PROPERTY SOURCES ${test_sources})
target_sources(fake_libcuda PRIVATE ${CMAKE_CURRENT_LIST_DIR}/fake_streams.cc ${CMAKE_CURRENT_LIST_DIR}/fake_launch.cc)
target_link_libraries(cuda_tests PRIVATE example_llm_parts $<TARGET_NAME_IF_EXISTS:fi::pcre2>)
add_dependencies(cuda_tests fake_libcuda fake_cublaslt fake_nvrtc fake_nccl)
# NVIDIA's header, from a toolkit or the wheel nvidia-cublas; it includes headers of the toolkit.
file(GLOB wheel_includes $ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/*/include ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/*/include)
find_path(CUBLASLT_INCLUDE_DIR cublasLt.h HINTS ${wheel_includes} PATHS $ENV{CUDA_HOME}/include /usr/local/cuda/include)
find_path(CUDA_INCLUDE_DIR cuda_fp16.h HINTS ${wheel_includes} PATHS $ENV{CUDA_HOME}/include /usr/local/cuda/include)
find_path(CUDA_DRIVER_INCLUDE_DIR cuda.h HINTS ${wheel_includes} PATHS $ENV{CUDA_HOME}/include /usr/local/cuda/include)
if(CUDA_DRIVER_INCLUDE_DIR)
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/driver_abi_test.cc PROPERTIES COMPILE_DEFINITIONS FI_TEST_CUDA_HEADER
    COMPILE_OPTIONS "-isystem;${CUDA_DRIVER_INCLUDE_DIR}")
endif()
if(CUBLASLT_INCLUDE_DIR AND CUDA_INCLUDE_DIR)
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/cublaslt_abi_test.cc PROPERTIES COMPILE_DEFINITIONS FI_TEST_CUBLASLT_HEADER
    COMPILE_OPTIONS "-isystem;${CUBLASLT_INCLUDE_DIR};-isystem;${CUDA_INCLUDE_DIR}")
endif()
