# SPDX-License-Identifier: Apache-2.0
# All headers are installed: programs include flashinfer/flashinfer.h, the JIT compiles the kernel headers from there.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/flashinfer)
install(TARGETS flashinfer EXPORT flashinferTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(target flashinfer_cli flashinfer_commands flashinfer_tvm_ffi)
  if(TARGET ${target})
    install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/flashinfer/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/flashinfer
        FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh" PATTERN "cli" EXCLUDE)
install(FILES ${PROJECT_BINARY_DIR}/generated/include/flashinfer/ops.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/flashinfer)
install(EXPORT flashinferTargets NAMESPACE flashinfer:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/flashinferConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/flashinferConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/flashinferConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/flashinferConfig.cmake ${PROJECT_BINARY_DIR}/flashinferConfigVersion.cmake
        DESTINATION ${package_dir})

# The package of Python: the library and what it needs at run time, laid out as in a prefix, under the module's folder.
if(TARGET flashinfer_tvm_ffi)
  set(python_component DESTINATION lib COMPONENT python EXCLUDE_FROM_ALL)
  install(TARGETS flashinfer_commands flashinfer_tvm_ffi LIBRARY ${python_component})
  # One file under the name that is looked for: wheels have no links.
  install(PROGRAMS $<TARGET_FILE:flashinfer> RENAME $<TARGET_SONAME_FILE_NAME:flashinfer> ${python_component})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/flashinfer/ DESTINATION include/flashinfer COMPONENT python EXCLUDE_FROM_ALL
          FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh" PATTERN "cli" EXCLUDE)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/aot/ DESTINATION lib/flashinfer/aot COMPONENT python EXCLUDE_FROM_ALL OPTIONAL)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/stubs/ DESTINATION . COMPONENT python EXCLUDE_FROM_ALL OPTIONAL)
  # What not every machine has: with it the package needs nothing but libc, libstdc++ and TVM-FFI.
  install(CODE "file(GET_RUNTIME_DEPENDENCIES LIBRARIES $<TARGET_FILE:flashinfer> RESOLVED_DEPENDENCIES_VAR found
                     PRE_INCLUDE_REGEXES libxxhash libdeflate PRE_EXCLUDE_REGEXES .*)
    foreach(library IN LISTS found)
      get_filename_component(name \${library} NAME)
      file(REAL_PATH \${library} library)
      file(INSTALL \${library} DESTINATION \${CMAKE_INSTALL_PREFIX}/lib RENAME \${name})
    endforeach()" COMPONENT python EXCLUDE_FROM_ALL)
  foreach(package libxxhash0 libdeflate0 nlohmann-json3-dev libcli11-dev)  # the terms under which they may be passed on
    install(FILES /usr/share/doc/${package}/copyright DESTINATION licenses RENAME ${package}.txt COMPONENT python EXCLUDE_FROM_ALL OPTIONAL)
  endforeach()
endif()

# Kernels for machines without a compiler: those that the case tables mark, for x86-64-v3 and -v4. Some minutes the first time,
# so not part of `all`; `cmake --build ... --target aot` before the install, or `make install`, adds them.
if(TARGET flashinfer_cli)
  add_custom_target(aot COMMAND flashinfer_cli aot --out-dir ${PROJECT_BINARY_DIR}/aot USES_TERMINAL
                    COMMENT "Compiling kernels ahead")
  install(DIRECTORY ${PROJECT_BINARY_DIR}/aot/ DESTINATION ${CMAKE_INSTALL_LIBDIR}/flashinfer/aot OPTIONAL)
endif()

if(TARGET flashinfer_tvm_ffi)
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
  add_custom_target(python_stubs DEPENDS flashinfer flashinfer_tvm_ffi
    COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${PROJECT_SOURCE_DIR}/python FLASHINFER_BUILD_DIR=${PROJECT_BINARY_DIR}
            ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/make_stubs.py ${PROJECT_BINARY_DIR}/stubs
    COMMENT "Writing .pyi stubs")
  add_custom_target(python_package DEPENDS flashinfer flashinfer_commands flashinfer_tvm_ffi aot python_stubs)
elseif(SKBUILD)
  message(FATAL_ERROR "The Python package needs apache-tvm-ffi, whose tvm-ffi-config was not found")
endif()
