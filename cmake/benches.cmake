# SPDX-License-Identifier: Apache-2.0
# bench/<name>.cc -> bench_<name>, outside `all`; `benches` builds them. Those that use Google Benchmark need it installed.
find_package(benchmark QUIET)
file(GLOB bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.cc)
add_custom_target(benches)
foreach(source IN LISTS bench_sources)
  get_filename_component(name ${source} NAME_WE)
  file(STRINGS ${source} uses_benchmark REGEX "benchmark/benchmark.h" LIMIT_COUNT 1)
  if(uses_benchmark AND NOT benchmark_FOUND)
    message(STATUS "bench_${name} is not built: Google Benchmark was not found (Debian: libbenchmark-dev)")
    continue()
  endif()
  add_executable(bench_${name} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(bench_${name} PRIVATE flashinfer_internals fi::options fi::json fi::cli11 fi::deflate fi::xxhash Threads::Threads
                                              $<$<BOOL:${benchmark_FOUND}>:benchmark::benchmark>)
  add_dependencies(benches bench_${name})
endforeach()
