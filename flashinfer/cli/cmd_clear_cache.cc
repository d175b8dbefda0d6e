// SPDX-License-Identifier: Apache-2.0
// `flashinfer clear-cache`: removes the compiled kernels of all versions of this library.

#include "flashinfer/cli/cli.h"
#include "flashinfer/core/check.h"
#include "flashinfer/jit/cache.h"

namespace flashinfer::cli {

void add_clear_cache(CLI::App& app, int& exit_code) {
  CLI::App* c = app.add_subcommand("clear-cache", "Remove the compiled kernels");
  c->callback([&exit_code] {
    try {
      const int64_t n = jit::clear_cache();
      print("✅ Cache cleared successfully.\n%lld artifacts removed\n", static_cast<long long>(n));
      exit_code = 0;
    } catch (const Error& e) {
      print("❌ Cache clear failed: %s\n", e.message().c_str());
      exit_code = 1;
    }
  });
}

}  // namespace flashinfer::cli
