// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <vector>

#include "flashinfer/core/check.h"
#include "flashinfer/formats/pt.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto copy = std::make_shared<std::vector<uint8_t>>(data, data + size);
  try {
    for (const auto& t : flashinfer::formats::read_safetensors(*copy, copy)) {
      volatile uint64_t sum = flashinfer::formats::checksum(t.tensor.view());
      (void)sum;
    }
  } catch (const flashinfer::Error&) {
  }
  return 0;
}
