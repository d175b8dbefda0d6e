// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/bench/turns.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>

#include "flashinfer/bench/reader.h"
#include "flashinfer/op/observer.h"
#include "flashinfer/op/select.h"

namespace flashinfer::bench {
namespace {

constexpr size_t kMostCopies = 200;
// A multiple of no row's width, so that rows differ.
constexpr int64_t kRepeatAfter = 1'000'003;

int64_t bytes_of_inputs(const op::Op& op, const cases::Built& b) {
  int64_t n = 0;
  op::for_each_tensor(op, b.block.data(), [&](const op::Field& f, const TensorView& v) {
    if (f.role == op::Role::kIn || f.role == op::Role::kPaged) n += v.nbytes();
  });
  return n;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return Samples{std::move(values)}.median();
}

/// Something timed in turns with the calls: its times, and those over the calls'.
struct Rival {
  std::function<double(int)> seconds;
  std::vector<double> times = {}, ratios = {};
  void turn(int calls) { times.push_back(seconds(calls)); }
  void over(double call) { ratios.push_back(times.back() / call); }
};

/// Rows whose turns take longer than this in all have fewer of them.
constexpr int64_t kLongNanoseconds = 4'000'000'000;
constexpr int kLeastTurns = 5, kTurnsOfLong = 3;

/// A turn has so many calls that they take about this long, beside rivals.
constexpr double kTurnSeconds = 10e-3;
constexpr int kMostCallsOfTurn = 40;

/// The calls, each after a flush if they are to be cold, in turns with a copy of as many bytes where the row has many,
/// and with all rivals.
Samples time_on_host(Calls& calls, const Options& options, Row& row, std::vector<Rival>& rivals) {
  Samples samples, copies;
  std::optional<Copier> copier;
  if (row.cost.bytes >= kLeastBytesInTurns) copier.emplace(static_cast<int64_t>(row.cost.bytes / 2)).seconds();
  const Tensor evicted = options.cold ? Tensor::zeros({2 * last_level_cache()}, DType::kU8) : Tensor();
  const int in_turn =
      rivals.empty() ? 1 : static_cast<int>(std::clamp(kTurnSeconds / calls.seconds(1), 1.0, 1.0 * kMostCallsOfTurn));
  const int64_t budget = static_cast<int64_t>(options.seconds * 1e9), begin = op::detail::monotonic_ns();
  for (int turn = 0;; ++turn) {
    const int64_t spent = op::detail::monotonic_ns() - begin;
    if (turn >= (spent > kLongNanoseconds ? kTurnsOfLong : kLeastTurns) && spent >= budget) break;
    if (copier) copies.seconds.push_back(copier->seconds());
    for (Rival& r : rivals) r.turn(in_turn);
    std::vector<double> mine;
    for (int i = 0; i < in_turn; ++i) {
      if (options.cold) std::memset(evicted.data_as<char>(), turn & 1, static_cast<size_t>(evicted.nbytes()));
      mine.push_back(calls.seconds());
    }
    samples.seconds.insert(samples.seconds.end(), mine.begin(), mine.end());
    if (!rivals.empty()) {
      const double median = median_of(std::move(mine));
      for (Rival& r : rivals) r.over(median);
    }
    if (samples.seconds.size() >= 100000) break;
  }
  std::sort(samples.seconds.begin(), samples.seconds.end());
  std::sort(copies.seconds.begin(), copies.seconds.end());
  if (copier) row.copy_bandwidth = copier->moved() / copies.median();
  return samples;
}

}  // namespace

Calls::Calls(const op::Op& op, std::string_view args, int threads, int64_t rotate, Device device)
    : op_(op), context_(Context::current()) {
  if (threads > 0) {
    pool_ = make_thread_pool(threads);
    context_.executor = *pool_;
  }
  const ContextScope scope(context_);
  const cases::BuildOptions options{.device = device, .keep_bytes = false, .repeat_after = kRepeatAfter};
  blocks_.push_back(std::make_unique<cases::Built>(cases::build(op, args, options)));
  const int64_t one = std::max<int64_t>(1, bytes_of_inputs(op, *blocks_[0]));
  const size_t copies = rotate > 0 ? std::clamp<size_t>(static_cast<size_t>(rotate / one + 1), 2, kMostCopies) : 1;
  while (blocks_.size() < copies) blocks_.push_back(std::make_unique<cases::Built>(cases::build(op, args, options)));
}

void Calls::first() {
  const ContextScope scope(context_);
  for (auto& b : blocks_) outputs_.push_back(cases::run_block(*b));
}

double Calls::seconds() {
  const ContextScope scope(context_);
  void* const block = blocks_[next_]->block.data();
  next_ = next_ + 1 == blocks_.size() ? 0 : next_ + 1;
  const int64_t start = op::detail::monotonic_ns();
  op::run(op_, block);
  return static_cast<double>(op::detail::monotonic_ns() - start) * 1e-9;
}

double Calls::seconds(int calls) {
  std::vector<double> times;
  for (int i = 0; i < calls; ++i) times.push_back(seconds());
  return median_of(std::move(times));
}

std::vector<cases::Built*> Calls::blocks() {
  std::vector<cases::Built*> all;
  for (auto& b : blocks_) all.push_back(b.get());
  return all;
}

/// The row with everything that takes turns with it.
void time_in_turns(const op::Op& op, const op::Case& c, Calls& calls, const Options& options, Row& row) {
  std::vector<Rival> rivals;
  std::optional<Reader> reader;
  std::optional<Calls> over;
  if (options.read) {
    reader.emplace(op, calls.blocks(), row.cost.bytes);
    rivals.push_back({[&](int) {
      const double t = reader->seconds();
      return reader->moved() > 0 ? t * row.cost.bytes / reader->moved() : 0.0;
    }});
  }
  if (options.over.op) {
    over.emplace(*options.over.op, options.over.args, options.over.threads, options.rotate, options.device);
    over->first();
    rivals.push_back({[&](int n) { return over->seconds(n); }});
  }
  std::vector<size_t> of_peer;
  for (Peer* p : options.peers) {
    const bool there = p->prepare(op, c, row.threads);
    of_peer.push_back(there ? rivals.size() : 0);
    if (there) rivals.push_back({[p](int n) { return p->seconds(n); }});
    row.peers.push_back({p->name(), 0, 0});
    if (!there) of_peer.back() = SIZE_MAX;
  }
  row.samples = time_on_host(calls, options, row, rivals);
  const auto set = [&](size_t i, PeerTime& to) {
    to.median_s = median_of(rivals[i].times);
    to.ratio = median_of(rivals[i].ratios);
  };
  size_t i = 0;
  if (reader) {
    PeerTime read;
    set(i++, read);
    row.read_bandwidth = read.median_s > 0 ? row.cost.bytes / read.median_s : 0;
    row.share_of_read = read.ratio;
  }
  if (over) set(i++, row.over);
  for (size_t p = 0; p < of_peer.size(); ++p)
    if (of_peer[p] != SIZE_MAX) set(of_peer[p], row.peers[p]);
}

}  // namespace flashinfer::bench
