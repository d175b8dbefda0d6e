// SPDX-License-Identifier: Apache-2.0
// What the program prints: streamed text, the table at the end, the JSON document.
#pragma once
#include <string>
#include <vector>

#include "engine.h"
#include "tokenizer.h"

namespace llm {

/// Text as it comes: token by token for one request, in whole lines behind the request's number for several at once.
class TextStream {
 public:
  TextStream(const Tokenizer* tokenizer, size_t requests, bool quiet)
      : tokenizer_(tokenizer), lines_(requests), quiet_(quiet) {}
  void push(int64_t request, int32_t token);
  void finish(int64_t request);
  const std::string& text(int64_t request) const { return lines_[static_cast<size_t>(request)].all; }

 private:
  struct Line {
    Utf8Stream utf8;
    std::string pending, all;
  };
  void print(int64_t request, const std::string& text);
  void print_line(int64_t request, std::string_view text) const;
  const Tokenizer* tokenizer_;
  std::vector<Line> lines_;
  bool quiet_;
};

struct RunTimes {
  double load_seconds = 0, warmup_seconds = 0;
  int ranks = 1;
};
void print_table(const Engine& engine, const Model& model, const RunTimes& times);
std::string json_document(const Engine& engine, const Model& model, const RunTimes& times, const TextStream& text);

}  // namespace llm
