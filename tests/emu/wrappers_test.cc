// SPDX-License-Identifier: Apache-2.0
// The wrappers over the GPU's instructions: their emulated versions do what the layout pictures say, under several
// schedules; and NVRTC takes them.
#include <cmath>
#include <cstring>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/scalar.h"
#include "flashinfer/jit/nvrtc.h"
#include "planted.h"
#include "test_paths.h"

namespace flashinfer::emu {
namespace {

constexpr uint64_t kSeeds[] = {0, 1, 2};

struct Wrapper : Planted {
  Wrapper() { module_file = FI_TEST_LIBRARY("libemu_wrappers"); }
};

TEST(Wrappers, Fp8ProductsHaveTheLayoutOfThePicture) {
  for (const uint64_t seed : kSeeds) {
    Wrapper w;
    auto* bytes = reinterpret_cast<uint8_t*>(w.first(w.in));
    float *out = w.first(w.out), a[16][32], b[32][8], c[16][8];
    uint32_t random = 7;
    const auto number = [&](uint8_t& byte) {
      const e4m3_t x(static_cast<float>(static_cast<int>((random = random * 1664525u + 1013904223u) >> 24) % 31 - 15) /
                     4);
      byte = x.bits;
      return static_cast<float>(x);
    };
    for (int i = 0; i < 16; ++i)
      for (int k = 0; k < 32; ++k) a[i][k] = number(bytes[32 * i + k]);
    for (int j = 0; j < 8; ++j)
      for (int k = 0; k < 32; ++k) b[k][j] = number(bytes[512 + 32 * j + k]);
    for (int i = 0; i < 128; ++i) out[i] = c[i / 8][i % 8] = static_cast<float>(i);
    EXPECT_EQ(w.run("product_e4m3", launch(1, 32, 0), seed).error, "");
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j) {
        double sum = static_cast<double>(c[i][j]);
        for (int k = 0; k < 32; ++k) sum += static_cast<double>(a[i][k]) * static_cast<double>(b[k][j]);
        ASSERT_EQ(static_cast<double>(out[8 * i + j]), sum) << i << ", " << j;  // quarters: exact
      }
  }
}

TEST(Wrappers, EightBitFloatsBecomeF16Exactly) {
  Wrapper w;
  EXPECT_EQ(w.run("eight_bits", launch(1, 32, 0), 1).error, "");
  const auto* halves = reinterpret_cast<const f16_t*>(w.first(w.out));
  for (int kind = 0; kind < 4; ++kind)
    for (int i = 0; i < 256; ++i) {
      const int code = kind % 2 == 0 ? i : i / 4 * 4 + (i % 2 * 2 + i / 2 % 2);  // across: 0 2 1 3
      e4m3_t x;
      e5m2_t y;
      x.bits = y.bits = static_cast<uint8_t>(code);
      const float want = kind < 2 ? static_cast<float>(x) : static_cast<float>(y),
                  got = static_cast<float>(halves[256 * kind + i]);
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(got)) << "kind " << kind << ", code " << code << ": " << got;
      else
        EXPECT_EQ(got, want) << "kind " << kind << ", code " << code;
    }
}

TEST(Wrappers, StmatrixWritesTheTileAndNeedsABarrier) {
  for (const uint64_t seed : kSeeds) {
    for (const char* name : {"store_plain", "store_swizzled"}) {
      Wrapper w;
      EXPECT_EQ(w.run(name, launch(1, 32, 2048), seed).error, "") << name;
      for (int i = 0; i < 256; ++i) ASSERT_EQ(w.first(w.out)[i], static_cast<float>(i)) << name;
    }
    EXPECT_NE(Wrapper().run("store_without_sync", launch(1, 32, 2048), seed).error.find("data race at shared+0x"),
              std::string::npos);
  }
  const auto worst = [](const char* name) {
    double most = 0;
    for (const LineCount& l : Wrapper().run(name, launch(1, 32, 2048), 0, true).counts.lines)
      if (l.shared && l.write) most = std::fmax(most, static_cast<double>(l.units) / static_cast<double>(l.least));
    return most;
  };
  EXPECT_EQ(worst("store_swizzled"), 1.0);
}

