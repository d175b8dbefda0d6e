# SPDX-License-Identifier: Apache-2.0
# Each folder under examples/ is one program, built as examples/<name> in the build folder; target example_<name>. What it has
# beside main.cc is compiled once, as example_<name>_parts: tests link that too.
file(GLOB example_dirs CONFIGURE_DEPENDS LIST_DIRECTORIES true ${PROJECT_SOURCE_DIR}/examples/*)
foreach(dir IN LISTS example_dirs)
  get_filename_component(name ${dir} NAME)
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cc ${dir}/*.c)
  if(NOT IS_DIRECTORY ${dir} OR NOT sources MATCHES "/main\\.cc|\\.c(;|$)")  # a program has main.cc, or is C
    continue()
  endif()
  set(libraries flashinfer fi::options fi::json fi::cli11 Threads::Threads m $<TARGET_NAME_IF_EXISTS:fi::pcre2>)
  set(parts ${sources})
  list(FILTER parts EXCLUDE REGEX "/main\\.cc$")
  if(parts AND NOT parts STREQUAL "${sources}")
    add_library(example_${name}_parts OBJECT ${parts})
    target_link_libraries(example_${name}_parts PRIVATE ${libraries})
    list(REMOVE_ITEM sources ${parts})
    list(APPEND libraries example_${name}_parts)
  endif()
  add_executable(example_${name} ${sources})
  set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
  target_link_libraries(example_${name} PRIVATE ${libraries})
endforeach()
