// SPDX-License-Identifier: Apache-2.0
// DUMP_INCLUDE and DUMP_EXCLUDE: which functions are logged (level 3 up) and recorded.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace flashinfer::record {

/// Python's fnmatchcase: * ? [abc] [!abc] [a-z]; an unclosed [ is literal.
bool glob_match(std::string_view pattern, std::string_view text);

/// True when `include` is empty or one of its patterns matches, and none of `exclude` does.
bool passes(const std::vector<std::string>& include, const std::vector<std::string>& exclude, std::string_view name);

}  // namespace flashinfer::record
