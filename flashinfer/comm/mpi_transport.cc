// SPDX-License-Identifier: Apache-2.0
// A window whose bytes go through MPI's messages between two ranks. Each part of the image is a message that says where
// it belongs, and behind it, unless it is small and in that message, one with its bytes. No call waits: what is under
// way is tested, so a rank that died is an error and no hang.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <list>
#include <mutex>

#include "flashinfer/comm/group_state.h"
#include "flashinfer/comm/mpi.h"
#include "flashinfer/comm/transport.h"
#include "flashinfer/core/check.h"

namespace flashinfer::comm {
namespace {
using mpi::Handle;

struct Message {
  uint64_t offset, bytes;
  std::byte inlined[Transport::kMostPosted];
  bool is_small() const { return bytes <= sizeof inlined; }
};
constexpr size_t kHeader = offsetof(Message, inlined);
/// Bytes of one message of MPI, which counts with an int.
constexpr size_t kMostBytes = size_t{1} << 30;

class Mpi : public Transport {
 public:
  Mpi(size_t bytes, std::vector<int> ranks, int own, Handle comm, int tag)
      : image_(bytes), peers_(ranks.size()), own_(static_cast<size_t>(own)), comm_(comm), tag_(tag) {
    const std::scoped_lock lock(mpi::g_mutex);
    for (size_t r = 0; r < ranks.size(); ++r) {
      peers_[r].rank = ranks[r];
      if (r != own_) expect_message(peers_[r]);
    }
  }
  /// What is under way may still read or write the image, which then stays.
  ~Mpi() override {
    if (process_ != getpid()) return;
    const Deadline deadline = after(1);
    while (!mpi::is_finalized() && !all_sent() && std::chrono::steady_clock::now() < deadline) {
      progress();
      sleep();
    }
    const std::scoped_lock lock(mpi::g_mutex);
    if (mpi::is_finalized() || !all_sent()) {
      for (Peer& p : peers_) new std::list<Out>(std::move(p.out));  // so do their messages
      image_.leave();
    }
    for (Peer& p : peers_) end_receive(p);
  }

  std::byte* image() const override { return image_.data(); }
  void put(int rank, size_t offset, size_t bytes) override {
    const std::scoped_lock lock(mpi::g_mutex);
    for (size_t at = 0; at < bytes; at += kMostBytes) send(rank, offset + at, std::min(kMostBytes, bytes - at));
  }
  void post(int rank, size_t offset, size_t bytes) override {
    const std::scoped_lock lock(mpi::g_mutex);
    send(rank, offset, bytes);
  }
  bool sent(int rank) const override {
    const Peer& p = peers_[static_cast<size_t>(rank)];
    return p.out.empty() || !p.closed.empty();
  }
  std::string why_closed(int rank) const override { return peers_[static_cast<size_t>(rank)].closed; }

