// SPDX-License-Identifier: Apache-2.0
// Latent attention on the emulator beyond the case tables: plans from arrays on the device, rows that do not depend on
// their batch, the tiles of other GPUs.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "../ops/errors.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/jit/emulator.h"
#include "flashinfer/jit/targets.h"
#include "flashinfer/ops/mla/dense.h"
#include "flashinfer/ops/mla/kernels/params.h"
#include "flashinfer/ops/mla/op.h"

namespace flashinfer {
namespace {

constexpr Device kEmu{DeviceType::kEmu, 0};
constexpr int64_t kHeads = 16, kCkv = 512, kKpe = 64, kPage = 16, kPages = 60;

Tensor indices(const std::vector<int32_t>& v) {
  return Tensor::copy_of(std::span<const int32_t>(v), {static_cast<int64_t>(v.size())});
}
Tensor values(std::initializer_list<int64_t> shape, int step) {
  Tensor t = Tensor::empty(shape, DType::kBF16);
  int n = 0;
  for (bf16_t& x : t.span<bf16_t>()) x = bf16_t(static_cast<float>((n += step) % 61) / 30.0f - 1.0f);
  return t;
}

/// Requests of `tokens` query tokens over `keys` keys, on pages in a scattered order.
struct Batch {
  std::vector<int32_t> tokens, keys;
  std::vector<int32_t> first_row, first_page;  // of the large batch, which small ones are parts of

