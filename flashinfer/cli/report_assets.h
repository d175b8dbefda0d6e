// SPDX-License-Identifier: Apache-2.0
// Files of flashinfer/cli/report, and Chart.js where the machine that built this had it (cmake/report.cmake).
#pragma once
#include <string_view>

namespace flashinfer::cli::assets {

extern const std::string_view kStyle, kCommon, kSession, kBench;
extern const std::string_view kChart;  // Chart.js, or charts.js

}  // namespace flashinfer::cli::assets
