// SPDX-License-Identifier: Apache-2.0
// Content that is stored once, pools of which only the used pages are stored, workspaces.
#include "tests/record/probe.h"

namespace flashinfer::probe {
namespace {

using formats::Json;

TEST_F(RecordTest, OneUnchangedTensorIsStoredOnce) {
  auto s = recording(folder);
  s.dedup = true;
  record::configure(s);
  const auto weight = ramp(1 << 20);  // 4 MB
  std::vector<float> out(1 << 20);
  for (int i = 0; i < 50; ++i)
    call({.x = TensorView(weight.data(), {1 << 20}), .out = TensorView(out.data(), {1 << 20})});
  const uint64_t tensors = bytes_under(folder / "dumps", [](const std::string& n) { return n.ends_with(".pack"); });
  const uint64_t metadata = bytes_under(folder / "dumps", [](const std::string& n) { return !n.ends_with(".pack"); });
  const double unique = 4.0 * (1 << 20) + 65536;  // x; the result equals it; one chunk of zeros
  EXPECT_LE(static_cast<double>(tensors), 1.05 * unique);
  EXPECT_LE(metadata, 50u * 16384);
  const auto dump = dumps(folder / "dumps").at(49);
  const auto in = formats::read_chunks(dump / "inputs.chunks"), after = formats::read_chunks(dump / "outputs.chunks");
  EXPECT_EQ(std::memcmp(in[0].tensor.data(), weight.data(), 4 << 20), 0);
  EXPECT_EQ(std::memcmp(after[0].tensor.data(), weight.data(), 4 << 20), 0);
}

TEST_F(RecordTest, AChangedPageCostsThatPage) {
  auto s = recording(folder);
  s.dedup = true;
  s.pages = record::Settings::Pages::kFull;
  record::configure(s);
  const auto x = ramp(4);
  auto pool = ramp(256 * 4096);  // 256 pages of 16 KB
  std::vector<int32_t> page = {200};
  const op::PagedKv kv(TensorView(pool.data(), {256, 4096}));
  const Probe probe{.x = TensorView(x.data(), {4}), .kv_indices = TensorView(page.data(), {1}), .pool = kv};
  const auto packs = [&] {
    return bytes_under(folder / "dumps", [](const std::string& n) { return n.ends_with(".pack"); });
  };
  call(probe);
  const uint64_t first = packs();
  EXPECT_GT(first, 256u * 16384);
  page[0] = 7;
  call(probe);
  EXPECT_LT(packs() - first, 2u * 16384 + 4 * 5000);  // the page before is known, the page after is new, and its nodes
  const auto after = formats::read_chunks(dumps(folder / "dumps").at(1) / "outputs.chunks");
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[1].key, "after__kwarg_pool");
  EXPECT_EQ(after[1].tensor.data_as<float>()[7 * 4096 + 5], 1.0f);
  EXPECT_EQ(after[1].tensor.data_as<float>()[8 * 4096], 8.0f * 4096);
}

TEST_F(RecordTest, OnlyUsedPagesAreStored) {
  for (const bool dedup : {false, true}) {
    Folder here;
    auto s = recording(here);
    s.dedup = dedup;
    s.pages = dedup ? record::Settings::Pages::kDefault : record::Settings::Pages::kUsed;
    record::configure(s);
    const auto x = ramp(4);
    auto k = ramp(1000 * 64), v = ramp(1000 * 64);
    std::vector<int32_t> pages = {700, 3, 3, 5000};  // what lies outside the pool names nothing
    call({.x = TensorView(x.data(), {4}),
          .kv_indices = TensorView(pages.data(), {4}),
          .pool = op::PagedKv(TensorView(k.data(), {1000, 64}), TensorView(v.data(), {1000, 64}))});
    const auto dump = dumps(here / "dumps").at(0);
    const auto in = dedup ? formats::read_chunks(dump / "inputs.chunks") : formats::read_pt(dump / "inputs.pt");
    std::vector<std::string> keys;
    for (const auto& t : in) keys.push_back(t.key);
    EXPECT_EQ(keys, (std::vector<std::string>{"arg_0", "kwarg_kv_indices", "kwarg_pool__0", "kwarg_pool__0__pages",
                                              "kwarg_pool__1", "kwarg_pool__1__pages"}));
    EXPECT_EQ(in[2].tensor.size(0), 2);
    EXPECT_EQ(in[2].tensor.data_as<float>()[64], 700.0f * 64);
    EXPECT_EQ(in[3].tensor.data_as<int64_t>()[0], 3);
    EXPECT_EQ(in[3].tensor.data_as<int64_t>()[1], 700);
    const Json d = lines(dump / "metadata.jsonl").at(0)["tensor_details"]["kwarg_pool__0"];
    EXPECT_EQ(d["shape"].dump(), "[1000,64]");
    EXPECT_EQ(d["stored"], "pages");
    const auto out = dedup ? formats::read_chunks(dump / "outputs.chunks") : formats::read_pt(dump / "outputs.pt");
    ASSERT_EQ(out.size(), 5u);
    EXPECT_EQ(out[1].key, "after__kwarg_pool__0");
    EXPECT_EQ(out[1].tensor.data_as<float>()[64], 1.0f);  // the kernel filled page 700
  }
}

TEST_F(RecordTest, AWorkspaceIsOnlyDescribed) {
  record::configure(recording(folder));
  const auto x = ramp(4);
  std::vector<uint8_t> workspace(1 << 20);
  call({.x = TensorView(x.data(), {4}), .workspace = TensorView(workspace.data(), {1 << 20})});
  const auto dump = dumps(folder / "dumps").at(0);
  EXPECT_EQ(formats::read_pt(dump / "inputs.pt").size(), 1u);
  const Json r = lines(dump / "metadata.jsonl").at(0);
  EXPECT_EQ(r["tensor_details"]["kwarg_workspace"]["stored"], "description");
  EXPECT_EQ(r["tensor_details"]["kwarg_workspace"]["shape"].dump(), "[1048576]");
  EXPECT_EQ(r["tensor_info"]["input_tensor_keys"].dump(), R"(["arg_0"])");
}

TEST_F(RecordTest, ARingWithDedupLetsPacksGo) {
  auto s = recording(folder);
  s.keep_last = true;
  s.dedup = true;
  s.max_size_gb = 8.0 * (1 << 20) / (1 << 30);
  record::configure(s);
  std::vector<float> x(1 << 18);  // 1 MB, new content each time
  std::vector<float> out(1 << 18);
  for (int i = 0; i < 40; ++i) {
    for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(i * 1000) + static_cast<float>(k % 977) * 0.125f;
    call({.x = TensorView(x.data(), {1 << 18}),
          .alpha = static_cast<double>(i + 2),
          .out = TensorView(out.data(), {1 << 18})});
  }
  EXPECT_LE(bytes_under(folder / "dumps/chunks", [](const std::string&) { return true; }), 8u << 20);
  const auto all = dumps(folder / "dumps");
  ASSERT_GE(all.size(), 2u);
  const auto last = lines(all.back() / "metadata.jsonl").back();
  EXPECT_EQ(last["input_metadata"]["kwarg_alpha"], 41.0);
  for (const auto& d : all)
    EXPECT_NO_THROW(formats::read_chunks(d / "inputs.chunks")) << d;  // nothing they need is gone
}

}  // namespace
}  // namespace flashinfer::probe
