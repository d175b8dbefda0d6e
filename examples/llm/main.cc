// SPDX-License-Identifier: Apache-2.0
// llm: serves a Llama-type GGUF model with this library's operators.
//   llm --prompt "Why is the sky blue?"
//   llm --prompt "..." --prompt "..." --json --logits last.safetensors
//   llm --tensor-parallel 2 --prompt "..."       two processes; mpirun -np 2 llm --prompt "..." too
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "bench.h"
#include "engine.h"
#include "flashinfer/formats/pt.h"
#include "progress.h"
#include "ranks.h"
#include "report.h"
#include "tokenizer.h"

namespace llm {
namespace {

namespace fs = std::filesystem;
constexpr const char* kModelFile = "models/SmolLM2-135M-Instruct.Q4_1.gguf";

struct Options {
  std::string model, logits, device = "cpu";
  std::vector<std::string> prompts;
  int64_t page_size = 16, kv_tokens = 8192, max_new = 64;
  RankOptions ranks;
  bool json = false, plain = false, bench = false, warmup = true, exact = false;
  EngineOptions engine;
};

/// --model, else $MODEL, else the default file under the current folder or one above the program.
std::string find_model(const Options& o) {
  if (!o.model.empty()) return o.model;
  if (const char* env = std::getenv("MODEL"); env != nullptr && *env != '\0') return env;
  if (fs::exists(kModelFile)) return kModelFile;
  std::error_code error;
  for (fs::path p = fs::read_symlink("/proc/self/exe", error).parent_path(); p.has_relative_path(); p = p.parent_path())
    if (fs::exists(p / kModelFile)) return p / kModelFile;
  throw UserError(std::string(kModelFile) + " is not there: run tools/get_model.sh, or name a GGUF file with --model");
}

void define(CLI::App& app, Options& o) {
  const auto positive = CLI::Range(int64_t{1}, int64_t{1} << 20);
  app.add_option("--model", o.model,
                 "GGUF file of a Llama-type model (default: $MODEL, then " + std::string(kModelFile) + ")");
  app.add_option("--prompt", o.prompts, "a question; may be given several times, all are answered at once");
  app.add_flag("--plain", o.plain, "continue the prompts as they are, without the chat template");
  app.add_option("--max-new", o.max_new, "tokens to generate at most for each prompt")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--ctx", o.engine.context, "tokens of prompt and answer together")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--max-batch", o.engine.max_batch, "requests that run at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--page-size", o.page_size, "tokens of a page of the KV cache")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--kv-tokens", o.kv_tokens, "tokens the whole KV cache holds")->check(positive)->capture_default_str();
  app.add_option("--device", o.device,
                 "cpu, cuda:N (all operators there, weights as bf16), or emu (the GPU's kernels on the emulator, "
                 "products on the CPU)")
      ->capture_default_str();
  app.add_option("--threads", o.ranks.threads,
                 "threads of each process (default: FLASHINFER_NUM_THREADS, else all cores, divided by the processes)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--tensor-parallel,--np", o.ranks.ranks,
                 "processes that share the model's heads and columns (default: those that mpirun, srun or torchrun "
                 "started, else 1)")
      ->check(CLI::Range(1, 64));
  app.add_option("--bind", o.ranks.bind, "bind each process to its share of the cores, or to its NUMA node")
      ->check(CLI::IsMember({"none", "cores", "nodes"}))
      ->capture_default_str();
  app.add_option("--group", o.ranks.group,
                 "name under which the processes meet (default: of the job); for ranks started by hand with RANK and "
                 "WORLD_SIZE");
  app.add_option("--temperature", o.engine.sampling.temperature, "0 is greedy")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  app.add_option("--top-k", o.engine.sampling.top_k, "sample among the k likeliest; 0 is off")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  app.add_option("--top-p", o.engine.sampling.top_p, "sample among the likeliest of this mass")
      ->check(CLI::Range(1e-6, 1.0))
      ->capture_default_str();
  app.add_option("--seed", o.engine.sampling.seed, "of the first prompt; prompt i uses seed + i")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--logits", o.logits,
                 "save the logits after each prompt, f32, as logits.0, logits.1, ... (.safetensors)");
  app.add_flag(
      "--exact", o.exact,
      "multiply activations as bf16; else those that meet quantised weights are in 8-bit blocks, as in llama.cpp");
  app.add_flag("--json", o.json, "print one JSON document with token ids and timings in place of text and table");
  app.add_flag("--bench", o.bench, "measure prefill of 512 tokens, decode alone and of a batch of 8, and exit");
  app.add_flag("--warmup,!--no-warmup", o.warmup, "load or compile the kernels before the clock starts (on)");
}

