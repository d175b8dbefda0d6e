// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/env.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "flashinfer/core/check.h"
#include "flashinfer/core/fork_mutex.h"

namespace flashinfer::env {
namespace {

enum class Kind : uint8_t {
  kInteger,  // Python's int(): blanks around it, a sign and 1_000 are legal
  kNumber,   // Python's float(), inf and nan included
  kFlag,     // on when exactly "1", off for anything else
  kSwitch,   // "0", "1" or empty
  kChoice,   // one of `choices`
  kText,     // not empty
  kPath,     // may be empty
  kList,     // comma separated
};

struct Row {
  Variable variable;
  Kind kind;
  int64_t least = std::numeric_limits<int64_t>::min();  // kInteger
  const char* choices = "";                             // kChoice: "a|b"
  bool live = false;                                    // read at each access: it may change while the program runs
};

constexpr Row kRows[] = {
    // ---- log and recorder (docs/recorder.md) ----
    {{"FLASHINFER_LOGLEVEL", "0",
      "what is logged: 0 nothing, 1 names, 3 arguments and results, 5 statistics, 10 a recording too"},
     Kind::kInteger},
    {{"FLASHINFER_LOGDEST", "stdout",
      "where the log goes: stdout, stderr or a file to append to; %i is the process id"},
     Kind::kText},
    {{"FLASHINFER_DUMP_DIR", "flashinfer_dumps", "folder of the recording"}, Kind::kPath},
    {{"FLASHINFER_DUMP_MAX_SIZE_GB", "20", "bytes a process may record, in units of 1024^3; inf: no limit"},
     Kind::kNumber},
    {{"FLASHINFER_DUMP_MAX_COUNT", "1000", "calls a process may record"}, Kind::kInteger},
    {{"FLASHINFER_DUMP_INCLUDE", "",
      "comma list of globs: only functions that match one are logged (level 3 up) and recorded"},
     Kind::kList},
    {{"FLASHINFER_DUMP_EXCLUDE", "",
      "comma list of globs: functions that match one are not, tested after the include list"},
     Kind::kList},
    {{"FLASHINFER_DUMP_SAFETENSORS", "0", "1: tensors go to .safetensors files, not .pt"}, Kind::kFlag},
    {{"FLASHINFER_DUMP_KEEP", "first", "which calls are kept when a limit is reached: first, or last (a ring)"},
     Kind::kChoice,
     0,
     "first|last"},
    {{"FLASHINFER_DUMP_DEDUP", "0",
      "1: tensor content is stored once per recording, in chunks of 64 KB named by their hash"},
     Kind::kSwitch},
    {{"FLASHINFER_DUMP_PAGES", "",
      "pages of a paged pool that are stored: used (by the call; default with dedup) or full"},
     Kind::kChoice,
     0,
     "used|full|"},
    {{"FLASHINFER_DUMP_SYNC", "0",
      "1: the device is waited for after each recorded call, so that a fault is reported for its call"},
     Kind::kSwitch},
    {{"FLASHINFER_TRACE_DUMP", "", "each call writes its trace definition, once a name; unset, empty or 0: none"},
     Kind::kPath,
     0,
     "",
     true},
    {{"FLASHINFER_TRACE_DUMP_DIR", "", "folder of the trace definitions; unset: none is written"},
     Kind::kPath,
     0,
     "",
     true},
    {{"FLASHINFER_TRACE_DUMP_STRICT", "0", "1: definitions that satisfy flashinfer-bench's data model (docs/trace.md)"},
     Kind::kFlag,
     0,
     "",
     true},
    {{"FLASHINFER_RECORD_CONTROL", "",
      "a file whose lines (level=10, dir=..., include=..., stop) change the recorder while it runs"},
     Kind::kPath},
    // ---- threads ----
    {{"FLASHINFER_NUM_THREADS", "0", "threads of the library's pool; 0: the cores this process may use"},
     Kind::kInteger,
     0},
    {{"FLASHINFER_SHARE_OPENMP", "1",
      "Python with torch: 1: calls run on the OpenMP threads that torch computes with; 0: on the library's own"},
     Kind::kFlag},
    {{"FLASHINFER_DISABLE_VERSION_CHECK", "0",
      "Python: 1: no warning where flashinfer-cpp-cubin is of another version; the library compares its kernels one by "
      "one"},
     Kind::kFlag},
    // ---- communication (docs/comm.md) ----
    {{"FLASHINFER_COMM_TIMEOUT_S", "600", "seconds that a collective call waits for the other ranks"}, Kind::kNumber},
    {{"FLASHINFER_COMM_TRANSPORT", "auto",
      "what carries tensors between ranks: shm (one machine), tcp, mpi; auto: shm if it can be, else mpi for a group "
      "mpi://, else tcp"},
     Kind::kChoice,
     0,
     "auto|shm|tcp|mpi"},
    {{"FLASHINFER_COMM_HOST", "",
      "address under which other machines reach this one; default: those of its interfaces"},
     Kind::kPath},
    {{"FLASHINFER_NCCL", "", "libnccl.so, or its folder; default: searched (docs/comm.md)"}, Kind::kPath},
    {{"FLASHINFER_MPI", "", "libmpi.so.40 of Open MPI; default: that of the program, else the loader's path"},
     Kind::kPath},
    // ---- just-in-time compiler ----
    {{"FLASHINFER_WORKSPACE_BASE", "", "the cache is <this>/.cache/flashinfer; default: the home folder"}, Kind::kPath},
    {{"FLASHINFER_CXX", "", "C++ compiler of the kernels; before CXX"}, Kind::kPath},
    {{"CXX", "", "C++ compiler of the kernels; default: c++, g++, then clang++ on PATH"}, Kind::kPath},
    {{"FLASHINFER_CXX_LAUNCHER", "", "a command put before the compiler, such as ccache"}, Kind::kPath},
    {{"FLASHINFER_EXTRA_CFLAGS", "", "more flags for the kernels' compiler"}, Kind::kPath},
    {{"FLASHINFER_EXTRA_LDFLAGS", "", "more flags for linking kernels"}, Kind::kPath},
    {{"FLASHINFER_EXTRA_CUDAFLAGS", "", "more flags for NVRTC or nvcc"}, Kind::kPath},
    {{"FLASHINFER_JIT_LINEINFO", "0", "1: CUDA kernels carry line numbers for profilers"}, Kind::kFlag},
    {{"FLASHINFER_JIT_VERBOSE", "0", "1: compile commands and times are printed"}, Kind::kFlag},
    {{"FLASHINFER_JIT_DEBUG", "0", "1: kernels are built with -O0 -g"}, Kind::kFlag},
    {{"FLASHINFER_ALLOW_RECORDED_SOURCE", "0",
      "1: a replay may compile and run the source of custom attention variants in a recording"},
     Kind::kFlag},
    {{"FLASHINFER_DISABLE_JIT", "0", "1: nothing is compiled; precompiled artifacts, else the reference"}, Kind::kFlag},
    {{"FLASHINFER_CPU_ISA", "native",
      "what CPU kernels are compiled for: native, x86-64-v3, x86-64-v3-avxvnni, "
      "x86-64-v4, x86-64-v4-vnni, x86-64-v4-bf16, x86-64-v4-amx or portable"},
     Kind::kChoice,
     0,
     "native|x86-64-v3|x86-64-v3-avxvnni|x86-64-v4|x86-64-v4-vnni|x86-64-v4-bf16|x86-64-v4-amx|portable"},
    {{"FLASHINFER_AOT_DIR", "",
      "folder of precompiled artifacts; those of an installed flashinfer_cubin and those beside the library come after "
      "it"},
     Kind::kPath},
    {{"FLASHINFER_JIT_INCLUDE", "",
      "folder that holds flashinfer/ with the kernel headers; default: found beside the library"},
     Kind::kPath},
    {{"FLASHINFER_CUBLASLT", "", "path of libcublasLt.so; default: searched"}, Kind::kPath},
    {{"FLASHINFER_CUBLASLT_SEARCH", "1",
      "1: a product's first call times cuBLASLt's algorithms for its shape; 0: the first one of its heuristic is used, "
      "so "
      "that results do not depend on times"},
     Kind::kFlag},
    {{"FLASHINFER_AUTOTUNE_CACHE_DIR", "", "folder of the choices that were measured; default: autotune in the cache"},
     Kind::kPath},
    {{"FLASHINFER_TACTICS_BLOCKLIST", "", "file of the tactics that the autotuner leaves out"}, Kind::kPath},
    {{"FLASHINFER_NVRTC", "", "path of libnvrtc.so; default: searched"}, Kind::kPath},
    {{"FLASHINFER_NVCC", "", "path of nvcc; default: searched"}, Kind::kPath},
    {{"FLASHINFER_NVCC_THREADS", "1", "architectures that one nvcc compiles at once (its --threads); 0: one per core"},
     Kind::kInteger,
     0},
    {{"FLASHINFER_TOOLCHAIN", "nvrtc", "what compiles CUDA kernels: nvrtc (in process) or nvcc"},
     Kind::kChoice,
     0,
     "nvrtc|nvcc"},
    {{"FLASHINFER_LIBCUDA", "", "path of the driver's libcuda.so; default: libcuda.so.1 of the loader's path"},
     Kind::kPath},
    {{"FLASHINFER_CUDA_CHECK_INDICES", "0",
      "1: calls on a GPU that are not captured copy their index arrays to the host first and check them as on the CPU"},
     Kind::kFlag},
    {{"FLASHINFER_CUDA_PREFILL_ROWS", "32",
      "most rows of a warp in attention of many rows on a GPU, 16 or 32: results are the same, times may differ"},
     Kind::kChoice,
     0,
     "16|32"},
    {{"FLASHINFER_CUDA_FP8_ATTENTION", "logits",
      "what attention of e4m3 queries over e4m3 caches multiplies in e4m3 on a GPU: none, logits or all (rounds "
      "weights "
      "to e4m3)"},
     Kind::kChoice,
     0,
     "none|logits|all"},
    {{"FLASHINFER_EMU_SEED", "0", "order in which the CUDA emulator runs threads"}, Kind::kInteger, 0},
    {{"FLASHINFER_CUDA_ARCH_LIST", "",
      "blank separated architectures to compile for, such as 8.0 9.0a; default: those of the GPUs of this machine"},
     Kind::kPath},
    {{"FLASHINFER_LOGGING_LEVEL", "INFO", "least severity of the compiler's messages: DEBUG, INFO, WARNING or ERROR"},
     Kind::kText},
    {{"CUDA_HOME", "", "the CUDA toolkit"}, Kind::kPath},
    {{"CUDA_PATH", "", "the CUDA toolkit, after CUDA_HOME"}, Kind::kPath},
    {{"MAX_JOBS", "0", "kernels compiled at once; 0: one per core"}, Kind::kInteger, 0},
    // ---- numbers ----
    {{"FLASHINFER_NVFP4_4OVER6", "0",
      "1: NVFP4 quantisers called without nvfp4_4over6, and mixtures of experts, take the better of two scales for "
      "each block"},
     Kind::kFlag,
     0,
     "",
     true},
    {{"FLASHINFER_NVFP4_4OVER6_ERR_MODE", "MAE",
      "how that compares the scales: MAE (absolute errors) or MSE (squares)"},
     Kind::kText,
     0,
     "",
     true},
    {{"FLASHINFER_NVFP4_4OVER6_E4M3_USE_256", "0", "1: for global scales made with a largest block scale of 256"},
     Kind::kFlag,
     0,
     "",
     true},
    {{"FLASHINFER_NVFP4_4OVER6_ERR_USE_FAST_MATH", "0", "1: errors are compared without scaling back"},
     Kind::kFlag,
     0,
     "",
     true},
    // ---- of the system ----
    {{"VIRTUAL_ENV", "", "Python environment that is searched for compiler packages"}, Kind::kPath},
    {{"CONDA_PREFIX", "", "conda environment that is searched for compiler packages"}, Kind::kPath},
    {{"HOME", "", "home folder"}, Kind::kPath},
    {{"PATH", "", "where programs are searched"}, Kind::kPath},
    {{"TMPDIR", "/tmp", "folder for temporary files"}, Kind::kText},
    {{"TERM", "", "kind of the terminal; unset or dumb: commands show no line of progress"}, Kind::kPath},
    {{"RANK", "", "rank of this process, written to recordings; after it OMPI_COMM_WORLD_RANK, then SLURM_PROCID"},
     Kind::kPath},
    {{"OMPI_COMM_WORLD_RANK", "", "rank of this process under Open MPI"}, Kind::kPath},
    {{"SLURM_PROCID", "", "rank of this process under Slurm"}, Kind::kPath},
};

struct Parsed {
  const Row* row = nullptr;
  std::string text;
  std::optional<std::string> raw;  // as the environment has it
  int64_t integer = 0;
  double number = 0;
  bool set = false;
  uint64_t generation = 0;  // reload()s before it was read
};

bool blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::string_view strip(std::string_view s) {
  while (!s.empty() && blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && blank(s.back())) s.remove_suffix(1);
  return s;
}

bool digit(char c) { return c >= '0' && c <= '9'; }

/// Drops underscores between two digits, as Python allows; nullopt when one is elsewhere.
std::optional<std::string> without_underscores(std::string_view s) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '_') {
      out += s[i];
    } else if (i == 0 || i + 1 == s.size() || !digit(s[i - 1]) || !digit(s[i + 1])) {
      return std::nullopt;
    }
  }
  return out;
}

