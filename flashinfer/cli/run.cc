// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/cli/run.h"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>

#include "flashinfer/cli/cli.h"
#include "flashinfer/cli/run_c.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/printable.h"
#include "flashinfer/core/status_line.h"
#include "flashinfer/core/version.h"

namespace flashinfer::cli {
namespace {

/// The host of the running command; replay prints from its workers, so this is not per thread.
struct Running {
  std::mutex one_command, one_text;
  const Host* host = nullptr;
  std::exception_ptr failure;
};
Running& running() {
  static Running& r = *new Running;
  return r;
}

void write(bool error, std::string_view text) {
  if (text.empty()) return;
  Running& r = running();
  const std::lock_guard lock(r.one_text);
  const StatusLineHidden while_it_is_written;
  if (r.host == nullptr || !r.host->write) {
    std::FILE* file = error ? stderr : stdout;
    std::fwrite(text.data(), 1, text.size(), file);
    std::fflush(file);  // text printed before a crash must not be lost
    return;
  }
  if (r.failure) return;  // the host failed: drop output
  try {
    r.host->write(error, text);
  } catch (...) {
    r.failure = std::current_exception();
  }
}

void write_formatted(bool error, const char* format, std::va_list arguments) {
  std::va_list again;
  va_copy(again, arguments);
  std::string text(static_cast<size_t>(std::max(0, std::vsnprintf(nullptr, 0, format, arguments))), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  write(error, printable_lines(text));
}

void set_up(CLI::App& app, int& exit_code) {
  app.set_version_flag("--version", build::version());
  app.failure_message(CLI::FailureMessage::help);
  app.require_subcommand(0, 1);
  add_commands(app, exit_code);
}

constexpr const char* kAbout = "flashinfer: kernels for LLM serving, with a call log, a flight recorder and a replayer";

int parse_and_run(std::vector<std::string> args) {
  CLI::App app{kAbout, "flashinfer"};
  int exit_code = 0;
  set_up(app, exit_code);
  try {
    std::reverse(args.begin(), args.end());  // CLI11 takes them from the end
    app.parse(std::move(args));
    if (app.get_subcommands().empty()) write(false, app.help());
    return exit_code;
  } catch (const CLI::ParseError& e) {
    std::ostringstream out, err;
    const int code = app.exit(e, out, err);  // --help and --version are exceptions with code 0
    write(false, out.str());
    write(true, err.str());
    return code == 0 ? 0 : 2;
  } catch (const std::exception& e) {
    print_error("flashinfer: %s\n", e.what());
    return 2;
  }
}

nlohmann::ordered_json to_json(const CLI::Option& o) {
  std::vector<std::string> names;
  for (const std::string& n : o.get_snames()) names.push_back("-" + n);
  for (const std::string& n : o.get_lnames()) names.push_back("--" + n);
  return {
      {"names", names},
      {"positional", o.get_positional() ? o.get_name(true, false).substr(0, o.get_name(true, false).find(',')) : ""},
      {"help", o.get_description()},
      {"type", o.get_type_name()},
      {"flag", o.get_items_expected_max() == 0},
      {"required", o.get_required()},
      {"multiple", o.get_items_expected_max() > 1},
      {"default", o.get_default_str()}};
}

}  // namespace

void print(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  write_formatted(false, format, arguments);
  va_end(arguments);
}

void print_error(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  write_formatted(true, format, arguments);
  va_end(arguments);
}

void print_styled(std::string_view before, std::string_view text, std::string_view after) {
  write(false, str(before, printable_lines(text), after));
}

bool is_terminal() {
  const Host* host = running().host;
  if (host != nullptr && host->write) return host->terminal;
  static const bool terminal = ::isatty(STDOUT_FILENO) != 0;
  return terminal;
}

bool errors_to_terminal() {
  const Host* host = running().host;
  return (host == nullptr || !host->write || host->terminal) && ::isatty(STDERR_FILENO) != 0;
}

std::vector<Section> host_sections() {
  const Host* host = running().host;
  return host != nullptr && host->sections ? host->sections() : std::vector<Section>();
}

int run(const std::vector<std::string>& args, const Host& host) {
  Running& r = running();
  const std::lock_guard lock(r.one_command);
  r.host = &host;
  r.failure = nullptr;
  const int code = parse_and_run(args);
  r.host = nullptr;
  if (r.failure) std::rethrow_exception(std::exchange(r.failure, nullptr));
  return code;
}

std::string commands_json() {
  CLI::App app{kAbout, "flashinfer"};
  int exit_code = 0;
  set_up(app, exit_code);
  auto commands = nlohmann::ordered_json::array();
  for (const CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    auto parameters = nlohmann::ordered_json::array();
    for (const CLI::Option* o : command->get_options())
      if (o != command->get_help_ptr()) parameters.push_back(to_json(*o));
    commands.push_back(
        {{"name", command->get_name()}, {"help", command->get_description()}, {"parameters", parameters}});
  }
  return commands.dump();
}

namespace {

std::vector<Section> sections_of(const FlashinferHost& host) {
  std::string text;
  host.sections(
      host.self, [](void* to, const char* data, size_t size) { static_cast<std::string*>(to)->assign(data, size); },
      &text);
  std::vector<Section> sections;
  const auto all = nlohmann::ordered_json::parse(text);
  for (const auto& [title, lines] : all.items()) {
    sections.push_back({title, {}});
    for (const auto& [key, value] : lines.items()) sections.back().lines.emplace_back(key, value.get<std::string>());
  }
  return sections;
}

}  // namespace
}  // namespace flashinfer::cli

const char* flashinfer_commands() {
  static const std::string& text = *new std::string(flashinfer::cli::commands_json());
  return text.c_str();
}

int flashinfer_run_command(int count, const char* const* args, const FlashinferHost* host) {
  flashinfer::cli::Host h;
  if (host != nullptr && host->write != nullptr) {
    h.write = [host](bool error, std::string_view text) { host->write(host->self, error, text.data(), text.size()); };
    h.terminal = host->terminal != 0;
  }
  if (host != nullptr && host->sections != nullptr) h.sections = [host] { return flashinfer::cli::sections_of(*host); };
  return flashinfer::cli::run({args, args + count}, h);
}
