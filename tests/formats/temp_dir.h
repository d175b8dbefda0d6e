// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>

#include "flashinfer/core/fs.h"

namespace flashinfer::testing {

/// A folder that goes away with the object.
class TempDir {
 public:
  TempDir() : path_(fs::make_temp_dir(std::filesystem::temp_directory_path().string(), "fi_test_")) {}
  ~TempDir() { fs::remove_tree(path_.string()); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace flashinfer::testing
