// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/moe/gen_routing.h"

#include <algorithm>
#include <array>
#include <map>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/cuda_steps.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/moe/cuda/layer.h"
#include "flashinfer/ops/moe/kernels/gen_routing_params.h"
#include "flashinfer/ops/moe/ops.h"
#include "flashinfer/ops/moe/routing.h"

namespace flashinfer {
namespace {
using G = TrtllmGenRouting;
inline constexpr jit::Kernel kGenChoices{"flashinfer/ops/moe/kernels/cuda/gen_routing.cuh",
                                         "flashinfer::cu::moe_gen_choices", "flashinfer::MoeGenRoutingParams"};
inline constexpr jit::Kernel kGenCounts{"flashinfer/ops/moe/kernels/cuda/gen_routing.cuh",
                                        "flashinfer::cu::moe_gen_counts", "flashinfer::MoeGenRoutingParams"};
inline constexpr jit::Kernel kGenRows{"flashinfer/ops/moe/kernels/cuda/gen_routing.cuh", "flashinfer::cu::moe_gen_rows",
                                      "flashinfer::MoeGenRoutingParams"};

// ---- extents ----
int64_t choices_of(const G& a) { return a.top_k + a.num_fused_shared_experts; }
int64_t routed_here(const G& a) { return a.local_num_experts.value_or(a.routing_logits.size(1)); }
int64_t experts_here(const G& a) { return routed_here(a) + a.num_fused_shared_experts; }
/// The most tiles: one for every expert that has rows, and one more for every whole tile of the other rows.
int64_t tiles_of(const G& a) {
  const int64_t rows = a.routing_logits.size(0) * choices_of(a), used = std::min(rows, experts_here(a));
  return used + (rows - used) / a.tile_tokens_dim;
}

// ---- the routing's ids and weights, one row of choices after the other ----
struct Chosen {
  std::vector<int32_t> ids;  // of all experts; the shared ones behind the routed ones
  std::vector<double> weights;
};
MoeRouting routing_of(const G& a) {
  MoeRouting r{.routing_logits = a.routing_logits,
               .routing_method = a.routing_method,
               .top_k = a.top_k,
               .routing_bias = a.routing_bias};
  r.n_group = a.n_group, r.topk_group = a.topk_group, r.routed_scaling_factor = a.routed_scaling_factor,
  r.norm_topk_prob = a.norm_topk_prob;
  return moe::without_unused(r);
}
Chosen choose(const G& a, moe::Routed (*route)(const MoeRouting&)) {
  const moe::Routed routed = route(routing_of(a));
  Chosen out;
  const auto experts = static_cast<int32_t>(a.routing_logits.size(1));
  for (int64_t t = 0; t < a.routing_logits.size(0); ++t) {
    const auto at = static_cast<ptrdiff_t>(t * a.top_k);
    out.ids.insert(out.ids.end(), routed.ids.begin() + at, routed.ids.begin() + at + a.top_k);
    out.weights.insert(out.weights.end(), routed.weights.begin() + at, routed.weights.begin() + at + a.top_k);
    for (int32_t s = 0; s < a.num_fused_shared_experts; ++s) out.ids.push_back(experts + s), out.weights.push_back(1);
  }
  return out;
}
/// Which of the experts here, or -1.
int64_t local_of(const G& a, int32_t id) {
  const int64_t experts = a.routing_logits.size(1);
  if (id >= experts) return routed_here(a) + id - experts;
  const int64_t e = id - a.local_expert_offset;
  return 0 <= e && e < routed_here(a) ? e : -1;
}
void write_choices(const G& a, const Chosen& chosen) {
  const int64_t c = choices_of(a);
  for (size_t i = 0; i < chosen.ids.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i);
    ref::put(*a.topk_ids, {at / c, at % c}, local_of(a, chosen.ids[i]) < 0 ? -1 : chosen.ids[i]);
    ref::put(*a.topk_weights, {at / c, at % c}, chosen.weights[i]);
  }
}

// ---- the order of rows ----
void launch(const G& a) {
  const Chosen chosen = choose(a, moe::route);
  write_choices(a, chosen);
  const int64_t tile = a.tile_tokens_dim, tiles = tiles_of(a);
  std::vector<int64_t> next(static_cast<size_t>(experts_here(a)) + 1, 0), counts(next.size(), 0);
  for (const int32_t id : chosen.ids)
    if (const int64_t e = local_of(a, id); e >= 0) ++counts[static_cast<size_t>(e)];
  int64_t used = 0;  // tiles
  for (size_t e = 0; e + 1 < counts.size(); ++e) {
    next[e] = used * tile;
    for (int64_t left = counts[e]; left > 0; left -= tile, ++used) {
      ref::put(*a.cta_idx_xy_to_batch_idx, {used}, static_cast<double>(e));
      ref::put(*a.cta_idx_xy_to_mn_limit, {used}, static_cast<double>(used * tile + std::min(left, tile)));
    }
  }
  ref::put(*a.num_non_exiting_ctas, {0}, static_cast<double>(used));
  ref::put(*a.total_num_padded_tokens, {0}, static_cast<double>(used * tile));
  for (; used < tiles; ++used)
    ref::put(*a.cta_idx_xy_to_batch_idx, {used}, -1), ref::put(*a.cta_idx_xy_to_mn_limit, {used}, 0);
  for (int64_t r = 0; r < tiles * tile; ++r) ref::put(*a.permuted_idx_to_token_idx, {r}, -1);
  for (size_t i = 0; i < chosen.ids.size(); ++i) {
    const int64_t e = local_of(a, chosen.ids[i]), at = static_cast<int64_t>(i);
    const int64_t row = e < 0 ? -1 : next[static_cast<size_t>(e)]++;
    const int64_t token = at / choices_of(a);
    ref::put(*a.expanded_idx_to_permuted_idx, {token, at % choices_of(a)}, static_cast<double>(row));
    if (row >= 0) ref::put(*a.permuted_idx_to_token_idx, {row}, static_cast<double>(token));
  }
}
// ---- on a GPU ----
template <const jit::Kernel& K>
void add(ops::CudaSteps& steps, const MoeGenRoutingParams& p, int64_t blocks) {
  constexpr int kThreads = 256;
  const cuda::Launch l{.grid = {cuda::grid_size(blocks), 1, 1},
                       .block = {kThreads, 1, 1},
                       .shared_bytes = kThreads / 32 * 4,
                       .pdl = true};
  steps.add([&] { return ops::prepare_cuda<K>(MoeCudaConfig{kThreads}, p, steps.device(), l); });
}
op::Prepared prepare_cuda(const G& a, const op::Call& call) {
  const int64_t tokens = a.routing_logits.size(0), entries = tokens * choices_of(a), local = experts_here(a),
                tiles = tiles_of(a);
  if (entries >= int64_t{1} << 30 || tiles * a.tile_tokens_dim >= int64_t{1} << 30)
    return op::Unsupported{str("there are ", tiles * a.tile_tokens_dim, " rows of tiles, 2^30 or more")};
  const auto steps = std::make_shared<ops::CudaSteps>(call.device);
  const TensorView ids = steps->scratch({tokens, a.top_k}, DType::kI32);
  if (tokens > 0) {
    MoeRouteParams r = moe::route_params(routing_of(a));
    r.ids = moe::results_of(ids), r.weights = moe::results_of(*a.topk_weights);
    steps->add([&] { return moe::prepare_route(r, call.device); });
  }
  const MoeGenRoutingParams p{.routed_ids = ids.data_as<int32_t>(),
                              .local_ids = steps->scratch({entries}, DType::kI32).data_as<int32_t>(),
                              .counts = steps->scratch({local}, DType::kI32).data_as<int32_t>(),
                              .topk_ids = moe::results_of(*a.topk_ids),
                              .topk_weights = moe::results_of(*a.topk_weights),
                              .row_of_entry = moe::results_of(*a.expanded_idx_to_permuted_idx),
                              .token_of_row = moe::results_of(*a.permuted_idx_to_token_idx),
                              .expert_of_tile = moe::results_of(*a.cta_idx_xy_to_batch_idx),
                              .limit_of_tile = moe::results_of(*a.cta_idx_xy_to_mn_limit),
                              .padded_rows = moe::results_of(*a.total_num_padded_tokens),
                              .used_tiles = moe::results_of(*a.num_non_exiting_ctas),
                              .tokens = static_cast<int32_t>(tokens),
                              .choices = static_cast<int32_t>(choices_of(a)),
                              .top_k = static_cast<int32_t>(a.top_k),
                              .experts = static_cast<int32_t>(a.routing_logits.size(1)),
                              .routed = static_cast<int32_t>(routed_here(a)),
                              .offset = static_cast<int32_t>(a.local_expert_offset),
                              .local = static_cast<int32_t>(local),
                              .tile = static_cast<int32_t>(a.tile_tokens_dim),
                              .tiles = static_cast<int32_t>(tiles)};
  add<kGenChoices>(*steps, p, ceil_div(entries, int64_t{256}));
  add<kGenCounts>(*steps, p, local);
  add<kGenRows>(*steps, p, local + 1);
  return ops::CudaSteps::prepared(steps);
}

/// Expert by expert: the list of its choices, cut into tiles.
void reference(const G& a) {
  const Chosen chosen = choose(a, moe::route_reference);
  write_choices(a, chosen);
  for (const auto* t : {&a.permuted_idx_to_token_idx, &a.cta_idx_xy_to_batch_idx})
    for (int64_t i = 0; i < (*t)->size(0); ++i) ref::put(**t, {i}, -1);
  const int64_t c = choices_of(a);
  for (int64_t i = 0; i < std::ssize(chosen.ids); ++i) ref::put(*a.expanded_idx_to_permuted_idx, {i / c, i % c}, -1);
  for (int64_t i = 0; i < a.cta_idx_xy_to_mn_limit->size(0); ++i) ref::put(*a.cta_idx_xy_to_mn_limit, {i}, 0);
  std::map<int64_t, std::vector<int64_t>> of;
  for (size_t i = 0; i < chosen.ids.size(); ++i) of[local_of(a, chosen.ids[i])].push_back(static_cast<int64_t>(i));
  of.erase(-1);
  int64_t row = 0, tiles = 0;
  for (const auto& [expert, list] : of) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (static_cast<int64_t>(i) % a.tile_tokens_dim == 0)
        ref::put(*a.cta_idx_xy_to_batch_idx, {tiles++}, static_cast<double>(expert));
      ref::put(*a.expanded_idx_to_permuted_idx, {list[i] / c, list[i] % c}, static_cast<double>(row));
      ref::put(*a.permuted_idx_to_token_idx, {row}, static_cast<double>(list[i] / c));
      ref::put(*a.cta_idx_xy_to_mn_limit, {tiles - 1}, static_cast<double>(++row));
    }
    while (row % a.tile_tokens_dim) ++row;
  }
  ref::put(*a.num_non_exiting_ctas, {0}, static_cast<double>(tiles));
  ref::put(*a.total_num_padded_tokens, {0}, static_cast<double>(row));
}

