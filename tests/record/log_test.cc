// SPDX-License-Identifier: Apache-2.0
// The text log, its destination, filters, statistics, settings and run-time control. That the text is the Python
// library's is the business of tests/python/test_recorder_oracle.py; the golden texts here hold where there is no
// Python.
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <random>
#include <regex>
#include <thread>

#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/record/filter.h"
#include "flashinfer/record/stats.h"
#include "flashinfer/record/text.h"
#include "test_paths.h"
#include "tests/record/probe.h"

namespace flashinfer::probe {
namespace {

std::string masked(const std::string& text) {
  return std::regex_replace(text, std::regex(R"(\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\])"), "[time]");
}
std::string after_banner(const std::string& text) {
  const size_t at = text.find("(commit ");
  return at == text.npos ? "no banner: " + text : masked(text.substr(text.find('\n', at) + 1));
}
record::Settings logging(const Folder& folder, int level) {
  record::Settings s = recording(folder);
  s.level = level;
  return s;
}
const std::string kDouble(80, '='), kSingle(80, '-');
const std::vector<float> kX = {0, 1, 2, 3};

using LogTest = RecordTest;

TEST_F(LogTest, Banner) {
  record::configure(logging(folder, 2));
  call({.x = TensorView(kX.data(), {4})});
  EXPECT_TRUE(std::regex_match(
      masked(read(folder / "log")),
      std::regex(kDouble + R"(\n\[time\] FlashInfer API Logging - System Information\n)" + kDouble +
                 R"(\nFlashInfer version: \S+\nCUDA toolkit version: [^\n]+\ncuDNN version: [^\n]+\n)" +
                 R"((CUDA: Not available \(CPU-only mode\)|Number of GPUs: [^=]+)\nPyTorch version: <unavailable>\n)" +
                 kDouble + R"(\n\nFlashInfer \S+ \(commit \w{1,8}\)\n)")))
      << read(folder / "log");
}

TEST_F(LogTest, LevelOneIsOneLineBeforeTheCall) {
  record::configure(logging(folder, 1));
  call({.x = TensorView(kX.data(), {4})});
  EXPECT_THROW(call({.x = TensorView(kX.data(), {4}), .action = "throw"}), ValueError);
  EXPECT_EQ(after_banner(read(folder / "log")),
            "[time] FlashInfer API Call: probe\n[time] FlashInfer API Call: probe\n");
}

TEST_F(LogTest, LevelThree) {
  record::configure(logging(folder, 3));
  call({.x = TensorView(kX.data(), {4}), .alpha = 1e-5});
  const std::string tensor =
      "Tensor(\n      shape=(4,)\n      stride=(1,)\n      dtype=torch.float32\n      device=cpu\n      "
      "requires_grad=False\n"
      "      is_contiguous=True\n    )\n";
  const std::string result =
      "  Tensor(\n    shape=(4,)\n    stride=(1,)\n    dtype=torch.float32\n    device=cpu\n    requires_grad=False\n"
      "    is_contiguous=True\n  )\n";
  EXPECT_EQ(
      after_banner(read(folder / "log")),
      kDouble + "\n[time] FlashInfer API Call: probe\n" + kSingle + "\nPositional input arguments:\n  arg[0]:\n    " +
          tensor +
          "Keyword input arguments:\n  alpha=\n    1e-05\nDefault parameters (not explicitly provided):\n"
          "  action= [DEFAULT]\n    'compute'\n  counter= [DEFAULT]\n    None\n  kv_indices= [DEFAULT]\n    None\n"
          "  workspace= [DEFAULT]\n    None\n  pool= [DEFAULT]\n    None\n  out= [DEFAULT]\n    None\nOutput value:\n" +
          result + kDouble + "\n\n");
}

TEST_F(LogTest, LevelFiveAddsStatisticsAndAFailedCallHasNoEnd) {
  record::configure(logging(folder, 5));
  call({.x = TensorView(kX.data(), {4}), .alpha = 2});
  const std::string text = after_banner(read(folder / "log"));
  EXPECT_EQ(
      count(text, "min=0.000000\n      max=3.000000\n      mean=1.500000\n      nan_count=0\n      inf_count=0\n    )"),
      1);
  EXPECT_EQ(count(text, "min=0.000000\n    max=6.000000\n    mean=3.000000\n    nan_count=0\n    inf_count=0\n  )"), 1);
  EXPECT_THROW(call({.x = TensorView(kX.data(), {4}), .action = "throw"}), ValueError);
  EXPECT_EQ(count(read(folder / "log"), "Output value:"), 1);
}

TEST_F(LogTest, NestedValuesAreGluedBehindTheirLabels) {
  std::string text;
  const op::Value fp4 = op::TupleValue{{op::ListValue{{1}}, op::Value(), 0, op::Value()}, "FP4Tensor"};
  record::append_value(text, op::DictValue{{{"a", op::ListValue{{1, op::TupleValue{{"x"}}}}}, {2, fp4}}}, 1, false);
  EXPECT_EQ(text,
            "  {\n"
            "    'a':     [\n"
            "      [0]:       1\n"
            "      [1]:       (\n"
            "        [0]:         'x'\n"
            "      )\n"
            "    ]\n"
            "    2:     FP4Tensor(\n"
            "      data=      [\n"
            "        [0]:         1\n"
            "      ]\n"
            "      scale=      None\n"
            "      scale_start_index=0\n"
            "    )\n"
            "  }");
}

TEST_F(LogTest, DestinationHasTheProcessIdAndMissingFoldersWarn) {
  auto s = logging(folder, 1);
  s.destination = folder / "log_%i_%i";
  record::configure(s);
  call({.x = TensorView(kX.data(), {4})});
  EXPECT_EQ(count(read(folder / str("log_", ::getpid(), "_", ::getpid())), "API Call"), 1);
  const int status = in_child([&] {
    s.destination = folder / "missing/log";
    std::freopen((folder / "out").c_str(), "w", stdout);
    std::freopen((folder / "err").c_str(), "w", stderr);
    record::configure(s);
    call({.x = TensorView(kX.data(), {4})});
    std::fflush(stderr);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(count(read(folder / "err"), "cannot open the log"), 1);
  EXPECT_EQ(count(read(folder / "out"), "API Call: probe"), 1);
}

TEST_F(LogTest, AFullLogStopsNothing) {
  const int status = in_child([&] {
    record::configure(logging(folder, 3));
    const rlimit limit{0, 0};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto s = logging(folder, 3);
    s.destination = folder / "other";  // opened under the limit
    record::configure(s);
    for (int i = 0; i < 3; ++i) call({.x = TensorView(kX.data(), {4})});
    s.destination = "/dev/full";
    record::configure(s);
    call({.x = TensorView(kX.data(), {4})});
  });
  EXPECT_EQ(status, 0);
}

TEST_F(LogTest, ObserverIsThereOnlyWhenTheLevelIsNotZero) {
  record::configure({});
  EXPECT_EQ(op::observer(), nullptr);
  record::configure(logging(folder, 1));
  EXPECT_NE(op::observer(), nullptr);
  record::stop();
  EXPECT_EQ(op::observer(), nullptr);
}

TEST_F(LogTest, RecordingStartsStopsAndMovesAtRunTime) {
  auto s = logging(folder, 0);
  record::configure(s);
  const auto one = [] { call({.x = TensorView(kX.data(), {4})}); };
  one();
  record::start();
  one();
  record::stop();
  one();
  EXPECT_EQ(dumps(folder / "dumps").size(), 1u);
  s = record::settings();
  s.level = 10;
  s.dump_dir = folder / "elsewhere";
  record::configure(s);
  one();
  EXPECT_EQ(dumps(folder / "dumps").size(), 1u);
  EXPECT_EQ(dumps(folder / "elsewhere").size(), 1u);
  EXPECT_EQ(record::totals().calls, 1u);
}

TEST_F(LogTest, AControlFileSteersTheRecorder) {
  auto s = logging(folder, 0);
  s.control = folder / "control";
  record::configure(s);
  const auto x = TensorView(kX.data(), {4});
  const auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(80)); };
  call({.x = x});
  const auto write = [&](const std::string& text) {
    std::ofstream(folder / "next") << text;
    std::filesystem::rename(folder / "next", folder / "control");
    wait();
  };
  write("# two lines\nexclude = pro*\nlevel=10\n");
  call({.x = x});
  EXPECT_FALSE(std::filesystem::exists(folder / "dumps"));
  write("exclude=\nstart\n");
  call({.x = x});
  EXPECT_EQ(dumps(folder / "dumps").size(), 1u);
  write("level=1\nlevel=ten\n");  // not a legal file: nothing of it is done
  call({.x = x});
  EXPECT_EQ(dumps(folder / "dumps").size(), 2u);
  write("stop\n");
  call({.x = x});
  EXPECT_EQ(dumps(folder / "dumps").size(), 2u);
}

TEST(Settings, LinesNameWhatIsWrong) {
  record::Settings s;
  for (const char* line :
       {"level=10", "dest=stderr", "dir=/tmp/x", "max_size_gb=inf", "max_count=3", "include=a*, b", "exclude=c",
        "safetensors=1", "keep=last", "dedup=1", "pages=full", "sync=1", "", "# a comment"})
    record::apply(s, line);
  EXPECT_EQ(s.level, 10);
  EXPECT_EQ(s.include, (std::vector<std::string>{"a*", "b"}));
  EXPECT_TRUE(std::isinf(s.max_size_gb) && s.keep_last && s.dedup && s.safetensors && s.sync);
  for (const char* line : {"level=1.5", "keep=most", "nonsense", "color=red", "max_count="}) {
    try {
      record::apply(s, line);
      ADD_FAILURE() << line;
    } catch (const ValueError& e) {
      EXPECT_NE(std::string(e.what()).find(line), std::string::npos) << e.what();
    }
  }
}

TEST(Settings, AllNamesAreInTheDocumentation) {
  const auto text = fs::read_file(std::filesystem::path(FI_TEST_SOURCE_ROOT) / "docs/recorder.md");
  ASSERT_TRUE(text);
  EXPECT_EQ(record::setting_names().size(), 12u);
  for (const std::string_view name : record::setting_names())
    EXPECT_NE(text->find("`" + std::string(name) + "=`"), std::string::npos) << name;
}

TEST(Settings, ARecorderGoesOnUnlessWhatItWritesChanges) {
  const auto goes_on = [](const char* line) {
    record::Settings a, b;
    record::apply(b, line);
    return record::same_recording(a, b);
  };
  for (const char* line : {"level=5", "include=a*", "exclude=b", "keep=first"}) EXPECT_TRUE(goes_on(line)) << line;
  for (const char* line : {"dest=stderr", "dir=x", "max_size_gb=1", "max_count=3", "safetensors=1", "keep=last",
                           "dedup=1", "pages=full", "sync=1"})
    EXPECT_FALSE(goes_on(line)) << line;
}

/// Sets variables for a scope.
class Environment {
 public:
  explicit Environment(std::vector<std::pair<const char*, const char*>> values) : values_(std::move(values)) {
    for (const auto& [name, value] : values_) ::setenv(name, value, 1);
    env::reload();
  }
  ~Environment() {
    for (const auto& [name, value] : values_) ::unsetenv(name);
    env::reload();
  }

