# SPDX-License-Identifier: Apache-2.0
# Generated lists of what the folders hold, so that nothing registers itself through a static constructor and nothing is
# listed by hand: families.cc, commands.cc, and the public header flashinfer/ops.h.

# flashinfer/ops/<family>/ with an op.cc is a family: `flashinfer::ops::<family>::all` is a constinit span of pointers to its Ops. A
# terms.cc defines `terms`, a fills.cc `fills`, a lookups.cc `lookups` (flashinfer/op/registry.h), a trace.cc `traces`
# (flashinfer/op/trace.h).
function(fi_family_table out)
  set(${out} "" PARENT_SCOPE)
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/flashinfer/op/registry.h)
    return()
  endif()
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/flashinfer/ops ${PROJECT_SOURCE_DIR}/flashinfer/ops/*/op.cc)
  if(FLASHINFER_FAMILIES)
    list(JOIN FLASHINFER_FAMILIES "|" names)
    list(FILTER files INCLUDE REGEX "^(${names})/")
  endif()
  set(declarations "")
  set(entries "")
  set(includes "")
  set(traces "")
  set(trace_declarations "")
  list(REMOVE_ITEM files skeleton/op.cc)  # what new ops are copied from
  foreach(file IN LISTS files)
    get_filename_component(family ${file} DIRECTORY)
    string(APPEND includes "#include \"flashinfer/ops/${family}/op.h\"\n")
    set(spans "extern const std::span<const op::Op* const> all;")
    set(entry ".name = \"${family}\", .ops = ops::${family}::all")
    foreach(more "terms op::Term" "fills op::Fill" "lookups op::LookUp")
      string(REGEX MATCH "([a-z]+) (.+)" more ${more})
      file(GLOB there CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/flashinfer/ops/${family}/${CMAKE_MATCH_1}.cc)
      if(there)
        string(APPEND spans " extern const std::span<const ${CMAKE_MATCH_2}> ${CMAKE_MATCH_1};")
        string(APPEND entry ", .${CMAKE_MATCH_1} = ops::${family}::${CMAKE_MATCH_1}")
      endif()
    endforeach()
    if(EXISTS ${PROJECT_SOURCE_DIR}/flashinfer/ops/${family}/trace.cc)
      string(APPEND traces "    ops::${family}::traces,\n")
      string(APPEND trace_declarations "namespace flashinfer::ops::${family} { extern const std::span<const op::TraceEntry> traces; }\n")
    endif()
    string(APPEND declarations "namespace flashinfer::ops::${family} { ${spans} }\n")
    string(APPEND entries "    {${entry}},\n")
  endforeach()
  set(path ${PROJECT_BINARY_DIR}/generated/families.cc)
  file(CONFIGURE OUTPUT ${path} @ONLY CONTENT [=[
// Generated from the folders under flashinfer/ops.
#include "flashinfer/op/registry.h"

@declarations@
namespace flashinfer::op {
std::span<const Family> families() {
  static const Family table[] = {  // made at the first call: the spans are constinit, in other files
@entries@  };
  return table;
}
}  // namespace flashinfer::op
]=])
  set(trace_path ${PROJECT_BINARY_DIR}/generated/traces.cc)
  file(CONFIGURE OUTPUT ${trace_path} @ONLY CONTENT [=[
// Generated from the files flashinfer/ops/*/trace.cc.
#include "flashinfer/op/trace.h"

@trace_declarations@
namespace flashinfer::op {
std::span<const std::span<const TraceEntry>> trace_tables() {
  static const std::span<const TraceEntry> tables[] = {
@traces@      {}};
  return tables;
}
}  // namespace flashinfer::op
]=])
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/include/flashinfer/ops.h @ONLY CONTENT [=[
// SPDX-License-Identifier: Apache-2.0
// Generated from the folders under flashinfer/ops: every op's argument block and function.
#pragma once
@includes@]=])
  set(${out} ${path} ${trace_path} PARENT_SCOPE)
endfunction()

# flashinfer/cli/cmd_<name>.cc defines `void flashinfer::cli::add_<name>(CLI::App& app, int& exit_code)`.
function(fi_command_table out)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/flashinfer/cli/cmd_*.cc)
  set(declarations "")
  set(entries "")
  foreach(file IN LISTS files)
    get_filename_component(stem ${file} NAME_WE)
    string(REGEX REPLACE "^cmd_" "" name ${stem})
    string(APPEND declarations "void add_${name}(CLI::App& app, int& exit_code);\n")
    string(APPEND entries "  add_${name}(app, exit_code);\n")
  endforeach()
  set(path ${PROJECT_BINARY_DIR}/generated/commands.cc)
  file(CONFIGURE OUTPUT ${path} @ONLY CONTENT [=[
// Generated from flashinfer/cli/cmd_*.cc.
#include "flashinfer/cli/cli.h"

namespace flashinfer::cli {
@declarations@
void add_commands([[maybe_unused]] CLI::App& app, [[maybe_unused]] int& exit_code) {
@entries@}
}  // namespace flashinfer::cli
]=])
  set(${out} ${path} PARENT_SCOPE)
endfunction()

# The text of bench/peers.py, which `flashinfer bench --peers` runs by the Python interpreter.
function(fi_peers_script out)
  set(script ${PROJECT_SOURCE_DIR}/bench/peers.py)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${script})
  file(READ ${script} text)
  set(path ${PROJECT_BINARY_DIR}/generated/peers_script.cc)
  file(CONFIGURE OUTPUT ${path} @ONLY CONTENT [=[
// Generated from bench/peers.py.
#include "flashinfer/bench/peers_script.h"

namespace flashinfer::bench {
const char* const kPeersScript = R"script(@text@)script";
}  // namespace flashinfer::bench
]=])
  set(${out} ${path} PARENT_SCOPE)
endfunction()