// ---- checks ----
void validate(const G& a) {
  const int64_t e = a.routing_logits.size(1), here = routed_here(a), shared = a.num_fused_shared_experts,
                tile = a.tile_tokens_dim;
  moe::check_routing(routing_of(a));
  FI_CHECK(a.n_group <= 1 || a.topk_group > 0, ValueError, "topk_group is 0, but must be in [1, ", a.n_group,
           "] (n_group)");
  FI_CHECK(tile >= 1 && (tile & (tile - 1)) == 0, ValueError, "tile_tokens_dim is ", tile,
           ", but must be a power of two");
  FI_CHECK(here >= 1 && a.local_expert_offset >= 0 && a.local_expert_offset + here <= e, ValueError,
           "local_expert_offset is ", a.local_expert_offset, " and local_num_experts ", here,
           ", but they must be within ", e, " experts (routing_logits.shape[1])");
  FI_CHECK(shared == 0 || (shared > 0 && a.routing_method == 2 && a.n_group > 1 && here == e), ValueError,
           "num_fused_shared_experts is ", shared,
           ", but fusing shared experts needs DeepSeekV3 routing with groups and all experts here (routing_method is ",
           a.routing_method, ", n_group ", a.n_group, ", local_num_experts ", here, " of ", e, ")");
}
op::Cost cost(const G& a) { return {.bytes = static_cast<double>(a.routing_logits.nbytes())}; }

