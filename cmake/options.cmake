# SPDX-License-Identifier: Apache-2.0
# What every target of ours is compiled with: the interface library fi::options.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_LINK_DEPENDS_NO_SHARED ON)  # a new library does not relink every test
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

if(NOT DEFINED BUILD_SHARED_LIBS)
  set(BUILD_SHARED_LIBS ON)  # OFF: static libraries, without the Python package
endif()
option(FLASHINFER_WERROR "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})
set(FLASHINFER_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=: address,undefined or thread")
set(FLASHINFER_FAMILIES "" CACHE STRING "Folders under flashinfer/ops that are built, with those they include; empty: all")
set(FLASHINFER_TEST_JIT_CACHE "${CMAKE_BINARY_DIR}/jit-cache" CACHE PATH "JIT cache of the tests")

# Full -O3 belongs to the kernels, which the JIT compiles; -O2 builds the rest a third faster. No -march: x86-64 baseline.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")

set(fi_sanitizer_flags "")     # of the library and of JIT kernels
set(fi_sanitizer_host_flags "")  # of C++ compiled here, beside those
set(fi_sanitizer_test_flags "")  # of tests and the command, beside those
if(FLASHINFER_SANITIZE)
  set(fi_sanitizer_flags -fsanitize=${FLASHINFER_SANITIZE} -fno-omit-frame-pointer)
  set(fi_sanitizer_warnings -Wno-maybe-uninitialized)  # g++ 12 sees ghosts in instrumented code (std::regex)
  if(FLASHINFER_SANITIZE MATCHES "undefined")
    list(APPEND fi_sanitizer_flags -fno-sanitize-recover=undefined)
    # These two double the time to compile (norm/op.cc: 5.3 s, 3.2 s without). AddressSanitizer stops at null pointers too, and
    # misaligned values come from files: CMakeLists.txt gives the check back to what reads them. Kernels keep both.
    list(APPEND fi_sanitizer_host_flags -fno-sanitize=null,alignment)
  endif()
  set(fi_sanitizer_test_flags -O0)  # 40 % less time to compile; ops_tests takes 97 s of CPU time instead of 92
  set(CMAKE_CXX_FLAGS_RELEASE "-O1 -g1")
  set(CMAKE_C_FLAGS_RELEASE "-O1 -g1")
endif()

add_library(fi_options INTERFACE)
add_library(fi::options ALIAS fi_options)
# Argument blocks are filled by name; what is left out has its default: g++ 12 warns about that in C++.
target_compile_options(fi_options INTERFACE -Wall -Wextra -Wno-missing-field-initializers $<$<BOOL:${FLASHINFER_WERROR}>:-Werror> ${fi_sanitizer_flags}
                                            ${fi_sanitizer_host_flags} ${fi_sanitizer_warnings})
target_link_options(fi_options INTERFACE ${fi_sanitizer_flags})

# Paths below the checkout are hashed as relative ones, so that a second checkout finds the objects of the first. Objects with debug
# information would name the folder in which they were compiled first: for the sanitizers' builds their lines are enough.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(fi_ccache env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR})
  if(FLASHINFER_SANITIZE)
    list(APPEND fi_ccache CCACHE_NOHASHDIR=1)
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER ${fi_ccache} ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${fi_ccache} ${CCACHE})
endif()

# fi_hide_names(TARGET): other libraries and programs see only what headers have between `#pragma GCC visibility push(default)` and
# its pop: public headers, and those of core, op, jit, ... that libflashinfer_commands and libflashinfer_tvm_ffi use. Sanitizers compare
# types of several libraries by their exported names.
function(fi_hide_names target)
  if(NOT FLASHINFER_SANITIZE)
    set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  endif()
endfunction()

# fi_export_own_names(TARGET): of these the shared library exports what is named in cmake/exports.map, and no instances of
# templates of other libraries.
function(fi_export_own_names target)
  if(NOT FLASHINFER_SANITIZE)
    target_link_options(${target} PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  endif()
endfunction()
