// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/precompiled_header.h"

#include <cstdio>
#include <map>
#include <mutex>

#include "flashinfer/core/check.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/process.h"
#include "flashinfer/core/version.h"
#include "flashinfer/jit/cache.h"
#include "flashinfer/jit/source.h"

namespace flashinfer::jit {
namespace {

constexpr const char* kText =
    "#if defined(__x86_64__) && !defined(FI_EMU)\n"
    "#include <immintrin.h>\n"
    "#endif\n"
    "#include <math.h>\n"
    "#include <stdint.h>\n"
    "#include <string.h>\n";

std::mutex requests_mutex;
std::map<std::string, int> requests;  // of this process, by the header's folder
int requests_before(const std::string& folder) {
  const std::lock_guard lock(requests_mutex);
  return requests[folder]++;
}

/// Makes `header` and, by rename, the compiled form beside it. clang++ wants the header where and as old as it was
/// then.
void make(const std::string& dir, const std::string& header, const std::string& compiled, const Toolchain& toolchain,
          const Flags& flags) {
  fs::make_dirs(dir);
  if (!fs::is_file(header)) fs::write_atomic(header, kText);
  const std::string temporary = fs::make_temp_dir(dir, ".build-");
  std::vector<std::string> argv = toolchain.command;
  argv.insert(argv.end(), flags.compile.begin(), flags.compile.end());
  argv.insert(argv.end(), {"-x", "c++-header", header, "-o", temporary + "/compiled"});
  if (process::run(argv).ok()) std::rename((temporary + "/compiled").c_str(), compiled.c_str());
  fs::remove_tree(temporary);
}

}  // namespace

std::vector<std::string> precompiled_header_options(Target target, const Toolchain& toolchain, const Flags& flags) {
  const bool launched = toolchain.command.empty() || toolchain.command[0] != toolchain.compiler;
  const bool sanitized = build::sanitizer_flags()[0] != '\0';
  if (is_gpu(target) || launched || sanitized) return {};
  const std::string key = hash_hex(process::shell_line(flags.compile) + "\n" + process::shell_line(toolchain.command) +
                                   "\n" + toolchain.identity + cpu_features() + "\n" + build::version() + "\n" + kText);
  try {
    const std::string dir = cache_folders(name(target)).write + "/" + kPrecompiledHeaderPrefix + key;
    const std::string header = dir + "/prelude.h", compiled = header + ".gch";
    if (requests_before(dir) == 1 && !fs::is_file(compiled)) make(dir, header, compiled, toolchain, flags);
    if (!fs::is_file(compiled)) return {};
    return {"-include", header};
  } catch (const Error&) {  // a full or read-only disk: kernels are compiled without
    return {};
  }
}

void forget_precompiled_headers() {
  const std::lock_guard lock(requests_mutex);
  requests.clear();
}

}  // namespace flashinfer::jit