  BatchMlaPlan plan(Device device, std::vector<Tensor>& kept) const {
    std::vector<int32_t> qo{0}, kv{0}, ids;
    for (size_t b = 0; b < tokens.size(); ++b) {
      qo.push_back(qo.back() + tokens[b]);
      const auto pages = static_cast<int32_t>(ceil_div(keys[b], kPage));
      kv.push_back(kv.back() + pages);
      for (int32_t i = 0; i < pages; ++i) ids.push_back((first_page[b] + i) * 7 % kPages);
    }
    for (const std::vector<int32_t>& v : {qo, kv, ids, keys}) kept.push_back(to_device(indices(v).view(), device));
    const size_t n = kept.size();
    return {.qo_indptr = kept[n - 4].view(),
            .kv_indptr = kept[n - 3].view(),
            .kv_indices = kept[n - 2].view(),
            .kv_len_arr = kept[n - 1].view(),
            .num_heads = kHeads,
            .head_dim_ckv = kCkv,
            .head_dim_kpe = kKpe,
            .page_size = kPage,
            .causal = true,
            .sm_scale = 0.07,
            .q_data_type = DType::kBF16,
            .kv_data_type = DType::kBF16};
  }
};
/// Few rows cut into chunks, none, 32 rows, 48 rows cut into chunks.
const Batch kBatch{{1, 1, 2, 3}, {300, 0, 33, 530}, {0, 1, 2, 4}, {0, 19, 19, 22}};

class Mla : public testing::Test {
 protected:
  Tensor run(const Batch& batch, Device device, int64_t first_row = 0) {
    std::vector<Tensor> kept;
    BatchMLAPagedAttentionWrapper w;
    w.plan(batch.plan(kCpu, kept));
    return run(w, batch, device, first_row);
  }
  Tensor run(BatchMLAPagedAttentionWrapper& w, const Batch& batch, Device device, int64_t first_row = 0) {
    int64_t rows = 0;
    for (const int32_t n : batch.tokens) rows += n;
    const Tensor nope = to_device(q_nope_.view().slice(0, first_row, first_row + rows), device),
                 pe = to_device(q_pe_.view().slice(0, first_row, first_row + rows), device),
                 ckv = to_device(ckv_.view(), device), kpe = to_device(kpe_.view(), device);
    const Tensor out = w.run({.q_nope = nope, .q_pe = pe, .ckv_cache = ckv, .kpe_cache = kpe});
    EXPECT_EQ(out.device(), device);
    return to_device(out.view(), kCpu);
  }
  static void expect_near(const Tensor& got, const Tensor& want) {
    const auto x = got.span<bf16_t>(), y = want.span<bf16_t>();
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(static_cast<float>(x[i]), static_cast<float>(y[i]), 0.01f) << "element " << i;
  }
  static void expect_bits(const TensorView& got, const TensorView& want) {
    ASSERT_EQ(got.nbytes(), want.nbytes());
    EXPECT_EQ(std::memcmp(got.data(), want.data(), static_cast<size_t>(want.nbytes())), 0);
  }
  Tensor q_nope_ = values({7, kHeads, kCkv}, 7), q_pe_ = values({7, kHeads, kKpe}, 11),
         ckv_ = values({kPages, kPage, kCkv}, 13), kpe_ = values({kPages, kPage, kKpe}, 17);
};

TEST_F(Mla, PlansFromArraysOnTheDevice) {
  const Tensor host = run(kBatch, kEmu);
  expect_near(host, run(kBatch, kCpu));
  std::vector<Tensor> kept;
  BatchMlaPlan arguments = kBatch.plan(kEmu, kept);
  BatchMLAPagedAttentionWrapper csr, metadata;
  csr.plan(arguments);
  expect_bits(run(csr, kBatch, kEmu).view(), host.view());
  op::DictValue dict;
  for (const auto& [name, member] :
       {std::pair("qo_indptr", &BatchMlaPlan::qo_indptr), std::pair("kv_indptr", &BatchMlaPlan::kv_indptr),
        std::pair("kv_indices", &BatchMlaPlan::kv_indices), std::pair("kv_len_arr", &BatchMlaPlan::kv_len_arr)}) {
    dict.items.emplace_back(op::Value(std::string(name)), op::Value(*(arguments.*member)));
    (arguments.*member).reset();
  }
  arguments.metadata = op::Value(std::move(dict));
  metadata.plan(arguments);
  expect_bits(run(metadata, kBatch, kEmu).view(), host.view());
}

TEST_F(Mla, ARowDoesNotDependOnItsBatch) {
  const Tensor all = run(kBatch, kEmu);
  for (const size_t b : {0, 2, 3}) {  // the third has tiles of 64 rows in the batch, of 32 alone
    SCOPED_TRACE(b);
    const Batch alone{{kBatch.tokens[b]}, {kBatch.keys[b]}, {0}, {kBatch.first_page[b]}};
    const int64_t first = kBatch.first_row[b];
    expect_bits(run(alone, kEmu, first).view(), all.view().slice(0, first, first + kBatch.tokens[b]));
  }
}

TEST_F(Mla, TilesOfOtherGpus) {
  const Tensor want = run(kBatch, kCpu);
  for (const int arch : {75, 80, 89, 120}) {  // without tensor cores; as 90; 99 KB of shared memory
    SCOPED_TRACE(arch);
    const jit::EmulatedArch emulated(arch);
    expect_near(run(kBatch, kEmu), want);
  }
}

/// Buffers on the device: a run that was prepared once, as a captured one, reads what later plans write.
struct Buffers {
  Tensor qo = to_device(Tensor::zeros({5}, DType::kI32).view(), kEmu),
         kv = to_device(Tensor::zeros({5}, DType::kI32).view(), kEmu),
         ids = to_device(Tensor::zeros({kPages}, DType::kI32).view(), kEmu),
         len = to_device(Tensor::zeros({4}, DType::kI32).view(), kEmu), workspace = Tensor::empty({0}, DType::kU8);
  BatchMlaInit init() const {
    return {.float_workspace_buffer = workspace,
            .use_cuda_graph = true,
            .qo_indptr = qo,
            .kv_indptr = kv,
            .kv_indices = ids,
            .kv_len_arr = len};
  }
};
const Batch kShorter{{1, 0, 2, 2}, {20, 0, 470, 33}, {0, 1, 1, 3}, {3, 5, 5, 36}};

TEST_F(Mla, GraphsFollowLaterPlans) {
  const Buffers buffers;
  BatchMLAPagedAttentionWrapper w(buffers.init());
  std::vector<Tensor> kept;
  std::vector<unsigned> grids;  // of the first plan's launches, which a graph would repeat
  for (const Batch* batch : {&kBatch, &kShorter, &kBatch}) {
    w.plan(batch->plan(kCpu, kept));
    std::vector<unsigned> now;
    Tensor got;
    {
      const jit::Emulation emulation(0);
      got = run(w, *batch, kEmu);
      for (const jit::EmulatedLaunch& l : emulation.launches()) now.push_back(l.launch.grid[0]);
    }
    if (grids.empty()) grids = now;
    EXPECT_EQ(now, grids);
    expect_bits(got.view(), run(*batch, kEmu).view());
  }
  EXPECT_EQ(to_device(buffers.qo.view(), kCpu).data_as<int32_t>()[4], 7);
}

TEST_F(Mla, GraphsRefuseWhatTheyCannotFollow) {
  const Buffers buffers;
  BatchMLAPagedAttentionWrapper w(buffers.init());
  std::vector<Tensor> kept;
  w.plan(kShorter.plan(kCpu, kept));
  expect_error(ErrorKind::kValueError, "the batch has 7 query rows, but in the first plan() 5",
               [&] { w.plan(kBatch.plan(kCpu, kept)); });
  const Batch longer{{3, 0, 1, 1}, kShorter.keys, {}, kShorter.first_page};
  expect_error(ErrorKind::kValueError, "a request has 3 query rows, but in the first plan() 2",
               [&] { w.plan(longer.plan(kCpu, kept)); });
  BatchMlaPlan other = kShorter.plan(kCpu, kept);
  other.sm_scale = 0.5;
  expect_error(ErrorKind::kValueError, "sm_scale is 0.5, but the first plan() had 0.07", [&] { w.plan(other); });
  EXPECT_EQ(to_device(buffers.qo.view(), kCpu).data_as<int32_t>()[4], 5);
}

/// A cache of packed rows, and what its rows are in bf16. Rows that no list names are NaN.
struct PackedCache {
  static constexpr int64_t kTokens = 120;
  Tensor packed = Tensor::empty({kTokens, 1, mla::kPackedRow}, DType::kU8),
         plain = Tensor::empty({kTokens, 1, kCkv + kKpe}, DType::kBF16);
  PackedCache() {
    for (int64_t t = 0; t < kTokens; ++t) {
      auto* row = packed.data_as<uint8_t>() + t * mla::kPackedRow;
      auto* to = plain.data_as<bf16_t>() + t * (kCkv + kKpe);
      for (int64_t d = 0; d < kCkv; ++d) {
        row[d] = static_cast<uint8_t>(t % 3 == 2 ? 0x7f : ((t * 31 + d * 7) % 127) | (d % 2) << 7);
        e4m3_t code;
        code.bits = row[d];
        const float scale = 0.0015f * static_cast<float>(1 + (t + d / 128) % 5);
        std::memcpy(row + kCkv + d / 128 * 4, &scale, 4);
        to[d] = bf16_t(static_cast<float>(code) * scale);
      }
      for (int64_t d = 0; d < kKpe; ++d) to[kCkv + d] = bf16_t(static_cast<float>((t * 5 + d) % 9) / 8 - 0.5f);
      std::memcpy(row + mla::kPackedRow - 2 * kKpe, to + kCkv, 2 * kKpe);
    }
  }
};

/// Widened in shared memory, packed rows give the bits of rows that were bf16 in memory.
TEST_F(Mla, PackedRowsGiveTheBitsOfPlainOnes) {
  const PackedCache cache;
  constexpr int64_t kTop = 70;
  Tensor lists = Tensor::empty({7, kTop}, DType::kI32), query = Tensor::empty({7, kHeads, kCkv + kKpe}, DType::kBF16);
  int n = 0;
  for (bf16_t& x : query.span<bf16_t>()) x = bf16_t(static_cast<float>((n += 7) % 61) / 30.0f - 1.0f);
  n = 0;
  for (int32_t& id : lists.span<int32_t>()) {  // tokens in any order, absent ones between
    id = n % 11 == 10 ? -1 : n * 17 % PackedCache::kTokens;
    if (id % 3 == 2) --id;
    ++n;
  }
  const Tensor rows = indices({0, 1, 1, 7}), lengths = indices({120, 0, 120}),
               used = indices({70, 1, 33, 32, 0, 64, 65});
  const auto run = [&](const Tensor& kv, DType q, Device device) {
    Tensor typed = Tensor::empty(query.shape(), q);
    for (int64_t i = 0; i < query.numel(); ++i) {
      const float x = static_cast<float>(query.data_as<bf16_t>()[i]);
      q == DType::kBF16 ? void(typed.data_as<bf16_t>()[i] = bf16_t(x)) : void(typed.data_as<f16_t>()[i] = f16_t(x));
    }
    const Tensor on_q = to_device(typed, device), on_kv = to_device(kv, device), on_lists = to_device(lists, device),
                 on_rows = to_device(rows, device), on_lengths = to_device(lengths, device),
                 on_used = to_device(used, device);
    const Tensor out = trtllm_batch_decode_with_kv_cache_mla({.query = on_q,
                                                              .kv_cache = on_kv,
                                                              .kv_lora_rank = kCkv,
                                                              .qk_rope_head_dim = kKpe,
                                                              .block_tables = on_lists,
                                                              .seq_lens = on_lengths,
                                                              .sparse_mla_top_k = kTop,
                                                              .bmm1_scale = 0.05,
                                                              .cum_seq_lens_q = on_rows,
                                                              .sparse_mla_top_k_lens = on_used})[0];
    return to_device(out, kCpu);
  };
  for (const int arch : {75, 80, 90, 120}) {
    SCOPED_TRACE(arch);
    const jit::EmulatedArch emulated(arch);
    for (const DType q : {DType::kBF16, DType::kF16}) {  // f16 without tensor cores
      const Tensor got = run(cache.packed, q, kEmu);
      expect_bits(got.view(), run(cache.plain, q, kEmu).view());
      if (q == DType::kBF16) expect_near(got, run(cache.packed, q, kCpu));
    }
  }
  const Tensor longer = Tensor::zeros({PackedCache::kTokens, 1, mla::kPackedRow + 1}, DType::kU8);
  expect_error(ErrorKind::kNotImplementedError, "packed rows must begin at 4 bytes", [&] {
    const Tensor q = to_device(query, kEmu), kv = to_device(longer, kEmu), on_lists = to_device(lists, kEmu),
                 on_rows = to_device(rows, kEmu), on_lengths = to_device(lengths, kEmu),
                 on_used = to_device(used, kEmu);
    trtllm_batch_decode_with_kv_cache_mla(
        {.query = q,
         .kv_cache = TensorView(kv.data_as<uint8_t>() + 1, DType::kU8,
                                std::array<int64_t, 3>{PackedCache::kTokens, 1, mla::kPackedRow},
                                std::array<int64_t, 3>{mla::kPackedRow + 1, mla::kPackedRow, 1}, kEmu),
         .kv_lora_rank = kCkv,
         .qk_rope_head_dim = kKpe,
         .block_tables = on_lists,
         .seq_lens = on_lengths,
         .sparse_mla_top_k = kTop,
         .cum_seq_lens_q = on_rows,
         .sparse_mla_top_k_lens = on_used});
  });
}

}  // namespace
}  // namespace flashinfer
