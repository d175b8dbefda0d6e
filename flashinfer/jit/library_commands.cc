// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/library_commands.h"

#include <algorithm>
#include <set>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/process.h"
#include "flashinfer/jit/cuda_load.h"

namespace flashinfer::jit {
namespace {

using Words = std::vector<std::string>;

void add(Words& to, const Words& more) { to.insert(to.end(), more.begin(), more.end()); }
bool is_cuda_source(const std::string& path) { return path.ends_with(".cu"); }

/// "<stem>.o", "<stem>.cuda.o"; with a number in front where two sources have one stem.
std::string object_name(const std::string& source, std::set<std::string>& used) {
  std::string stem = source.substr(source.rfind('/') + 1);
  stem = stem.substr(0, std::max<size_t>(stem.rfind('.'), 1)) + (is_cuda_source(source) ? ".cuda.o" : ".o");
  std::string name = stem;
  for (int i = 1; !used.insert(name).second; ++i) name = std::to_string(i) + "_" + stem;
  return name;
}

Words cxx_command(const LibrarySpec& spec, const Toolchain& host) {
  Words w = host.command;
  add(w, {"-fPIC"});
  for (const std::string& dir : spec.include_dirs) add(w, {"-isystem", dir});
  add(w, spec.cflags);
  if (env::flag("FLASHINFER_JIT_DEBUG")) add(w, {"-O0", "-g"});
  add(w, process::split_words(env::text("FLASHINFER_EXTRA_CFLAGS")));
  return w;
}

Words nvcc_command(const LibrarySpec& spec, const Toolchain& nvcc, const Toolchain& host) {
  Words w = nvcc.command;
  add(w, {"-ccbin", host.compiler, "--compiler-options=-fPIC", "--expt-relaxed-constexpr"});
  if (spec.device_linking) add(w, {"-rdc=true"});
  for (const std::string& dir : spec.include_dirs) add(w, {"-isystem", dir});
  add(w, spec.cuda_cflags);
  if (env::flag("FLASHINFER_JIT_LINEINFO")) add(w, {"-lineinfo"});
  if (env::flag("FLASHINFER_JIT_DEBUG")) add(w, {"-O0", "-g", "-G"});
  add(w, process::split_words(env::text("FLASHINFER_EXTRA_CUDAFLAGS")));
  return w;
}

/// The folder of libcudart.so, for -L; empty: the linker's own folders.
std::string cuda_libraries(const Toolchain& nvcc) {
  const std::string real = fs::canonical(nvcc.compiler);
  Words homes = {env::text("CUDA_HOME"), env::text("CUDA_PATH"), real.substr(0, real.rfind("/bin/")),
                 "/usr/local/cuda"};
  for (const std::string& home : homes)
    for (const char* folder : {"/lib64", "/lib"})
      if (!home.empty() && fs::is_file(home + folder + "/libcudart.so")) return fs::canonical(home + folder);
  return {};
}

/// The flags that choose the architecture, which the device linker needs too.
Words architecture_flags(const Words& flags) {
  Words chosen;
  for (size_t i = 0; i < flags.size(); ++i) {
    const std::string& f = flags[i];
    if (f.starts_with("-gencode") || f.starts_with("--generate-code") || f.starts_with("-arch") ||
        f.starts_with("--gpu-architecture")) {
      chosen.push_back(f);
      if (f.find('=') == f.npos && i + 1 < flags.size()) chosen.push_back(flags[++i]);
    }
  }
  return chosen;
}

std::vector<Words> link_commands(const LibrarySpec& spec, const Words& objects, bool cuda, const Toolchain& host,
                                 const Toolchain& nvcc) {
  std::vector<Words> commands;
  Words link = host.command;
  add(link, {"-shared", "-o", spec.name + ".so"});
  add(link, objects);
  if (cuda && spec.device_linking) {
    Words device = nvcc.command;
    add(device, {"-ccbin", host.compiler, "--compiler-options=-fPIC", "-dlink", "-o", "device_link.o"});
    add(device, architecture_flags(spec.cuda_cflags));
    add(device, objects);
    commands.push_back(device);
    add(link, {"device_link.o"});
  }
  if (cuda) {
    if (const std::string folder = cuda_libraries(nvcc); !folder.empty())
      add(link, {"-L" + folder, "-Wl,-rpath," + folder});
    if (spec.device_linking) add(link, {"-lcudadevrt"});
    add(link, {"-lcudart"});
  }
  add(link, spec.ldflags);
  add(link, process::split_words(env::text("FLASHINFER_EXTRA_LDFLAGS")));
  commands.push_back(link);
  return commands;
}

}  // namespace

LibraryPlan plan_library(const LibrarySpec& spec) {
  const bool cuda = std::ranges::any_of(spec.sources, is_cuda_source);
  const Toolchain host = host_toolchain(), nvcc = cuda ? nvcc_toolchain() : Toolchain{};
  for (const Toolchain* t : {&host, &nvcc})
    FI_CHECK(t->why_not.empty(), RuntimeError, "jit: ", spec.name, ": ", t->why_not);
  LibraryPlan plan;
  plan.identity = host.identity + nvcc.identity;
  std::set<std::string> used;
  Words objects;
  const int64_t threads = env::integer("FLASHINFER_NVCC_THREADS");
  for (const std::string& source : spec.sources) {
    const bool is_cuda = is_cuda_source(source);
    CompileCommand c{"", source, object_name(source, used),
                     is_cuda ? nvcc_command(spec, nvcc, host) : cxx_command(spec, host)};
    if (const auto own = spec.cuda_cflags_by_source.find(source); is_cuda && own != spec.cuda_cflags_by_source.end())
      add(c.arguments, own->second);
    add(c.arguments, {"-MD", "-MF", c.object + ".d", "-c", source, "-o", c.object});
    plan.flags += process::shell_line(c.arguments) + "\n";
    if (is_cuda && threads != 1)
      c.arguments.insert(c.arguments.begin() + static_cast<std::ptrdiff_t>(nvcc.command.size()),
                         "--threads=" + std::to_string(threads));
    objects.push_back(c.object);
    plan.compile.push_back(std::move(c));
  }
  plan.link = link_commands(spec, objects, cuda, host, nvcc);
  for (const Words& command : plan.link) plan.flags += process::shell_line(command) + "\n";
  return plan;
}

namespace {
std::string escaped(const std::string& text, std::string_view characters) {
  std::string out;
  for (const char c : text) {
    if (characters.find(c) != characters.npos) out += '$';
    out += c;
  }
  return out;
}
}  // namespace

std::string ninja_text(const LibrarySpec& spec, const LibraryPlan& plan) {
  std::string text = "# " + spec.name +
                     ": `ninja` in this folder runs what flashinfer runs\nninja_required_version = 1.3\n\n",
              objects;
  for (size_t i = 0; i < plan.compile.size(); ++i) {
    const CompileCommand& c = plan.compile[i];
    const std::string rule = "compile_" + std::to_string(i), object = escaped(c.object, "$ :");
    text += "rule " + rule + "\n  command = " + escaped(process::shell_line(c.arguments), "$") +
            "\n  depfile = " + object + ".d\n  deps = gcc\nbuild " + object + ": " + rule + " " +
            escaped(c.source, "$ :") + "\n\n";
    objects += " " + object;
  }
  std::string line;
  for (const Words& command : plan.link) line += (line.empty() ? "" : " && ") + process::shell_line(command);
  const std::string library = escaped(spec.name, "$ :") + ".so";
  return text + "rule link\n  command = " + escaped(line, "$") + "\nbuild " + library + ": link" + objects +
         "\n\ndefault " + library + "\n";
}

std::vector<std::string> read_depfile(const std::string& path) {
  const std::string text = fs::read_file(path).value_or("");
  std::vector<std::string> files;
  size_t at = 0;
  while (at < text.size() && !(text[at] == ':' && (at + 1 == text.size() || text[at + 1] == ' ' ||
                                                   text[at + 1] == '\n' || text[at + 1] == '\\')))
    ++at;
  std::string word;
  for (++at; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : '\n', next = at + 1 < text.size() ? text[at + 1] : '\n';
    if (c == '\\' && (next == ' ' || next == '#' || next == '\\')) {
      word += next;
      ++at;
    } else if (c == '$' && next == '$') {
      word += c;
      ++at;
    } else if (c == ' ' || c == '\n' || c == '\t' || c == '\r' || (c == '\\' && next == '\n')) {
      if (!word.empty()) files.push_back(word);
      word.clear();
    } else {
      word += c;
    }
  }
  return files;
}

}  // namespace flashinfer::jit
