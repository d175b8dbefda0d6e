// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "flashinfer/jit/engine.h"

namespace llm {
namespace {

constexpr size_t kColumns = 96;

double between(Clock::time_point a, Clock::time_point b) { return std::chrono::duration<double>(b - a).count(); }
double rate(int64_t n, double seconds) { return seconds > 0 ? static_cast<double>(n) / seconds : 0; }

std::vector<double> first_token_times(const Engine& engine) {
  std::vector<double> t;
  for (const auto& r : engine.requests()) t.push_back(between(r->submitted, r->first_token));
  std::sort(t.begin(), t.end());
  return t;
}

int64_t kernels_found(const flashinfer::jit::Stats& s) { return s.memory_hits + s.disk_hits + s.aot_hits; }

}  // namespace

void TextStream::push(int64_t request, int32_t token) {
  Line& line = lines_[static_cast<size_t>(request)];
  print(request, line.utf8.push(tokenizer_->bytes_of(token)));
}

void TextStream::finish(int64_t request) {
  Line& line = lines_[static_cast<size_t>(request)];
  print(request, line.utf8.finish());
  if (quiet_) return;
  if (lines_.size() > 1 && !line.pending.empty()) print_line(request, line.pending);
  if (lines_.size() == 1) std::fputc('\n', stdout);
  std::fflush(stdout);
}

void TextStream::print_line(int64_t request, std::string_view text) const {
  std::printf("[%ld] %.*s\n", static_cast<long>(request + 1), static_cast<int>(text.size()), text.data());
  std::fflush(stdout);
}

void TextStream::print(int64_t request, const std::string& text) {
  Line& line = lines_[static_cast<size_t>(request)];
  line.all += text;
  if (quiet_ || text.empty()) return;
  if (lines_.size() == 1) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    return;
  }
  line.pending += text;
  for (;;) {
    size_t cut = line.pending.find('\n'), skip = 1;
    if (cut > kColumns) {  // npos too
      if (line.pending.size() <= kColumns) return;
      cut = line.pending.rfind(' ', kColumns);
      if (cut == std::string::npos || cut == 0) {
        skip = 0;  // a word longer than the line, cut between characters
        for (cut = kColumns; (static_cast<unsigned char>(line.pending[cut]) & 0xc0) == 0x80;) --cut;
      }
    }
    if (cut > 0) print_line(request, std::string_view(line.pending).substr(0, cut));
    line.pending.erase(0, cut + skip);
  }
}

void print_table(const Engine& engine, const Model& model, const RunTimes& times) {
  const EngineStats& s = engine.stats();
  const flashinfer::jit::Stats jit = flashinfer::jit::stats();
  const std::vector<double> first = first_token_times(engine);
  const double mib = 1024.0 * 1024.0;
  std::printf("\n");
  const auto row = [](const char* what, const std::string& value) { std::printf("  %-22s %s\n", what, value.c_str()); };
  const auto text = [](const char* format, auto... v) {
    char buffer[200];
    std::snprintf(buffer, sizeof buffer, format, v...);
    return std::string(buffer);
  };
  row("requests", text("%zu, at most %ld at once, %ld steps", engine.requests().size(),
                       static_cast<long>(s.largest_batch), static_cast<long>(s.steps)));
  row("prefill", text("%.0f tokens/s (%ld tokens)", rate(s.prefill_tokens, s.prefill_seconds),
                      static_cast<long>(s.prefill_tokens)));
  row("decode",
      text("%.0f tokens/s (%ld tokens)", rate(s.decode_tokens, s.decode_seconds), static_cast<long>(s.decode_tokens)));
  row("time to first token",
      first.empty() ? "none" : text("%.3f s median, %.3f s longest", first[first.size() / 2], first.back()));
  row("KV cache", text("%ld bytes (%.1f MiB) in use at most, pages of %ld tokens; pool %.1f MiB",
                       static_cast<long>(s.most_pages * model.page_size() * model.shape().kv_bytes_per_token()),
                       static_cast<double>(s.most_pages * model.page_size() * model.shape().kv_bytes_per_token()) / mib,
                       static_cast<long>(model.page_size()), static_cast<double>(model.kv_bytes()) / mib));
  row("JIT", text("%ld kernels compiled in %.2f s, cache hits: %ld disk, %ld ahead-of-time, %ld memory",
                  static_cast<long>(jit.compiled), jit.compile_seconds, static_cast<long>(jit.disk_hits),
                  static_cast<long>(jit.aot_hits), static_cast<long>(jit.memory_hits)));
  if (times.ranks > 1) row("ranks", text("%d processes; kernels and load are those of rank 0", times.ranks));
  row("load", text("%.2f s weights, %.2f s kernels", times.load_seconds, times.warmup_seconds));
}

std::string json_document(const Engine& engine, const Model& model, const RunTimes& times, const TextStream& text) {
  using nlohmann::json;
  json requests = json::array();
  for (const auto& r : engine.requests()) {
    requests.push_back({{"prompt_tokens", r->prompt},
                        {"tokens", r->output},
                        {"text", text.text(r->id)},
                        {"stopped_by", r->stopped ? "end token" : "length"},
                        {"seconds_to_first_token", between(r->submitted, r->first_token)},
                        {"seconds", between(r->submitted, r->finished)}});
  }
  const EngineStats& s = engine.stats();
  const flashinfer::jit::Stats jit = flashinfer::jit::stats();
  const json document = {
      {"requests", requests},
      {"prefill_tokens", s.prefill_tokens},
      {"prefill_seconds", s.prefill_seconds},
      {"prefill_tokens_per_second", rate(s.prefill_tokens, s.prefill_seconds)},
      {"decode_tokens", s.decode_tokens},
      {"decode_seconds", s.decode_seconds},
      {"decode_tokens_per_second", rate(s.decode_tokens, s.decode_seconds)},
      {"steps", s.steps},
      {"largest_batch", s.largest_batch},
      {"kv_bytes_used", s.most_pages * model.page_size() * model.shape().kv_bytes_per_token()},
      {"kv_bytes_pool", model.kv_bytes()},
      {"ranks", times.ranks},
      {"load_seconds", times.load_seconds},
      {"warmup_seconds", times.warmup_seconds},
      {"jit_compiled", jit.compiled},
      {"jit_compile_seconds", jit.compile_seconds},
      {"jit_cache_hits", kernels_found(jit)},
  };
  return document.dump(2, ' ', false, json::error_handler_t::replace);
}

}  // namespace llm
