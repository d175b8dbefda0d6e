# SPDX-License-Identifier: Apache-2.0
# Facts of the build for flashinfer/core/version.cc alone. The commit is looked up at every build, so that a recording
# never names an older one; the source changes only when the commit does.
string(JOIN " " sanitizer_text ${fi_sanitizer_flags})
set(static_prefix "")
if(NOT BUILD_SHARED_LIBS)
  set(static_prefix ${CMAKE_INSTALL_PREFIX})
endif()
set_source_files_properties(${PROJECT_SOURCE_DIR}/flashinfer/core/version.cc PROPERTIES COMPILE_DEFINITIONS
  "FI_VERSION=\"${PROJECT_VERSION}\";FI_BUILD_TYPE=\"${CMAKE_BUILD_TYPE}\";FI_SANITIZER_FLAGS=\"${sanitizer_text}\";\
FI_STATIC_PREFIX=\"${static_prefix}\";FI_SOURCE_ROOT=\"${PROJECT_SOURCE_DIR}\";FI_BUILD_ROOT=\"${PROJECT_BINARY_DIR}\"")

set(commit_source ${PROJECT_BINARY_DIR}/generated/commit.cc)
set(write_commit ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DOUT=${commit_source} -P
                 ${PROJECT_SOURCE_DIR}/cmake/write_commit.cmake)
execute_process(COMMAND ${write_commit})
add_custom_target(fi_commit COMMAND ${write_commit} BYPRODUCTS ${commit_source} COMMENT "")
target_sources(flashinfer PRIVATE ${commit_source})
add_dependencies(flashinfer fi_commit)
