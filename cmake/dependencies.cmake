# SPDX-License-Identifier: Apache-2.0
# Libraries from the distribution. None of them appears in a public header.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(nlohmann_json 3.9 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(deflate REQUIRED IMPORTED_TARGET libdeflate)
pkg_check_modules(pcre2 IMPORTED_TARGET libpcre2-8)  # the examples' tokenizer

add_library(fi::json ALIAS nlohmann_json::nlohmann_json)
add_library(fi::cli11 ALIAS CLI11::CLI11)
add_library(fi::xxhash ALIAS PkgConfig::xxhash)
add_library(fi::deflate ALIAS PkgConfig::deflate)
if(pcre2_FOUND)
  add_library(fi::pcre2 ALIAS PkgConfig::pcre2)
endif()
