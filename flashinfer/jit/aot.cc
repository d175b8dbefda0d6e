// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/aot.h"

#include <chrono>
#include <mutex>

#include "flashinfer/core/check.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/jobs.h"
#include "flashinfer/jit/build.h"
#include "flashinfer/jit/cuda_load.h"

namespace flashinfer::jit {
namespace {

using Clock = std::chrono::steady_clock;

struct Job {
  const Request* request;
  Target target;
};

/// One artifact: kept when it exists and was made from the same inputs, else compiled.
Outcome make_one(const std::string& out_dir, const Job& job, const Toolchain& toolchain) {
  const BuildKey key = build_key(*job.request, job.target, toolchain);
  const std::string parent = out_dir + "/" + name(job.target);
  const std::string dir = parent + "/" + key.aot_folder;
  if (const auto meta = read_artifact(dir); meta && matches(*meta, key.wanted)) return Outcome::kAot;
  fs::remove_tree(dir);
  compile_into(*job.request, job.target, toolchain, key, parent, key.aot_folder, /*quiet=*/true, /*aot=*/true);
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
  for_each_job(static_cast<int64_t>(list.size()), jobs, [&](int64_t i) {
    const Job& job = list[static_cast<size_t>(i)];
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
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    ++done;
    if (progress) progress({done, static_cast<int64_t>(list.size()), job.request, outcome, seconds, &error});
  });
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

}  // namespace flashinfer::jit
