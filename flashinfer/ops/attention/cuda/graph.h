// SPDX-License-Identifier: Apache-2.0
// Plans of use_cuda_graph=True on GPUs: what a captured run() reads is at fixed addresses, and plan() rewrites it.
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/attention/cuda/launch.h"
#include "flashinfer/ops/attention/run.h"

namespace flashinfer::attention {

/// One of the two kinds of work (few and many rows a request), on the device.
struct Part {
  bool few = false;
  AttentionCudaConfig config{};
  AttentionCoresConfig cores{};
  int tile_rows = 0;           // at most
  size_t tiles = 0, cuts = 0;  // in a graph the most that any plan may need: the grid; those that are over have no rows
  uint32_t tiles_a_head = 0;   // AttentionCudaParams::tiles_a_head
  int64_t partial_rows = 0;
  int64_t tiles_at = 0, counters_at = -1;  // bytes into the arrays; counters < 0: of the stream (cuda/arrays.h)
};

/// Offsets of arrays whose sizes are known beforehand.
struct Layout {
  size_t bytes = 0;
  int64_t add(size_t n) {
    const size_t at = round_up(bytes, 16);
    bytes = at + n;
    return static_cast<int64_t>(at);
  }
};

/// What a captured run launches: tiles for requests of few and of many rows, where their keys are cut, and the most
/// work that a batch can make. `most`: packed rows of a request.
struct GraphKernels {
  bool cores;
  std::array<Part, 2> kinds;
  int64_t most;
  cuda::ChunkOf chunk_of;
  cuda::BoundOf bound_of;
};

/// Made by the first plan() of a wrapper whose buffers are on a device, and shared by its later plans.
struct GraphArrays {
  Device device;
  bool cores = false;  // without tensor cores
  cuda::ChunkOf chunk_of = cuda::attention_chunk;
  Tensor memory;   // our own arrays; page ids and mask bits are read from the caller's buffers
  Tensor partial;  // f32
  int64_t qo_indptr = -1, kv_indptr = -1, kv_indices = -1, kv_len = -1, mask_indptr = -1, slopes = -1, prefix_len = -1,
          token_pos = -1;
  int64_t token_pos_len = 0;  // of a row of token_pos: the first plan's
  Tensor rope;  // cosines and sines of positions [rope_first, rope_end), as far as plans have asked for them
  int64_t rope_first = 0, rope_end = 0;
  std::shared_ptr<const RopeTable> rope_of;  // whose values are there
  const int32_t* pages_of_caller = nullptr;  // kv_indices, when the caller's buffer is int32
  const uint8_t* mask_of_caller = nullptr;
  std::vector<Part> parts;
  int64_t max_keys = 0;                    // ragged: rows of K and V
  mutable std::atomic<int64_t> pages{-1};  // of the pool that run() was given
  std::shared_ptr<const Plan> latest;      // its arrays are the device's, unless these were made there
  bool lengths_on_device = false;          // plan_on_device() came after `latest`

  template <class T>
  T* at_mutable(int64_t offset) const {
    return offset < 0 ? nullptr : reinterpret_cast<T*>(memory.data_as<char>() + offset);
  }
  template <class T>
  const T* at(int64_t offset) const {
    return at_mutable<const T>(offset);
  }
};

/// For the end of plan() with use_cuda_graph=True; does nothing when the buffers are in host memory. ValueError for
/// what a captured run cannot follow: other heads, types, scales, masks than the first plan's, more rows or keys.
void plan_graph(Plan& p);
/// The same for kernels of another family, which has made its own checks; `kernels` are those of the first plan.
void plan_graph(Plan& p, const GraphKernels& kernels);
/// The device of the buffers. ValueError when they are on several.
Device device_of(const GraphBuffers& b);
/// ValueError when what a captured launch holds is not that of the first plan().
template <class T>
void same(const char* what, const T& now, const T& then) {
  FI_CHECK(now == then, ValueError, what, " is ", now, ", but the first plan() had ", then,
           ", and with use_cuda_graph=True it may not change: the captured kernel was given");
}

/// Copies host memory to `device`, in the order of the current stream; the host waits for none of its work, and may
/// reuse the memory at once.
void send_in_order(void* to, Device device, const void* from, size_t bytes);

/// While the current stream is captured, copies to the device go over a stream beside it, until the end of the scope;
/// what the graph is to read is kept for good. Without a capture it does nothing.
class BesideGraph {
 public:
  explicit BesideGraph(Device device);
  void keep(std::shared_ptr<const void> what) const;

 private:
  Context context_;
  std::optional<ContextScope> scope_;
};

// Of cuda/arrays.cc.
std::vector<cuda::AttentionShape> shapes_of(const Plan& p);
int group_of(const Plan& p);
/// The kernels' Configs for requests of few and of many rows, `most` packed rows at most.
/// `pair`: for one launch of both.
std::array<Part, 2> kinds_of(const Plan& p, const AttentionParams& a, bool cores, int64_t most, Device device,
                             bool pair = false);
/// Element types as the kernels of GPUs read them: 8-bit queries as they are.
AttentionConfig cuda_config(const Plan& p);
/// Why tensor cores do not run a plan, whatever its tensors; empty when they do.
std::string plan_refusal(const Plan& p, const AttentionParams& a, Device device);
/// For the kernels on tensor cores.
cuda::AttentionLimits limits_of(const Plan& p, Device device);
/// f32 values of a partial row: its output and its state.
int64_t partial_width(const Plan& p);
/// Of `states` of them, with what the next ones need to begin at 128 bytes.
inline int64_t partial_floats(const Plan& p, int64_t states) {
  return round_up(states * partial_width(p), int64_t{32});
}

}  // namespace flashinfer::attention
