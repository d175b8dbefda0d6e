// SPDX-License-Identifier: Apache-2.0
// Findings, and code addresses as source lines.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace flashinfer::emu {

/// Source lines of return addresses inside one artifact (addr2line, once for each address).
class Lines {
 public:
  explicit Lines(const void* code);
  /// "norm/kernels/cuda/norm.cuh:33", then "< warp.h:80" for each function it was inlined into.
  std::string at(const void* pc);
  /// Resolves many addresses at once.
  void load(const std::vector<const void*>& pcs);
  uint32_t offset(const void* pc) const { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pc) - base_); }
  const void* pc(uint32_t offset) const { return reinterpret_cast<const void*>(base_ + offset); }
  bool inside(uintptr_t p) const { return p - base_ < bytes_; }

 private:
  std::string object_;
  uintptr_t base_ = 0, bytes_ = 0;
  std::map<uintptr_t, std::string> known_;
};

/// A report text with locations: "%1" and "%2" stand for source lines.
struct Finding {
  std::string text;
  const void* pc1 = nullptr;
  const void* pc2 = nullptr;
};
class Findings {
 public:
  static constexpr size_t kMost = 20;
  /// Keeps one of each kind and pair of locations.
  void add(const char* kind, Finding f);
  bool empty() const { return list_.empty(); }
  std::vector<std::string> sentences(Lines& lines) const;

 private:
  std::vector<Finding> list_;
  std::set<std::tuple<std::string, const void*, const void*>> seen_;
  uint64_t more_ = 0;
};

}  // namespace flashinfer::emu
