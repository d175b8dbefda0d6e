// SPDX-License-Identifier: Apache-2.0
#include "bench.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace llm {
namespace {

constexpr int kRepeats = 3;

std::vector<int32_t> made_up_prompt(int64_t length, int64_t vocabulary, int64_t salt) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < length; ++i)
    tokens.push_back(static_cast<int32_t>((i * 7919 + salt * 104729 + 1) % vocabulary));
  return tokens;
}

/// Tokens per second of the chosen phase.
double once(Model* model, int64_t requests, int64_t prompt, int64_t generated, bool prefill) {
  EngineOptions options;
  options.max_batch = requests;
  options.context = prompt + generated + 1;
  Engine engine(model, options);
  for (int64_t i = 0; i < requests; ++i)
    engine.submit(made_up_prompt(prompt, model->shape().vocabulary, i), generated, [](int32_t) { return false; });
  while (engine.step([](const Request&, int32_t) {})) {
  }
  const EngineStats& s = engine.stats();
  return prefill ? static_cast<double>(s.prefill_tokens) / s.prefill_seconds
                 : static_cast<double>(s.decode_tokens) / s.decode_seconds;
}

double median(Model* model, int64_t requests, int64_t prompt, int64_t generated, bool prefill) {
  std::vector<double> rates;
  for (int i = 0; i < kRepeats; ++i) rates.push_back(once(model, requests, prompt, generated, prefill));
  std::sort(rates.begin(), rates.end());
  return rates[kRepeats / 2];
}

}  // namespace

std::string bench(Model* model, bool as_json) {
  const double prefill = median(model, 1, 512, 1, true), alone = median(model, 1, 16, 65, false),
               eight = median(model, 8, 16, 65, false);
  if (as_json)
    return nlohmann::json({{"prefill_512", prefill}, {"decode_alone", alone}, {"decode_batch_8", eight}}).dump(2) +
           "\n";
  char text[200];
  std::snprintf(text, sizeof text,
                "prefill of 512 tokens  %.0f tokens/s\ndecode alone           %.0f tokens/s\n"
                "decode, batch of 8     %.0f tokens/s in total\n",
                prefill, alone, eight);
  return text;
}

}  // namespace llm
