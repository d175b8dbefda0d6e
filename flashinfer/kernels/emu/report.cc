// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/kernels/emu/report.h"

#include <link.h>

#include <algorithm>
#include <sstream>

#include "flashinfer/core/check.h"
#include "flashinfer/core/hex.h"
#include "flashinfer/core/process.h"

namespace flashinfer::emu {
namespace {

struct Found {
  uintptr_t code, base = 0, end = 0;
  std::string path = {};
};
int find_object(dl_phdr_info* info, size_t, void* data) {
  Found& o = *static_cast<Found*>(data);
  uintptr_t end = 0;
  bool holds = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& h = info->dlpi_phdr[i];
    if (h.p_type != PT_LOAD) continue;
    const uintptr_t from = info->dlpi_addr + h.p_vaddr, to = from + h.p_memsz;
    end = std::max(end, to);
    holds = holds || (o.code >= from && o.code < to);
  }
  if (!holds) return 0;
  o.base = info->dlpi_addr, o.end = end;
  o.path = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
  return 1;
}

/// The last two parts of a path: "norm/kernels/cuda/norm.cuh:33".
std::string short_path(const std::string& line) {
  size_t at = line.rfind('/');
  if (at != std::string::npos && at > 0) at = line.rfind('/', at - 1);
  return at == std::string::npos ? line : line.substr(at + 1);
}

}  // namespace

Lines::Lines(std::span<const void* const> code) {
  for (const void* c : code) {
    if (inside(reinterpret_cast<uintptr_t>(c))) continue;
    Found o{reinterpret_cast<uintptr_t>(c)};
    ::dl_iterate_phdr(find_object, &o);
    FI_CHECK(objects_.size() < size_t{1} << (32 - kOffsetBits), ValueError,
             "emulator: the kernels of a run are of more than ", objects_.size(), " artifacts");
    objects_.push_back({o.path, o.base, o.end - o.base});
  }
}

void Lines::load(const std::vector<const void*>& pcs) {
  for (const Object& o : objects_) {
    std::vector<uintptr_t> wanted;
    for (const void* pc : pcs) {
      const uintptr_t at = reinterpret_cast<uintptr_t>(pc);
      if (at - o.base < o.bytes && !known_.contains(at) && std::find(wanted.begin(), wanted.end(), at) == wanted.end())
        wanted.push_back(at);
    }
    if (!wanted.empty()) load(o, wanted);
  }
}
void Lines::load(const Object& object, const std::vector<uintptr_t>& wanted) {
  // The call is the instruction before the return address. "-a" prints an address before its lines.
  std::vector<std::string> argv = {"addr2line", "-a", "-i", "-e", object.file};
  for (const uintptr_t at : wanted) {
    argv.push_back(hex(at - object.base - 1));
    known_[at] = "code+" + argv.back();
  }
  const process::Result r = process::run(argv);
  if (!r.ok()) return;
  std::istringstream in(r.output);
  std::string line;
  size_t n = 0;
  bool first = true;
  while (std::getline(in, line)) {
    if (line.starts_with("0x")) {
      if (n == wanted.size()) break;
      first = true;
      ++n;
    } else if (n > 0 && line.find("??") == std::string::npos) {
      line = short_path(line.substr(0, line.find(" (")));
      std::string& text = known_[wanted[n - 1]];
      text = first ? line : text + " < " + line;
      first = false;
    }
  }
}

std::string Lines::at(const void* pc) {
  if (pc == nullptr) return "?";
  load({pc});
  const auto found = known_.find(reinterpret_cast<uintptr_t>(pc));
  return found == known_.end() ? "?" : found->second;
}

void Findings::add(const char* kind, Finding f) {
  if (!seen_.insert({kind, f.pc1, f.pc2}).second) return;
  if (list_.size() >= kMost) {
    ++more_;
    return;
  }
  list_.push_back(std::move(f));
}

std::vector<std::string> Findings::sentences(Lines& lines) const {
  std::vector<const void*> pcs;
  for (const Finding& f : list_) pcs.insert(pcs.end(), {f.pc1, f.pc2});
  lines.load(pcs);
  std::vector<std::string> all;
  for (const Finding& f : list_) {
    std::string text = f.text;
    for (const auto& [mark, pc] : {std::pair{"%1", f.pc1}, std::pair{"%2", f.pc2}})
      if (const size_t at = text.find(mark); at != std::string::npos) text.replace(at, 2, lines.at(pc));
    all.push_back(std::move(text));
  }
  if (more_) all.push_back(str("... and ", more_, " more"));
  return all;
}

}  // namespace flashinfer::emu
