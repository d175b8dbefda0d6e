// SPDX-License-Identifier: Apache-2.0
// `flashinfer generate-tactics-blocklist`: FlashInfer tries the kernels of its autotuner on the GPU and lists those
// that fail. Kernels of this library are chosen by rules that tests hold, so the list for a GPU has none; a file of a
// program's own runners is written by flashinfer.tactics_blocklist.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "flashinfer/cli/cli.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/version.h"

namespace flashinfer::cli {
namespace {

struct Options {
  std::string output, device = "cuda:0";
  std::vector<std::string> modes;
  int64_t tokens = 64, experts = 256, hidden = 7168, intermediate = 2048, top_k = 8;
};

int index_of(const std::string& device) {
  int index = 0;
  const std::string_view number = std::string_view(device).substr(std::min<size_t>(5, device.size()));
  const auto end = number.data() + number.size();
  FI_CHECK(device == "cuda" || (device.starts_with("cuda:") && !number.empty() &&
                                std::from_chars(number.data(), end, index).ptr == end && index >= 0),
           ValueError, "--device is ", device, ", but must be cuda:N");
  return index;
}
std::string now() {
  const std::time_t t = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&t, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S+00:00", &utc);
  return text;
}

int run(const Options& o) {
  const int index = index_of(o.device);
  const std::string why = cuda::why_no_device(index);
  FI_CHECK(why.empty(), RuntimeError, "generate-tactics-blocklist is for a GPU, but ", o.device,
           " cannot be used: ", why);
  const std::string gpu = cuda::device_info(index).name;
  std::string path = o.output;
  if (path.empty()) {
    path = gpu;
    std::replace_if(path.begin(), path.end(), [](unsigned char c) { return !std::isalnum(c) && c != '-'; }, '_');
    path = "tactics_" + path + ".json";
  }
  const nlohmann::ordered_json file = {{"_metadata",
                                        {{"flashinfer_version", build::version()},
                                         {"cuda_version", "*"},
                                         {"gpu", gpu},
                                         {"cpu", "*"},
                                         {"generator_version", "1.0"},
                                         {"generated_at", now()}}},
                                       {"invalid_tactics", nlohmann::ordered_json::object()}};
  fs::write_atomic(path, file.dump(2) + "\n");
  print("%s: no tactics to leave out: this library chooses its kernels by rules, so that no kernel was tried\n%s\n",
        gpu.c_str(), path.c_str());
  return 0;
}

}  // namespace

void add_generate_tactics_blocklist(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("generate-tactics-blocklist",
                                   "Write the file of the autotuner's tactics that fail on a GPU: here it lists none");
  c->add_option("-o,--output", o->output, "the file; default tactics_<GPU>.json");
  c->add_option("--quant-modes", o->modes, "accepted: which mixtures FlashInfer tries")
      ->check(CLI::IsMember(
          {"NvFP4xNvFP4", "Fp8-Block", "NvFP4-CUTLASS", "Fp8-PerTensor-CUTLASS", "BF16-CUTLASS", "BF16-Relu2-CUTLASS"}))
      ->allow_extra_args(false);
  for (const auto& [name, value] :
       {std::pair("--num-tokens", &o->tokens), std::pair("--num-experts", &o->experts),
        std::pair("--hidden-size", &o->hidden), std::pair("--intermediate-size", &o->intermediate),
        std::pair("--top-k", &o->top_k)})
    c->add_option(name, *value, "accepted: the sizes that FlashInfer tries")->capture_default_str();
  c->add_option("--device", o->device, "the GPU")->capture_default_str();
  c->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace flashinfer::cli
