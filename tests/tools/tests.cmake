# SPDX-License-Identifier: Apache-2.0
# gpu_check_test.py carries these programs, which are benches and outside `all`.
if(NOT FLASHINFER_SANITIZE)
  add_custom_target(carried_programs ALL)
  add_dependencies(carried_programs bench_cuda_probe bench_gpu_facts)
endif()
