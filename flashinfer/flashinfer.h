// SPDX-License-Identifier: Apache-2.0
// flashinfer-cpp: the kernels of an LLM serving engine, for CPUs and GPUs, JIT-compiled.
//
//   #include <flashinfer/flashinfer.h>
//   using namespace flashinfer;
//
//   Tensor x = Tensor::zeros({4, 4096}, DType::kBF16);
//   Tensor w = Tensor::zeros({4096}, DType::kBF16);
//   Tensor y = rmsnorm({.input = x, .weight = w, .eps = 1e-5});   // named, in declaration order, with defaults
//   rmsnorm({.input = x, .weight = w, .out = x});                 // into the caller's memory
//
// Arguments are views (flashinfer/core/tensor.h), results own their memory, errors are exceptions that name the
// argument and both values (flashinfer/core/check.h), threads and memory are those of a context
// (flashinfer/core/context.h). With FLASHINFER_LOGLEVEL=1, 3, 5 or 10 every call is logged or recorded; `flashinfer
// replay` runs a recording again.
#pragma once
#include "flashinfer/cases/warmup.h"  // warmup(), is_available(): compile before serving
#include "flashinfer/core/check.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/tensor.h"
#include "flashinfer/core/transfer.h"  // to_device(): tensors on GPUs
#include "flashinfer/ops.h"            // generated: one include for each folder under flashinfer/ops
#include "flashinfer/record/record.h"  // record::start(), stop(), configure()
