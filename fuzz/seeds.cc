// SPDX-License-Identifier: Apache-2.0
// Writes the seed corpus: fuzz_seeds FOLDER makes FOLDER/{pickle,pt,safetensors,metadata}/*.
#include <cstdio>

#include "flashinfer/core/fs.h"
#include "flashinfer/formats/pt.h"

namespace {

using namespace flashinfer;

std::vector<std::vector<formats::NamedTensor>> samples(std::vector<Tensor>* owners) {
  std::vector<std::vector<formats::NamedTensor>> all(2);
  for (int d = 0; d < kNumDTypes; ++d) {
    owners->push_back(Tensor::zeros({2, 2}, static_cast<DType>(d)));
    all[0].push_back({str("k", d), owners->back().view()});
  }
  owners->push_back(Tensor::zeros({4, 6}, DType::kF32));
  const TensorView base = owners->back().view();
  all[1] = {{"arg_0", base},
            {"arg_1", base.transpose(0, 1)},
            {"kwarg_x", base.slice(1, 2, 4), true},
            {"row", base.select(0, 1)}};
  return all;
}

constexpr const char* kRecords[] = {
    R"({"function_name": "rmsnorm", "input_metadata": {"kwarg_eps": 1e-05, "arg_2": Infinity}, "tensor_details": {"arg_0": {"shape": [2, 3], "dtype": "torch.float32", "stride": [3, 1], "device": "cpu", "storage": 0, "storage_offset": 4}}})",
    R"({"input_metadata": {"a": {"type": "tuple", "length": 2, "items": [{"type": "torch.Tensor", "tensor_key": "arg_0"}, {"type": "torch.dtype", "value": "torch.float16"}], "truncated": false}, "b": {"type": "enum", "name": "K.A", "value": 1}, "c": {"type": "Generator", "seed": 1, "offset": 2}, "d": {"type": "device", "repr": "cpu"}, "e": {"type": "dict", "items": [{"key": 1, "value": null}]}, "f": {"type": "complex", "value": [1, {"type": "float", "value": "nan"}]}}})",
    R"({"tensor_details": {"arg_1": {"shape": [8, 3], "dtype": "torch.float32", "stride": [3, 1], "stored": "pages", "page_dim": 0}, "w": {"shape": [16], "dtype": "torch.uint8", "stride": [1], "stored": "description"}}})"
    "\n{\"function_na"};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
    return 2;
  }
  const std::filesystem::path root = argv[1];
  for (const char* kind : {"pickle", "pt", "safetensors", "metadata"}) fs::make_dirs(root / kind);
  std::vector<Tensor> owners;
  int i = 0;
  for (const auto& tensors : samples(&owners)) {
    const std::string name = std::to_string(i++);
    formats::write_pt(root / "pt" / name, tensors);
    formats::write_safetensors(root / "safetensors" / name, tensors);
    fs::write_plain(root / "pickle" / name, formats::pickle_tensors(tensors, formats::plan_storages(tensors)));
  }
  for (const char* record : kRecords)
    fs::write_plain(root / "metadata" / std::to_string(i++), std::string(record) + "\n");
}
