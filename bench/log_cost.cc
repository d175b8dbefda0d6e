// SPDX-License-Identifier: Apache-2.0
// What the log and the recorder cost, each beside the bare thing it cannot be cheaper than, in one run and interleaved:
// medians. Usage: bench_log_cost [folder] (default: the current one; its disk is what level 10 writes to).
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/clock.h"
#include "flashinfer/core/context.h"
#include "flashinfer/op/call.h"
#include "flashinfer/record/record.h"
#include "flashinfer/record/stats.h"

namespace {

using namespace flashinfer;
using namespace flashinfer::bench;

struct Nothing {
  TensorView a, b, c;
  std::optional<TensorView> out = {};
};
void launch(const Nothing&) {}
constexpr op::Field kFields[] = {op::in<&Nothing::a>("a", "n", DType::kF32), op::in<&Nothing::b>("b", "n", DType::kF32),
                                 op::in<&Nothing::c>("c", "n", DType::kF32),
                                 op::out<&Nothing::out>("out", "n", op::same_as("a"))};
constexpr op::Candidate kCandidates[] = {op::host<launch>()};
std::span<const op::Case> cases() { return {}; }
constinit const op::Op kOp = op::define<Nothing>("bench_nothing", "bench", "nothing", kFields, kCandidates, cases);

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Median seconds of each, in turns, `inner` runs at a time.
std::pair<double, double> in_turns(int rounds, int inner, const std::function<void()>& a,
                                   const std::function<void()>& b) {
  std::vector<double> x, y;
  for (int i = 0; i < rounds; ++i) {
    for (auto* side : {&x, &y}) {
      const auto& f = side == &x ? a : b;
      const double begin = now();
      for (int k = 0; k < inner; ++k) f();
      side->push_back((now() - begin) / inner);
    }
  }
  return {median(x), median(y)};
}

void write_all(int fd, const void* data, size_t n) {
  for (const char* p = static_cast<const char*>(data); n > 0;) {
    const ssize_t w = ::write(fd, p, n);
    if (w <= 0) return;
    p += w, n -= static_cast<size_t>(w);
  }
}

std::string file_text(const std::string& path) {
  std::string s;
  if (FILE* f = std::fopen(path.c_str(), "rb")) {
    char buffer[65536];
    for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, f)) > 0;) s.append(buffer, n);
    std::fclose(f);
  }
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = std::string(argc > 1 ? argv[1] : ".") + "/bench_log_cost." + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  std::vector<float> data(16), out(16);
  const TensorView small(data.data(), {16});
  const auto call = [&] { op::call(kOp, Nothing{small, small, small, TensorView(out.data(), {16})}); };
  const auto level = [&](int n) {
    record::Settings s;
    s.level = n;
    s.destination = folder + "/log" + std::to_string(n);
    s.dump_dir = folder + "/dumps";
    s.max_count = 1000000;
    record::configure(s);
  };

  level(0);
  const double none = in_turns(51, 2000, call, [] {}).first;
  std::printf("level 0, whole call          %8.3f us\n", none * 1e6);

  for (const int n : {1, 3}) {
    level(n);
    const size_t before = file_text(folder + "/log" + std::to_string(n)).size();
    call();
    const std::string text = file_text(folder + "/log" + std::to_string(n)).substr(before);
    const int fd = ::open((folder + "/bare").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_TRUNC, 0600);
    const size_t first = n == 1 ? text.size() : text.find("Output value:");
    const auto bare = [&] {
      write_all(fd, text.data(), first);
      if (first < text.size()) write_all(fd, text.data() + first, text.size() - first);
    };
    const auto [with, write] = in_turns(101, 200, call, bare);
    std::printf("level %d                      %8.3f us a call, bare write %.3f us, above it and level 0: %.3f us\n", n,
                with * 1e6, write * 1e6, (with - write - none) * 1e6);
    ::close(fd);
  }

  for (const DType t : {DType::kF32, DType::kBF16, DType::kF16, DType::kF8E4M3}) {
    const int64_t bytes = 256 << 20;
    const Tensor x = Tensor::zeros({bytes / size_of(t)}, t);
    const auto* words = x.data_as<uint64_t>();
    // Reading: the sum of all words, on the same threads in the same pieces.
    std::vector<uint64_t> sums(static_cast<size_t>(bytes >> 18));
    const auto read = [&] {
      parallel_for(bytes >> 18, [&](int64_t i) {
        uint64_t s[8] = {};
        for (int64_t k = 0; k < (1 << 15); k += 8)
          for (int j = 0; j < 8; ++j) s[j] += words[(i << 15) + k + j];
        sums[static_cast<size_t>(i)] = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
      });
    };
    float keep = 0;
    const auto [ours, plain] = in_turns(15, 1, [&] { keep += record::statistics(x.view()).mean; }, read);
    std::printf("statistics %-16s  %8.2f GB/s, reading %.2f GB/s: %.0f %%%s\n", std::string(name(t)).c_str(),
                static_cast<double>(bytes) / ours / 1e9, static_cast<double>(bytes) / plain / 1e9, 100 * plain / ours,
                keep == 1 && sums[0] == 1 ? "!" : "");
  }

  // Level 10: three 4 MB inputs and the result, the files' bytes written bare to as many files.
  const int64_t n = 1 << 20;
  std::vector<float> a(n, 1), b(n, 2), c(n, 3), result(n, 4);
  const auto large = [&](const std::vector<float>& v) { return TensorView(v.data(), {n}); };
  level(10);
  const auto recorded = [&] { op::call(kOp, Nothing{large(a), large(b), large(c), large(result)}); };
  const auto bare = [&] {
    for (const auto& [name, list] :
         {std::pair{"in", std::vector{&a, &b, &c, &result}}, {"out", std::vector{&result}}}) {
      const int fd = ::open((folder + "/dumps/" + name).c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
      for (const auto* v : list) write_all(fd, v->data(), v->size() * 4);
      ::close(fd);
    }
  };
  std::vector<double> with, write;
  for (int i = 0; i < 42; ++i) {  // what was written is removed before it goes to the disk: this is the page cache
    std::filesystem::remove_all(folder + "/dumps");
    std::filesystem::create_directories(folder + "/dumps");
    const double begin = now();
    i % 2 ? recorded() : bare();
    (i % 2 ? with : write).push_back(now() - begin);
  }
  std::printf(
      "level 10, 20 MB              %8.2f ms a call, bare write %.2f ms: %.2fx (with the text and its statistics)\n",
      median(with) * 1e3, median(write) * 1e3, median(with) / median(write));
  record::configure({});
  std::filesystem::remove_all(folder);
  return 0;
}