/// One short request through prefill, decode and sampling, so that every kernel is compiled before the first real one.
double warm_up(Model* model, const EngineOptions& options, bool quiet) {
  Progress progress("kernels", quiet);
  progress.update("compiling");
  EngineOptions small = options;
  small.context = 64;
  Engine engine(model, small);
  engine.submit({0, 0, 0}, 3, [](int32_t) { return false; });
  while (engine.step([&](const Request&, int32_t) { progress.update("compiling"); })) {
  }
  return progress.seconds();
}

void save_logits(const Engine& engine, const std::string& path) {
  std::vector<flashinfer::formats::NamedTensor> tensors;
  for (const auto& row : engine.prompt_logits())
    tensors.push_back(
        {"logits." + std::to_string(tensors.size()), flashinfer::TensorView(std::span<const float>(row))});
  flashinfer::formats::write_safetensors(path, tensors);
}

void serve(const Options& o, const Gguf& file, Model* model, RunTimes times, const Place& place) {
  const bool speaks = place.rank == 0;
  times.ranks = place.size;
  const Tokenizer tokenizer(file);
  EngineOptions options = o.engine;
  options.context = std::min(options.context, model->shape().context);
  options.keep_logits = !o.logits.empty() && speaks;
  Engine engine(model, options);
  TextStream text(&tokenizer, o.prompts.size(), o.json || !speaks);
  for (const std::string& p : o.prompts)
    engine.submit(o.plain ? tokenizer.encode(p) : tokenizer.encode_chat(p), o.max_new,
                  [&](int32_t token) { return tokenizer.ends_answer(token); });
  if (o.warmup) times.warmup_seconds = warm_up(model, options, !speaks);
  engine.start_clock();
  while (engine.step([&](const Request& r, int32_t token) {
    text.push(r.id, token);
    if (r.is_done()) text.finish(r.id);
  })) {
  }
  if (!speaks) return;
  if (o.json)
    std::cout << json_document(engine, *model, times, text) << "\n";
  else
    print_table(engine, *model, times);
  if (!o.logits.empty()) save_logits(engine, o.logits);
}

/// What this rank does, with its own threads.
void compute(const Options& o, const Gguf& file, flashinfer::Device device, const Place& place) {
  std::shared_ptr<const flashinfer::Executor> pool;
  flashinfer::Context context = flashinfer::Context::current();
  if (const int threads = bind_rank(o.ranks, place); threads > 0) {
    pool = flashinfer::make_thread_pool(threads);
    context.executor = *pool;
  }
  const flashinfer::ContextScope scope(context);
  const bool quiet = place.rank != 0;
  RunTimes times;
  Progress progress("loading weights", quiet);
  const int64_t pages = std::max<int64_t>(o.kv_tokens / o.page_size, 1);
  Model model(file, pages, o.page_size, Engine::max_rows(o.engine.max_batch),
              [&](double done) { progress.update(done); }, device, {place.rank, place.size, place.group});
  model.quantize_activations(!o.exact);
  times.load_seconds = progress.seconds();
  if (!o.bench) return serve(o, file, &model, times, place);
  if (o.warmup) warm_up(&model, o.engine, quiet);
  const std::string result = bench(&model, o.json);
  if (!quiet) std::cout << result;
}

int run(const Options& o) {
  if (o.prompts.empty() && !o.bench) throw UserError("no --prompt given (see --help)");
  const auto device = flashinfer::parse_device(o.device);
  if (!device) throw UserError("--device " + o.device + " is none of cpu, cuda, cuda:N, emu");
  Place place = launched_place(o.ranks);
  if (!place.is_alone() && *device != flashinfer::kCpu)
    throw UserError("--tensor-parallel " + std::to_string(place.size) + " needs --device cpu, but it is " + o.device);
  const Gguf file(find_model(o));
  Split(ModelShape(file), place.rank, place.size);  // before a process is started
  start_ranks(&place);
  try {
    compute(o, file, *device, place);
  } catch (const UserError&) {  // the same on all ranks: one says it
    end_ranks(place, true);
    if (place.rank == 0) throw;
    return 1;
  } catch (const std::exception& e) {
    end_ranks(place, true);
    if (place.is_alone()) throw;
    throw std::runtime_error("rank " + std::to_string(place.rank) + ": " + e.what());
  }
  return end_ranks(place, false) ? 0 : 1;
}

}  // namespace
}  // namespace llm

int main(int argc, char** argv) {
  try {
    CLI::App app("Answers prompts with a Llama-type GGUF model: continuous batching over a paged KV cache.", "llm");
    llm::Options options;
    llm::define(app, options);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
      return app.exit(e) == 0 ? 0 : 2;  // --help, or wrong usage as of the command flashinfer
    }
    return llm::run(options);
  } catch (const std::exception& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "llm: %s\n", e.what());
    return 1;
  }
}
