# SPDX-License-Identifier: Apache-2.0
# Libraries from the distribution. None of them appears in a public header.
find_package(Threads REQUIRED)
find_package(PkgConfig QUIET)
find_package(nlohmann_json 3.9 QUIET)
find_package(CLI11 2.1 QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(xxhash IMPORTED_TARGET libxxhash)
  pkg_check_modules(deflate IMPORTED_TARGET libdeflate)
  pkg_check_modules(pcre2 IMPORTED_TARGET libpcre2-8)  # the examples' tokenizer
endif()
set(missing "")
foreach(library PkgConfig nlohmann_json CLI11 xxhash deflate)
  if(NOT ${library}_FOUND)
    string(APPEND missing " ${library}")
  endif()
endforeach()
if(missing)
  message(FATAL_ERROR "Not found:${missing}. On Debian and Ubuntu `tools/setup.sh build` installs what the build needs; elsewhere these are "
                      "pkg-config, nlohmann-json >= 3.9, CLI11 >= 2.1, xxhash and libdeflate with their headers.")
endif()

add_library(fi::json ALIAS nlohmann_json::nlohmann_json)
add_library(fi::cli11 ALIAS CLI11::CLI11)
add_library(fi::xxhash ALIAS PkgConfig::xxhash)
add_library(fi::deflate ALIAS PkgConfig::deflate)
if(pcre2_FOUND)
  add_library(fi::pcre2 ALIAS PkgConfig::pcre2)
endif()
