// SPDX-License-Identifier: Apache-2.0
// From the facts to the page: compact JSON beside the scripts that show it.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>

#include "flashinfer/cli/report.h"
#include "flashinfer/cli/report_assets.h"
#include "flashinfer/core/printable.h"
#include "flashinfer/formats/file.h"

namespace flashinfer::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Six digits; null when it is not finite.
Json rounded(double v) {
  if (!std::isfinite(v)) return nullptr;
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", v);
  return std::strtod(text, nullptr);
}
/// Microseconds with three digits behind the point.
Json in_us(double us) { return us < 0 ? Json(-1) : Json(std::round(us * 1e3) / 1e3); }

/// Rows that many calls share, each stored once.
class Table {
 public:
  size_t id(const Json& row) {
    const auto [it, fresh] = ids_.emplace(row.dump(-1, ' ', true, Json::error_handler_t::replace), rows_.size());
    if (fresh) rows_.push_back(row);
    return it->second;
  }
  Json take() { return std::move(rows_); }

 private:
  std::unordered_map<std::string, size_t> ids_;
  Json rows_ = Json::array();
};

class Writer {
 public:
  Json session(const SessionFacts& s) {
    Json calls = Json::array(), machine = Json::array(), notes = Json::array();
    for (const CallFacts& c : s.calls) calls.push_back(call(c));
    for (const auto& [key, value] : s.machine) machine.push_back({printable(key), printable(value)});
    for (const std::string& n : s.notes) notes.push_back(printable(n));
    return {{"name", printable(s.name)}, {"machine", machine}, {"notes", notes},
            {"crashed", s.crashed},      {"failed", s.failed}, {"non_finite", s.non_finite},
            {"calls", std::move(calls)}};
  }

  size_t text(const std::string& s) { return strings_.id(printable_lines(s)); }
  Json strings() { return strings_.take(); }
  Json tensors() { return tensors_.take(); }

 private:
  Json call(const CallFacts& c) {
    Json tensors = Json::array(), values = Json::array();
    for (const TensorFacts& t : c.tensors) {
      tensors.push_back(text(t.name));
      tensors.push_back(t.output ? 1 : 0);
      tensors.push_back(tensors_.id(tensor(t)));
    }
    for (const auto& [key, value] : c.values) {
      values.push_back(text(key));
      values.push_back(text(value));
    }
    const size_t track =
        text(c.process_key + (c.rank.empty() ? "" : " rank " + c.rank) + " thread " + std::to_string(c.thread));
    return {text(c.function),
            track,
            in_us(c.start_us),
            in_us(c.duration_us),
            static_cast<int>(c.status),
            text(c.candidate),
            c.sequence,
            c.depth,
            printable(c.folder),
            tensors,
            values,
            text(c.error),
            text(c.notes),
            text(c.config)};
  }

  Json tensor(const TensorFacts& t) {
    std::string shape = "[";
    for (const int64_t n : t.shape) shape += (shape.size() > 1 ? ", " : "") + std::to_string(n);
    Json row = {text(t.dtype), text(shape + "]"), text(t.device), text(t.note)};
    if (t.summary) {
      const replay::Summary& s = *t.summary;
      for (const double v : {s.min, s.max, s.mean, s.deviation}) row.push_back(rounded(v));
      for (const int64_t n : {s.nan, s.inf, s.elements}) row.push_back(n);
    }
    return row;
  }

  Table strings_, tensors_;
};

Json replay_data(Writer& w, const replay::Report& r) {
  Json calls = Json::array();
  for (const replay::CallResult& c : r.calls) {
    std::string text = c.message;
    for (size_t i = 1; i < c.differences.size(); ++i) text += "\n" + c.differences[i].text;
    for (const std::string& n : c.notes) text += "\nnote: " + n;
    calls.push_back({w.text(replay::name(c.outcome)), w.text(text), rounded(c.max_abs), rounded(c.max_rel),
                     in_us(c.seconds * 1e6)});
  }
  return {{"passed", r.passed()}, {"failed", r.failed()}, {"not_compared", r.not_compared()}, {"calls", calls}};
}

Json against_data(Writer& w, const Against& a) {
  Json pairs = Json::array();
  for (size_t i = 0; i < a.pairs.size(); ++i) {
    const replay::CallDiff& d = a.diffs[i];
    std::string text = d.note;
    for (const replay::Difference& x : d.differences) text += (text.empty() ? "" : "\n") + x.text;
    pairs.push_back({a.pairs[i].first, a.pairs[i].second, static_cast<int>(d.inputs), static_cast<int>(d.outputs),
                     w.text(text), rounded(d.max_abs), rounded(d.max_rel)});
  }
  return {{"session", w.session(a.other)}, {"first", a.first}, {"pairs", pairs}};
}

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else
      out += c;
  }
  return out;
}

/// JSON in a script element: ASCII, and without the character that could end the element or begin a comment.
std::string script_json(const Json& data) {
  const std::string json = data.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string out;
  out.reserve(json.size() + json.size() / 64);
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

}  // namespace

Json session_data(const SessionFacts& facts, const replay::Report* replayed, const Against* against) {
  Writer w;
  Json data = {{"session", w.session(facts)}};
  if (replayed) data["replay"] = replay_data(w, *replayed);
  if (against) data["against"] = against_data(w, *against);
  data["strings"] = w.strings();
  data["tensors"] = w.tensors();
  return data;
}

std::string html_page(const std::string& title, const std::string& script, const Json& data) {
  const std::string name = html_text(printable(title));
  std::string page =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'; img-src data:\">\n<title>";
  page += name + "</title>\n<style>\n";
  page += assets::kStyle;
  page += "</style>\n</head>\n<body>\n<h1>" + name + "</h1>\n<main id=\"main\"></main>\n";
  page += "<script type=\"application/json\" id=\"data\">" + script_json(data) + "</script>\n";
  for (const std::string_view part :
       {assets::kChart, assets::kCommon, script == "bench" ? assets::kBench : assets::kSession}) {
    page += "<script>\n";
    page += part;
    page += "</script>\n";
  }
  return page + "</body>\n</html>\n";
}

void write_file(const std::string& path, const std::string& text) {
  formats::FileWriter file(path);
  file.write(text);
  file.commit();
}

}  // namespace flashinfer::cli
