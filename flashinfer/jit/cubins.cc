// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/cubins.h"

#include <nlohmann/json.hpp>

#include "flashinfer/core/fs.h"
#include "flashinfer/jit/cache.h"

namespace flashinfer::jit {
namespace {

std::vector<PackagedCubin> listed_in(const std::string& folder, const std::string& index) {
  std::vector<PackagedCubin> list;
  const nlohmann::json root = nlohmann::json::parse(index);
  for (const nlohmann::json& entry : root.at("cubins")) {
    PackagedCubin& c = list.emplace_back();
    c.folder = folder;
    entry.at("path").get_to(c.path);
    entry.at("kernel").get_to(c.kernel);
    entry.at("target").get_to(c.target);
    entry.at("sha256").get_to(c.sha256);
    c.present = read_artifact(folder + "/" + c.path.substr(0, c.path.rfind('/'))).has_value();
  }
  return list;
}

}  // namespace

std::vector<PackagedCubin> packaged_cubins() {
  std::vector<PackagedCubin> all;
  for (const std::string& folder : aot_folders()) {
    const auto index = fs::read_file(folder + "/index.json");
    if (!index) continue;
    try {
      for (PackagedCubin& c : listed_in(folder, *index)) all.push_back(std::move(c));
    } catch (const nlohmann::json::exception&) {
      all.push_back({"index.json", "index.json", "", "", folder, false});
    }
  }
  return all;
}

}  // namespace flashinfer::jit
