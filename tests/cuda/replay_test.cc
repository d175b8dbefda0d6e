// SPDX-License-Identifier: Apache-2.0
// Recordings made in host memory, replayed on cuda:0: over a driver whose addresses the host cannot follow.
#include <numeric>

#include "flashinfer/core/fs.h"
#include "flashinfer/ops/attention/api/decode.h"
#include "flashinfer/record/record.h"
#include "flashinfer/replay/replay.h"
#include "machine.h"

namespace flashinfer {
namespace {

using Replay = Machine;

Tensor indices(std::vector<int32_t> v) {
  return Tensor::copy_of(std::span<const int32_t>(v), {static_cast<int64_t>(v.size())});
}

/// The plan is restored from the recording and read by the host: it must not go where the tensors of the call go.
TEST_F(Replay, ARecordedPlanStaysWithTheHost) {
  const std::string folder = fs::make_temp_dir("/tmp", "flashinfer-cuda-test-");
  const record::Settings before = record::settings();
  record::Settings s = before;
  s.level = 10, s.destination = folder + "/log.txt", s.dump_dir = folder + "/dumps";
  record::configure(s);
  {
    const Tensor indptr = indices({0, 2, 5}), ids = indices({4, 0, 1, 3, 2}), last = indices({9, 16});
    const Tensor q = Tensor::zeros({2, 8, 64}, DType::kBF16), cache = Tensor::zeros({5, 2, 16, 2, 64}, DType::kBF16);
    const Tensor workspace = Tensor::zeros({0}, DType::kU8);
    BatchDecodeWithPagedKVCacheWrapper decode({.float_workspace_buffer = workspace.view()});
    decode.plan({.indptr = indptr,
                 .indices = ids,
                 .last_page_len = last,
                 .num_qo_heads = 8,
                 .num_kv_heads = 2,
                 .head_dim = 64,
                 .page_size = 16,
                 .q_data_type = DType::kBF16,
                 .data_type = DType::kBF16});
    decode.run({.q = q, .paged_kv_cache = op::PagedKv(cache.view())});
  }
  record::configure(before);
  replay::Options options;
  options.device = Device{DeviceType::kCUDA, 0};
  options.filter = "*.run";
  const replay::Report report = replay::replay(folder + "/dumps", options);
  fs::remove_tree(folder);
  EXPECT_EQ(report.passed() + report.failed(), 1u);
  EXPECT_EQ(gpu().launches.size(), 1u);
}

}  // namespace
}  // namespace flashinfer
