// SPDX-License-Identifier: Apache-2.0
// Writers and readers of tensor files against damage, limits and odd layouts. What torch makes of them: tests/interop.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <random>

#include "flashinfer/core/fs.h"
#include "flashinfer/formats/json.h"
#include "flashinfer/formats/pt.h"
#include "flashinfer/formats/zip.h"
#include "tests/formats/temp_dir.h"

namespace flashinfer::formats {
namespace {

Tensor counting(std::initializer_list<int64_t> shape, DType dtype = DType::kF32) {
  Tensor t = Tensor::empty(shape, dtype);
  for (int64_t i = 0; i < t.nbytes(); ++i) static_cast<uint8_t*>(t.data())[i] = static_cast<uint8_t>(i * 7 + 1);
  return t;
}

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

bool contains(const std::string& text, const char* part) { return text.find(part) != text.npos; }

TEST(Layout, ASmallViewOfALargeBufferTakesItsOwnElements) {
  testing::TempDir dir;
  const Tensor big = counting({1000, 1000});
  const NamedTensor gapped[] = {{"x", big.view().slice(1, 3, 5)}}, dense[] = {{"x", big.view().slice(0, 3, 5)}};
  WriteReport r;
  write_pt(dir / "a.pt", gapped, &r);
  EXPECT_EQ(r.tensor_bytes, 8000u);
  EXPECT_EQ(r.gathered[0], 1);
  EXPECT_LT(std::filesystem::file_size(dir / "a.pt"), 12000u);
  EXPECT_EQ(checksum(read_pt(dir / "a.pt")[0].tensor.view()), checksum(gapped[0].view));
  write_pt(dir / "b.pt", dense, &r);
  EXPECT_EQ(r.tensor_bytes, 8000u);
  EXPECT_EQ(r.gathered[0], 0);
}

TEST(Layout, SharedMemoryIsStoredOnce) {
  const Tensor t = counting({64, 64});
  const NamedTensor n[] = {
      {"in", t.view()}, {"out", t.view()}, {"row", t.view().select(0, 5)}, {"t", t.view().transpose(0, 1)}};
  const StoragePlan plan = plan_storages(n);
  ASSERT_EQ(plan.storages.size(), 1u);
  EXPECT_EQ(plan.storages[0].bytes, t.nbytes());
  EXPECT_EQ(plan.placements[2].offset, 5 * 64);
  EXPECT_EQ(plan.placements[3].strides, (std::vector<int64_t>{1, 64}));
}

TEST(Layout, TwoDistantSlicesDoNotDragTheMiddleAlong) {
  const Tensor t = counting({1000, 64});
  const NamedTensor n[] = {{"all_columns", t.view().slice(1, 0, 4)},
                           {"rows", t.view().slice(0, 0, 2)},
                           {"far", t.view().slice(0, 900, 902)}};
  const StoragePlan plan = plan_storages(n);
  int64_t bytes = 0;
  for (const Storage& s : plan.storages) bytes += s.bytes;
  EXPECT_EQ(bytes, 1000 * 4 * 4 + 2 * 2 * 64 * 4);
}

TEST(Layout, StreamsElementsInRowMajorOrderWhateverTheStrides) {
  const Tensor t = counting({5, 7, 3}, DType::kI16);
  for (const TensorView& v :
       {t.view(), t.view().transpose(0, 2), t.view().transpose(0, 1).slice(2, 1, 3), t.view().slice(0, 1, 4)}) {
    std::vector<uint8_t> bytes;
    stream(v, [&](const uint8_t* p, size_t n) { bytes.insert(bytes.end(), p, p + n); });
    const Tensor c = Tensor::clone(v);
    ASSERT_EQ(bytes.size(), static_cast<size_t>(c.nbytes()));
    EXPECT_EQ(std::memcmp(bytes.data(), c.data(), bytes.size()), 0);
  }
}

TEST(Layout, ChecksumDependsOnValuesNotOnStrides) {
  const Tensor t = counting({33, 65});
  const Tensor c = Tensor::clone(t.view().transpose(0, 1));
  EXPECT_EQ(checksum(t.view().transpose(0, 1)), checksum(c.view()));
  EXPECT_NE(checksum(t.view()), checksum(c.view()));
  WriteReport pt, st;
  testing::TempDir dir;
  const NamedTensor n[] = {{"a", t.view().transpose(0, 1)}, {"b", t.view()}};
  write_pt(dir / "a.pt", n, &pt);
  write_safetensors(dir / "a.safetensors", n, &st);
  EXPECT_EQ(pt.checksums, st.checksums);
  EXPECT_EQ(pt.checksums[0], checksum(c.view()));
  EXPECT_EQ(checksum_text(pt.checksums[0]).size(), 21u);
}

TEST(Writer, FileIsPrivateAndAppearsWhole) {
  testing::TempDir dir;
  const Tensor t = counting({1000});
  const NamedTensor n[] = {{"x", t.view()}};
  write_pt(dir / "x.pt", n);
  struct stat st;
  ASSERT_EQ(::stat((dir / "x.pt").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  EXPECT_EQ(fs::list_dir(dir.path()), std::vector<std::string>{"x.pt"});
}

TEST(Writer, AFullDiskLeavesNothingAndSaysWhy) {
  testing::TempDir dir;
  const Tensor t = counting({1 << 20});
  const NamedTensor n[] = {{"x", t.view()}};
  rlimit old;
  ::getrlimit(RLIMIT_FSIZE, &old);
  const rlimit small{100000, old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string pt = error_of([&] { write_pt(dir / "x.pt", n); });
  const std::string safetensors = error_of([&] { write_safetensors(dir / "x.safetensors", n); });
  ::setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(pt, "RuntimeError: cannot write " + (dir / "x.pt").string() + ": File too large");
  EXPECT_TRUE(contains(safetensors, "File too large"));
  EXPECT_TRUE(fs::list_dir(dir.path()).empty());
  EXPECT_TRUE(contains(error_of([&] { write_pt(dir / "no/such/folder.pt", n); }), "No such file or directory"));
}

TEST(Writer, DeviceMemoryIsRejected) {
  testing::TempDir dir;
  const NamedTensor n[] = {{"x", TensorView(nullptr, DType::kF32, {4}, Device{DeviceType::kCUDA, 0})}};
  EXPECT_EQ(error_of([&] { write_pt(dir / "x.pt", n); }),
            "ValueError: x is on cuda:0, and only memory of the host can be written");
  EXPECT_TRUE(contains(error_of([&] { write_safetensors(dir / "x.st", n); }), "only memory of the host"));
}

TEST(Writer, NoTensorsOneTensorAndMany) {
  testing::TempDir dir;
  write_pt(dir / "none.pt", {});
  EXPECT_TRUE(read_pt(dir / "none.pt").empty());
  std::vector<NamedTensor> many;
  const Tensor t = counting({2500, 3});
  for (int64_t i = 0; i < 2500; ++i) many.push_back({str("key_", i), t.view().select(0, i)});
  write_pt(dir / "many.pt", many);
  const auto back = read_pt(dir / "many.pt");
  ASSERT_EQ(back.size(), 2500u);
  EXPECT_EQ(back[2499].key, "key_2499");
  EXPECT_EQ(checksum(back[2499].tensor.view()), checksum(many[2499].view));
}

/// Every single-byte change of a small file is either harmless or an error with a message; under the sanitizers also
/// safe.
void mutate(const std::filesystem::path& file,
            const std::function<void(std::span<uint8_t>, std::shared_ptr<void>)>& read) {
  const std::string good = *fs::read_file(file);
  std::mt19937 rng(5);
  int refused = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    auto bytes = std::make_shared<std::vector<uint8_t>>(good.begin(), good.end());
    (*bytes)[i] = static_cast<uint8_t>(rng());
    try {
      read(*bytes, bytes);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int>(good.size() / 10));
  for (size_t n = 0; n < good.size(); ++n) {
    auto bytes = std::make_shared<std::vector<uint8_t>>(good.begin(), good.begin() + static_cast<ptrdiff_t>(n));
    EXPECT_THROW(read(*bytes, bytes), Error) << n;
  }
}

TEST(Reader, EveryByteMayBeWrong) {
  testing::TempDir dir;
  const Tensor t = counting({3, 4}), e = counting({4}, DType::kF8E4M3);
  const NamedTensor n[] = {{"a", t.view()}, {"b", t.view().transpose(0, 1)}, {"c", e.view()}};
  write_pt(dir / "x.pt", n);
  write_safetensors(dir / "x.safetensors", n);
  mutate(dir / "x.pt", [](std::span<uint8_t> b, std::shared_ptr<void> o) { load_pt(b, o, true); });
  mutate(dir / "x.pt", [](std::span<uint8_t> b, std::shared_ptr<void> o) { load_pt(b, o, false); });
  mutate(dir / "x.safetensors", [](std::span<uint8_t> b, std::shared_ptr<void> o) { read_safetensors(b, o); });
}

std::string unpickle_error(const std::string& body) {
  const std::string pickle = "\x80\x02" + body;
  return error_of([&] {
    unpickle(Bytes(reinterpret_cast<const uint8_t*>(pickle.data()), pickle.size()),
             [](const std::string&) -> StorageMemory { return {}; });
  });
}

TEST(Unpickler, RejectsWhatFilesOfTensorsDoNotUse) {
  using namespace std::string_literals;
  EXPECT_TRUE(contains(unpickle_error("cos\nsystem\n(X\x02\x00\x00\x00lstR."s), "os.system is not among the names"));
  EXPECT_TRUE(contains(unpickle_error("cbuiltins\neval\n."s), "builtins.eval is not among"));
  EXPECT_TRUE(contains(unpickle_error("ctorch._utils\n_rebuild_tensor_v2\n."s), "_rebuild_tensor_v2 as a value"));
  EXPECT_TRUE(contains(unpickle_error("(i__main__\nX\n."s), "opcode 0x69"));
  EXPECT_TRUE(contains(unpickle_error("}"s), "cut off"));
  EXPECT_TRUE(contains(unpickle_error("a."s), "the stack is empty"));
  EXPECT_TRUE(contains(unpickle_error("K\x01K\x02."s), "left over"));
  EXPECT_TRUE(contains(unpickle_error("h\x05."s), "no memo 5"));
  EXPECT_TRUE(contains(unpickle_error("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01."s), "beyond 64 bits"));
  EXPECT_TRUE(contains(unpickle_error("]q\x00h\x00"s + "a."), "nest deeper"));  // a list that holds itself
}

TEST(Unpickler, SharedPartsCannotMultiply) {
  // 40 lists, each holding the one before twice: 2^40 values once expanded.
  std::string body = "]q";
  body += '\0';
  for (int i = 1; i < 40; ++i) {
    body += "](h";
    body += static_cast<char>(i - 1);
    body += "h";
    body += static_cast<char>(i - 1);
    body += "eq";
    body += static_cast<char>(i);
  }
  EXPECT_TRUE(contains(unpickle_error("(" + body + "t."), "shared parts repeat"));
}

class Zip : public ::testing::Test {
 protected:
  std::string archive(const std::vector<std::pair<std::string, std::string>>& entries) {
    FileWriter out(dir_ / "a.zip");
    ZipWriter zip(&out);
    for (const auto& [name, content] : entries) zip.entry(name, content);
    zip.finish();
    out.commit();
    return *fs::read_file(dir_ / "a.zip");
  }
  static std::string read(const std::string& bytes) {
    return error_of([&] { ZipReader(Bytes(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size())); });
  }
  testing::TempDir dir_;
};

TEST_F(Zip, ReadsWhatItWrites) {
  const std::string a = archive({{"s/one", "1"}, {"s/none", ""}, {"s/big", std::string(100000, 'x')}});
  const ZipReader zip(Bytes(reinterpret_cast<const uint8_t*>(a.data()), a.size()));
  EXPECT_EQ(zip.entries().size(), 3u);
  EXPECT_EQ(zip.find("s/big")->data.size(), 100000u);
  EXPECT_EQ((zip.find("s/one")->data.data() - reinterpret_cast<const uint8_t*>(a.data())) % 64, 0);
  EXPECT_NO_THROW(ZipReader::verify("s/big", *zip.find("s/big")));
}

TEST_F(Zip, RejectsNamesThatLeaveTheArchive) {
  EXPECT_TRUE(contains(read(archive({{"s/../../etc/passwd", "x"}})), "leaves the archive"));
  EXPECT_TRUE(contains(read(archive({{"/etc/passwd", "x"}})), "is not relative"));
  EXPECT_TRUE(contains(read(archive({{"s\\x", "x"}})), "is not relative"));
  EXPECT_TRUE(contains(read(archive({{"s/x", "1"}, {"s/x", "2"}})), "is there twice"));
}

TEST_F(Zip, RejectsOverlapCompressionAndBytesOutside) {
  const std::string good = archive({{"s/x", "12345678"}, {"s/y", "12345678"}});
  const size_t directory = good.find("PK\x01\x02"), second = good.find("PK\x01\x02", directory + 4);
  std::string bad = good;
  std::memcpy(&bad[second + 42], &good[directory + 42], 4);  // the second entry's header is the first one's
  bad[second + 46 + 2] = 'x';
  EXPECT_TRUE(contains(read(bad), "twice"));
  bad = good;
  bad[directory + 10] = 8;
  EXPECT_TRUE(contains(read(bad), "is compressed (method 8)"));
  bad = good;
  bad[directory + 8] |= 1;
  EXPECT_TRUE(contains(read(bad), "is encrypted"));
  bad = good;
  const uint32_t huge = 0x7fffffff;
  std::memcpy(&bad[directory + 20], &huge, 4);
  std::memcpy(&bad[directory + 24], &huge, 4);
  EXPECT_TRUE(contains(read(bad), "reaches beyond"));
  bad = good;
  const uint32_t more = 70;  // over the next entry
  std::memcpy(&bad[directory + 20], &more, 4);
  std::memcpy(&bad[directory + 24], &more, 4);
  EXPECT_TRUE(contains(read(bad), "share bytes"));
}

std::string safetensors_error(const std::string& header, size_t data) {
  std::vector<uint8_t> bytes(8 + header.size() + data);
  const uint64_t n = header.size();
  std::memcpy(bytes.data(), &n, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return error_of([&] { read_safetensors(std::span(bytes), nullptr); });
}

TEST(Safetensors, ChecksTheHeader) {
  const auto header = [](const char* dtype, const char* shape, const char* offsets) {
    return str(R"({"x": {"dtype": ")", dtype, R"(", "shape": )", shape, R"(, "data_offsets": )", offsets, "}}");
  };
  EXPECT_EQ(safetensors_error(header("F32", "[2]", "[0, 8]"), 8), "no error");
  EXPECT_TRUE(contains(safetensors_error(header("F32", "[2]", "[0, 7]"), 7), "7 bytes for a tensor of 8"));
  EXPECT_TRUE(contains(safetensors_error(header("F32", "[2]", "[8, 16]"), 16), "begins at 8"));
  EXPECT_TRUE(
      contains(safetensors_error(header("F32", "[2]", "[0, 8]"), 9), "tensors take 8 bytes, but the file holds 9"));
  EXPECT_TRUE(
      contains(safetensors_error(header("F32", "[2]", "[0, 8]"), 7), "tensors take 8 bytes, but the file holds 7"));
  EXPECT_TRUE(contains(safetensors_error(header("F32", "[4294967296, 4294967296]", "[0, 0]"), 0), "overflows"));
  EXPECT_TRUE(contains(safetensors_error(header("F32", "[-1]", "[0, 0]"), 0), "no size"));
  EXPECT_TRUE(contains(safetensors_error(header("F99", "[1]", "[0, 1]"), 1), "dtype F99 is not known"));
  EXPECT_TRUE(contains(safetensors_error(header("F4", "[3]", "[0, 1]"), 1), "odd number"));
  EXPECT_TRUE(contains(safetensors_error("{\"x\": 1}", 0), "incomplete"));
  EXPECT_TRUE(contains(safetensors_error("[]", 0), "no object"));
  const std::string one = R"("x": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]})";
  EXPECT_TRUE(contains(safetensors_error("{" + one + ", " + one + "}", 4), "there twice"));
  const std::string overlap =
      R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}, "b": {"dtype": "U8", "shape": [4], "data_offsets": [2, 6]}})";
  EXPECT_TRUE(contains(safetensors_error(overlap, 6), "b begins at 2, but the data before it ends at 4"));
}

TEST(Json, PythonLiteralsAndStrictOutput) {
  EXPECT_EQ(
      dump_json(parse_json(R"({"a": NaN, "b": [-Infinity, 1.5], "c": "NaN \" Infinity", "d": -3})")),
      R"({"a": {"type": "float", "value": "nan"}, "b": [{"type": "float", "value": "-inf"}, 1.5], "c": "NaN \" Infinity", "d": -3})");
  EXPECT_EQ(dump_json(Json{{"k\xc3\xa9", HUGE_VAL}, {"bad", "\xff"}}),
            R"({"k\u00e9": {"type": "float", "value": "inf"}, "bad": "\ufffd"})");
  EXPECT_TRUE(contains(error_of([] { parse_json(std::string(300, '[')); }), "nested deeper than 200"));
  EXPECT_TRUE(contains(error_of([] { parse_json("{\"a\": 1, \"a\": 2}"); }), "there twice"));
  EXPECT_TRUE(contains(error_of([] { parse_json("{\"a\": 1"); }), "not a JSON document"));
  EXPECT_TRUE(contains(error_of([] { parse_json("1 2"); }), "not a JSON document"));
}

}  // namespace
}  // namespace flashinfer::formats
