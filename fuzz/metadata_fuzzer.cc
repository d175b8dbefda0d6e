// SPDX-License-Identifier: Apache-2.0
// A metadata file: the last whole record, its values, and where its details put tensors.
#include "flashinfer/core/check.h"
#include "flashinfer/replay/inputs.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flashinfer;
  try {
    std::vector<std::string> notes;
    const replay::Json record = replay::last_record({reinterpret_cast<const char*>(data), size}, &notes);
    const Tensor content = Tensor::zeros({2, 3}, DType::kF32), pages = Tensor::zeros({2}, DType::kI64);
    const auto& details = replay::object_of(record, "tensor_details");
    const auto tensors =
        replay::place({{"arg_0", content}, {"arg_1", content}, {"arg_1__pages", pages}}, details, std::nullopt);
    for (const auto& [key, value] : replay::object_of(record, "input_metadata").items()) replay::decode(value, tensors);
  } catch (const Error&) {
  }
  return 0;
}