/// Numbers beyond 64 bits, which Python has, are clamped.
std::optional<int64_t> parse_integer(std::string_view text) {
  auto s = without_underscores(strip(text));
  if (!s || s->empty()) return std::nullopt;
  std::string_view digits = *s;
  const bool negative = digits[0] == '-';
  if (negative || digits[0] == '+') digits.remove_prefix(1);
  if (digits.empty() || !std::ranges::all_of(digits, digit)) return std::nullopt;
  const std::string signed_text = (negative ? "-" : "") + std::string(digits);
  int64_t value = 0;
  if (std::from_chars(signed_text.data(), signed_text.data() + signed_text.size(), value).ec ==
      std::errc::result_out_of_range)
    return negative ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
  return value;
}

std::optional<double> parse_number(std::string_view text) {
  auto s = without_underscores(strip(text));
  if (!s || s->empty()) return std::nullopt;
  std::string_view t = *s;
  if (t[0] == '+' && t.size() > 1 && t[1] != '-') t.remove_prefix(1);
  double value = 0;  // from_chars takes inf, infinity and nan in any case, but also nan(...)
  const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), value);
  if (error == std::errc::result_out_of_range) return t.find("e-") != t.npos || t.find("E-") != t.npos ? 0.0 : HUGE_VAL;
  if (error != std::errc() || end != t.data() + t.size() || t.back() == ')') return std::nullopt;
  return value;
}

