// SPDX-License-Identifier: Apache-2.0
// What the kernels take of an SM: registers, and none of them spilled. For every generation, and all kernels of the
// case tables, device_tests (Gpus) looks for spills.
#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/version.h"
#include "flashinfer/jit/nvrtc.h"
#include "flashinfer/jit/source.h"
#include "test_paths.h"

namespace flashinfer::jit {
namespace {

struct Kernel {
  const char *header, *config, *values, *params, *function;
  bool calls = false;  // its passes are functions: registers saved around a call would be reported as spills (36 bytes
                       // at most, NVRTC 13)
};
const Kernel kKernels[] = {
    {"norm/kernels/cuda/norm", "NormCudaConfig",
     ".dtype = DType::kBF16, .weight = DType::kBF16, .fused_add = 1, .aligned = 1, .group = 256, .threads = 256",
     "NormParams", "rmsnorm"},
    {"norm/kernels/cuda/norm", "NormCudaConfig",
     ".dtype = DType::kF16, .weight = DType::kF32, .aligned = 0, .group = 32, .threads = 128", "NormParams", "rmsnorm"},
    {"norm/kernels/cuda/norm", "LayerNormCudaConfig",
     ".dtype = DType::kBF16, .aligned = 1, .group = 512, .threads = 512", "NormParams", "layernorm"},
    {"activation/kernels/cuda/activation", "ActCudaConfig",
     ".dtype = DType::kBF16, .kind = Activation::kSilu, .aligned = 1, .threads = 256", "ActParams", "act_and_mul"},
    {"activation/kernels/cuda/activation", "ActCudaConfig",
     ".dtype = DType::kF32, .kind = Activation::kGelu, .aligned = 0, .threads = 256", "ActParams", "act_and_mul"},
    {"rope/kernels/cuda/rope", "RopeCudaConfig", ".dtype = DType::kBF16, .interleave = 0, .aligned = 1, .threads = 128",
     "RopeParams", "rope"},
    {"rope/kernels/cuda/rope", "RopeCudaConfig", ".dtype = DType::kF16, .interleave = 1, .aligned = 0, .threads = 128",
     "RopeParams", "rope"},
    {"page/kernels/cuda/page", "AppendCudaConfig", ".item = 2, .aligned = 1, .threads = 128", "AppendParams",
     "append_paged"},
    {"page/kernels/cuda/page", "AppendCudaConfig", ".item = 1, .aligned = 0, .threads = 128", "AppendParams",
     "append_paged"},
    {"cascade/kernels/cuda/merge", "MergeCudaConfig",
     ".dtype = DType::kBF16, .out = DType::kBF16, .aligned = 1, .threads = 128", "MergeParams", "merge_states"},
    {"sampling/kernels/cuda/sampling", "SoftmaxCudaConfig",
     ".dtype = DType::kBF16, .temperature = DType::kF32, .aligned = 1, .threads = 512", "SoftmaxCudaParams", "softmax"},
    {"sampling/kernels/cuda/sample", "SampleCudaConfig", ".dtype = DType::kF32, .threads = 256", "SampleCudaParams",
     "sample", true},
    {"sampling/kernels/cuda/sample", "SampleCudaConfig", ".dtype = DType::kBF16, .threads = 256", "FilterCudaParams",
     "filter", true},
    {"sampling/kernels/cuda/chain", "SampleCudaConfig", ".dtype = DType::kF32, .threads = 256", "ChainCudaParams",
     "chain", true},
    {"sampling/kernels/cuda/gumbel", "SampleCudaConfig", ".dtype = DType::kBF16, .threads = 256", "SampleCudaParams",
     "gumbel"},
    {"sampling/kernels/cuda/gumbel", "SampleCudaConfig", ".dtype = DType::kF32, .threads = 128", "SampleCudaParams",
     "gumbel_last"},
    {"attention/kernels/cuda/attention", "AttentionCudaConfig",
     ".q = DType::kBF16, .kv = DType::kBF16, .o = DType::kBF16, .warps_k = 4, .dqk = 128, .dvo = 128, .threads = 128, "
     ".copy = 16",
     "AttentionCudaParams", "attention"},
    {"attention/kernels/cuda/attention", "AttentionCudaConfig",
     ".q = DType::kF16, .kv = DType::kF16, .o = DType::kF16, .warps_k = 1, .dqk = 128, .dvo = 128, .threads = 256, "
     ".copy "
     "= 16",
     "AttentionCudaParams", "attention"},
    {"attention/kernels/cuda/attention", "AttentionCudaConfig",
     ".q = DType::kBF16, .kv = DType::kBF16, .o = DType::kBF16, .warps_k = 1, .dqk = 256, .dvo = 256, .threads = 128, "
     ".copy = 16",
     "AttentionCudaParams", "attention"},
    {"attention/kernels/cuda/attention", "AttentionCudaConfig",
     ".q = DType::kBF16, .kv = DType::kBF16, .o = DType::kBF16, .warps_k = 1, .wide = 1, .dqk = 128, .dvo = 128, "
     ".threads = 128, .copy = 16",
     "AttentionCudaParams", "attention"},
    {"attention/kernels/cuda/attention", "AttentionCudaConfig",
     ".q = DType::kBF16, .kv = DType::kBF16, .o = DType::kBF16, .warps_k = 1, .wide = 1, .held = 4, .dqk = 64, .dvo = "
     "64, .threads = 128, .copy = 16",
     "AttentionCudaParams", "attention"},
    {"attention/kernels/cuda/attention", "AttentionCudaConfig",
     ".q = DType::kBF16, .kv = DType::kBF16, .o = DType::kBF16, .warps_k = 4, .dqk = 512, .dvo = 256, .threads = 128, "
     ".copy = 16, .halves = 1",
     "AttentionCudaParams", "attention"},
    {"attention/kernels/cuda/attention", "AttentionCudaConfig",
     ".q = DType::kBF16, .kv = DType::kBF16, .o = DType::kBF16, .warps_k = 1, .dqk = 512, .dvo = 256, .threads = 128, "
     ".copy = 16, .halves = 1",
     "AttentionCudaParams", "attention"},
    {"attention/kernels/cuda/attention", "AttentionCudaConfig",
     ".q = DType::kBF16, .kv = DType::kBF16, .o = DType::kBF16, .warps_k = 4, .dqk = 72, .dvo = 72, .threads = 128, "
     ".copy = 16",
     "AttentionCudaParams", "attention"},
    {"attention/kernels/cuda/attention", "AttentionCudaConfig",
     ".q = DType::kBF16, .kv = DType::kF8E4M3, .o = DType::kBF16, .warps_k = 4, .dqk = 128, .dvo = 128, .threads = "
     "128, .copy = 16",
     "AttentionCudaParams", "attention"},
    {"attention/kernels/cuda/attention", "AttentionCudaConfig",
     ".q = DType::kF8E4M3, .kv = DType::kF8E4M3, .o = DType::kBF16, .warps_k = 1, .dqk = 128, .dvo = 128, .threads = "
     "256, .copy = 16",
     "AttentionCudaParams", "attention"},
    {"attention/kernels/cuda/attention", "AttentionCudaConfig",
     ".q = DType::kBF16, .kv = DType::kF8E5M2, .o = DType::kBF16, .warps_k = 1, .dqk = 256, .dvo = 256, .threads = "
     "128, .copy = 8",
     "AttentionCudaParams", "attention"},
    {"attention/kernels/cuda/attention", "AttentionCudaConfig",
     ".q = DType::kBF16, .kv = DType::kF4E2M1x2, .o = DType::kBF16, .warps_k = 4, .dqk = 128, .dvo = 128, .threads = "
     "128, .copy = 16, .scale_copy = 8",
     "AttentionCudaParams", "attention"},
    {"attention/kernels/cuda/attention", "AttentionCudaConfig",
     ".q = DType::kBF16, .kv = DType::kF4E2M1x2, .o = DType::kBF16, .warps_k = 1, .dqk = 256, .dvo = 256, .threads = "
     "128, .copy = 8, .scale_copy = 1",
     "AttentionCudaParams", "attention"},
    {"attention/kernels/cuda/pair", "AttentionCudaConfig",
     ".q = DType::kBF16, .kv = DType::kBF16, .o = DType::kBF16, .warps_k = 1, .wide = 1, .dqk = 128, .dvo = 128, "
     ".threads = 128, .copy = 16",
     "AttentionPairParams", "attention_pair"},
    {"attention/kernels/cuda/pair", "AttentionCudaConfig",
     ".q = DType::kBF16, .kv = DType::kBF16, .o = DType::kBF16, .warps_k = 1, .wide = 1, .held = 4, .dqk = 64, .dvo = "
     "64, .threads = 128, .copy = 16",
     "AttentionPairParams", "attention_pair"},
    {"attention/kernels/cuda/pair", "AttentionCudaConfig",
     ".q = DType::kBF16, .kv = DType::kBF16, .o = DType::kBF16, .warps_k = 1, .dqk = 256, .dvo = 256, .threads = 128, "
     ".copy = 16",
     "AttentionPairParams", "attention_pair"},
    {"attention/kernels/cuda/pair", "AttentionCudaConfig",
     ".q = DType::kBF16, .kv = DType::kBF16, .o = DType::kBF16, .warps_k = 1, .dqk = 512, .dvo = 256, .threads = 128, "
     ".copy = 16, .halves = 1",
     "AttentionPairParams", "attention_pair"},
    {"attention/kernels/cuda/pair", "AttentionCudaConfig",
     ".q = DType::kBF16, .kv = DType::kF8E4M3, .o = DType::kBF16, .warps_k = 1, .dqk = 128, .dvo = 128, .threads = "
     "128, "
     ".copy = 16",
     "AttentionPairParams", "attention_pair"},
    {"attention/kernels/cuda/pair", "AttentionCudaConfig",
     ".q = DType::kBF16, .kv = DType::kBF16, .o = DType::kBF16, .warps_k = 4, .dqk = 128, .dvo = 128, .threads = 128, "
     ".copy = 16",
     "AttentionPairParams", "attention_pair"},
    {"attention/kernels/cuda/pair", "AttentionCudaConfig",
     ".q = DType::kBF16, .kv = DType::kF4E2M1x2, .o = DType::kBF16, .warps_k = 4, .dqk = 128, .dvo = 128, .threads = "
     "128, .copy = 16, .scale_copy = 8",
     "AttentionPairParams", "attention_pair"},
    {"mla/kernels/cuda/mla", "MlaCudaConfig",
     ".q = DType::kBF16, .query = DType::kBF16, .kv = DType::kBF16, .o = DType::kBF16, .rows = 16, .keys = 32, .ckv = "
     "512, .kpe = 64, .threads = 128, .copied = 16",
     "MlaCudaParams", "mla"},
    {"mla/kernels/cuda/mla", "MlaCudaConfig",
     ".q = DType::kBF16, .query = DType::kBF16, .kv = DType::kBF16, .o = DType::kBF16, .rows = 64, .keys = 32, .ckv = "
     "512, .kpe = 64, .threads = 256, .copied = 16",
     "MlaCudaParams", "mla"},
    {"mla/kernels/cuda/mla", "MlaCudaConfig",
     ".q = DType::kBF16, .query = DType::kBF16, .kv = DType::kF8E4M3, .o = DType::kBF16, .rows = 64, .keys = 32, .ckv "
     "= 512, .kpe = 64, .threads = 256, .copied = 16",
     "MlaCudaParams", "mla"},
    {"mla/kernels/cuda/mla", "MlaCudaConfig",
     ".q = DType::kBF16, .query = DType::kBF16, .kv = DType::kF8E4M3, .o = DType::kBF16, .rows = 64, .keys = 32, .ckv "
     "= 512, .kpe = 64, .threads = 256, .copied = 16, .packed = 1",
     "MlaCudaParams", "mla"},
    {"mla/kernels/cuda/mla_simt", "MlaCoresConfig",
     ".q = DType::kBF16, .kv = DType::kF8E4M3, .o = DType::kBF16, .grouped = 0, .packed = 1, .rows = 16, .keys = 16, "
     ".ckv = 512, .kpe = 64, .threads = 128",
     "MlaCudaParams", "mla_cores"},
    {"mla/kernels/cuda/mla_simt", "MlaCoresConfig",
     ".q = DType::kF32, .kv = DType::kF32, .o = DType::kF32, .grouped = 0, .rows = 16, .keys = 16, .ckv = 512, .kpe = "
     "64, .threads = 128",
     "MlaCudaParams", "mla_cores"},
    {"attention/kernels/cuda/attention_simt", "AttentionCoresConfig",
     ".q = DType::kBF16, .kv = DType::kF8E4M3, .o = DType::kBF16, .rows = 4, .dqk = 128, .dvo = 128, .rope = 0, "
     ".threads = 128",
     "AttentionCudaParams", "attention_cores"},
    {"attention/kernels/cuda/attention_simt", "AttentionCoresConfig",
     ".q = DType::kBF16, .kv = DType::kF8E4M3, .o = DType::kBF16, .rows = 4, .dqk = 192, .dvo = 128, .rope = 1, "
     ".threads = 128",
     "AttentionCudaParams", "attention_cores"},
    {"attention/kernels/cuda/attention_simt", "AttentionCoresConfig",
     ".q = DType::kF32, .kv = DType::kF32, .o = DType::kF32, .rows = 4, .dqk = 256, .dvo = 256, .rope = 0, .threads = "
     "128",
     "AttentionCudaParams", "attention_cores"},
    {"comm/kernels/cuda/all_reduce", "AllReduceCudaConfig",
     ".dtype = DType::kBF16, .weight = DType::kBF16, .way = AllReduceWay::kOneShot, .aligned = 1, .ranks = 8, .threads "
     "= 256",
     "AllReduceCudaParams", "all_reduce"},
    {"comm/kernels/cuda/all_reduce", "AllReduceCudaConfig",
     ".dtype = DType::kBF16, .weight = DType::kBF16, .norm = 1, .quant = AllReduceQuant::kNvfp4, .way = "
     "AllReduceWay::kOneShot, .aligned = 1, .ranks = 8, .threads = 512",
     "AllReduceCudaParams", "all_reduce"},
    {"comm/kernels/cuda/all_reduce", "AllReduceCudaConfig",
     ".dtype = DType::kBF16, .weight = DType::kF32, .norm = 1, .quant = AllReduceQuant::kGroupFp8, .way = "
     "AllReduceWay::kTwoShots, .aligned = 1, .ranks = 4, .threads = 512",
     "AllReduceCudaParams", "all_reduce"},
    {"comm/kernels/cuda/all_reduce", "AllReduceCudaConfig",
     ".dtype = DType::kF16, .weight = DType::kF16, .way = AllReduceWay::kScatter, .aligned = 1, .ranks = 8, .threads = "
     "256",
     "AllReduceCudaParams", "all_reduce"},
    {"comm/kernels/cuda/all_reduce", "AllReduceCudaConfig",
     ".dtype = DType::kBF16, .weight = DType::kBF16, .norm = 1, .quant = AllReduceQuant::kDynamicFp8, .way = "
     "AllReduceWay::kGathered, .aligned = 0, .ranks = 8, .threads = 256",
     "AllReduceCudaParams", "all_reduce"},
    {"comm/kernels/cuda/columns", "ColumnsCudaConfig",
     ".way = ColumnsWay::kPeers, .unit = 16, .ranks = 8, .threads = 256", "ColumnsCudaParams", "move_columns"},
    {"comm/kernels/cuda/columns", "ColumnsCudaConfig",
     ".way = ColumnsWay::kMerge, .unit = 2, .ranks = 4, .threads = 256", "ColumnsCudaParams", "move_columns"},
    {"comm/kernels/cuda/mixed_comm", "MixedCommCudaConfig",
     ".dtype = DType::kBF16, .peers = 1, .aligned = 1, .threads = 256", "MixedCommCudaParams", "mixed_comm"},
    {"comm/kernels/cuda/quantized_sum", "QuantizedSumCudaConfig",
     ".way = QuantizedSumWay::kPeers, .aligned = 1, .threads = 256", "QuantizedSumCudaParams", "quantized_sum"},
    {"comm/kernels/cuda/cp_reduce", "CpReduceCudaConfig",
     ".dtype = DType::kBF16, .peers = 1, .aligned = 1, .threads = 128", "CpReduceCudaParams", "cp_reduce"},
    {"comm/kernels/cuda/cp_reduce", "CpReduceCudaConfig",
     ".dtype = DType::kF16, .peers = 0, .aligned = 0, .threads = 128", "CpReduceCudaParams", "cp_reduce"},
    {"comm/kernels/cuda/moe_dispatch", "MoeA2aCudaConfig", ".threads = 256", "MoePlanCudaParams", "moe_plan"},
    {"comm/kernels/cuda/moe_dispatch", "MoeA2aCudaConfig", ".threads = 256", "MoeSendCudaParams", "moe_send"},
    {"comm/kernels/cuda/moe_dispatch", "MoeA2aCudaConfig", ".threads = 256", "MoeSanitizeCudaParams", "moe_sanitize"},
    {"comm/kernels/cuda/moe_combine", "MoeShareCudaConfig", ".narrow = 1, .unit = 16, .threads = 256",
     "MoeShareCudaParams", "moe_share"},
    {"comm/kernels/cuda/moe_combine", "MoeShareCudaConfig", ".narrow = 0, .unit = 2, .threads = 256",
     "MoeShareCudaParams", "moe_share"},
    {"comm/kernels/cuda/moe_combine", "MoeCombineCudaConfig",
     ".payload = DType::kBF16, .out = DType::kBF16, .aligned = 1, .threads = 256", "MoeCombineCudaParams",
     "moe_combine"},
    {"comm/kernels/cuda/moe_combine", "MoeCombineCudaConfig",
     ".payload = DType::kBF16, .out = DType::kF8E4M3, .quant = MoeCombineQuant::kMxfp8, .aligned = 0, .threads = 128",
     "MoeCombineCudaParams", "moe_combine"},
    {"comm/kernels/cuda/moe_combine", "MoeCombineCudaConfig",
     ".payload = DType::kF32, .out = DType::kU8, .quant = MoeCombineQuant::kNvfp4, .aligned = 1, .threads = 256",
     "MoeCombineCudaParams", "moe_combine"},
};

const std::vector<std::string> kNoSpills = {"--ptxas-options=--warn-on-spills", "--ptxas-options=--warning-as-error"};

/// Registers a thread: what the cubin's section .nv.info says (attribute 0x2f: symbol, count).
uint32_t registers_of(const std::string& image) {
  const auto read = [&]<class T>(size_t at, T) {
    T x;
    std::memcpy(&x, image.data() + at, sizeof x);
    return x;
  };
  const Elf64_Ehdr head = read(0, Elf64_Ehdr{});
  const auto section = [&](uint32_t i) { return read(head.e_shoff + i * head.e_shentsize, Elf64_Shdr{}); };
  const Elf64_Shdr names = section(head.e_shstrndx);
  uint32_t most = 0;
  for (uint32_t i = 0; i < head.e_shnum; ++i) {
    const Elf64_Shdr s = section(i);
    if (std::string_view(image.data() + names.sh_offset + s.sh_name) != ".nv.info") continue;
    for (size_t at = s.sh_offset; at + 4 <= s.sh_offset + s.sh_size;) {
      const bool list = image[at] == 4;  // else the value is in the two bytes of the size
      const size_t bytes = list ? read(at + 2, uint16_t{}) : 0;
      if (list && image[at + 1] == 0x2f) most = std::max(most, read(at + 8, uint32_t{}));
      at += 4 + bytes;
    }
  }
  return most;
}

/// sm_90: 65536 registers, given out in 256 a warp; 64 warps. The table of docs/cuda.md.
void print_registers(const Kernel& k, const std::string& image) {
  const uint32_t registers = registers_of(image),
                 threads = static_cast<uint32_t>(std::atoi(std::strstr(k.values, ".threads = ") + 11));
  ASSERT_GT(registers, 0u);
  const uint32_t blocks = std::min(65536 / (round_up(registers * 32, 256)) / (threads / 32), 64 / (threads / 32));
  std::cout << k.function << "{" << k.values << "}: " << registers << " registers, " << blocks << " blocks of "
            << threads << " threads an SM, " << blocks * threads / 32 << " of 64 warps\n";
}

TEST(NvrtcKernels, CompileWithoutSpillsAndSayWhatTheyTake) {
  const std::string python = FI_TEST_PYTHON;
  ::setenv("VIRTUAL_ENV", python.substr(0, python.rfind("/bin/")).c_str(), 1);
  env::reload();
  // DecodeLeavesRoomForThreeBlocks calls NVRTC there, too.
  if (*build::sanitizer_flags()) GTEST_SKIP() << "NVRTC has no sanitizer, and the plain build compiles the same";
  ASSERT_EQ(nvrtc().why_not, "") << "the test packages are not installed";
  for (const Kernel& k : kKernels) {
    const std::string source =
        str("#include \"flashinfer/ops/", k.header, ".cuh\"\nusing namespace flashinfer;\ninline constexpr ", k.config,
            " kConfig{", k.values, "};\nFI_CUDA_ENTRY(", k.params, ", kConfig, cu::", k.function, "<kConfig>)\n");
    std::string image;
    EXPECT_NO_THROW(
        image = nvrtc_compile(source, "sm_90a", include_root(), k.calls ? std::vector<std::string>() : kNoSpills))
        << k.function << "{" << k.values << "}";
    EXPECT_NE(image.find("flashinfer_kernel"), std::string::npos) << k.function;
    if (!image.empty()) print_registers(k, image);
  }
}

/// A decode step waits for memory: it needs blocks to switch between. sm_90: 65536 registers (given out in 256 a warp),
/// 228 KB of shared memory (1 KB of each block is the system's), 64 warps.
TEST(NvrtcKernels, DecodeLeavesRoomForThreeBlocks) {
  const Kernel* decode = nullptr;
  for (const Kernel& k : kKernels)
    if (k.function == std::string_view("attention") &&
        std::string_view(k.values).find("kF4E2M1x2, .o = DType::kBF16, .warps_k = 4") != std::string_view::npos)
      decode = &k;
  ASSERT_NE(decode, nullptr);
  const std::string image = nvrtc_compile(
      str("#include \"flashinfer/ops/", decode->header, ".cuh\"\nusing namespace flashinfer;\ninline constexpr ",
          decode->config, " kConfig{", decode->values, "};\nFI_CUDA_ENTRY(", decode->params,
          ", kConfig, cu::", decode->function, "<kConfig>)\n"),
      "sm_90a", include_root());
  constexpr uint32_t kWarps = 4, kShared = 47616;  // of a block: 128 threads; AttentionCudaConfig::shared_bytes()
  const uint32_t registers = registers_of(image), of_warp = round_up(registers * 32, 256);
  ASSERT_GT(registers, 0u);
  const uint32_t by_registers = 65536 / of_warp / kWarps, by_shared = 228 * 1024 / (kShared + 1024),
                 blocks = std::min({by_registers, by_shared, 64 / kWarps});
  std::cout << "decode of an NVFP4 cache, D 128, on sm_90a: " << registers << " registers, " << kShared
            << " bytes of shared memory: " << by_registers << " and " << by_shared << " blocks an SM, "
            << blocks * kWarps << " of 64 warps\n";
  EXPECT_GE(blocks, 3u);
}

TEST(NvrtcKernels, ASpillIsAnError) {
  const std::string source = R"(
extern "C" __global__ void __launch_bounds__(1024) flashinfer_kernel(float* p) {
  float x[128];
#pragma unroll
  for (int i = 0; i < 128; ++i) x[i] = p[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 128; ++i) p[i * 1024 + threadIdx.x] = x[127 - i] * x[i];
}
)";
  EXPECT_THROW(nvrtc_compile(source, "sm_90a", {}, kNoSpills), RuntimeError);
  EXPECT_NO_THROW(nvrtc_compile(source, "sm_90a"));
}

/// Samplers give the CPU's bits: no FLASHINFER_EXTRA_CUDAFLAGS may change them silently.
TEST(NvrtcKernels, FlagsThatChangeBitsAreAnErrorWhereTheyCount) {
  const std::string source =
      "#include \"flashinfer/kernels/cuda/exact.h\"\nextern \"C\" __global__ void flashinfer_kernel() {}\n";
  EXPECT_NO_THROW(nvrtc_compile(source, "sm_80", include_root()));
  for (const char* flag : {"--use_fast_math", "--ftz=true", "--prec-div=false", "--prec-sqrt=false"})
    EXPECT_THROW(nvrtc_compile(source, "sm_80", include_root(), {flag}), RuntimeError) << flag;
}

}  // namespace
}  // namespace flashinfer::jit
