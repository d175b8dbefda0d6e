# SPDX-License-Identifier: Apache-2.0
# <target>_wheel: the libraries of the Python package, linked a second time from the same objects, with libstdc++ inside and without
# symbols of glibc after 2.28 (glibc_2_28.c). Linking takes a second each. Elsewhere than on x86-64 with glibc and a
# static libstdc++, the package has the libraries of the build.
include(CheckCXXSourceCompiles)
set(fi_wheel_libraries OFF)
if(FLASHINFER_SANITIZE OR NOT TARGET flashinfer_tvm_ffi OR NOT BUILD_SHARED_LIBS OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  return()
endif()
set(stubs -Wl,--push-state,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -Wl,--pop-state)  # parts of libc since 2.34
set(CMAKE_REQUIRED_LINK_OPTIONS -static-libstdc++ ${stubs})
check_cxx_source_compiles("#include <features.h>\n#ifndef __GLIBC__\n#error\n#endif\n#include <string>\nint main(int n, char**) { return std::string(n, 'x').size() > 9; }"
                          FLASHINFER_STATIC_LIBSTDCXX)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
if(NOT FLASHINFER_STATIC_LIBSTDCXX)
  return()
endif()
set(fi_wheel_libraries ON)

add_library(fi_glibc OBJECT cmake/glibc_2_28.c)
target_compile_options(fi_glibc PRIVATE -fno-builtin)
function(fi_wheel_library target)  # more arguments: libraries to link
  add_library(${target}_wheel SHARED $<TARGET_OBJECTS:${target}> $<TARGET_OBJECTS:fi_glibc>)
  set_target_properties(${target}_wheel PROPERTIES OUTPUT_NAME ${target} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/wheel
                        LINKER_LANGUAGE CXX BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
  target_link_options(${target}_wheel PRIVATE -static-libstdc++ LINKER:--exclude-libs,ALL LINKER:-s)
  target_link_libraries(${target}_wheel PRIVATE ${ARGN} ${CMAKE_DL_LIBS} ${stubs})
endfunction()
fi_wheel_library(flashinfer fi::xxhash fi::deflate)
set_target_properties(flashinfer_wheel PROPERTIES SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
fi_export_own_names(flashinfer_wheel)
fi_wheel_library(flashinfer_commands flashinfer_wheel)
fi_export_own_names(flashinfer_commands_wheel)
fi_wheel_library(flashinfer_tvm_ffi flashinfer_wheel ${fi_tvm_library})