 private:
  std::vector<std::pair<const char*, const char*>> values_;
};

TEST(Environment, ValuesAreReadAsPythonReadsThem) {
  const Environment e({{"FLASHINFER_LOGLEVEL", " 1_0\t"},
                       {"FLASHINFER_DUMP_MAX_SIZE_GB", " +InFinity "},
                       {"FLASHINFER_DUMP_MAX_COUNT", "-0_5"},
                       {"FLASHINFER_DUMP_INCLUDE", " a*,, b ,"},
                       {"FLASHINFER_DUMP_SAFETENSORS", "true"},
                       {"FLASHINFER_DUMP_KEEP", "last"},
                       {"FLASHINFER_DUMP_DEDUP", "1"}});
  const record::Settings s = record::settings_from_env();
  EXPECT_EQ(s.level, 10);
  EXPECT_TRUE(std::isinf(s.max_size_gb));
  EXPECT_EQ(s.max_count, -5);
  EXPECT_EQ(s.include, (std::vector<std::string>{"a*", "b"}));
  EXPECT_FALSE(s.safetensors);
  EXPECT_TRUE(s.keep_last && s.dedup);
}

TEST(Environment, BadValuesWarnOnceAndFallBack) {
  for (const char* bad : {"1.5", "", "ten", "0x10", "1__0", "_1", "1_", "- 1", "--1"}) {
    const Environment e({{"FLASHINFER_LOGLEVEL", bad},
                         {"FLASHINFER_DUMP_MAX_SIZE_GB", "1_e3"},
                         {"FLASHINFER_LOGDEST", ""},
                         {"FLASHINFER_DUMP_KEEP", "Last"},
                         {"FLASHINFER_DUMP_DEDUP", "yes"}});
    ::testing::internal::CaptureStderr();
    record::Settings s = record::settings_from_env();
    s = record::settings_from_env();
    const std::string warnings = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(s.level, 0) << bad;
    EXPECT_EQ(s.max_size_gb, 20);
    EXPECT_EQ(s.destination, "stdout");
    EXPECT_FALSE(s.keep_last || s.dedup);
    for (const char* name : {"FLASHINFER_LOGLEVEL=", "FLASHINFER_DUMP_MAX_SIZE_GB=", "FLASHINFER_LOGDEST=",
                             "FLASHINFER_DUMP_KEEP=", "FLASHINFER_DUMP_DEDUP="})
      EXPECT_EQ(count(warnings, name), 1) << warnings;
  }
  EXPECT_THROW(env::integer("FLASHINFER_NO_SUCH_VARIABLE"), InternalError);
  for (const auto& v : env::table()) EXPECT_NO_THROW(env::current(v.name)) << v.name;
}

TEST(Filter, GlobsAreFnmatch) {
  using record::glob_match;
  for (const auto& [pattern, text, want] :
       std::vector<std::tuple<const char*, const char*, bool>>{{"*", "", true},
                                                               {"", "", true},
                                                               {"", "a", false},
                                                               {"rms*", "rmsnorm", true},
                                                               {"*norm", "rmsnorm", true},
                                                               {"r?snorm", "rmsnorm", true},
                                                               {"r?norm", "rmsnorm", false},
                                                               {"[rs]*", "rmsnorm", true},
                                                               {"[!rs]*", "rmsnorm", false},
                                                               {"[a-q]*", "rmsnorm", false},
                                                               {"[a-r]*", "rmsnorm", true},
                                                               {"*Wrapper.run", "BatchWrapper.run", true},
                                                               {"*Wrapper.run", "BatchWrapper.runs", false},
                                                               {"*a*b*c", "xaxbxc", true},
                                                               {"*a*b*c", "xaxbxcx", false},
                                                               {"RMS*", "rmsnorm", false},
                                                               {"[", "[", true},
                                                               {"[]]", "]", true},
                                                               {"[!]]", "]", false},
                                                               {"a[b", "a[b", true},
                                                               {"*.__init__", "A.__init__", true}})
    EXPECT_EQ(glob_match(pattern, text), want) << pattern << " " << text;
  EXPECT_TRUE(record::passes({}, {}, "a"));
  EXPECT_FALSE(record::passes({"a*", "b*"}, {"b?"}, "bc"));
  EXPECT_TRUE(record::passes({"a*", "b*"}, {"b?"}, "bcd"));
}

// ---- statistics ----

/// The definition, in double.
record::Statistics slow_statistics(const std::vector<float>& v) {
  record::Statistics s;
  s.min = HUGE_VALF, s.max = -HUGE_VALF;
  long double sum = 0;
  for (const float x : v) {
    s.nan_count += std::isnan(x), s.inf_count += std::isinf(x);
    if (x < s.min) s.min = x;
    if (x > s.max) s.max = x;
    sum += x;
  }
  s.mean = static_cast<float>(sum / static_cast<long double>(v.size()));
  if (s.nan_count) s.min = s.max = s.mean = NAN;
  return s;
}

template <class T>
void check_statistics(const std::vector<float>& values, int64_t offset) {
  std::vector<T> raw(values.size() + static_cast<size_t>(offset));
  std::vector<float> exact;
  for (size_t i = 0; i < values.size(); ++i) {
    raw[i + static_cast<size_t>(offset)] = T(values[i]);
    exact.push_back(static_cast<float>(raw[i + static_cast<size_t>(offset)]));
  }
  const auto want = slow_statistics(exact);
  const auto got = record::statistics(TensorView(raw.data() + offset, {static_cast<int64_t>(values.size())}));
  const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  EXPECT_TRUE(same(got.min, want.min)) << got.min << " " << want.min << " n " << values.size();
  EXPECT_TRUE(same(got.max, want.max)) << got.max << " " << want.max;
  EXPECT_TRUE(same(got.mean, want.mean) || std::abs(got.mean - want.mean) <= 2e-6f * (1 + std::abs(want.mean)))
      << got.mean << " " << want.mean << " n " << values.size();
  EXPECT_EQ(got.nan_count, want.nan_count);
  EXPECT_EQ(got.inf_count, want.inf_count);
}

TEST(Statistics, AgreeWithTheirDefinition) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-200.0f, 200.0f);
  for (const size_t n : {1u, 31u, 32u, 33u, 64u, 127u, 4096u, 4097u, 70001u, 600000u}) {
    for (const int special : {0, 1, 2, 3}) {
      std::vector<float> v(n);
      for (float& x : v) x = uniform(random);
      if (special & 1) v[random() % n] = NAN;
      if (special & 2) v[random() % n] = INFINITY, v[random() % n] = -INFINITY;
      for (size_t i = 0; i < n; i += 7) v[i] *= 1e-4f;  // subnormals of the narrow types
      for (const int64_t offset : {0, 1}) {
        check_statistics<float>(v, offset);
        check_statistics<bf16_t>(v, offset);
        check_statistics<f16_t>(v, offset);
        check_statistics<e4m3_t>(v, offset);
        check_statistics<e5m2_t>(v, offset);
        check_statistics<double>(v, offset);
      }
    }
  }
}

