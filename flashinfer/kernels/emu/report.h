// SPDX-License-Identifier: Apache-2.0
// Findings, and code addresses as source lines.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace flashinfer::emu {

/// Source lines of return addresses inside the artifacts of a run (addr2line, once for each address).
class Lines {
 public:
  explicit Lines(std::span<const void* const> code);
  /// "norm/kernels/cuda/norm.cuh:33", then "< warp.h:80" for each function it was inlined into.
  std::string at(const void* pc);
  /// Resolves many addresses at once.
  void load(const std::vector<const void*>& pcs);
  /// An address in 32 bits: the artifact, and the offset in it.
  uint32_t offset(const void* pc) const {
    const uintptr_t p = reinterpret_cast<uintptr_t>(pc);
    for (uint32_t i = 0; i < objects_.size(); ++i)
      if (p - objects_[i].base < objects_[i].bytes)
        return i << kOffsetBits | static_cast<uint32_t>(p - objects_[i].base);
    return 0;
  }
  const void* pc(uint32_t offset) const {
    return reinterpret_cast<const void*>(objects_[offset >> kOffsetBits].base + (offset & ((1u << kOffsetBits) - 1)));
  }
  bool inside(uintptr_t p) const {
    for (const Object& o : objects_)
      if (p - o.base < o.bytes) return true;
    return false;
  }

 private:
  static constexpr uint32_t kOffsetBits = 26;
  struct Object {
    std::string file;
    uintptr_t base = 0, bytes = 0;
  };
  void load(const Object& object, const std::vector<uintptr_t>& wanted);
  std::vector<Object> objects_;
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
