// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/check.h"
#include "flashinfer/formats/pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flashinfer;
  static uint8_t memory[256];
  try {
    formats::unpickle({data, size}, [](const std::string& key) -> formats::StorageMemory {
      return {memory, key.empty() ? 0 : static_cast<uint64_t>(key[0]), nullptr};
    });
  } catch (const Error&) {
  }
  return 0;
}