// ---- table ----
/// The extents of results are computed before `validate` runs.
int64_t safe_tiles(const G& a) {
  return a.tile_tokens_dim > 0 && choices_of(a) > 0 && experts_here(a) > 0 ? tiles_of(a) : 0;
}
op::Shape choices(const G& a) { return {2, {a.routing_logits.size(0), choices_of(a)}}; }
op::Shape permuted(const G& a) { return {1, {safe_tiles(a) * a.tile_tokens_dim}}; }
op::Shape tiles(const G& a) { return {1, {safe_tiles(a)}}; }
op::Shape one(const G&) { return {1, {1}}; }

constexpr op::Field fields[] = {
    op::in<&G::routing_logits>("routing_logits", "t e", op::floats),
    op::in<&G::routing_bias>("routing_bias", "e", op::floats, op::required),
    op::attr<&G::routing_method>("routing_method", op::required),
    op::attr<&G::top_k>("top_k", op::required),
    op::attr<&G::num_fused_shared_experts>("num_fused_shared_experts", op::keyword_only),
    op::attr<&G::n_group>("n_group"),
    op::attr<&G::topk_group>("topk_group"),
    op::attr<&G::local_expert_offset>("local_expert_offset"),
    op::attr<&G::local_num_experts>("local_num_experts"),
    op::attr<&G::routed_scaling_factor>("routed_scaling_factor"),
    op::attr<&G::tile_tokens_dim>("tile_tokens_dim",
                                  op::doc("rows of a tile; each expert's rows are padded to whole tiles")),
    op::attr<&G::norm_topk_prob>("norm_topk_prob"),
    op::attr<&G::enable_pdl>("enable_pdl"),
    op::result<&G::topk_ids>("topk_ids", nullptr, DType::kI32, op::shape<choices>,
                             op::doc("experts of each token, or -1: elsewhere")),
    op::result<&G::topk_weights>("topk_weights", nullptr, DType::kBF16, op::shape<choices>),
    op::result<&G::total_num_padded_tokens>("total_num_padded_tokens", nullptr, DType::kI32, op::shape<one>,
                                            op::doc("rows with their padding")),
    op::result<&G::expanded_idx_to_permuted_idx>("expanded_idx_to_permuted_idx", nullptr, DType::kI32,
                                                 op::shape<choices>),
    op::result<&G::permuted_idx_to_token_idx>("permuted_idx_to_token_idx", nullptr, DType::kI32, op::shape<permuted>,
                                              op::doc("the token of each row, or -1: padding")),
    op::result<&G::cta_idx_xy_to_batch_idx>("cta_idx_xy_to_batch_idx", nullptr, DType::kI32, op::shape<tiles>,
                                            op::doc("the local expert of each tile, or -1: none")),
    op::result<&G::cta_idx_xy_to_mn_limit>("cta_idx_xy_to_mn_limit", nullptr, DType::kI32, op::shape<tiles>,
                                           op::doc("end of the rows of each tile without padding")),
    op::result<&G::num_non_exiting_ctas>("num_non_exiting_ctas", nullptr, DType::kI32, op::shape<one>,
                                         op::doc("tiles that have rows")),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<launch>(), op::reference<reference>()};
