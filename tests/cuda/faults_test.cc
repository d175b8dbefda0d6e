// SPDX-License-Identifier: Apache-2.0
// Every reason for which a GPU cannot be used: an error that says what to do, after which the CPU works in the same
// process.
#include "call.h"
#include "flashinfer/ops/attention/op.h"
#include "test_paths.h"

namespace flashinfer {
namespace {

class Faults : public Call {
 protected:
  /// The call's error names what is wrong and what to do; then the CPU computes as ever.
  void expect_said(const std::vector<std::string>& parts, const std::function<void()>& f) {
    const std::string said = error(f);
    for (const std::string& part : parts) EXPECT_NE(said.find(part), std::string::npos) << said << "\nlacks: " << part;
    const Tensor y = rmsnorm({.input = x_, .weight = w_});
    EXPECT_NEAR(y.data_as<float>()[0], x_.span<float>()[0] * 2 / std::sqrt((25 + 16 + 9 + 4 + 1 + 0 + 1 + 4) / 8.0),
                1e-5);
  }
  void norm() { rmsnorm({.input = input_, .weight = weight_}); }
};

/// Tensors may come from somewhere else (DLPack) although this library finds no driver.
TEST_F(Faults, NoDriver) {
  set("FLASHINFER_LIBCUDA", "/nowhere/libcuda.so");
  again();
  expect_said({"NotImplementedError: rmsnorm: cuda: FLASHINFER_LIBCUDA is /nowhere/libcuda.so, which cannot be loaded"},
              [&] { norm(); });
  set("FLASHINFER_LIBCUDA", FI_TEST_LIBRARY("fake_libcuda"));
  again();
}
TEST_F(Faults, NoDevice) {
  gpu().devices = 0;
  again();
  expect_said({"the NVIDIA driver finds no GPU (CUDA_VISIBLE_DEVICES may hide it)"}, [&] { norm(); });
  gpu().devices = 1;
  again();
}
TEST_F(Faults, TooOldADriver) {
  gpu().version = 11080;
  again();
  expect_said({"the NVIDIA driver is for CUDA 11.8, but 12.0 or newer is needed: update it"}, [&] { norm(); });
  gpu().version = 13000;
  again();
}
TEST_F(Faults, NvrtcMissing) {
  set("FLASHINFER_NVRTC", "/nowhere/libnvrtc.so");
  again();
  expect_said({"libnvrtc was not found; searched FLASHINFER_NVRTC=/nowhere/libnvrtc.so",
               "pip install nvidia-cuda-nvrtc, or set FLASHINFER_NVRTC"},
              [&] { norm(); });
}
TEST_F(Faults, NvrtcTooOld) {
  set("FLASHINFER_NVRTC", FI_TEST_LIBRARY("fake_nvrtc"));
  set("FI_FAKE_NVRTC_MINOR", "3");
  again();
  expect_said({"NVRTC is 12.3 (", "but 12.4 or newer is needed: pip install -U nvidia-cuda-nvrtc"}, [&] { norm(); });
}
/// nvcc as the second toolchain: where it is searched for, the arguments passed to it, and its own message when it
/// fails.
TEST_F(Faults, NvccMissingAndFailing) {
  set("FLASHINFER_TOOLCHAIN", "nvcc");
  set("FLASHINFER_NVCC", "/nowhere/nvcc");
  again();
  expect_said(
      {"no nvcc: looked for /nowhere/nvcc (set FLASHINFER_NVCC or CUDA_HOME, or leave FLASHINFER_TOOLCHAIN at nvrtc)"},
      [&] { norm(); });
  const std::string nvcc = folder_ + "/nvcc", told = folder_ + "/told";
  fs::write_atomic(nvcc,
                   "#!/bin/sh\n[ \"$1\" = --version ] && echo 'release 13.0' && exit\nprintf '%s\\n' \"$@\" >" + told +
                       "\nwhile [ $# -gt 1 ]; do [ \"$1\" = -o ] && printf '\\177ELF and more' >\"$2\"; shift; done\n",
                   0700);
  set("FLASHINFER_NVCC", nvcc);
  set("FLASHINFER_JIT_LINEINFO", "1");
  set("FLASHINFER_EXTRA_CUDAFLAGS", "--maxrregcount=64 -Xptxas -v");
  again();
  EXPECT_EQ(error([&] { norm(); }), "");
  const std::string words = "\n" + fs::read_file(told).value_or("");
  for (const char* word : {"\n--gpu-architecture=sm_90a\n", "\n-cubin\n", "\n-lineinfo\n",
                           "\n--maxrregcount=64\n-Xptxas\n-v\n", "kernel.cu\n"})
    EXPECT_NE(words.find(word), std::string::npos) << word << words;
  fs::write_atomic(nvcc, "#!/bin/sh\necho 'kernel.cu(3): error: identifier \"x\" is undefined' >&2\nexit 2\n", 0700);
  set("FLASHINFER_EXTRA_CUDAFLAGS", "");
  again();
  expect_said({"kernel.cu(3): error: identifier \"x\" is undefined"}, [&] { norm(); });
}
TEST_F(Faults, AnArchTheCompilerDoesNotKnow) {
  set("FLASHINFER_NVRTC", FI_TEST_LIBRARY("fake_nvrtc"));
  set("FI_FAKE_NVRTC_MINOR", "4");
  gpu().major = 12, gpu().minor = 0;
  again();
  expect_said({"NVRTC 12.4 knows no code for Fake GPU (compute capability 12.0), which needs 12.8 or newer",
               "pip install -U nvidia-cuda-nvrtc"},
              [&] { norm(); });
}
TEST_F(Faults, OutOfDeviceMemory) {
  norm();
  cuda::synchronize(0, stream_->get());
  gpu().memory = gpu().allocated + 64;
  again();
  expect_said({"out of memory on cuda:0: 96 bytes were requested, 64 of "}, [&] { norm(); });
  gpu().memory = size_t{1} << 30;
  norm();  // memory came back
  cuda::synchronize(0, stream_->get());
}
TEST_F(Faults, ATensorOfAnotherDevice) {
  gpu().devices = 2;
  again();
  const Tensor other = to_device(w_.view(), {DeviceType::kCUDA, 1});
  expect_said({"rmsnorm", "weight is on cuda:1, but input is on cuda:0"},
              [&] { rmsnorm({.input = input_, .weight = other}); });
  expect_said({"cuda:7 is not there: the driver finds 2 GPUs (cuda:0 to cuda:1)"},
              [&] { Tensor::empty({1}, DType::kF32, {DeviceType::kCUDA, 7}); });
  cuda::synchronize(1, stream_->get());
}
TEST_F(Faults, MisalignedPointers) {
  const Tensor q = Tensor::zeros({4, 8, 64}, DType::kBF16, kGpu),
               k = Tensor::zeros({4 * 2 * 64 + 1}, DType::kBF16, kGpu);
  const TensorView off(static_cast<const char*>(k.data()) + 2, DType::kBF16, {4, 2, 64}, kGpu);
  expect_said({"rows of k and v must begin at 16 bytes"},
              [&] { single_prefill_with_kv_cache({.q = q, .k = off, .v = off}); });
  cuda::synchronize(0, stream_->get());
}
TEST_F(Faults, GridLimits) {
  const cuda::Function f = cuda::load("\177ELF and more", "flashinfer_kernel", 0);
  cuda::Launch l;
  l.grid[1] = 65536;
  const uint64_t params = 0;
  expect_said({"probe: grid.y is 65536, but must be in [1, 65535]: call with fewer rows at a time"},
              [&] { cuda::launch(f, &params, l, nullptr, "probe"); });
}
TEST_F(Faults, AStickyError) {
  gpu().kernel_status = cuda::kIllegalAddress;
  norm();  // asynchronous: nothing is known yet
  expect_said({"CUDA_ERROR_ILLEGAL_ADDRESS (700)", "a kernel launched earlier faulted",
               "this process can use the GPU no more (the CPU still works)", "FLASHINFER_DUMP_SYNC=1 names the call"},
              [&] { cuda::synchronize(0, stream_->get()); });
  expect_said({"(first seen at cuStreamSynchronize", "the CPU still works"}, [&] { norm(); });
  EXPECT_NE(cuda::why_no_device(0).find("the GPU faulted earlier in this process"), std::string::npos);
}
/// With FLASHINFER_DUMP_SYNC=1 the fault belongs to the call that caused it, and the one before it is completed.
TEST_F(Faults, AnAsynchronousFaultIsItsCalls) {
  record::Settings s = before_;
  s.level = 10, s.sync = true, s.destination = folder_ + "/log.txt", s.dump_dir = folder_ + "/dumps";
  record::configure(s);
  norm();
  gpu().kernel_status = cuda::kIllegalAddress;
  const std::string said = error([&] { norm(); });
  EXPECT_NE(said.find("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), std::string::npos) << said;
  std::vector<std::string> states;
  const std::string text = session();
  for (size_t at = 0; (at = text.find("\"execution_status\": \"", at)) != text.npos;) {
    at += 21;
    states.push_back(text.substr(at, text.find('"', at) - at));
  }
  EXPECT_EQ(states, (std::vector<std::string>{"inputs_saved", "completed", "inputs_saved", "failed"})) << text;
  EXPECT_NE(text.find("\"error\": {\"type\": \"RuntimeError\", \"message\": \"rmsnorm: cuda: "), std::string::npos)
      << text;
}

}  // namespace
}  // namespace flashinfer
