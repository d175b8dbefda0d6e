// SPDX-License-Identifier: Apache-2.0
// Continuous batching: requests join and leave between steps. A step runs one token of every running request and whole
// chunks of waiting prompts, in one pass over the weights.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "decoder.h"
#include "model.h"
#include "sampler.h"

namespace llm {

using Clock = std::chrono::steady_clock;

/// The free pages of the KV cache, last freed first reused.
class PagePool {
 public:
  explicit PagePool(int32_t pages);
  int64_t free() const { return static_cast<int64_t>(free_.size()); }
  int64_t total() const { return total_; }
  /// `n` pages, or none at all when there are not enough.
  std::vector<int32_t> take(int64_t n);
  void give_back(std::vector<int32_t>* pages);

 private:
  int64_t total_;
  std::vector<int32_t> free_;
};

struct Request {
  int64_t id = 0;
  std::vector<int32_t> prompt, output;
  int64_t max_new = 0;
  std::vector<int32_t> pages;
  int64_t cached = 0;    // tokens in the KV cache
  bool stopped = false;  // by an end token, else by max_new
  Clock::time_point submitted, first_token, finished;

  bool in_prefill() const { return cached < static_cast<int64_t>(prompt.size()); }
  bool is_done() const { return stopped || static_cast<int64_t>(output.size()) >= max_new; }
};

struct EngineStats {
  int64_t prefill_tokens = 0, decode_tokens = 0, steps = 0, largest_batch = 0, most_pages = 0;
  double prefill_seconds = 0, decode_seconds = 0;  // a mixed step's time is split by rows
};

struct EngineOptions {
  int64_t max_batch = 8;
  int64_t context = 1024;  // prompt and answer together
  Sampling sampling;
  bool keep_logits = false;
  bool graphs = true;  // on a GPU and the emulator: steps that only decode run as Decoder's
};

class Engine {
 public:
  /// Prompts are cut at multiples of this, whatever the batch, so that a request's arithmetic does not depend on the
  /// other requests.
  static constexpr int64_t kChunk = 512;
  static int64_t max_rows(int64_t max_batch) { return max_batch + kChunk; }

  Engine(Model* model, const EngineOptions& options);

  /// Queues a request. UserError when it can never run: an empty prompt, one longer than the context or than the whole
  /// cache.
  Request* submit(std::vector<int32_t> prompt, int64_t max_new, std::function<bool(int32_t)> ends_answer);
  /// One step; false when nothing is left to do. `on_token` sees each new token.
  bool step(const std::function<void(const Request&, int32_t)>& on_token);
  bool idle() const { return running_.empty() && waiting_.empty(); }

  const std::deque<std::unique_ptr<Request>>& requests() const { return requests_; }
  const std::vector<std::vector<float>>& prompt_logits() const { return prompt_logits_; }
  const EngineStats& stats() const { return stats_; }
  /// Requests submitted so far count as submitted now.
  void start_clock();

 private:
  void admit();
  void compose();
  /// Whether the next step is one token of each running request.
  bool only_decodes() const;
  /// The next tokens of sampled_.
  std::vector<int32_t> decode();
  std::vector<int32_t> forward();
  void finish(Request* r);

  Model* model_;
  EngineOptions options_;
  PagePool pool_;
  std::deque<std::unique_ptr<Request>> requests_;  // all ever submitted
  std::deque<Request*> waiting_;
  std::vector<Request*> running_;
  std::vector<std::function<bool(int32_t)>> ends_;  // by request id
  Batch batch_;
  std::vector<Request*> sampled_;  // the requests of batch_.logit_rows
  std::vector<std::pair<Request*, int64_t>> advanced_;
  Sampler sampler_;
  std::unique_ptr<Decoder> decoder_;  // null: every step is composed on the host
  std::vector<DecodeSlot> slots_;
  std::vector<std::vector<float>> prompt_logits_;
  EngineStats stats_;
};

}  // namespace llm
