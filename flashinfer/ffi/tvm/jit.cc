// SPDX-License-Identifier: Apache-2.0
// The JIT for other languages: functions "flashinfer.jit.<name>" that take and return JSON texts.
//   paths() -> {"cache", "modules", "include", "library", "aot": [...], "version"}
//   architectures(list) -> [[9, "0a", "sm_90a"], ...]: of the list ("8.0 9.0a"), else of this machine's GPUs
//   kernels(what) -> [{"text", "target", "kind", "library", "source", "header", "flags", "created", "seconds",
//     "aot_folder": its name among precompiled artifacts}, ...]
//   build_kernels(what) -> the same with "outcome" and "message" of each
//     what: {"ops": [names whose case rows for precompiling count], "items": [[op, arguments as in case rows], ...],
//            "device": "cpu" | "cuda:0" | "emu"}
//   variant_kernels(build, op, {arguments by name}) -> as kernels, of one call of a custom attention variant
//   find_library(spec), build_library(spec, verbose) -> {"library", "origin", "seconds"}, the former null when there is
//   none library_commands(spec, folder), library_ninja(spec), library_source_hash(spec)
//     spec: {"name", "sources", "cflags", "cuda_cflags", "ldflags", "cuda_cflags_by_source", "include_dirs",
//            "device_linking", "folder"}
//   clear_cache() -> the number of artifacts; reset(): the environment is read again
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "flashinfer/cases/warmup.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/version.h"
#include "flashinfer/ffi/tvm/convert.h"
#include "flashinfer/jit/cubins.h"
#include "flashinfer/jit/cuda_load.h"
#include "flashinfer/jit/library.h"
#include "flashinfer/jit/modules.h"
#include "flashinfer/jit/source.h"
#include "flashinfer/jit/targets.h"
#include "flashinfer/op/registry.h"

