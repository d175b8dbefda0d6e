# SPDX-License-Identifier: Apache-2.0
# All headers are installed: programs include flashinfer/flashinfer.h, the JIT compiles the kernel headers from there.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/flashinfer)
install(TARGETS flashinfer EXPORT flashinferTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(target flashinfer_cli flashinfer_tvm_ffi)
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

# Kernels for machines without a compiler: those that the case tables mark, for x86-64-v3 and -v4. Some minutes the first time,
# so not part of `all`; `cmake --build ... --target aot` before the install, or `make install`, adds them.
if(TARGET flashinfer_cli)
  add_custom_target(aot COMMAND flashinfer_cli aot --out-dir ${PROJECT_BINARY_DIR}/aot USES_TERMINAL
                    COMMENT "Compiling kernels ahead")
  install(DIRECTORY ${PROJECT_BINARY_DIR}/aot/ DESTINATION ${CMAKE_INSTALL_LIBDIR}/flashinfer/aot OPTIONAL)
endif()
