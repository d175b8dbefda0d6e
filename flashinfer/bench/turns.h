// SPDX-License-Identifier: Apache-2.0
// The calls of a row on the host, and what is timed in turns with them.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "flashinfer/bench/bench.h"
#include "flashinfer/core/context.h"

namespace flashinfer::bench {

/// Rows that move less are over before the memory matters.
inline constexpr double kLeastBytesInTurns = 16 << 20;

/// Calls of a row, on threads and on copies of its inputs that take turns.
class Calls {
 public:
  /// Threads 0: those of the current context. `rotate`: Options::rotate.
  Calls(const op::Op& op, std::string_view args, int threads, int64_t rotate, Device device);
  /// Compiles; afterwards all outputs have memory.
  void first();
  double seconds();
  /// The median of `calls`.
  double seconds(int calls);

  cases::Built& block() { return *blocks_[0]; }
  std::vector<cases::Built*> blocks();
  const Context& context() const { return context_; }

 private:
  const op::Op& op_;
  std::shared_ptr<const Executor> pool_;
  Context context_;
  std::vector<std::unique_ptr<cases::Built>> blocks_;
  std::vector<cases::Outputs> outputs_;
  size_t next_ = 0;
};

/// Times the calls into `row`, whose cost is known, in turns with a copy of as many bytes where the row has many, and
/// with all that the options name.
void time_in_turns(const op::Op& op, const op::Case& c, Calls& calls, const Options& options, Row& row);

}  // namespace flashinfer::bench
