// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/aot.h"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "flashinfer/core/check.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/jobs.h"
#include "flashinfer/jit/build.h"
#include "flashinfer/jit/cuda_load.h"
#include "flashinfer/jit/source.h"

namespace flashinfer::jit {
namespace {

using Clock = std::chrono::steady_clock;

struct Job {
  const Request* request;
  Target target;
};

/// The current artifact of the level that the job's extends, if `out_dir` has it.
std::optional<AotEntry> extended(const std::string& out_dir, const Job& job, const Toolchain& toolchain) {
  const CpuLevel* const level = find_level(job.target);
  if (level == nullptr || !level->extends) return std::nullopt;
  auto entry = read_aot(out_dir, *job.request, *level->extends);
  if (entry && matches(entry->meta, build_key(*job.request, *level->extends, toolchain).wanted)) return entry;
  return std::nullopt;
}

/// Whether the kernel can differ from that of the level which the job's extends: it asks for what the level adds.
bool uses_level(const Job& job) {
  const auto& macros = find_level(job.target)->macros;
  for (const std::string& macro : macros)
    if (job.request->source.find(macro) != std::string::npos) return true;
  return headers_hold(include_root(), job.request->header, macros);
}

/// `dir` with meta.json alone, for the code of `entry`.
void share(const std::string& parent, const std::string& dir, const BuildKey& key, const AotEntry& entry) {
  Meta meta = key.wanted;
  meta.compiler = entry.meta.compiler;
  meta.bytes = entry.meta.bytes;
  meta.checksum = entry.meta.checksum;
  const std::string temporary = fs::make_temp_dir(parent, ".build-");
  fs::write_plain(temporary + "/meta.json", to_json(meta));
  fs::remove_tree(dir);
  publish(temporary, dir);
}

/// One artifact: kept when it exists and was made from the same inputs, else compiled, unless the code of another level
/// is the same.
Outcome make_one(const std::string& out_dir, const Job& job, const Toolchain& toolchain) {
  const BuildKey key = build_key(*job.request, job.target, toolchain);
  const std::string parent = out_dir + "/" + name(job.target);
  const std::string dir = parent + "/" + key.aot_folder;
  if (const auto entry = read_aot(out_dir, *job.request, job.target); entry && matches(entry->meta, key.wanted))
    return Outcome::kAot;
  fs::remove_tree(dir);
  const auto base = extended(out_dir, job, toolchain);
  if (base && !uses_level(job)) {
    share(parent, dir, key, *base);
    return Outcome::kAot;
  }
  compile_into(*job.request, job.target, toolchain, key, parent, key.aot_folder, /*quiet=*/true, /*aot=*/true);
  if (const auto made = read_meta(dir); base && made && made->checksum == base->meta.checksum)
    share(parent, dir, key, *base);
  return Outcome::kCompiled;
}

}  // namespace

AotResult aot(const std::string& out_dir, std::span<const Target> targets, std::span<const Request> requests, int jobs,
              const std::function<void(const Progress&)>& progress) {
  const auto start = Clock::now();
  for (const Target t : targets)
    if (const std::string why = why_no_compiler(t); !why.empty()) throw RuntimeError(str("aot: ", name(t), ": ", why));
  fs::make_dirs(out_dir);
  const std::string root = fs::canonical(out_dir);
  std::vector<Job> list;
  for (const Target t : targets) {
    fs::make_dirs(root + "/" + name(t));
    for (const Request& r : requests)
      if (is_cuda(r) != is_cpu(t)) list.push_back({&r, t});
  }
  AotResult result;
  std::mutex mutex;
  int64_t done = 0;
  const auto make = [&](const Job& job) {
    const auto began = Clock::now();
    const Toolchain toolchain = toolchain_for(job.target);
    Outcome outcome = Outcome::kFailed;
    std::string error;
    try {
      outcome = make_one(root, job, toolchain);
    } catch (const HeadersChanged&) {
      error = str(name(job.target), ": ", job.request->text(), ": a header changed while it was compiled");
    } catch (const std::exception& e) {
      error = str(name(job.target), ": ", e.what());
    }
    const std::lock_guard lock(mutex);
    result.compiled += outcome == Outcome::kCompiled;
    result.kept += outcome == Outcome::kAot;
    if (!error.empty()) result.errors.push_back(error);
    const std::string dir =
        root + "/" + name(job.target) + "/" + build_key(*job.request, job.target, toolchain).aot_folder;
    if (const auto id = fs::file_id(artifact_path(dir, name(job.target))))
      result.bytes += id->bytes, result.bytes_of[job.target] += id->bytes;
    else
      result.shared += error.empty();
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    ++done;
    if (progress) progress({done, static_cast<int64_t>(list.size()), job.request, outcome, seconds, &error});
  };
  // Target by target: a level of CPUs is compared with the one that it extends.
  for (auto first = list.cbegin(); first != list.cend();) {
    const auto last = std::find_if(first, list.cend(), [&](const Job& job) { return job.target != first->target; });
    for_each_job(last - first, jobs, [&](int64_t i) { make(first[i]); });
    first = last;
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

}  // namespace flashinfer::jit
