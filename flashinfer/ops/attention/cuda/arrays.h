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
  int64_t requests, rows;  // rows: of q, which a run may choose
  Device device;
  int group;
  bool alibi, cores;  // forward() may choose another pos_encoding_mode
  std::array<Part, 2> kinds;
  cuda::ChunkOf chunk_of;
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

/// The arrays of a plan, new or kept; `cores`: for the kernel without tensor cores; `pair`: for tiles of few and of
/// many rows in one launch.
std::shared_ptr<OnDevice> arrays_of(const Plan& p, const AttentionParams& a, bool cores, Device device,
                                    bool pair = false);
/// The same with tiles of kinds[i].tile_rows rows for requests of few and of many rows, whose keys are cut by
/// `chunk_of`.
std::shared_ptr<OnDevice> arrays_of(const Plan& p, const std::array<Part, 2>& kinds, bool cores, Device device,
                                    cuda::ChunkOf chunk_of);
/// How many of them this process has made.
int64_t work_lists_made();
/// What is enqueued on the current stream from now on finds them on the device: they are sent at the first call, in the
/// order of its stream. While the stream is captured, the host waits: a graph knows nothing of the stream that they
/// were sent on, beside the capture.
void make_ready(const Plan& p, const std::shared_ptr<OnDevice>& d);
/// `words` words of `device` that are 0, which kernels on the current stream leave 0. Launches of one stream, which run
/// one after another, share them; a captured launch has words of its own for good.
Tensor counters_of(Device device, int64_t words);
/// They were allocated on the stream of the first run, and are freed after this one too.
void used_on_current_stream(const OnDevice& d);

/// The pointers of `d`, an OnDevice or GraphArrays.
template <class Arrays>
void point_at(AttentionParams& a, const Arrays& d) {
  a.qo_indptr = d.template at<int32_t>(d.qo_indptr), a.kv_indptr = d.template at<int32_t>(d.kv_indptr),
  a.kv_len = d.template at<int32_t>(d.kv_len);
  a.mask_indptr = d.template at<int64_t>(d.mask_indptr), a.alibi_slopes = d.template at<float>(d.slopes);
  a.prefix_len = d.template at<uint32_t>(d.prefix_len), a.token_pos = d.template at<uint16_t>(d.token_pos);
}
/// launch(i, part, partial, words) for each part of `d`, with its tiles and memory for partial results, which
/// `partial_of` gives, in `all`, and its counters, unless they are `words` of the stream (counters_of). `dvo`: columns
/// of a partial row.
template <class Arrays, class PartialOf, class Launch>
void for_parts(AttentionCudaParams& all, const Arrays& d, int64_t dvo, const PartialOf& partial_of,
               const Launch& launch) {
  AttentionParams& a = all.a;
  all.group = static_cast<uint32_t>(a.num_qo_heads / a.num_kv_heads);
  for (size_t i = 0; i < d.parts.size(); ++i) {
    const Part& part = d.parts[i];
    const int64_t heads = a.num_kv_heads, states = part.partial_rows * heads;
    const Tensor partial = states ? partial_of(states) : Tensor();
    if (states) a.partial_o = partial.template data_as<float>(), a.softmax_state = a.partial_o + states * dvo;
    all.tiles = d.template at<AttentionTile>(part.tiles_at), all.tiles_a_head = part.tiles_a_head;
    all.counters = const_cast<uint32_t*>(d.template at<uint32_t>(part.counters_at));
    launch(i, part, partial, part.counters_at < 0 ? static_cast<int64_t>(part.cuts) * heads : 0);
  }
}

}  // namespace flashinfer::attention