bool listed(std::string_view choices, std::string_view value) {
  for (size_t begin = 0;;) {
    const size_t end = choices.find('|', begin);
    if (choices.substr(begin, end == choices.npos ? end : end - begin) == value) return true;
    if (end == choices.npos) return false;
    begin = end + 1;
  }
}

/// An error text for `value`, or null after filling `out`.
const char* parse(const Row& row, const std::string& value, Parsed& out) {
  out.text = value;
  switch (row.kind) {
    case Kind::kInteger: {
      const auto v = parse_integer(value);
      if (!v) return "is not an integer";
      if (*v < row.least) return "is too small";
      out.integer = *v;
      return nullptr;
    }
    case Kind::kNumber: {
      const auto v = parse_number(value);
      if (!v) return "is not a number";
      out.number = *v;
      return nullptr;
    }
    case Kind::kFlag: out.integer = value == "1"; return nullptr;
    case Kind::kSwitch:
      if (!value.empty() && value != "0" && value != "1") return "is neither 0 nor 1";
      out.integer = value == "1";
      return nullptr;
    case Kind::kChoice: return listed(row.choices, value) ? nullptr : "is not one of the legal values";
    case Kind::kText: return value.empty() ? "is empty" : nullptr;
    case Kind::kPath:
    case Kind::kList: return nullptr;
  }
  return nullptr;
}

