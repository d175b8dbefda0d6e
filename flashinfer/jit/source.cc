// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/source.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <vector>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/hex.h"
#include "flashinfer/core/version.h"
#include "flashinfer/jit/cuda_load.h"
#include "flashinfer/jit/jit.h"
#include "flashinfer/jit/locks.h"

namespace flashinfer::jit {
namespace detail {
namespace {

std::string last_part(const std::string& qualified) {
  const size_t colon = qualified.rfind(':');
  return colon == std::string::npos ? qualified : qualified.substr(colon + 1);
}

/// The op's family, whatever folders a kernel has below it ("flashinfer/ops/norm/kernels/cpu/norm.h" -> "norm"); for
/// other headers, the folder that holds them.
std::string family_of(const std::string& header) {
  constexpr std::string_view kOps = "flashinfer/ops/";
  if (header.starts_with(kOps)) return header.substr(kOps.size(), header.find('/', kOps.size()) - kOps.size());
  const size_t end = header.rfind('/');
  if (end == std::string::npos || end == 0) return "kernel";
  const size_t begin = header.rfind('/', end - 1);
  return header.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin == std::string::npos ? 0 : begin + 1));
}

}  // namespace

std::string config_braces(std::span<const Member> members) {
  std::string text = "{";
  for (const Member& m : members) text += std::string(text.size() > 1 ? "," : "") + m.name + "=" + m.shown;
  return text + "}";
}

Request make_request(const Kernel& kernel, const char* config_type, std::span<const Member> members,
                     const Extension* extension) {
  Request r;
  r.header = kernel.header;
  r.name = family_of(r.header) + "." + last_part(kernel.function);
  r.config = config_braces(members) + (extension ? "+" + extension->label : "");
  std::string values;
  for (const Member& m : members)
    values +=
        std::string(values.empty() ? "." : ", .") + m.name + " = decltype(Config::" + m.name + ")(" + m.value + ")";
  r.instance =
      std::string(kernel.function) + "<Config{" + values + "}" + (extension ? ", " + extension->arguments : "") + ">";
  std::ostringstream s;
  s << "// " << r.text() << "\n";
  // How many registers the user's text takes is not known: no bound that makes the compiler spill them.
  if (extension && is_cuda(r)) s << "#ifndef FI_MIN_BLOCKS\n#define FI_MIN_BLOCKS 0\n#endif\n";
  s << "#include \"" << r.header << "\"\n\n"
    << (extension ? extension->text + "\n" : "") << "using Config = " << config_type << ";\n";
  if (is_cuda(r))
    s << "FI_CUDA_ENTRY(" << kernel.params << ", (Config{" << values << "}),\n    " << r.instance << ")\n";
  else
    s << "extern \"C\" __attribute__((visibility(\"default\"))) void flashinfer_kernel(const void* params, int64_t "
         "task) {\n"
      << "  " << r.instance << "(\n      *static_cast<const " << kernel.params << "*>(params), task);\n"
      << "}\n";
  r.source = s.str();
  return r;
}

}  // namespace detail

namespace {

std::string library_file() { return fs::object_of(reinterpret_cast<const void*>(&library_file)); }
bool is_in_build_folder(const std::string& library) {
  return library.starts_with(fs::canonical(build::build_root()) + "/");
}

std::string find_include_root() {
  if (const auto set = env::current("FLASHINFER_JIT_INCLUDE"); !set.value.empty()) return fs::canonical(set.value);
  const auto holds = [](const std::string& root) { return fs::is_file(root + "/flashinfer/kernels/cpu/vec.h"); };
  const std::string library = library_file();
  if (is_in_build_folder(library) && holds(build::source_root())) return fs::canonical(build::source_root());
  // <prefix>/lib/libflashinfer.so and <prefix>/lib/<triplet>/libflashinfer.so
  std::string folder = library;
  for (int up = 0; up < 3; ++up) {
    folder.resize(std::min(folder.size(), folder.rfind('/')));
    if (holds(folder + "/share/flashinfer/include")) return folder + "/share/flashinfer/include";
  }
  const std::string prefix = build::static_prefix();
  if (!prefix.empty() && holds(prefix + "/share/flashinfer/include")) return prefix + "/share/flashinfer/include";
  return {};
}

struct State {
  ForkMutex& mutex = g_sources_mutex;
  std::optional<std::string> root;
  std::map<std::string, std::string> hashes;  // root + '\n' + header -> hash
  std::optional<std::string> library{};       // this one's file
  bool builds_here = false;                   // it lies in its build folder
};
State& state() {
  static State& s = *new State;
  return s;
}

std::string text_of(const XXH128_hash_t& h) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, h);
  return hex_bytes(bytes.digest, sizeof bytes.digest);
}

