// SPDX-License-Identifier: Apache-2.0
// The plan: a batch's structure, checked once, as a value that run() takes and the recorder writes.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/attention/plan/work.h"
#include "flashinfer/ops/common/paged_kv.h"

namespace flashinfer::attention {

/// Memory of the caller that use_cuda_graph=True names: plan() also writes its arrays into it.
struct GraphBuffers {
  TensorView qo_indptr, kv_indptr, kv_indices, last_page_len, mask, mask_indptr;
};

struct GraphArrays;  // cuda/graph.h
struct Plan;

/// Plans for runs whose q has other rows a request than their plan, the last used last. A copy begins without: it may
/// be changed.
struct RowPlans {
  RowPlans() = default;
  RowPlans(const RowPlans&) {}
  RowPlans& operator=(const RowPlans&) {
    kept.clear();
    return *this;
  }
  std::vector<std::shared_ptr<const Plan>> kept;
};

/// State of the batch wrappers: what __init__ sets, then what plan() sets.
struct Plan {
  std::string kv_layout = "NHD";
  bool paged = true;
  bool use_cuda_graph = false;                                   // sizes are those of the buffers and the first plan
  int64_t fixed_batch_size = 0, max_rows = -1, fixed_q_len = 0;  // 0, -1, 0: not fixed (yet)
  int64_t batch_size = 0, num_qo_heads = 0, num_kv_heads = 0, head_dim_qk = 0, head_dim_vo = 0, page_size = 1;
  int64_t nnz_qo = 0, nnz_kv = 0;  // rows of q; ragged: rows of K and V
  int64_t q_len_per_req = 1;       // decode
  bool any_q_len = false;          // decode: a run's q may have other rows a request than the plan
  DType q_data_type = DType::kF16, kv_data_type = DType::kF16, o_data_type = DType::kF16;
  bool causal = false;
  int64_t window_left = -1;
  double sm_scale = 0, logits_soft_cap = 0, rope_scale = 1, rope_theta = 1e4;
  std::string pos_encoding_mode = "NONE";
  Tensor qo_indptr, kv_indptr, kv_indices, kv_len;  // int32; kv_indptr in pages, or in tokens when ragged
  int64_t max_page = -1;                            // of kv_indices
  Tensor v_indices;  // not recorded: pages of V, where operators without plan() get a table of their own for them
  Tensor mask, mask_indptr;      // u8 bits and int64 byte offsets; undefined without a mask
  Tensor prefix_len, token_pos;  // multi-item scoring: u32 [B] and u16 [B, token_pos_len]; undefined without
  Tensor alibi_slopes;           // f32 [Hq]; undefined: those of num_qo_heads heads
  op::Value jit_args;            // of __init__: a custom variant (custom.h); None without
  bool variant_owns_mask = false;
  GraphBuffers buffers;                // not recorded: the caller's
  bool without_buffers = false;        // not recorded: use_cuda_graph whose sizes the first plan() fixes; CPU only
  std::shared_ptr<GraphArrays> graph;  // not recorded: what a captured run reads, when the buffers are on a GPU
  int64_t requests_a_head = 0;         // KV heads with requests of their own (PlanList::all_heads); 0: they share them
  // Not recorded: query rows of the longest request, of the offsets that it was found in (longest_rows()).
  int64_t longest = 0;
  Tensor longest_of;
  WorkList work;  // depends on the threads, so it is not recorded: a run that is replayed alone makes its own
  mutable RowPlans of_rows;  // not recorded; with any_q_len (planned_for_rows() in api/decode.cc)
};
extern const op::StateType plan_type, sparse_plan_type;

/// Plans that differ only in their arrays: levels of a cascade, halves of a batch, heads of a sparse pattern. The base
/// holds what they share and their arrays one after another, so that the recorder writes them.
struct PlanList : Plan {
  int64_t count = 0;
  Tensor batches;           // i64 [count, 2]: requests of each plan, and whether it is causal
  std::vector<Plan> plans;  // not recorded: split() makes them
  // Not recorded: the plans of KV heads with patterns of their own as one (sparse/variable.cc).
  std::shared_ptr<const Plan> all_heads;
};
extern const op::StateType plan_list_type, cascade_plan_type, sparse_list_type;
/// The arrays of `plans` into those of the base.
void join(PlanList& l);
/// The plans of a receiver; made anew when the state was read from a dump. AssertionError before plan().
std::vector<Plan> split(const PlanList& l);
class Plans {
 public:
  explicit Plans(const op::Object* self);
  explicit Plans(std::vector<Plan> made) : made_(std::move(made)), plans_(made_) {}
  Plans(const Plans&) = delete;
  Plans& operator=(const Plans&) = delete;
  const Plan& operator[](size_t i) const { return plans_[i]; }
  size_t size() const { return plans_.size(); }
  std::span<const Plan> all() const { return plans_; }