constexpr op::Case kCases[] = {
    {"renormalize", "routing_logits=f32:19x16 routing_bias=None routing_method=1 top_k=4"},
    {"local",
     "routing_logits=bf16:9x16 routing_bias=None routing_method=0 top_k=3 local_expert_offset=4 local_num_experts=5 "
     "tile_tokens_dim=2"},
    {"groups_shared",
     "routing_logits=f32:9x16 routing_bias=f32:16:normal(0,0.1) routing_method=2 top_k=4 num_fused_shared_experts=2 "
     "n_group=4 "
     "topk_group=2 routed_scaling_factor=2.5 tile_tokens_dim=4"},
    {"one_tile_a_row", "routing_logits=f32:5x4 routing_bias=None routing_method=3 top_k=1 tile_tokens_dim=1"},
    {"none", "routing_logits=f32:0x4 routing_bias=None routing_method=5 top_k=2"},
};
std::span<const op::Case> cases() { return kCases; }
}  // namespace

namespace ops::moe {
constinit const op::Op gen_routing_op = op::define<G, validate, cost>(
    "trtllm_gen_routing", "flashinfer.fused_moe",
    "The experts of each token, and the rows of padded tiles into which they are sorted.", fields, candidates, cases);
}  // namespace ops::moe

TrtllmGenRoutingResult trtllm_gen_routing(const G& a) {
  const op::Results r = op::call(ops::moe::gen_routing_op, a);
  return {r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7]};
}

}  // namespace flashinfer