namespace flashinfer::ffi {
namespace {

using Json = nlohmann::ordered_json;

Json paths() {
  const std::string library = fs::object_of(reinterpret_cast<const void*>(&jit::include_root));
  return {{"cache", jit::cache_path()},        {"modules", jit::libraries_path()}, {"include", jit::include_root()},
          {"library", fs::canonical(library)}, {"aot", jit::aot_folders()},        {"version", build::version()}};
}

Json cubins() {
  Json out = Json::array();
  for (const jit::PackagedCubin& c : jit::packaged_cubins())
    out.push_back({{"path", c.path}, {"sha256", c.sha256}, {"present", c.present}});
  return out;
}

Json architectures(const std::string& list) {
  Json out = Json::array();
  for (const jit::Target t : list.empty() ? jit::visible_gpu_targets() : jit::parse_arch_list(list)) {
    const jit::Arch& a = jit::arch_of(t);
    out.push_back({a.number / 10, std::to_string(a.number % 10) + (a.suffix ? std::string(1, a.suffix) : ""), a.name});
  }
  return out;
}

struct Wanted {
  Device device;
  std::vector<jit::Request> requests;
};

jit::Target target_of(const jit::Request& r, Device device) {
  return jit::is_cuda(r) ? jit::cuda_target(device) : jit::selected_target();
}

Wanted wanted(const Json& what) {
  const std::string where = what.value("device", "cpu");
  const std::optional<Device> device = parse_device(where);
  FI_CHECK(device, ValueError, "jit: there is no device \"", where, "\"");
  Wanted w{*device, {}};
  std::vector<WarmupItem> items;
  for (const Json& item : what.value("items", Json::array())) items.push_back({item.at(0), item.at(1)});
  w.requests = cases::kernels(items, w.device);
  std::vector<const op::Op*> ops;
  for (const Json& name : what.value("ops", Json::array())) ops.push_back(&op_named(name.get<std::string>()));
  const auto rows = w.device.type == DeviceType::kCPU ? cases::kernels(ops, op::kAot)
                                                      : cases::cuda_kernels(ops, op::kAot, jit::arch_number(w.device));
  for (const jit::Request& r : rows)
    if (std::ranges::none_of(w.requests, [&](const jit::Request& have) { return have.source == r.source; }))
      w.requests.push_back(r);
  return w;
}

Json described(const jit::ModuleStatus& m) {
  return {{"text", m.text},
          {"target", m.target},
          {"kind", m.kind},
          {"library", m.compiled() ? jit::artifact_path(m.directory, m.target) : ""},
          {"source", m.compiled() ? jit::source_path(m.directory, m.target) : ""},
          {"header", jit::include_root() + "/" + m.meta.header},
          {"flags", m.meta.flags},
          {"created", m.meta.created},
          {"seconds", m.meta.seconds}};
}

/// The state of each kernel; with `build`, after loading or compiling it.
Json kernels(const Wanted& w, bool build) {
  std::vector<jit::Prefetched> built;
  if (build) {
    Context context = Context::current();
    context.device = w.device;
    const ContextScope scope(context);
    built = jit::prefetch(w.requests);
  }
  Json out = Json::array();
  for (size_t i = 0; i < w.requests.size(); ++i) {
    const jit::Target target = target_of(w.requests[i], w.device);
    Json one = described(jit::module_status(w.requests[i], target));
    one["aot_folder"] = jit::build_key(w.requests[i], target, {}).aot_folder;
    if (build) one["outcome"] = jit::name(built[i].outcome), one["message"] = built[i].message;
    out.push_back(std::move(one));
  }
  return out;
}

/// (build, op, {name: value}): a call that is selected but not run.
void variant_kernels(tvm::PackedArgs args, tvm::Any* result) {
  translated([&] {
    const op::Op& op = op_named(std::string(args[1].cast<tvm::String>()));
    op::Passed passed;
    for (const auto& [name, value] : args[2].cast<tvm::Map<tvm::String, tvm::Any>>())
      passed.keyword.emplace_back(std::string(name), from_tvm(value));
    op::Block block(op);
    block.bind(passed);
    Wanted w{kCpu, {}};
    {
      jit::KernelCollector collector;
      op::explain(op, block.data());
      w.requests = collector.take();
    }
    *result = tvm::String(kernels(w, args[0].cast<bool>()).dump());
  });
}

jit::LibrarySpec spec_of(const std::string& text) {
  const Json j = Json::parse(text);
  jit::LibrarySpec s;
  j.at("name").get_to(s.name);
  j.at("sources").get_to(s.sources);
  j.at("cflags").get_to(s.cflags);
  j.at("cuda_cflags").get_to(s.cuda_cflags);
  j.at("ldflags").get_to(s.ldflags);
  j.at("cuda_cflags_by_source").get_to(s.cuda_cflags_by_source);
  j.at("include_dirs").get_to(s.include_dirs);
  j.at("device_linking").get_to(s.device_linking);
  j.at("folder").get_to(s.folder);
  return s;
}

Json described(const jit::Artifact& a) { return {{"library", a.path}, {"origin", a.origin}, {"seconds", a.seconds}}; }

Json commands(const std::string& spec, const std::string& folder) {
  Json out = Json::array();
  for (const jit::CompileCommand& c : jit::library_commands(spec_of(spec), folder))
    out.push_back({{"directory", c.directory}, {"arguments", c.arguments}, {"file", c.source}, {"output", c.object}});
  return out;
}

void reset() {
  env::reload();
  jit::reset();
}

std::string text_of(const tvm::PackedArgs& args, int i) { return std::string(args[i].cast<tvm::String>()); }

/// Adds "flashinfer.jit.<name>" whose JSON is what `f` returns.
template <class F>
void global(const char* name, F f) {
  tvm::Function::SetGlobal(std::string("flashinfer.jit.") + name,
                           tvm::Function::FromPacked([f](tvm::PackedArgs args, tvm::Any* result) {
                             translated([&] { *result = tvm::String(f(args).dump()); });
                           }),
                           true);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  using Args = const tvm::PackedArgs&;
  global("paths", [](Args) { return paths(); });
  global("cubins", [](Args) { return cubins(); });
  global("architectures", [](Args a) { return architectures(text_of(a, 0)); });
  global("kernels", [](Args a) { return kernels(wanted(Json::parse(text_of(a, 0))), false); });
  global("build_kernels", [](Args a) { return kernels(wanted(Json::parse(text_of(a, 0))), true); });
  global("find_library", [](Args a) {
    const auto found = jit::find_library(spec_of(text_of(a, 0)));
    return found ? described(*found) : Json();
  });
  global("build_library",
         [](Args a) { return described(jit::build_library(spec_of(text_of(a, 0)), a[1].cast<bool>())); });
  global("library_commands", [](Args a) { return commands(text_of(a, 0), text_of(a, 1)); });
  global("library_ninja", [](Args a) { return Json(jit::library_ninja(spec_of(text_of(a, 0)))); });
  global("library_source_hash", [](Args a) { return Json(jit::library_source_hash(spec_of(text_of(a, 0)))); });
  global("clear_cache", [](Args) { return Json(jit::clear_cache()); });
  global("reset", [](Args) { return reset(), Json(); });
  tvm::Function::SetGlobal("flashinfer.jit.variant_kernels", tvm::Function::FromPacked(variant_kernels), true);
}

}  // namespace
}  // namespace flashinfer::ffi
