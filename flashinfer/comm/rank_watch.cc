// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/comm/rank_watch.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

#include "flashinfer/core/check.h"

namespace flashinfer::comm {
namespace {
constexpr auto kEvery = std::chrono::milliseconds(100);
}

/// In memory that begins as zeros.
struct RankWatch::Notice {
  std::atomic<uint32_t> kind;  // 0: nothing yet; set behind the text
  char text[1020];
};

RankWatch::RankWatch(std::shared_ptr<Group> group) : group_(std::move(group)), process_(getpid()) {
  if (group_->one_machine() && group_->size() > 1) notices_ = group_->window(sizeof(Notice), "shm");
}
RankWatch::~RankWatch() { stop(); }

RankWatch::Notice* RankWatch::notice_of(int rank) const { return reinterpret_cast<Notice*>(notices_->of(rank)); }

void RankWatch::say(uint32_t kind, const std::string& text) const {
  if (!notices_) return;
  Notice& own = *notice_of(group_->rank());
  if (own.kind.load(std::memory_order_relaxed) != 0) return;
  std::memcpy(own.text, text.data(), std::min(text.size(), sizeof own.text - 1));
  own.kind.store(kind, std::memory_order_release);
}

std::optional<RankWatch::Gone> RankWatch::find(bool lost) const {
  for (int r = 0; r < group_->size(); ++r) {
    if (r == group_->rank()) continue;
    const uint32_t said = notices_ ? notice_of(r)->kind.load(std::memory_order_acquire) : 0;
    if (said == kFailed) return Gone{r, str("rank ", r, " ", notice_of(r)->text)};
    if (said == kLeft && lost) continue;
    if (std::string why = group_->why_gone(r); !why.empty()) return Gone{r, std::move(why)};
  }
  return {};
}

void RankWatch::start(std::function<void()> look) {
  if (group_->size() == 1) return;
  thread_ = std::thread([this, look = std::move(look)] {
    std::unique_lock lock(mutex_);
    while (!end_.wait_for(lock, kEvery, [this] { return ended_; })) look();
  });
}

void RankWatch::stop() {
  if (!thread_.joinable()) return;
  if (process_ != getpid()) return thread_.detach();  // a forked child has no such thread
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
  }
  end_.notify_all();
  thread_.join();
}

}  // namespace flashinfer::comm