 private:
  std::vector<Plan> made_;
  std::span<const Plan> plans_;
};

/// What all callers of the kernel share, from the public arguments.
struct Options {
  int64_t window_left = -1;
  std::string_view pos_encoding_mode = "NONE";
  std::optional<double> sm_scale, logits_soft_cap, rope_scale, rope_theta;
  bool narrow_output = false;  // o_data_type may be e4m3
};
/// Sets the numbers of `p` and checks them: heads, dims, scales, positions.
void set_options(Plan& p, const Options& o);

/// Host copy as int32. ValueError for an element that does not fit.
Tensor to_int32(std::string_view name, const TensorView& v, int64_t n);
/// Checks the page table (`names`: of indptr, indices, last_page_len) and sets kv_indptr, kv_indices, kv_len.
struct PageTableNames {
  const char *indptr, *indices, *last_page_len;
};
void set_page_table(Plan& p, const PageTableNames& names, const TensorView& indptr, const TensorView& indices,
                    const TensorView& last_page_len);
/// The same from lengths in tokens (`names.last_page_len` is their name); more pages than a length needs are allowed.
void set_page_table_of_lengths(Plan& p, const PageTableNames& names, const TensorView& indptr,
                               const TensorView& indices, const TensorView& kv_len);
/// Pages of a dense table [B, pages a request]: used as it is, ValueError for a length beyond it or a negative id that
/// is used.
struct DenseTableNames {
  const char *table = "block_tables", *lengths = "seq_lens";
};
void set_dense_table(Plan& p, const TensorView& block_tables, const TensorView& seq_lens,
                     const DenseTableNames& names = {});
/// A table [B, width] of any strides as contiguous int32.
Tensor compact_table(std::string_view name, const TensorView& tables);
/// The shapes alone.
void check_dense_shape(const Plan& p, const TensorView& block_tables, const TensorView& seq_lens,
                       const DenseTableNames& names = {});
/// A dense table that the caller also gave must name the pages of the index arrays.
void check_block_tables(const std::optional<TensorView>& given, const Plan& p);
/// Query rows of the requests; nnz_qo, qo_indptr.
void set_rows(Plan& p, std::string_view name, const TensorView& qo_indptr);
void check_rows_shape(const Plan& p, std::string_view name, const TensorView& qo_indptr);
/// Multi-item scoring: prefix_len [B], token_pos [B * len] or [B, len], max_item_len [B].
struct Items {
  const std::optional<TensorView>& prefix_len;
  const std::optional<TensorView>& token_pos;
  int64_t token_pos_len;
  const std::optional<TensorView>& max_item_len;
};
void set_items(Plan& p, const Items& items);
/// __init__ with use_cuda_graph: ValueError for a buffer that is missing or of a wrong length, or given without it.
struct GraphArgument {
  const char* name;
  const std::optional<TensorView>& given;
  TensorView GraphBuffers::* buffer;
  bool required = true;
};
void set_graph(Plan& p, bool use_cuda_graph, std::span<const GraphArgument> arguments);
/// Elements of `from`, in host memory, to the front of a caller's buffer of any integer type, perhaps on a GPU
/// (undefined: nothing is copied). ValueError where it is too small.
void copy_to_buffer(const char* what, const TensorView& from, const TensorView& buffer);
/// ValueError unless the workspace begins at a multiple of 16 bytes. The CPU does not use it.
void check_workspace(const TensorView& workspace, const char* name = "float_workspace_buffer");
/// What __init__ set, for the next plan.
Plan next_plan(const Plan& before);
inline Plan next_plan(const op::Object* self) { return next_plan(self->as<Plan>()); }
/// In graph mode: what may not change since the first plan, then the arrays into the caller's buffers.
void fill_graph_buffers(Plan& p, const TensorView* last_page_len);
/// Where the bits of each request's mask begin, of all rows over all keys; returns how many bits there are.
int64_t set_mask_indptr(Plan& p);
/// Bits of a mask over the requests of `p` (qo_indptr and kv_len set); clears it when neither is given.
void set_mask(Plan& p, const std::optional<TensorView>& mask, const std::optional<TensorView>& packed);
/// Slopes of the caller's heads (of all heads of the model, where these are a share of them).
void set_slopes(Plan& p, const std::optional<TensorView>& slopes);
/// `offsets` of requests in rows when they are in elements, as cuDNN's interface has them: when the last one is the sum
/// of `lengths` times the `row` elements of a row. Undefined when they are in rows already.
Tensor offsets_in_rows(std::string_view name, const TensorView& offsets, const std::optional<TensorView>& lengths,
                       int64_t row);
/// Lengths that the caller also gave must be those of the index arrays.
void check_lengths(std::string_view name, const std::optional<TensorView>& given, const Tensor& lengths);
/// A bound that the caller also gave must hold.
void check_longest(std::string_view name, const std::optional<int64_t>& bound, const Tensor& lengths);
/// Whether the decode kernel supports the plan's masks and positions.
bool decode_supports(const Plan& p);
void set_work(Plan& p);
/// How often this process has called it.
int64_t set_work_calls();
/// Query rows of the longest request; those of a plan that set_work() has seen are known.
int64_t longest_rows(const Plan& p);
/// A plan that was read from a dump: ValueError unless its arrays fit together, then set_work.
void restore(Plan& p);

/// A plan's element type for `kv_data_type`: bytes hold NVFP4 pairs.
DType cache_type(DType kv_data_type);
/// Bytes of one cached value, with the scales of NVFP4.
double cache_bytes(DType t);

/// K or V with its strides; a paged plane, or rows of tokens.
struct Planes {
  ops::KvPlane k, v;
};
/// K and V of the single and ragged operators as planes of one page.
Planes token_planes(const TensorView& k, const TensorView& v, std::string_view kv_layout);
/// K and V of a paged cache; a cache of bytes holds NVFP4 pairs, and its dims count values.
Planes cache_planes(const op::PagedKv& kv, std::string_view kv_layout);
/// The e4m3 scales of `kv`, a paged or token cache of NVFP4; ValueError unless they are given exactly when needed and
/// fit.
std::optional<Planes> scale_planes(const std::optional<op::PagedKv>& sf, std::string_view kv_layout, const Planes& kv,
                                   bool paged);

/// What rows see, known at run() (api/ranges.h): keys up to their position, and each a span of its own.
struct Spans {
  TensorView keys;  // [rows, 2] first and last key
  int64_t causal_window = -1, window = -1;
};

/// Tensors and numbers of one run.
struct Call {
  TensorView q, out;
  std::optional<TensorView> lse;
  bool lse_by_head = false;  // [Hq, rows]
  bool natural_lse = false;
  double q_scale = 1, k_scale = 1, v_scale = 1;
  const TensorView *q_head_scales = nullptr, *k_head_scales = nullptr,
                   *v_head_scales = nullptr;  // f32 [Hq], [Hkv], [Hkv]: further factors
  // One further factor each of logits and outputs, on a GPU; with CallTables.
  const float *scales_on_device[2] = {}, *v_scale_on_device = nullptr;
  std::optional<double> sm_scale;  // instead of the plan's
  Planes kv;
  std::optional<Planes> kv_sf;        // e4m3 scales of an NVFP4 cache, planes of the same pages
  const TensorView* sinks = nullptr;  // f32 [Hq], contiguous, natural units
  std::optional<Spans> spans;         // on a GPU, where they become the mask; the plan has mask_indptr alone
  op::Value args;                     // a custom variant's additional arguments
};

}  // namespace flashinfer::attention
