// SPDX-License-Identifier: Apache-2.0
// One layer's worth of calls on made-up data: norm, projection with a packed weight, decode over a paged KV cache. Then
// the same step once more under the flight recorder: `flashinfer replay --dir example_dumps` runs it again.
#include <flashinfer/flashinfer.h>
#include <flashinfer/record/record.h>

#include <cstdio>
#include <vector>

using namespace flashinfer;

int main() try {
  constexpr int64_t kBatch = 2, kHidden = 256, kHeads = 4, kKvHeads = 2, kDim = 64, kPageSize = 16, kPages = 8;
  const auto filled = [](std::initializer_list<int64_t> shape, float step) {
    Tensor t = Tensor::empty(shape, DType::kBF16);
    for (int64_t i = 0; i < t.numel(); ++i) t.data_as<bf16_t>()[i] = bf16_t(static_cast<float>(i % 97) * step - 0.5f);
    return t;
  };
  const Tensor x = filled({kBatch, kHidden}, 0.01f), norm_weight = filled({kHidden}, 0.02f);
  const Tensor w = filled({kHidden, kHeads * kDim}, 0.001f),
               pool = filled({kPages, 2, kPageSize, kKvHeads, kDim}, 0.01f);
  const std::vector<int32_t> indptr{0, 3, 5}, pages{4, 1, 0, 7, 3}, last_page_len{5, 16};

  BatchDecodeWithPagedKVCacheWrapper decode;
  decode.plan({.indptr = std::span(indptr),
               .indices = std::span(pages),
               .last_page_len = std::span(last_page_len),
               .num_qo_heads = kHeads,
               .num_kv_heads = kKvHeads,
               .head_dim = kDim,
               .page_size = kPageSize,
               .q_data_type = DType::kBF16});
  const auto step = [&] {
    const Tensor normed = rmsnorm({.input = x, .weight = norm_weight, .eps = 1e-5});
    const Tensor q = mm_bf16({.a = normed, .b = w});
    const Tensor o = decode.run({.q = q.view().view({kBatch, kHeads, kDim}), .paged_kv_cache = pool});
    return static_cast<float>(o.data_as<bf16_t>()[0]);
  };
  const float once = step();

  record::Settings recording = record::settings();
  recording.level = 10;
  recording.destination = "example.log";
  recording.dump_dir = "example_dumps";
  record::configure(recording);
  const float again = step();
  const auto calls = static_cast<unsigned long long>(record::totals().calls);
  record::stop();
  std::printf("out[0][0][0] = %.4f, recorded %llu calls\n", once, calls);
  return once == again && calls == 3 ? 0 : 1;
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n", e.what());  // "ValueError: rmsnorm: weight.shape[0] is ..."
  return 1;
}
