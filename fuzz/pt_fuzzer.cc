// SPDX-License-Identifier: Apache-2.0
// The zip reader and what a .pt file makes of its entries. Checksums are off: a fuzzer cannot guess them.
#include <memory>
#include <vector>

#include "flashinfer/core/check.h"
#include "flashinfer/formats/pt.h"

namespace {
uint64_t touch(const flashinfer::formats::Object& o) {
  uint64_t sum = o.tensor.defined() && o.tensor.numel() < 4096 ? flashinfer::formats::checksum(o.tensor.view()) : 0;
  for (const auto& item : o.items) sum += touch(item);
  return sum;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto copy = std::make_shared<std::vector<uint8_t>>(data, data + size);
  try {
    volatile uint64_t sum = touch(flashinfer::formats::load_pt(*copy, copy, false));
    (void)sum;
  } catch (const flashinfer::Error&) {
  }
  return 0;
}