/// The name in `#include "x"` or `#include <x>`, with its opening character in front; empty for any other line.
std::string_view included(std::string_view line) {
  const auto skip = [&] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
  skip();
  if (!line.starts_with('#')) return {};
  line.remove_prefix(1);
  skip();
  if (!line.starts_with("include")) return {};
  line.remove_prefix(7);
  skip();
  if (line.empty() || (line[0] != '"' && line[0] != '<')) return {};
  const size_t end = line.find(line[0] == '"' ? '"' : '>', 1);
  return end == std::string_view::npos ? std::string_view() : line.substr(0, end);
}

class Walker {
 public:
  explicit Walker(const std::string& root, std::span<const std::string> words = {}) : root_(root), words_(words) {
    XXH3_128bits_reset(&hash_);
  }

  /// `path` as given to the compiler; true when the file exists.
  bool visit(const std::string& path) {
    const std::string full = path.starts_with('/') ? path : root_ + "/" + path;
    if (seen_.contains(full)) return true;
    const auto bytes = fs::read_file(full);
    if (!bytes) return false;
    seen_.insert(full);
    add(path);
    add(*bytes);
    for (const std::string& word : words_) found_ = found_ || bytes->find(word) != std::string::npos;
    const std::string folder = path.substr(0, path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
    for (size_t begin = 0; begin < bytes->size();) {
      const size_t end = std::min(bytes->find('\n', begin), bytes->size());
      const std::string_view name = included(std::string_view(*bytes).substr(begin, end - begin));
      if (!name.empty()) follow(folder, std::string(name.substr(1)), name[0] == '"');
      begin = end + 1;
    }
    return true;
  }
  /// The files that were visited.
  const std::set<std::string>& files() const { return seen_; }
  /// Whether a visited file holds one of the words.
  bool found() const { return found_; }
  std::string digest() { return text_of(XXH3_128bits_digest(&hash_)); }
  void add(std::string_view text) {
    const uint64_t n = text.size();
    XXH3_128bits_update(&hash_, &n, sizeof(n));
    XXH3_128bits_update(&hash_, text.data(), text.size());
  }

 private:
  void follow(const std::string& folder, const std::string& name, bool quoted) {
    if (quoted && !folder.empty() && visit(folder + name))
      return;  // the compiler searches the including file's folder first
    if (quoted || name.starts_with("flashinfer/")) visit(name);
  }

  const std::string& root_;
  std::span<const std::string> words_;
  bool found_ = false;
  std::set<std::string> seen_;
  XXH3_state_t hash_;
};

std::string changed_params(const Walker& walker, const std::string& library) {
  const auto built = fs::file_id(library);
  for (const std::string& file : walker.files())
    if (file.ends_with("params.h") && built && fs::file_id(file).value_or(fs::FileId{}).mtime_ns > built->mtime_ns)
      return file;
  return {};
}

}  // namespace

std::string hash_hex(std::string_view bytes) { return text_of(XXH3_128bits(bytes.data(), bytes.size())); }

std::string include_root() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (!s.root) s.root = find_include_root();
  return *s.root;
}

std::string headers_hash(const std::string& root, const std::string& header) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  std::string& hash = s.hashes[root + '\n' + header];
  if (!hash.empty()) return hash;
  Walker walker(root);
  if (!walker.visit(header)) walker.add("missing " + header);
  if (!s.library) {
    s.library = library_file();
    s.builds_here = is_in_build_folder(*s.library);
  }
  if (s.builds_here && root == fs::canonical(build::source_root())) {
    const std::string changed = changed_params(walker, *s.library);
    FI_CHECK(changed.empty(), RuntimeError, changed, " has changed since ", *s.library, " was built: build it again");
  }
  return hash = walker.digest();
}

std::string changed_params(const std::string& root, const std::string& header, const std::string& library) {
  Walker walker(root);
  walker.visit(header);
  return changed_params(walker, library);
}

std::string headers_hash_now(const std::string& root, const std::string& header) {
  Walker walker(root);
  if (!walker.visit(header)) walker.add("missing " + header);
  return walker.digest();
}

bool headers_hold(const std::string& root, const std::string& header, std::span<const std::string> words) {
  Walker walker(root, words);
  walker.visit(header);
  return walker.found();
}

void forget_sources() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.root.reset();
  s.hashes.clear();
}

}  // namespace flashinfer::jit