/// reload()s so far; changed under the store's lock.
std::atomic<uint64_t> g_generation{0};

Parsed read(const Row& row) {
  Parsed p;
  p.row = &row;
  p.generation = g_generation.load(std::memory_order_relaxed);
  if (const char* value = std::getenv(row.variable.name)) {
    p.set = true;
    p.raw = value;
    const char* wrong = parse(row, value, p);
    if (!wrong) return p;
    std::fprintf(stderr, "flashinfer: warning: %s=\"%s\" %s; using \"%s\" (%s)\n", row.variable.name, value, wrong,
                 row.variable.default_value, row.variable.meaning);
  }
  parse(row, row.variable.default_value, p);
  return p;
}

constinit ForkMutex g_mutex(ForkLayer::kCore, 0);

struct Store {
  ForkMutex& mutex = g_mutex;
  std::map<std::string_view, std::unique_ptr<const Parsed>> parsed;
  std::vector<std::unique_ptr<const Parsed>> forgotten;  // text() returned references to these
};
Store& store() {
  static Store& s = *new Store;  // never destroyed: exit handlers read variables too
  return s;
}

const Parsed& lookup(std::string_view name) {
  Store& s = store();
  const std::lock_guard lock(s.mutex);
  if (auto it = s.parsed.find(name); it != s.parsed.end()) {
    const Row& row = *it->second->row;
    if (!row.live) return *it->second;
    const char* now = std::getenv(row.variable.name);
    if (now ? it->second->raw == now : !it->second->raw) return *it->second;
    s.forgotten.push_back(std::move(it->second));
    return *(it->second = std::make_unique<const Parsed>(read(row)));
  }
  for (const Row& row : kRows)
    if (name == row.variable.name) return *(s.parsed[row.variable.name] = std::make_unique<const Parsed>(read(row)));
  throw InternalError(str("env: ", name, " is not in the table of variables"));
}

