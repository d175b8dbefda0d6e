# SPDX-License-Identifier: Apache-2.0
# Programs find the public headers in include/, the JIT finds the kernel headers in share/flashinfer/include.
include(CMakePackageConfigHelpers)
function(install_headers component which folder)  # which: PUBLIC or KERNELS; more arguments: options of install()
  install(CODE "set(SOURCE \"${PROJECT_SOURCE_DIR}\")
    set(GENERATED \"${PROJECT_BINARY_DIR}/generated/include\")
    set(PUBLIC \"\")
    set(KERNELS \"\")
    set(${which} \"\${CMAKE_INSTALL_PREFIX}/${folder}\")
    include(\"${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake\")" COMPONENT ${component} ${ARGN})
endfunction()
# Two components, which packages ship apart: `runtime`, and `development` with what programs are built with.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/flashinfer)
install(TARGETS flashinfer EXPORT flashinferTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
foreach(target flashinfer_cli flashinfer_commands flashinfer_tvm_ffi)
  if(TARGET ${target})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      continue()  # inside the command
    endif()
    install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime
                              LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
  endif()
endforeach()
install_headers(development PUBLIC ${CMAKE_INSTALL_INCLUDEDIR})
install_headers(runtime KERNELS share/flashinfer/include)  # the runtime compiles kernels
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/flashinfer COMPONENT runtime)
install(EXPORT flashinferTargets NAMESPACE flashinfer:: DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/flashinferConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/flashinferConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/flashinferConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/flashinferConfig.cmake ${PROJECT_BINARY_DIR}/flashinferConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT development)
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pc_prefix /${pc_dir} /)
string(REGEX REPLACE "/$" "" pc_prefix ${pc_prefix})
set(pc_libraries "")
if(NOT BUILD_SHARED_LIBS)
  set(pc_libraries "-lxxhash -ldeflate -lstdc++ -lm -lpthread -ldl")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/flashinfer.pc.in ${PROJECT_BINARY_DIR}/flashinfer.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/flashinfer.pc DESTINATION ${pc_dir} COMPONENT development)

# The Python package: the library and what it needs at run time, laid out as in a prefix, in the module's folder.
if(TARGET flashinfer_tvm_ffi)
  set(python_component DESTINATION lib COMPONENT python EXCLUDE_FROM_ALL)
  set(suffix "")
  if(fi_wheel_libraries)
    set(suffix _wheel)
  endif()
  install(TARGETS flashinfer_commands${suffix} flashinfer_tvm_ffi${suffix} LIBRARY ${python_component})
  # One file under the name that is looked for: wheels have no links.
  install(PROGRAMS $<TARGET_FILE:flashinfer${suffix}> RENAME $<TARGET_SONAME_FILE_NAME:flashinfer> ${python_component})
  install_headers(python PUBLIC include EXCLUDE_FROM_ALL)
  install_headers(python KERNELS share/flashinfer/include EXCLUDE_FROM_ALL)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/aot/ DESTINATION lib/flashinfer/aot COMPONENT python EXCLUDE_FROM_ALL OPTIONAL
          PATTERN ".*" EXCLUDE)  # what is being compiled
  install(DIRECTORY ${PROJECT_BINARY_DIR}/stubs/ DESTINATION . COMPONENT python EXCLUDE_FROM_ALL OPTIONAL)
  # Libraries that not every machine has: with them the package needs only libc, libstdc++ and TVM-FFI.
  install(CODE "file(GET_RUNTIME_DEPENDENCIES LIBRARIES $<TARGET_FILE:flashinfer> RESOLVED_DEPENDENCIES_VAR found
                     PRE_INCLUDE_REGEXES libxxhash libdeflate PRE_EXCLUDE_REGEXES .*)
    foreach(library IN LISTS found)
      get_filename_component(name \${library} NAME)
      file(REAL_PATH \${library} library)
      file(INSTALL \${library} DESTINATION \${CMAKE_INSTALL_PREFIX}/lib RENAME \${name})
    endforeach()" COMPONENT python EXCLUDE_FROM_ALL)
  foreach(package libxxhash0 libdeflate0 nlohmann-json3-dev libcli11-dev libjs-chart.js)  # their licences
    install(FILES /usr/share/doc/${package}/copyright DESTINATION licenses RENAME ${package}.txt COMPONENT python EXCLUDE_FROM_ALL OPTIONAL)
  endforeach()
endif()

# Precompiled kernels for machines without a compiler: those that the case tables mark, for six levels of x86-64. They take some
# minutes the first time and are not part of `all`: `cmake --build ... --target aot` before the install, or `make install`.
if(TARGET flashinfer_cli)
  add_custom_target(aot COMMAND flashinfer_cli aot --out-dir ${PROJECT_BINARY_DIR}/aot USES_TERMINAL
                    COMMENT "Precompiling kernels")
  install(DIRECTORY ${PROJECT_BINARY_DIR}/aot/ DESTINATION ${CMAKE_INSTALL_LIBDIR}/flashinfer/aot COMPONENT runtime OPTIONAL PATTERN ".*" EXCLUDE)
endif()

if(TARGET flashinfer_tvm_ffi)
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
  add_custom_target(python_stubs DEPENDS flashinfer flashinfer_tvm_ffi
    COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${PROJECT_SOURCE_DIR}/python FLASHINFER_BUILD_DIR=${PROJECT_BINARY_DIR}
            ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/make_stubs.py ${PROJECT_BINARY_DIR}/stubs
    COMMENT "Writing .pyi stubs")
  add_custom_target(python_package DEPENDS flashinfer${suffix} flashinfer_commands${suffix} flashinfer_tvm_ffi${suffix} aot python_stubs)
elseif(SKBUILD)
  message(FATAL_ERROR "The Python package needs apache-tvm-ffi, whose tvm-ffi-config was not found")
endif()
