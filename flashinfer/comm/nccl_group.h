// SPDX-License-Identifier: Apache-2.0
// The GPUs of a group's ranks, one each, with NCCL between them.
//
// Calls are enqueued on a stream and return at once, as NCCL's own; synchronize() waits for them. Nothing waits without
// an end: a rank that dies or abandons a call, an error that NCCL reports, or FLASHINFER_COMM_TIMEOUT_S seconds end
// every wait with a RuntimeError that names the group, the rank and the reason. The communicator is then aborted, and
// stays failed. A thread looks for such ranks too, so that what waits for them on the GPU ends although the host does
// not wait for it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flashinfer/comm/group.h"
#include "flashinfer/comm/nccl.h"
#include "flashinfer/comm/rank_watch.h"

namespace flashinfer::comm {

class NcclGroup {
 public:
  using Stream = cuda::Handle;
  /// Collective: makes the communicator, its id sent through the group. Rank r's GPU is its `device`; the emulator is
  /// for tests, with a library that moves bytes of the host. RuntimeError on every rank: one of them has no NCCL or no
  /// such GPU, another version of NCCL, or does not come in time.
  static std::shared_ptr<NcclGroup> connect(std::shared_ptr<Group> group, Device device);
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  const Group& group() const { return *group_; }
  int rank() const { return group_->rank(); }
  int size() const { return group_->size(); }
  Device device() const { return device_; }

  /// Collective; pointers are to device memory, `stream` is of this rank's device. out[r] = rank r's in, `bytes` each.
  void all_gather(const void* in, void* out, size_t bytes, Stream stream);
  /// out[r] of this rank = rank r's in[this rank], `bytes` each: grouped sends and receives.
  void all_to_all(const void* in, void* out, size_t bytes, Stream stream);
  /// `bytes` at `at` of this process's memory, for or from `rank`.
  struct Part {
    int rank;
    void* at;
    size_t bytes;
  };
  /// Each rank's parts for the others, and those that it gets; all at once. Sizes agree between sender and receiver.
  void exchange(std::span<const Part> sends, std::span<const Part> receives, Stream stream);
  /// NCCL's own sums of `count` elements: the order of the ranks, and so the last bit, is NCCL's choice.
  void all_reduce(const void* in, void* out, size_t count, DType dtype, Stream stream);
  /// out = elements [rank * count, (rank + 1) * count) of the sum.
  void reduce_scatter(const void* in, void* out, size_t count, DType dtype, Stream stream);

  /// Registers memory of cuMemCreate or ncclMemAlloc that has the same size on all ranks, so that NCCL reads and writes
  /// it directly. Collective. False: this NCCL has no windows (before 2.27), and copies.
  bool register_memory(void* memory, size_t bytes);

  /// Returns when what was enqueued on the stream has run.
  void synchronize(Stream stream);
  /// Collective calls that this rank has begun.
  int64_t calls() const { return calls_; }

  /// This rank has met an error in a call that the others make or will make: its communicator is aborted, and the
  /// others' too, with the reason. (Ranks of other machines learn from NCCL that this one is gone.) Never throws.
  void abandon(const std::string& reason) noexcept;

 private:
  NcclGroup(std::shared_ptr<Group> group, Device device);
  void init();
  /// A call of this thread: the communicator is its own, and usable.
  std::unique_lock<std::mutex> begin(const char* what);
  /// Waits until NCCL has taken the last call.
  void settle(const char* what, nccl::Result result);
  /// settle() for a call that writes `bytes` at `out`.
  void settle_into(const char* what, nccl::Result result, void* out, size_t bytes);
  /// Why a rank is gone, or empty.
  std::string why_gone() const;
  std::string text_of(nccl::Result result) const;
  void abort(const std::string& reason);
  [[noreturn]] void fail(const char* what, const std::string& reason);
  void look();

  std::shared_ptr<Group> group_;
  Device device_;
  int process_;
  std::mutex mutex_{};  // of all below
  cuda::Handle comm_ = nullptr;
  std::vector<cuda::Handle> windows_{};
  int64_t calls_ = 0;
  std::string failed_{};
  RankWatch watch_;  // last: its thread uses the others
};

}  // namespace flashinfer::comm
