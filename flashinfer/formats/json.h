// SPDX-License-Identifier: Apache-2.0
// JSON for dumps: strict when written, tolerant of Python's literals when read.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace flashinfer::formats {

using Json = nlohmann::ordered_json;

/// A number that JSON can represent, else {"type": "float", "value": "inf" | "-inf" | "nan"}.
Json number_to_json(double v);

/// Parses one document. NaN, Infinity and -Infinity outside strings become the tagged form. ValueError with the byte
/// offset: not JSON, nesting beyond 200, a key twice in one object.
Json parse_json(std::string_view text);

/// One line as Python's json.dumps writes it: ", " and ": ", ASCII only; invalid UTF-8 bytes become U+FFFD.
std::string dump_json(const Json& value);

}  // namespace flashinfer::formats

#pragma GCC visibility pop
