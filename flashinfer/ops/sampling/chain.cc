// SPDX-License-Identifier: Apache-2.0
// chain_speculative_sampling.
#include "flashinfer/ops/sampling/chain.h"

#include "flashinfer/ops/sampling/cases.h"
#include "flashinfer/ops/sampling/cuda_run.h"
#include "flashinfer/ops/sampling/launch.h"

namespace flashinfer {
namespace {
using namespace ops::sampling;
using Block = ChainSpeculativeSampling;

inline constexpr jit::Kernel kChain{"flashinfer/ops/sampling/kernels/cpu/chain.h", "flashinfer::cpu::chain",
                                    "flashinfer::ChainParams"};
inline constexpr jit::Kernel kChainCuda{"flashinfer/ops/sampling/kernels/cuda/chain.cuh", "flashinfer::cu::chain",
                                        "flashinfer::ChainCudaParams"};
constexpr const char* kName = "chain_speculative_sampling";

uint64_t used(const Block& a) {
  return static_cast<uint64_t>(a.target_probs.size(0)) * static_cast<uint64_t>(a.target_probs.size(1));
}
void validate(const Block& a) {
  const int64_t v = a.draft_probs.size(2);
  FI_CHECK(v > 0 && v <= INT32_MAX, ValueError, "draft_probs.shape[2] is ", v, ", but must be in [1, 2^31)");
  check_seeds(a.seed, a.offset, a.draft_probs.size(0));
}
SamplingConfig config_of(const Block& a) { return {.dtype = a.draft_probs.dtype()}; }
SampleCudaConfig cuda_config(const Block& a) {
  return cuda::sample_config(a.draft_probs.dtype(), a.draft_probs.size(2));
}
bool wide(const TensorView& t) { return t.dtype() == DType::kI64; }
void counter(const std::optional<TensorView>& t, void*& data, int64_t& is_wide, int64_t& given) {
  given = t.has_value();
  if (!t) return;
  data = t->data();
  is_wide = wide(*t);
}

void fill(const Block& a, ChainArguments& p) {
  p.draft = a.draft_probs.data();
  p.target = a.target_probs.data();
  p.ids = a.draft_token_ids.data();
  p.out = a.output_token_ids->data_as<int32_t>();
  p.accepted_now = a.output_accepted_token_num->data_as<int32_t>();
  p.emitted_now = a.output_emitted_draft_token_num->data_as<int32_t>();
  counter(a.maybe_output_accepted_token_num, p.accepted, p.accepted_wide, p.accepted_given);
  counter(a.maybe_output_emitted_draft_token_num, p.emitted, p.emitted_wide, p.emitted_given);
  p.ids_wide = wide(a.draft_token_ids);
  p.rows = a.draft_probs.size(0);
  p.n = a.draft_probs.size(1);
  p.v = a.draft_probs.size(2);
  p.draft_row = a.draft_probs.stride(0);
  p.draft_step = a.draft_probs.stride(1);
  p.target_row = a.target_probs.stride(0);
  p.target_step = a.target_probs.stride(1);
  p.ids_row = a.draft_token_ids.stride(0);
  p.out_row = a.output_token_ids->stride(0);
}

void launch_cpu(const Block& a, jit::CpuFn kernel) {
  const Randomness random = randomness(a, used(a));
  ChainParams p{};
  fill(a, p);
  p.random = random.params();
  p.rows_per_task = ops::rows_per_task(p.rows, 2 * p.v * a.draft_probs.item_size());
  ops::run_rows(kernel, p, p.rows, p.rows_per_task);
}
op::Prepared prepare_cpu(const Block& a) {
  return ops::with_kernel<kChain>(config_of(a), [&a](jit::CpuFn kernel) { launch_cpu(a, kernel); });
}

void launch_cuda(const Block& a, const jit::CudaLoaded& kernel) {
  ChainCudaParams p{};
  fill(a, p);
  p.random = random_cuda(a, used(a));
  const cuda::Launch l = cuda::sample_launch(cuda_config(a), p.rows, p.v, a.draft_probs.device());
  const Tensor scratch =
      Tensor::empty({int64_t{l.grid[0] / l.cluster[0]} * chain_cuda_words(p.v)}, DType::kF32, a.draft_probs.device());
  p.scratch = scratch.data_as<float>();
  ops::launch_unless_empty(kernel, p, l);
}
op::Prepared prepare_cuda(const Block& a, const op::Call& call) {
  if (std::string why = too_many_tokens(a.draft_probs, "draft_probs"); !why.empty())
    return op::Unsupported{std::move(why)};
  return ops::with_cuda_kernel<kChainCuda>(cuda_config(a), call.device,
                                           [&a](const jit::CudaLoaded& kernel) { launch_cuda(a, kernel); });
}

double count(const std::optional<TensorView>& t, int64_t r, int64_t n) {
  if (!t) return static_cast<double>(n);
  const double all = static_cast<double>(op::index_at(*t, r) + n);
  ref::put(*t, {r}, all);
  return all;
}
void launch_reference(const Block& a) {
  const Randomness random = randomness(a, used(a));
  for (int64_t r = 0; r < a.draft_probs.size(0); ++r) {
    const auto [accepted, emitted] =
        ref::chain_row(a.draft_probs, a.draft_token_ids, a.target_probs, r, random.of_row(r), *a.output_token_ids);
    ref::put(*a.output_accepted_token_num, {r}, count(a.maybe_output_accepted_token_num, r, accepted));
    ref::put(*a.output_emitted_draft_token_num, {r}, count(a.maybe_output_emitted_draft_token_num, r, emitted));
  }
}

op::Cost cost(const Block& a) {
  const double n = static_cast<double>(2 * a.draft_probs.size(0) * a.draft_probs.size(2));
  return {.bytes = n * static_cast<double>(a.draft_probs.item_size()), .flops = 4 * n};
}

constexpr op::Field fields[] = {
    op::in<&Block::draft_probs>("draft_probs", "b n v", op::floats),
    op::in<&Block::draft_token_ids>("draft_token_ids", "b n", op::indices),
    op::in<&Block::target_probs>("target_probs", "b n+1 v", op::same_as("draft_probs")),
    op::inout<&Block::maybe_output_accepted_token_num>("maybe_output_accepted_token_num", "b", op::indices),
    op::inout<&Block::maybe_output_emitted_draft_token_num>("maybe_output_emitted_draft_token_num", "b", op::indices),
    op::attr<&Block::deterministic>("deterministic"),
    op::attr<&Block::generator>("generator"),
    op::in<&Block::seed>("seed", nullptr, kSeeds),
    op::in<&Block::offset>("offset", nullptr, kSeeds),
    op::result<&Block::output_token_ids>("output_token_ids", "b n+1", DType::kI32),
    op::result<&Block::output_accepted_token_num>("output_accepted_token_num", "b", DType::kI32),
    op::result<&Block::output_emitted_draft_token_num>("output_emitted_draft_token_num", "b", DType::kI32),
    op::attr<&Block::implied_generator>("implied_generator", op::internal)};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare_cpu>(),
                                        op::reference<launch_reference>()};
}  // namespace

namespace ops::sampling {
constinit const op::Op chain_op = op::define<Block, validate, cost, prepare<Block>>(
    kName, "flashinfer.sampling", "Which draft tokens of a chain the target model accepts, and the token after them.",
    fields, candidates, chain_cases);
}

std::tuple<Tensor, Tensor, Tensor> chain_speculative_sampling(const Block& a) { return op::call(chain_op, a); }

}  // namespace flashinfer