constexpr size_t kCount = std::size(kRows);

}  // namespace

std::span<const Variable> table() {
  static const auto variables = [] {
    std::array<Variable, kCount> v{};
    std::ranges::transform(kRows, v.begin(), [](const Row& r) { return r.variable; });
    return v;
  }();
  return variables;
}

Current current(std::string_view name) {
  const Parsed& p = lookup(name);
  return {p.text, p.set};
}
int64_t integer(std::string_view name) { return lookup(name).integer; }
double number(std::string_view name) { return lookup(name).number; }
bool flag(std::string_view name) { return lookup(name).integer == 1; }
const std::string& text(std::string_view name) { return lookup(name).text; }

namespace {
/// What was parsed once is never freed.
const Parsed& cached(const char* name, std::atomic<const void*>& parsed) {
  const auto* p = static_cast<const Parsed*>(parsed.load(std::memory_order_acquire));
  if (p && p->generation == g_generation.load(std::memory_order_acquire)) [[likely]]
    return *p;
  p = &lookup(name);
  if (!p->row->live) parsed.store(p, std::memory_order_release);
  return *p;
}
}  // namespace
bool Cached::flag() const { return cached(name_, parsed_).integer == 1; }
const std::string& Cached::text() const { return cached(name_, parsed_).text; }

std::vector<std::string> list(std::string_view name) {
  std::vector<std::string> out;
  std::string_view rest = lookup(name).text;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    if (const auto entry = strip(rest.substr(0, comma)); !entry.empty()) out.emplace_back(entry);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return out;
}

void reload() {
  Store& s = store();
  const std::lock_guard lock(s.mutex);
  for (auto& [name, parsed] : s.parsed) s.forgotten.push_back(std::move(parsed));
  s.parsed.clear();
  g_generation.fetch_add(1, std::memory_order_release);
}

}  // namespace flashinfer::env
