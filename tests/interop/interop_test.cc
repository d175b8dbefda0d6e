// SPDX-License-Identifier: Apache-2.0
// Files exchanged with real torch and safetensors, both ways, bitwise.
#include <gtest/gtest.h>

#include <cstring>

#include "flashinfer/core/fs.h"
#include "flashinfer/core/hex.h"
#include "flashinfer/core/process.h"
#include "flashinfer/formats/json.h"
#include "flashinfer/formats/pt.h"
#include "test_paths.h"
#include "tests/formats/temp_dir.h"

namespace flashinfer::formats {
namespace {

std::string hex(const TensorView& v) {
  std::string out;
  stream(v, [&](const uint8_t* p, size_t n) { out += hex_bytes(p, n); });
  return out;
}

Tensor pattern(std::initializer_list<int64_t> shape, DType dtype, int seed) {
  Tensor t = Tensor::empty(shape, dtype);
  auto* p = static_cast<uint8_t*>(t.data());
  for (int64_t i = 0; i < t.nbytes(); ++i)
    p[i] = static_cast<uint8_t>(dtype == DType::kBool ? (i + seed) % 2 : (i * 37 + seed * 11) % 120);
  return t;
}

/// The empty string, or what went wrong.
std::string python(const char* command, const std::filesystem::path& folder, const char* file = nullptr) {
  std::vector<std::string> argv = {FI_TEST_PYTHON, std::string(FI_TEST_SOURCE_ROOT) + "/tests/interop/interop.py",
                                   command, folder.string()};
  if (file) argv.push_back(file);
  const auto r = process::run(argv);
  return r.ok() ? "" : str("exit code ", r.exit_code, ": ", r.output);
}

struct Samples {
  std::vector<Tensor> owners;
  std::vector<NamedTensor> tensors;
  void add(const std::string& key, const TensorView& v, bool grad = false) { tensors.push_back({key, v, grad}); }
};

Samples samples() {
  Samples s;
  const auto own = [&](std::initializer_list<int64_t> shape, DType d) -> TensorView {
    s.owners.push_back(pattern(shape, d, static_cast<int>(s.owners.size())));
    return s.owners.back().view();
  };
  for (int d = 0; d < kNumDTypes; ++d) {
    const auto dtype = static_cast<DType>(d);
    s.add("dtype_" + std::string(name(dtype)), own({3, 4}, dtype));
  }
  const TensorView base = own({6, 8}, DType::kBF16), qkv = own({4, 24}, DType::kF32), row = own({1, 5}, DType::kF16);
  s.add("base", base);
  s.add("base_transposed", base.transpose(0, 1));
  s.add("base_block", base.slice(0, 1, 4).slice(1, 2, 7));
  s.add("query", qkv.slice(1, 0, 8));
  s.add("key", qkv.slice(1, 8, 16));
  s.add("value", qkv.slice(1, 16, 24));
  s.add("alone_block", own({6, 8}, DType::kF32).slice(0, 1, 4).slice(1, 2, 7));
  const int64_t shape[] = {4, 5}, strides[] = {0, 1};
  s.add("expanded", TensorView(row.data(), DType::kF16, shape, strides));
  s.add("scalar", own({1}, DType::kF64).select(0, 0));
  s.add("empty", own({0, 3}, DType::kI64));
  s.add("grad", own({2, 2}, DType::kF32), true);
  s.add("large", own({300, 1000}, DType::kI32));
  return s;
}

void write_both(const testing::TempDir& dir, const std::string& file, const Samples& s, const char* aliases) {
  WriteReport report;
  write_pt(dir / (file + ".pt"), s.tensors, &report);
  write_safetensors(dir / (file + ".safetensors"), s.tensors);
  Json manifest = Json::object();
  for (size_t i = 0; i < s.tensors.size(); ++i) {
    const TensorView& v = s.tensors[i].view;
    std::vector<int64_t> shape(v.shape().begin(), v.shape().end()), stride(v.strides().begin(), v.strides().end());
    EXPECT_EQ(report.gathered[i] != 0, s.tensors[i].key == "alone_block") << s.tensors[i].key;
    if (report.gathered[i]) stride = {5, 1};
    manifest[s.tensors[i].key] = {
        {"dtype", std::string(name(v.dtype()))}, {"shape", shape}, {"stride", stride}, {"hex", hex(v)}};
  }
  fs::write_plain(dir / (file + ".json"), manifest.dump());
  fs::write_plain(dir / (file + ".aliases.json"), aliases);
}

TEST(Interop, TorchAndSafetensorsReadOurs) {
  testing::TempDir dir;
  write_both(dir, "ours", samples(),
             R"([["base", "base_transposed"], ["base", "base_block"], ["query", "key"], ["query", "value"]])");
  EXPECT_EQ(python("check", dir.path(), "ours"), "");
  EXPECT_EQ(python("resave", dir.path(), "ours"), "");
}

TEST(Interop, TorchReadsMemoryOfSeveralTypes) {  // which torch.save refuses to write
  testing::TempDir dir;
  Samples s;
  s.owners.push_back(pattern({64}, DType::kU8, 1));
  const int64_t floats[] = {16};
  s.add("bytes", s.owners[0]);
  s.add("floats", TensorView(s.owners[0].data(), DType::kF32, floats));
  write_both(dir, "mixed", s, R"([["bytes", "floats"]])");
  EXPECT_EQ(python("check", dir.path(), "mixed"), "");
}

class Theirs : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new testing::TempDir;
    failure_ = new std::string(python("make", dir_->path()));
  }
  static void TearDownTestSuite() {
    delete dir_;
    delete failure_;
  }
  void SetUp() override { ASSERT_EQ(*failure_, ""); }
  static void compare(const std::vector<StoredTensor>& have, bool strides) {
    const Json want = parse_json(*fs::read_file(*dir_ / "theirs.json"));
    ASSERT_EQ(have.size(), want.size());
    for (const StoredTensor& t : have) {
      const Json& w = want[t.key];
      const TensorView& v = t.tensor.view();
      EXPECT_EQ(w["dtype"], std::string(name(v.dtype()))) << t.key;
      EXPECT_EQ(w["shape"].get<std::vector<int64_t>>(), std::vector<int64_t>(v.shape().begin(), v.shape().end()))
          << t.key;
      if (strides) {
        EXPECT_EQ(w["stride"].get<std::vector<int64_t>>(), std::vector<int64_t>(v.strides().begin(), v.strides().end()))
            << t.key;
      }
      EXPECT_EQ(w["hex"].get<std::string>(), hex(v)) << t.key;
      EXPECT_EQ(t.requires_grad, strides && t.key == "grad");
      EXPECT_EQ(reinterpret_cast<uintptr_t>(v.data()) % static_cast<uintptr_t>(v.item_size()), 0u) << t.key;
    }
  }
  static std::string error_of(const char* file) {
    try {
      read_pt(*dir_ / file);
    } catch (const Error& e) {
      return e.message();
    }
    return "no error";
  }
  static testing::TempDir* dir_;
  static std::string* failure_;
};
testing::TempDir* Theirs::dir_;
std::string* Theirs::failure_;

