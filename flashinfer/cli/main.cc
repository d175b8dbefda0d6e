// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>

#include "flashinfer/cli/cli.h"
#include "flashinfer/core/version.h"

int main(int argc, char** argv) {
  CLI::App app{"flashinfer: kernels for LLM serving, with a call log, a flight recorder and a replayer", "flashinfer"};
  app.set_version_flag("--version", flashinfer::build::version());
  app.failure_message(CLI::FailureMessage::help);
  app.require_subcommand(0, 1);
  int exit_code = 0;
  flashinfer::cli::add_commands(app, exit_code);
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) std::fputs(app.help().c_str(), stdout);
    return exit_code;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;  // --help and --version are exceptions with code 0
  } catch (const std::exception& e) {
    std::fprintf(stderr, "flashinfer: %s\n", e.what());
    return 2;
  }
}
