// SPDX-License-Identifier: Apache-2.0
// An op whose kernel does what a test sets, and helpers to read what the recorder left.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "flashinfer/formats/chunks.h"
#include "flashinfer/formats/json.h"
#include "flashinfer/formats/pt.h"
#include "flashinfer/op/call.h"
#include "flashinfer/record/record.h"

namespace flashinfer::probe {

/// out = alpha * x; counter += 1; the first page of the pool that kv_indices names is filled with alpha.
struct Probe {
  TensorView x;  // [n]
  double alpha = 1;
  std::string action = "compute";  // or throw, kill, segv, exit
  std::optional<TensorView> counter = {}, kv_indices = {}, workspace = {};
  std::optional<op::PagedKv> pool = {};
  std::optional<TensorView> out = {};
};

inline void run_probe(const Probe& a) {
  if (a.action == "throw") throw ValueError("probe: asked to fail");
  if (a.action == "kill") raise(SIGKILL);
  if (a.action == "segv") {
    signal(SIGSEGV, SIG_DFL);  // sanitizers catch it and exit instead
    raise(SIGSEGV);
  }
  if (a.action == "exit") _exit(3);
  for (int64_t i = 0; i < a.x.size(0); ++i)
    a.out->data_as<float>()[i] = static_cast<float>(a.alpha) * a.x.data_as<float>()[i * a.x.stride(0)];
  if (a.counter) a.counter->data_as<float>()[0] += 1;
  if (a.pool) {
    const TensorView page = a.pool->first.select(0, op::index_at(*a.kv_indices, 0));
    for (int64_t i = 0; i < page.numel(); ++i) page.data_as<float>()[i] = static_cast<float>(a.alpha);
  }
}

inline constexpr op::Field kFields[] = {
    op::in<&Probe::x>("x", "n", DType::kF32, op::any_layout),
    op::attr<&Probe::alpha>("alpha"),
    op::attr<&Probe::action>("action"),
    op::inout<&Probe::counter>("counter", nullptr),
    op::in<&Probe::kv_indices>("kv_indices", nullptr, op::page_ids),
    op::scratch<&Probe::workspace>("workspace", nullptr),
    op::paged_inout<&Probe::pool>("pool", nullptr),
    op::out<&Probe::out>("out", "n", op::same_as("x")),
};
inline constexpr op::Candidate kCandidates[] = {op::host<run_probe>()};
inline std::span<const op::Case> no_cases() { return {}; }
inline constinit const op::Op kOp =
    op::define<Probe>("probe", "tests.record", "alpha * x", kFields, kCandidates, no_cases);
inline Tensor call(const Probe& a) { return op::call(kOp, a); }

/// A new folder that is removed at the end.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/fi_record_XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

inline std::vector<formats::Json> lines(const std::filesystem::path& file) {
  std::vector<formats::Json> out;
  std::istringstream in(read(file));
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) out.push_back(formats::parse_json(line));
  return out;
}

/// The folders of calls, in order of their sequence.
inline std::vector<std::filesystem::path> dumps(const std::filesystem::path& session) {
  std::vector<std::filesystem::path> out;
  if (std::filesystem::exists(session))
    for (const auto& e : std::filesystem::directory_iterator(session))
      if (e.is_directory() && e.path().filename() != "chunks") out.push_back(e.path());
  const auto sequence = [](const std::filesystem::path& p) {
    const auto l = lines(p / "metadata.jsonl");
    return l.empty() ? int64_t{0} : l[0]["sequence"].get<int64_t>();
  };
  std::sort(out.begin(), out.end(), [&](const auto& a, const auto& b) { return sequence(a) < sequence(b); });
  return out;
}

inline uint64_t bytes_under(const std::filesystem::path& folder,
                            const std::function<bool(const std::string&)>& counted) {
  uint64_t n = 0;
  for (const auto& e : std::filesystem::recursive_directory_iterator(folder))
    if (e.is_regular_file() && counted(e.path().filename().string())) n += e.file_size();
  return n;
}

inline int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

/// Runs `f` in a child; returns what waitpid says. The child never runs the test's own exit code.
inline int in_child(const std::function<void()>& f) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      f();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "child: %s\n", e.what());
      _exit(99);
    }
    _exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

/// 0, 1, 2, ...
inline std::vector<float> ramp(size_t n) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<float>(i);
  return v;
}

/// Settings of a recording into `folder`/dumps with the log in `folder`/log.
inline record::Settings recording(const Folder& folder) {
  record::Settings s;
  s.level = 10;
  s.destination = folder / "log";
  s.dump_dir = folder / "dumps";
  return s;
}

class RecordTest : public ::testing::Test {
 protected:
  void TearDown() override { record::configure({}); }
  Folder folder;
};

}  // namespace flashinfer::probe
