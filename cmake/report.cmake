# SPDX-License-Identifier: Apache-2.0
# The files of `flashinfer report` and `flashinfer bench --html` as a source: the command needs none of them when it runs.
# Chart.js (MIT) comes from the distribution (libjs-chart.js); without it charts.js draws the same charts more simply.
function(fi_report_assets out)
  find_file(FLASHINFER_CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist NO_DEFAULT_PATH
            DOC "Chart.js, embedded in pages")
  set(folder ${PROJECT_SOURCE_DIR}/flashinfer/cli/report)
  set(files style ${folder}/style.css common ${folder}/common.js session ${folder}/session.js bench ${folder}/bench.js)
  if(FLASHINFER_CHART_JS)
    list(APPEND files chart ${FLASHINFER_CHART_JS})
  else()
    message(STATUS "Charts of reports are drawn by charts.js: chart.min.js was not found (tools/setup.sh build installs libjs-chart.js)")
    list(APPEND files chart ${folder}/charts.js)
  endif()
  while(files)
    list(POP_FRONT files name file)
    file(READ ${file} content_${name})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endwhile()
  set(path ${PROJECT_BINARY_DIR}/generated/report_assets.cc)
  file(CONFIGURE OUTPUT ${path} @ONLY CONTENT [=[
// Generated from flashinfer/cli/report and Chart.js.
#include "flashinfer/cli/report_assets.h"

namespace flashinfer::cli::assets {
const std::string_view kStyle = R"=====(@content_style@)=====";
const std::string_view kCommon = R"=====(@content_common@)=====";
const std::string_view kSession = R"=====(@content_session@)=====";
const std::string_view kBench = R"=====(@content_bench@)=====";
const std::string_view kChart = R"=====(@content_chart@)=====";
}  // namespace flashinfer::cli::assets
]=])
  set(${out} ${path} PARENT_SCOPE)
endfunction()