TEST(Wrappers, PiecesOfOneToSixteenBytesArrive) {
  for (const uint64_t seed : kSeeds) {
    Wrapper w;
    EXPECT_EQ(w.run("copies", launch(1, 32, 512), seed).error, "");
    EXPECT_EQ(std::memcmp(w.first(w.out), w.first(w.in), 960 + 1024), 0);
  }
}

TEST(Wrappers, NamedBarriersHandATileOverAndBack) {
  for (const uint64_t seed : kSeeds) {
    Wrapper w;
    EXPECT_EQ(w.run("hand_over", launch(1, 64, 128), seed).error, "");
    for (int i = 0; i < 128; ++i) ASSERT_EQ(w.first(w.out)[i], w.first(w.in)[i / 32 * 32 + 31 - i % 32]);
    EXPECT_NE(Wrapper().run("hand_over_once", launch(1, 64, 128), seed).error,
              "");  // the tile is not given back: a race, or a barrier met twice
  }
}

TEST(Wrappers, BlocksOfAClusterReadEachOther) {
  for (const uint64_t seed : kSeeds) {
    Wrapper w;
    EXPECT_EQ(w.run("cluster_sum", launch(8, 32, 128, 4), seed).error, "");
    const float* in = w.first(w.in);
    for (int i = 0; i < 256; ++i) {
      float sum = 0;
      for (int b = 0; b < 4; ++b) sum += in[i / 128 * 128 + 32 * b + i % 32];
      ASSERT_EQ(w.first(w.out)[i], sum);  // whole numbers
    }
  }
}

TEST(Wrappers, SpecialFunctionsStayWithinTheirBounds) {
  Wrapper w;
  for (int l = 0; l < 32; ++l) w.first(w.in)[l] = 0.37f * static_cast<float>(l - 16) + 0.1f;
  EXPECT_EQ(w.run("special", launch(1, 32, 0), 0).error, "");
  for (int l = 0; l < 32; ++l) {
    const double x = static_cast<double>(w.first(w.in)[l]);
    const double want[] = {std::exp2(x), std::log2(x * x),      1 / x, 1 / std::fabs(x), std::tanh(x),
                           std::exp(x),  1 / (1 + std::exp(-x))};
    for (int i = 0; i < 7; ++i) {
      const double got = static_cast<double>(w.first(w.out)[8 * l + i]);
      EXPECT_NEAR(got, want[i], std::fmax(std::fabs(want[i]), 0.25) * 2e-6) << "function " << i << " of " << x;
    }
  }
}

TEST(Wrappers, CompileForEveryGenerationThatHasThem) {
  const std::string python = FI_TEST_PYTHON;
  ::setenv("VIRTUAL_ENV", python.substr(0, python.rfind("/bin/")).c_str(), 1);
  env::reload();
  ASSERT_EQ(jit::nvrtc().why_not, "") << "the test packages are not installed";
  std::string source = "#include \"tests/emu/kernels/wrappers.cuh\"\nusing namespace flashinfer;\n";
  for (const char* body : {"store_tile<true, false>", "store_tile<true, true>", "copies", "hand_over<true>",
                           "cluster_sum", "special", "eight_bits"})
    source += std::string("__device__ __noinline__ void call_") + std::to_string(source.size()) +
              "(const PlantedParams& p) { cu::" + body + "(p); }\n";
  std::string entry = "extern \"C\" __global__ void flashinfer_kernel(const __grid_constant__ PlantedParams p) {\n";
  for (size_t at = source.find("void call_"); at != std::string::npos; at = source.find("void call_", at + 1))
    entry += source.substr(at + 5, source.find('(', at) - at - 5) + "(p);\n";
  for (const char* arch : {"sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    // sm_75 has no m16n8k16 of bf16 and no cp.async, but none of these; products of fp8 begin with sm_89.
    const bool fp8 = std::string(arch) != "sm_75" && std::string(arch) != "sm_80";
    EXPECT_NO_THROW(
        jit::nvrtc_compile(source + entry + (fp8 ? "cu::product_e4m3(p);\n}\n" : "}\n"), arch, FI_TEST_SOURCE_ROOT))
        << arch;
  }
  EXPECT_THROW(jit::nvrtc_compile(source + entry + "cu::product_e4m3(p);\n}\n", "sm_80", FI_TEST_SOURCE_ROOT),
               RuntimeError);
}

}  // namespace
}  // namespace flashinfer::emu
