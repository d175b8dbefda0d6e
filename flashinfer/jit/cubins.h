// SPDX-License-Identifier: Apache-2.0
// The cubins of packages of precompiled kernels, which list them in an index.json (packaging/cubin/backend.py writes
// it).
#pragma once
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace flashinfer::jit {

struct PackagedCubin {
  std::string path;            // from the package's folder: "sm_90a/norm.rmsnorm-<hash>/kernel.cubin"
  std::string kernel, target;  // "norm.rmsnorm{...}", "sm_90a"
  std::string sha256;
  std::string folder;    // of the package
  bool present = false;  // on disk and whole
};

/// What the indices of aot_folders() list; folders without an index have none. An index that cannot be read is one
/// missing file, "index.json".
std::vector<PackagedCubin> packaged_cubins();

}  // namespace flashinfer::jit

#pragma GCC visibility pop
