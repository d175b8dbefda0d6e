// SPDX-License-Identifier: Apache-2.0
// A libcublasLt for tests: keeps the arguments it was passed, rejects what cuBLASLt documents as unsupported, and
// multiplies on the host when the stream's turn comes.
#pragma once
#include <string>
#include <vector>

#include "fake_cuda.h"
#include "flashinfer/core/cuda/cublaslt.h"

namespace fake {

struct LtMatrix {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t ld = 0, batch_offset = 0;
  int32_t batch = 1;
};
struct LtDescription {
  int compute = 0, scale = 0;
  int32_t transposed_a = 0, transposed_b = 0, bias_type = -1;
  uint32_t epilogue = 1;
  int8_t fast = 0;
  const void *bias = nullptr, *scale_a = nullptr, *scale_b = nullptr;
  int32_t scale_mode_a = 0, scale_mode_b = 0, pointers = 0;
};
struct LtCall {
  LtDescription description;
  LtMatrix a, b, d;
  const void *pa, *pb, *workspace;
  void* pd;
  size_t workspace_bytes;
  uint32_t alignment[4];  // passed to the heuristic
  Handle stream;
  size_t algorithm;
  const void *alpha, *beta;  // where they are on the device
};
struct Lt {
  size_t version = 130100;
  int heuristics = 0;            // how often it ran
  int fail = 0;                  // the status of the next product
  size_t workspace = 1024;       // what the algorithms need
  std::vector<double> ms = {1};  // what each of the heuristic's algorithms takes; below 0: it fails
  std::vector<LtCall> calls;
  Gpu* gpu = nullptr;  // set by the test: whose stream the products go to
};

}  // namespace fake

extern "C" fake::Lt* fake_lt();