TEST_F(Theirs, PtOfEveryDtypeAndLayout) { compare(read_pt(*dir_ / "theirs.pt"), true); }
TEST_F(Theirs, PtOfAnotherPickleProtocol) { compare(read_pt(*dir_ / "protocol4.pt"), true); }
TEST_F(Theirs, Safetensors) { compare(read_safetensors(*dir_ / "theirs.safetensors"), false); }

TEST_F(Theirs, ViewsShareMemoryThatOutlivesTheFile) {
  std::vector<StoredTensor> t = read_pt(*dir_ / "theirs.pt");
  ASSERT_EQ(t[0].key, "base");
  ASSERT_EQ(t[1].key, "transposed");
  EXPECT_EQ(t[0].tensor.data(), t[1].tensor.data());
  Tensor kept = t[1].tensor;
  t.clear();
  kept.data_as<float>()[0] = 42;  // a private page; the file stays
  EXPECT_NE(read_pt(*dir_ / "theirs.pt")[0].tensor.data_as<float>()[0], 42);
}

TEST_F(Theirs, OtherValues) {
  const Object o = load_pt(*dir_ / "values.pt");
  ASSERT_EQ(o.kind, Object::Kind::kList);
  ASSERT_EQ(o.items.size(), 13u);
  EXPECT_EQ(o.items[1].integer, -5);
  EXPECT_EQ(o.items[2].integer, int64_t{1} << 40);
  EXPECT_EQ(o.items[3].number, 1.5);
  EXPECT_EQ(o.items[6].text, "text");
  EXPECT_EQ(o.items[7].items.size(), 4u);
  EXPECT_EQ(o.items[8].items[1].items[0].tensor.numel(), 2);
  EXPECT_EQ(o.items[9].dtype, DType::kBF16);
  EXPECT_EQ(o.items[10].items[1].integer, 3);
  EXPECT_EQ(o.items[12].integer, -(int64_t{1} << 33));
  EXPECT_EQ(read_pt(*dir_ / "state_dict.pt").size(), 2u);
}

TEST_F(Theirs, RejectedAndNeverRun) {
  EXPECT_NE(error_of("evil.pt").find("system is not among the names"), std::string::npos) << error_of("evil.pt");
  EXPECT_FALSE(std::filesystem::exists(*dir_ / "executed"));
  EXPECT_NE(error_of("complex.pt").find("ComplexFloatStorage"), std::string::npos) << error_of("complex.pt");
  EXPECT_NE(error_of("legacy.pt").find("zip: no end of central directory"), std::string::npos) << error_of("legacy.pt");
  EXPECT_NE(error_of("values.pt").find("not a dict of tensors"), std::string::npos);
}

}  // namespace
}  // namespace flashinfer::formats
