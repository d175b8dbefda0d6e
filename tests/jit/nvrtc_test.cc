// SPDX-License-Identifier: Apache-2.0
// Compiles for GPUs without one. NVRTC comes with the packages of the project's Python environment.
#include "flashinfer/jit/nvrtc.h"
#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/libraries.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/jit/source.h"
#include "test_paths.h"

namespace flashinfer::jit {
namespace {

constexpr const char* kSource = R"(
template <int N> __device__ float scaled(float x) { return N * x; }
extern "C" __global__ void scale(float* p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = scaled<3>(p[i]);
}
)";

/// Points the search at the project's environment, as its activation would.
class Nvrtc : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string python = FI_TEST_PYTHON;
    ::setenv("VIRTUAL_ENV", python.substr(0, python.rfind("/bin/")).c_str(), 1);
    env::reload();
  }
};

TEST_F(Nvrtc, IsFound) {
  EXPECT_EQ(nvrtc().why_not, "") << "the test packages are not installed";
  EXPECT_GE(nvrtc().major, 12);
  EXPECT_TRUE(fs::is_file(nvrtc().path)) << nvrtc().path;
}

/// FLASHINFER_NVRTC alone when it is set; else wheels of the active environments, then toolkits, then the loader's
/// path, the newest first.
TEST(NvrtcSearch, IsInTheDocumentedOrder) {
  const std::string root = fs::make_temp_dir("/tmp", "flashinfer-nvrtc-");
  const auto library = [&](const std::string& path) {
    fs::make_dirs(root + path.substr(0, path.rfind('/')));
    fs::write_atomic(root + path, "");
    return root + path;
  };
  const std::string wheel = library("/venv/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13"),
                    older = library("/venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"),
                    conda = library("/conda/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13"),
                    home = library("/home/lib64/libnvrtc.so.12"), newer = library("/home/lib64/libnvrtc.so.13"),
                    path = library("/path/targets/x86_64-linux/lib/libnvrtc.so.12");
  library("/venv/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc-builtins.so.13.0");
  library("/venv/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.alt.so.13");
  std::map<std::string, std::string> before;
  const auto set = [&](const char* name, const std::string& value) {
    const char* old = ::getenv(name);
    before.try_emplace(name, old ? old : "");
    ::setenv(name, value.c_str(), 1);
    env::reload();
  };
  set("FLASHINFER_NVRTC", ""), set("VIRTUAL_ENV", root + "/venv"), set("CONDA_PREFIX", root + "/conda"),
      set("CUDA_HOME", root + "/home"), set("CUDA_PATH", root + "/path");
  const cuda::OptionalLibrary nvrtc{"FLASHINFER_NVRTC", "libnvrtc.so", "nvidia-cuda-nvrtc"};
  std::string searched;
  std::vector<std::string> found = cuda::library_candidates(nvrtc, searched);
  std::erase_if(
      found, [&](const std::string& f) { return !f.starts_with(root) && f.find('/') != f.npos; });  // of this machine
  EXPECT_EQ(found, (std::vector<std::string>{wheel, older, conda, newer, home, path, "libnvrtc.so.13", "libnvrtc.so.12",
                                             "libnvrtc.so"}));
  EXPECT_TRUE(searched.starts_with(root + "/venv, " + root + "/conda, ")) << searched;
  EXPECT_TRUE(searched.ends_with("the loader's path")) << searched;
  const std::string running = library("/running/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  cuda::set_python_prefix(root + "/running");
  found = cuda::library_candidates(nvrtc, searched);
  EXPECT_EQ(std::ranges::find(found, running) - std::ranges::find(found, conda), 1);  // behind the active environments
  cuda::set_python_prefix(root + "/venv");
  found = cuda::library_candidates(nvrtc, searched);
  EXPECT_EQ(std::ranges::count(found, wheel), 1);  // the active one
  set("FLASHINFER_NVRTC", home);
  EXPECT_EQ(cuda::library_candidates(nvrtc, searched), std::vector<std::string>{home});
  EXPECT_EQ(searched, "FLASHINFER_NVRTC=" + home);
  for (const auto& [name, value] : before)
    value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
  env::reload();
  fs::remove_tree(root);
}

TEST_F(Nvrtc, MakesACubinForEachArchitecture) {
  std::set<uint32_t> flags;
  std::set<std::string> images;
  for (const char* arch : {"sm_80", "sm_90a", "sm_100a", "sm_120a"}) {
    const std::string image = nvrtc_compile(kSource, arch);
    ASSERT_GT(image.size(), sizeof(Elf64_Ehdr)) << arch;
    Elf64_Ehdr header;
    std::memcpy(&header, image.data(), sizeof(header));
    EXPECT_EQ(std::memcmp(header.e_ident, ELFMAG, SELFMAG), 0) << arch;
    EXPECT_EQ(header.e_machine, EM_CUDA) << arch;
    EXPECT_NE(image.find("scale"), std::string::npos) << arch;
    flags.insert(header.e_flags);  // names the architecture
    images.insert(image);
  }
  EXPECT_EQ(flags.size(), 4u);
  EXPECT_EQ(images.size(), 4u);
}

TEST_F(Nvrtc, OurFreestandingHeadersCompile) {
  const std::string source = R"(
#include "flashinfer/core/scalar.h"
extern "C" __global__ void widen(const flashinfer::bf16_t* x, float* y) { y[threadIdx.x] = static_cast<float>(x[threadIdx.x]); }
)";
  EXPECT_EQ(nvrtc_compile(source, "sm_90a", include_root()).substr(0, SELFMAG), ELFMAG);
}

TEST_F(Nvrtc, ErrorsCarryTheLogOrTheChoices) {
  try {
    nvrtc_compile("__global__ void f() { undeclared = 1; }", "sm_80");
    FAIL();
  } catch (const RuntimeError& e) {
    EXPECT_NE(std::string(e.what()).find("\"undeclared\" is undefined"), std::string::npos) << e.what();
  }
  EXPECT_THROW(nvrtc_compile(kSource, "compute_80"), ValueError);
  EXPECT_THROW(nvrtc_compile(kSource, "sm_"), ValueError);
  try {
    nvrtc_compile(kSource, "sm_20");
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("arch is sm_20, but this NVRTC ("), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace flashinfer::jit