  void progress() override {
    const std::scoped_lock lock(mpi::g_mutex);
    for (size_t r = 0; r < peers_.size(); ++r) {
      Peer& p = peers_[r];
      if (r == own_ || !p.closed.empty()) continue;
      while (!p.out.empty() && test(p, p.out.front().request[0]) && test(p, p.out.front().request[1]))
        p.out.pop_front();
      while (p.closed.empty() && test(p, p.receives)) received(p);
    }
  }
  void sleep() override {
    const timespec a_moment{0, 20'000};
    nanosleep(&a_moment, nullptr);
  }

 private:
  struct Out {
    Message message;
    Handle request[2];
  };
  struct Peer {
    int rank = 0;
    std::list<Out> out{};
    std::unique_ptr<Message> in = std::make_unique<Message>();
    Handle receives = nullptr;
    bool body = false;  // `receives` is of the bytes that `in` has announced
    std::string closed{};
  };

  bool all_sent() const {
    return std::all_of(peers_.begin(), peers_.end(), [](const Peer& p) { return p.out.empty() || !p.closed.empty(); });
  }
  /// False, and the peer closed: MPI says that something is wrong.
  bool ok(Peer& p, int code, const char* what) {
    if (code == 0) return true;
    try {
      mpi::check(code, what);
    } catch (const Error& e) {
      p.closed = e.message();
    }
    return false;
  }
  bool test(Peer& p, Handle& request) {
    int done = 0;
    return ok(p, mpi::library().MPI_Test(&request, &done, nullptr), "MPI_Test") && done;
  }
  void send(int rank, size_t offset, size_t bytes) {
    Peer& p = peers_[static_cast<size_t>(rank)];
    if (!p.closed.empty() || static_cast<size_t>(rank) == own_ || !bytes) return;
    const mpi::Library& l = mpi::library();
    Out& o = p.out.emplace_back();
    o.request[0] = o.request[1] = l.null_request;
    o.message.offset = offset, o.message.bytes = bytes;
    const bool small = o.message.is_small();
    if (small) std::memcpy(o.message.inlined, image_.data() + offset, bytes);
    const auto n = static_cast<int>(kHeader + (small ? bytes : 0));
    if (ok(p, l.MPI_Isend(&o.message, n, l.byte, p.rank, tag_, comm_, &o.request[0]), "MPI_Isend") && !small)
      ok(p, l.MPI_Isend(image_.data() + offset, static_cast<int>(bytes), l.byte, p.rank, tag_, comm_, &o.request[1]),
         "MPI_Isend");
  }
  void expect(Peer& p, void* to, size_t bytes) {
    const mpi::Library& l = mpi::library();
    ok(p, l.MPI_Irecv(to, static_cast<int>(bytes), l.byte, p.rank, tag_, comm_, &p.receives), "MPI_Irecv");
  }
  void expect_message(Peer& p) {
    p.body = false;
    expect(p, p.in.get(), sizeof(Message));
  }
  void received(Peer& p) {
    const Message& m = *p.in;
    if (p.body) return expect_message(p);
    if (m.bytes > image_.bytes() || m.offset > image_.bytes() - m.bytes) {
      p.closed = str("sent bytes for ", m.offset, " + ", m.bytes, " of a window of ", image_.bytes());
    } else if (m.is_small()) {
      std::memcpy(image_.data() + m.offset, m.inlined, m.bytes);
      expect_message(p);
    } else {
      p.body = true;
      expect(p, image_.data() + m.offset, m.bytes);
    }
  }
  /// A receive that is under way ends; one that MPI does not give up keeps its memory.
  void end_receive(Peer& p) {
    const mpi::Library& l = mpi::library();
    if (!p.receives || p.receives == l.null_request) return;
    int done = 0;
    if (!mpi::is_finalized() && l.MPI_Cancel(&p.receives) == 0) l.MPI_Test(&p.receives, &done, nullptr);
    if (done) return;
    if (p.body) image_.leave();
    static_cast<void>(p.in.release());
  }

  int process_ = getpid();
  Image image_;
  std::vector<Peer> peers_;
  size_t own_;
  Handle comm_;
  int tag_;
};

/// Tags of windows that this process has a part in: each has its own, as long as it lives.
constexpr int kFirstTag = 16, kLastTag = 32767;  // MPI promises this many
int& last_tag() {
  static int tag = kFirstTag - 1;
  return tag;
}
}  // namespace

std::unique_ptr<Transport> connect_by_mpi(Group& group, const std::string& what, size_t bytes) {
  std::string problem;
  mpi::World w;
  try {
    w = mpi::world(true);
    if (!w.comm && group.size() != w.size)
      problem = str("the first group that uses MPI has ", group.size(), " ranks, but must have all ", w.size,
                    " of MPI_COMM_WORLD");
  } catch (const Error& e) {
    problem = e.message();
  }
  // All or none go on to make the communicator.
  const auto all = group.exchange(what, str(w.rank, " ", last_tag() + 1, " ", w.comm ? 1 : 0, " ", problem));
  std::vector<int> ranks;
  int tag = 0;
  for (size_t r = 0; r < all.size(); ++r) {
    int rank = 0, wanted = 0, has_comm = 0, at = 0;
    FI_CHECK(std::sscanf(all[r].c_str(), "%d %d %d %n", &rank, &wanted, &has_comm, &at) == 3, RuntimeError, "rank ", r,
             " sent '", all[r], "'");
    const std::string theirs = all[r].substr(static_cast<size_t>(at));
    FI_CHECK(theirs.empty(), RuntimeError, "transport mpi: rank ", r, ": ", theirs);
    FI_CHECK(std::find(ranks.begin(), ranks.end(), rank) == ranks.end(), RuntimeError,
             "transport mpi: two ranks are rank ", rank, " of MPI_COMM_WORLD: mpirun must start each");
    ranks.push_back(rank);
    tag = std::max(tag, wanted);
  }
  FI_CHECK(tag <= kLastTag, RuntimeError, "this process has made all ", kLastTag - kFirstTag + 1,
           " windows that MPI has tags for");
  last_tag() = tag;
  return std::make_unique<Mpi>(bytes, std::move(ranks), group.rank(), mpi::world().comm, tag);
}

}  // namespace flashinfer::comm
