// SPDX-License-Identifier: Apache-2.0
// Work lists and index arrays of plans on a device: made at the first run there, kept until the next plan().
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "flashinfer/core/cuda/device.h"
#include "flashinfer/ops/attention/cuda/graph.h"
#include "flashinfer/ops/attention/cuda/launch.h"
#include "flashinfer/ops/attention/run.h"

namespace flashinfer::attention {

/// What the arrays on a device were made of. A plan's arrays are replaced, never changed in place; plans of a list that
/// was read from a dump share owners.
struct Source {
  std::weak_ptr<void> lengths, mask;
  const void* first_length;
  int64_t requests;
  Device device;
  int group;
  bool alibi, cores;  // forward() may choose another pos_encoding_mode
  std::array<Part, 2> kinds;

  bool operator==(const Source& o) const {
    const auto same = [](const auto& x, const auto& y) { return !x.owner_before(y) && !y.owner_before(x); };
    const auto same_kernels = [](const Part& x, const Part& y) { return x.config == y.config && x.cores == y.cores; };
    return same(lengths, o.lengths) && same(mask, o.mask) && first_length == o.first_length && requests == o.requests &&
           device == o.device && group == o.group && alibi == o.alibi && cores == o.cores &&
           std::equal(kinds.begin(), kinds.end(), o.kinds.begin(), same_kernels);
  }
};

/// Arrays of a plan in one piece of device memory, which is filled at the first run.
struct OnDevice {
  Source source;
  Device device;
  bool cores = false;
  std::vector<Part> parts;
  std::vector<cuda::AttentionWorkList> lists;  // of the parts, until they are sent
  std::once_flag sent;
  Tensor memory;
  std::unique_ptr<cuda::Event> filled;  // cuda: behind the copy into `memory`
  std::atomic<bool> seen_filled = false;
  int64_t qo_indptr = -1, kv_indptr = -1, kv_indices = -1, kv_len = -1, mask_bits = -1, mask_indptr = -1,
          prefix_len = -1, token_pos = -1, slopes = -1;

  template <class T>
  const T* at(int64_t offset) const {
    return offset < 0 ? nullptr : reinterpret_cast<const T*>(memory.data_as<char>() + offset);
  }
};

/// The arrays of a plan, new or kept; `cores`: for the kernel without tensor cores.
std::shared_ptr<OnDevice> arrays_of(const Plan& p, const AttentionParams& a, bool cores, Device device);
/// Sends them at the first call, in the order of the current stream.
void send_once(const Plan& p, OnDevice& d);
/// What is enqueued on `stream` from now on finds them there. While it is captured, the host waits: a graph knows
/// nothing of the stream that they were sent on, beside the capture.
void wait_until_sent(OnDevice& d, cuda::Handle stream);

}  // namespace flashinfer::attention
