// SPDX-License-Identifier: Apache-2.0
// Who of a group is gone, while GPUs wait for each other and the host does not: ranks of one machine tell each other
// that they failed, or left in order, without waiting; a thread looks.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "flashinfer/comm/group.h"
#include "flashinfer/comm/window.h"

namespace flashinfer::comm {

class RankWatch {
 public:
  /// Collective.
  explicit RankWatch(std::shared_ptr<Group> group);
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  /// For the other ranks (of this machine; those of others notice the process's end alone): once, later ones are
  /// ignored.
  void failed(const std::string& what) const { say(kFailed, what); }
  void left() const { say(kLeft, ""); }

  struct Gone {
    int rank;
    std::string why;  // "rank 1 raised ValueError: ...", "rank 2 (process 4711) has ended"
  };
  /// A rank that failed, or whose process has ended.
  std::optional<Gone> gone() const { return find(false); }
  /// The same without ranks that left in order: they have made all their calls.
  std::optional<Gone> lost() const { return find(true); }

  /// look() in a thread every 100 ms until the end or stop(). Not for a group of one rank.
  void start(std::function<void()> look);
  void stop();

 private:
  static constexpr uint32_t kLeft = 1, kFailed = 2;
  struct Notice;
  Notice* notice_of(int rank) const;
  void say(uint32_t kind, const std::string& text) const;
  std::optional<Gone> find(bool lost) const;

  std::shared_ptr<Group> group_;
  std::shared_ptr<Window> notices_{};  // null: the ranks are of several machines
  int process_;
  std::mutex mutex_{};
  std::condition_variable end_{};
  bool ended_ = false;
  std::thread thread_{};
};

}  // namespace flashinfer::comm
