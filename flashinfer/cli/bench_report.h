// SPDX-License-Identifier: Apache-2.0
// How `flashinfer bench` shows what it measured: lines, JSON, CSV.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "flashinfer/bench/bench.h"

namespace flashinfer::cli {

/// One measured row. `over_first`: the time of the row's first candidate over this one's, 0 for the first itself. A
/// peer has the members `<name>_s`, its median time, and `<name>_ratio`, that over the row's in the same turn; null
/// where it was not measured. So has the row of --over, whose name is `over`.
nlohmann::ordered_json to_json(const bench::Row& r, double over_first);
nlohmann::ordered_json to_json(const bench::CountedRow& r);

void print_head();
/// `repro` is the command that measures the row again; it is printed below.
void print_row(const bench::Row& r, double over_first, const std::string& repro);
void print_counts(const bench::CountedRow& r);

/// The members of to_json and the command, with commas between them; values with commas, quotes or line ends are quoted
/// (RFC 4180).
std::string csv_head();
std::string csv_line(const bench::Row& r, double over_first, const std::string& repro);

/// A page of rows, each as to_json has it with its command as "repro" and "peak_of": "bf16 dots" or "f32 FMA".
std::string bench_page(nlohmann::ordered_json rows);

}  // namespace flashinfer::cli
