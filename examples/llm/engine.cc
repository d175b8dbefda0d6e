// SPDX-License-Identifier: Apache-2.0
#include "engine.h"

#include <algorithm>
#include <string>

#include <flashinfer/core/int_math.h>

namespace llm {

PagePool::PagePool(int32_t pages) : total_(pages) {
  for (int32_t p = pages - 1; p >= 0; --p) free_.push_back(p);
}

std::vector<int32_t> PagePool::take(int64_t n) {
  if (n > free()) return {};
  std::vector<int32_t> pages(free_.rbegin(), free_.rbegin() + n);
  free_.resize(free_.size() - static_cast<size_t>(n));
  return pages;
}

void PagePool::give_back(std::vector<int32_t>* pages) {
  free_.insert(free_.end(), pages->rbegin(), pages->rend());
  pages->clear();
}

Engine::Engine(Model* model, const EngineOptions& options)
    : model_(model), options_(options), pool_(static_cast<int32_t>(model->pages())), sampler_(options.sampling) {
  if (options.graphs && model->device() != flashinfer::kCpu)
    decoder_ = std::make_unique<Decoder>(model, options.context, options.sampling);
}

/// Pages for the whole request, so that a running request never lacks one: nothing is evicted and recomputed, which
/// would take other paths through the kernels than the first time.
static int64_t lifetime_pages(const Request& r, int64_t page_size) {
  return flashinfer::ceil_div(static_cast<int64_t>(r.prompt.size()) + r.max_new - 1,
                              page_size);  // the last token is never fed back
}

Request* Engine::submit(std::vector<int32_t> prompt, int64_t max_new, std::function<bool(int32_t)> ends_answer) {
  auto r = std::make_unique<Request>();
  r->id = static_cast<int64_t>(requests_.size());
  const std::string name = "prompt " + std::to_string(r->id + 1);
  const auto length = static_cast<int64_t>(prompt.size());
  if (length == 0) throw UserError(name + " is empty");
  if (length >= options_.context)
    throw UserError(name + " has " + std::to_string(length) + " tokens, but the context holds " +
                    std::to_string(options_.context) + " with the answer (--ctx)");
  r->prompt = std::move(prompt);
  r->max_new = std::min(max_new, options_.context - length);
  if (const int64_t need = lifetime_pages(*r, model_->page_size()); need > pool_.total())
    throw UserError(name + " needs " + std::to_string(need) + " pages of " + std::to_string(model_->page_size()) +
                    " tokens, but the KV cache has " + std::to_string(pool_.total()) + " (--kv-tokens)");
  r->submitted = Clock::now();
  ends_.push_back(std::move(ends_answer));
  prompt_logits_.emplace_back();
  waiting_.push_back(r.get());
  requests_.push_back(std::move(r));
  return requests_.back().get();
}

void Engine::start_clock() {
  for (Request* r : waiting_) r->submitted = Clock::now();
}

/// In the order of arrival: a request without pages waits, and so do those behind it.
void Engine::admit() {
  while (!waiting_.empty() && static_cast<int64_t>(running_.size()) < options_.max_batch) {
    Request* r = waiting_.front();
    r->pages = pool_.take(lifetime_pages(*r, model_->page_size()));
    if (r->pages.empty()) return;
    waiting_.pop_front();
    running_.push_back(r);
  }
  stats_.most_pages = std::max(stats_.most_pages, pool_.total() - pool_.free());
}

void Engine::compose() {
  batch_.clear();
  sampled_.clear();
  advanced_.clear();
  for (Request* r : running_) {
    if (r->in_prefill()) continue;
    const int32_t last = r->output.back();
    batch_.add(std::span(&last, 1), r->cached, r->pages, model_->page_size(), true, true);
    sampled_.push_back(r);
    advanced_.emplace_back(r, 1);
  }
  int64_t room = kChunk;
  for (Request* r : running_) {
    if (!r->in_prefill()) continue;
    const int64_t rest = static_cast<int64_t>(r->prompt.size()) - r->cached, chunk = std::min(rest, kChunk);
    if (chunk > room) break;  // whole chunks only
    room -= chunk;
    batch_.add(std::span(r->prompt).subspan(static_cast<size_t>(r->cached), static_cast<size_t>(chunk)), r->cached,
               r->pages, model_->page_size(), false, chunk == rest);
    if (chunk == rest) sampled_.push_back(r);
    advanced_.emplace_back(r, chunk);
  }
}

void Engine::finish(Request* r) {
  r->finished = Clock::now();
  pool_.give_back(&r->pages);
  std::erase(running_, r);
}

bool Engine::only_decodes() const {
  return std::none_of(running_.begin(), running_.end(), [](const Request* r) { return r->in_prefill(); });
}

std::vector<int32_t> Engine::decode() {
  slots_.clear();
  for (const Request* r : sampled_)
    slots_.push_back({r->id, r->output.back(), r->cached, static_cast<int64_t>(r->output.size()), r->pages});
  const std::span<const int32_t> next = decoder_->step(slots_);
  return {next.begin(), next.end()};
}

std::vector<int32_t> Engine::forward() {
  const flashinfer::TensorView logits = model_->forward(batch_);
  if (sampled_.empty()) return {};
  std::vector<int64_t> request, drawn;
  const flashinfer::Tensor kept = options_.keep_logits ? flashinfer::host_readable(logits) : flashinfer::Tensor();
  for (size_t i = 0; i < sampled_.size(); ++i) {
    const Request* r = sampled_[i];
    request.push_back(r->id);
    drawn.push_back(static_cast<int64_t>(r->output.size()));
    if (options_.keep_logits && r->output.empty()) {
      const float* row = kept.data_as<float>() + static_cast<int64_t>(i) * logits.size(1);
      prompt_logits_[static_cast<size_t>(r->id)].assign(row, row + logits.size(1));
    }
  }
  return sampler_.next(logits, request, drawn);
}

bool Engine::step(const std::function<void(const Request&, int32_t)>& on_token) {
  admit();
  if (running_.empty()) return false;
  const auto begin = Clock::now();
  compose();
  const std::vector<int32_t> next = decoder_ && only_decodes() ? decode() : forward();
  for (auto [r, n] : advanced_) r->cached += n;
  const auto end = Clock::now();
  const double seconds = std::chrono::duration<double>(end - begin).count();
  const auto decoded = static_cast<double>(batch_.decode.rows()),
             prefilled = static_cast<double>(batch_.prefill.rows());
  stats_.decode_seconds += seconds * decoded / (decoded + prefilled);
  stats_.prefill_seconds += seconds * prefilled / (decoded + prefilled);
  stats_.decode_tokens += batch_.decode.rows();
  stats_.prefill_tokens += batch_.prefill.rows();
  stats_.largest_batch = std::max(stats_.largest_batch, batch_.all.requests());
  ++stats_.steps;

  for (size_t i = 0; i < sampled_.size(); ++i) {
    Request* r = sampled_[i];
    if (r->output.empty()) r->first_token = end;
    r->output.push_back(next[i]);
    r->stopped = ends_[static_cast<size_t>(r->id)](next[i]);
    on_token(*r, next[i]);
    if (r->is_done()) finish(r);
  }
  return !idle();
}

}  // namespace llm
