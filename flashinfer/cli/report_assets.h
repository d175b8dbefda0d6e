// SPDX-License-Identifier: Apache-2.0
// Files of flashinfer/cli/report, and Chart.js when the machine that built this had it (cmake/report.cmake).
#pragma once
#include <string_view>

namespace flashinfer::cli::assets {

extern const std::string_view kStyle, kCommon, kSession, kBench;
extern const std::string_view kChart;  // empty without Chart.js: the page has tables and no charts

}  // namespace flashinfer::cli::assets
