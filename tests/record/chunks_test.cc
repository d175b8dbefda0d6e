// SPDX-License-Identifier: Apache-2.0
// The chunk store: every layout and size comes back, damage is found and costs only what it hit.
#include <random>

#include "tests/record/probe.h"

namespace flashinfer::probe {
namespace {

using formats::ChunkReader;
using formats::ChunkStore;
using formats::NamedTensor;

std::vector<uint8_t> noise(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> v(n);
  for (uint8_t& b : v) b = static_cast<uint8_t>(random());
  return v;
}

struct Chunks : ::testing::Test {
  Chunks() { std::filesystem::create_directory(folder / "call"); }
  std::filesystem::path file(const char* name = "inputs.chunks") { return folder / "call" / name; }
  std::string only_pack() {
    for (const auto& e : std::filesystem::directory_iterator(folder / "chunks")) return e.path();
    return {};
  }
  Folder folder;
};

TEST_F(Chunks, EverySizeAndLayoutComesBack) {
  ChunkStore store(folder / "chunks", "a");
  const auto data = noise(64 * 1024 * 260, 1);  // beyond one node of 256 chunks
  std::vector<NamedTensor> tensors;
  for (const int64_t n :
       {int64_t{0}, int64_t{1}, int64_t{65535}, int64_t{65536}, int64_t{65537}, static_cast<int64_t>(data.size())})
    tensors.push_back({str("n", n), TensorView(data.data(), {n})});
  const TensorView image(data.data(), {500, 600});
  tensors.push_back({"transposed", image.transpose(0, 1)});
  tensors.push_back({"columns", image.slice(1, 100, 333)});
  tensors.push_back({"scalar", TensorView(data.data(), DType::kI32, std::span<const int64_t>{})});
  const std::vector<int64_t> sizes = {0, 0, 0, 1000, 0, 0, 777, 0, 0};
  formats::WriteReport report;
  store.write(file(), tensors, sizes, &report);
  ChunkReader reader(folder / "chunks");
  EXPECT_TRUE(reader.problems().empty());
  const auto back = reader.read(file());
  ASSERT_EQ(back.size(), tensors.size());
  for (size_t i = 0; i < back.size(); ++i) {
    EXPECT_EQ(back[i].key, tensors[i].key);
    EXPECT_EQ(back[i].tensor.dtype(), tensors[i].view.dtype());
    ASSERT_TRUE(std::ranges::equal(back[i].tensor.shape(), tensors[i].view.shape()));
    const Tensor want = Tensor::clone(tensors[i].view);
    EXPECT_EQ(std::memcmp(back[i].tensor.data(), want.data(), static_cast<size_t>(want.nbytes())), 0) << tensors[i].key;
    EXPECT_EQ(report.checksums[i], formats::checksum(tensors[i].view)) << tensors[i].key;
  }
}

TEST_F(Chunks, WhatIsThereIsNotWrittenAgain) {
  ChunkStore store(folder / "chunks", "a");
  auto data = noise(1 << 20, 2);
  const NamedTensor t[] = {{"x", TensorView(data.data(), {1 << 20})}};
  store.write(file(), t, {}, nullptr);
  const uint64_t first = store.bytes();
  store.write(file("outputs.chunks"), t, {}, nullptr);
  EXPECT_EQ(store.bytes(), first);
  data[500000] ^= 1;
  store.write(file("later.chunks"), t, {}, nullptr);
  EXPECT_EQ(store.bytes() - first, 65536u + 16 * 16 + 2 * sizeof(formats::ChunkHeader));  // a chunk and the node
}

TEST_F(Chunks, ATornTailCostsTheLastRecord) {
  const auto data = noise(200000, 3), more = noise(100000, 4);
  {
    ChunkStore store(folder / "chunks", "a");
    const NamedTensor t[] = {{"x", TensorView(data.data(), {200000})}};
    store.write(file(), t, {}, nullptr);
    const NamedTensor u[] = {{"y", TensorView(more.data(), {100000})}};
    store.write(file("outputs.chunks"), u, {}, nullptr);
  }
  std::filesystem::resize_file(only_pack(), std::filesystem::file_size(only_pack()) - 10);
  ChunkReader reader(folder / "chunks");
  ASSERT_EQ(reader.problems().size(), 1u);
  EXPECT_NE(reader.problems()[0].find("cut off"), std::string::npos);
  EXPECT_EQ(std::memcmp(reader.read(file())[0].tensor.data(), data.data(), data.size()), 0);
  try {
    reader.read(file("outputs.chunks"));
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(e.message().find("y: chunk "), std::string::npos) << e.what();
    EXPECT_NE(e.message().find("is not in"), std::string::npos) << e.what();
  }
}

TEST_F(Chunks, AChangedByteIsFound) {
  const auto data = noise(100000, 5);
  {
    ChunkStore store(folder / "chunks", "a");
    const NamedTensor t[] = {{"x", TensorView(data.data(), {100000})}};
    store.write(file(), t, {}, nullptr);
  }
  std::string pack = read(only_pack());
  pack[5000] = static_cast<char>(pack[5000] ^ 4);
  std::ofstream(only_pack(), std::ios::binary) << pack;
  try {
    formats::read_chunks(file());
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(e.message().find("is damaged"), std::string::npos) << e.what();
  }
}

TEST_F(Chunks, WrongListsAreRejected) {
  const auto data = noise(100000, 6);
  ChunkStore store(folder / "chunks", "a");
  const NamedTensor t[] = {{"x", TensorView(data.data(), {100000})}};
  store.write(file(), t, {}, nullptr);
  const std::string good = read(file());
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    const size_t at = bad.find(from);
    EXPECT_NE(at, bad.npos) << from;
    bad.replace(at, from.size(), to);
    std::ofstream(file(), std::ios::binary) << bad;
    EXPECT_THROW(formats::read_chunks(file()), ValueError) << to;
  };
  refused("\"bytes\": 100000", "\"bytes\": 100001");
  refused("[100000]", "[-100000]");
  refused("[100000]", "[9223372036854775807, 9223372036854775807]");
  refused("\"chunk\": 65536", "\"chunk\": 0");
  refused("\"chunk\": 65536", "\"chunk\": 1000");
  refused("\"depth\": 1", "\"depth\": 0");
  refused("\"depth\": 1", "\"depth\": 7");
  refused("\"depth\": 1", "\"depth\": \"1\"");
  refused("\"dtype\": \"uint8\"", "\"dtype\": \"uint9\"");
  refused("\"chunks_version\": 1", "\"chunks_version\": 2");
  refused("\"id\": \"", "\"id\": \"zz");
  refused("}", "");
  std::ofstream(file(), std::ios::binary) << good;
  EXPECT_NO_THROW(formats::read_chunks(file()));
}

TEST_F(Chunks, PacksWithoutReadersGo) {
  ChunkStore store(folder / "chunks", "a");
  store.set_limit(4 << 20);  // packs of 256 KB
  std::vector<std::vector<uint32_t>> used;
  for (uint32_t i = 0; i < 3; ++i) {
    const auto data = noise(1 << 20, 10 + i);
    const NamedTensor t[] = {{"x", TensorView(data.data(), {1 << 20})}};
    const auto packs = store.write(file(str("f", i, ".chunks").c_str()), t, {}, nullptr);
    used.emplace_back(packs.begin(), packs.end());
  }
  const uint64_t all = store.bytes();
  store.release(used[0]);
  EXPECT_LT(store.bytes(), all - (700 << 10));
  const auto large = noise(5 << 19, 20);
  const NamedTensor t[] = {{"x", TensorView(large.data(), {5 << 19})}};
  EXPECT_THROW(store.write(file("large.chunks"), t, {}, nullptr), formats::StoreFull);
  EXPECT_NO_THROW(formats::read_chunks(file("f1.chunks")));
  EXPECT_NO_THROW(formats::read_chunks(file("f2.chunks")));
  EXPECT_THROW(formats::read_chunks(file("f0.chunks")), ValueError);
  store.release(used[1]);
  EXPECT_NO_THROW(store.write(file("large.chunks"), t, {}, nullptr));
  EXPECT_NO_THROW(formats::read_chunks(file("large.chunks")));
  EXPECT_NO_THROW(formats::read_chunks(file("f2.chunks")));
}

}  // namespace
}  // namespace flashinfer::probe