/// The kernels of `of` (null where the machine lacks their instructions) against the portable ones.
template <class KernelOf>
void expect_as_portable(KernelOf of) {
  namespace detail = record::stats_detail;
  if (!of(DType::kF32)) GTEST_SKIP() << "this CPU lacks the instructions";
  std::mt19937 random(2);
  std::vector<uint32_t> words(4096);
  for (const DType t : {DType::kF32, DType::kBF16, DType::kF16, DType::kF8E4M3, DType::kF8E5M2}) {
    for (uint32_t& w : words) w = random() & 0x3fff3fffu;  // finite in each type
    detail::Lanes portable{}, other{};
    detail::portable_kernel(t)(words.data(), 4096, portable);
    const auto kernel = of(t);
    ASSERT_NE(kernel, nullptr) << name(t);
    kernel(words.data(), 4096, other);
    EXPECT_EQ(std::memcmp(&portable, &other, sizeof portable), 0) << name(t);
  }
}
TEST(Statistics, TheSameWithAvx2) { expect_as_portable(record::stats_detail::avx2_kernel); }
TEST(Statistics, TheSameWithAvx512) { expect_as_portable(record::stats_detail::avx512_kernel); }

TEST(Statistics, IntegersOverflowAndStrides) {
  const std::vector<int64_t> big = {int64_t{1} << 40, -1, 7};
  auto s = record::statistics(TensorView(big.data(), {3}));
  EXPECT_EQ(s.int_min, -1);
  EXPECT_EQ(s.int_max, int64_t{1} << 40);
  EXPECT_EQ(s.mean, static_cast<float>((double{1ll << 40} + 6) / 3));
  std::vector<uint8_t> bytes(100000, 255);
  bytes[77777] = 3;
  s = record::statistics(TensorView(bytes.data(), {100000}));
  EXPECT_EQ(s.int_min, 3);
  EXPECT_EQ(s.int_max, 255);
  const std::vector<float> large(64, 3e38f);  // finite, but their float sum is not
  s = record::statistics(TensorView(large.data(), {64}));
  EXPECT_EQ(s.inf_count, 0);
  EXPECT_EQ(s.mean, 3e38f);
  std::vector<float> wide(400 * 50);
  for (size_t i = 0; i < wide.size(); ++i) wide[i] = i % 50 < 10 ? static_cast<float>(i % 50) : 1e9f;
  s = record::statistics(TensorView(wide.data(), {400, 50}).slice(1, 0, 10));
  EXPECT_EQ(s.max, 9.0f);
  EXPECT_EQ(s.mean, 4.5f);
  std::string none;
  record::append_statistics(none, TensorView(wide.data(), {0, 3}), 1);
  const bool flag = true;
  record::append_statistics(none, TensorView(&flag, {1}), 1);
  EXPECT_EQ(none, "");
}

}  // namespace
}  // namespace flashinfer::probe
