// SPDX-License-Identifier: Apache-2.0
// Runs of plans: what the candidates of an op prepare. Internal to the families of attention.
#pragma once
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/attention/plan/plan.h"
#include "flashinfer/ops/attention/plan/rope_table.h"

namespace flashinfer::attention {

/// The plan of a prepared run: the receiver's, which outlives it, or one made for the call.
using PlanRef = std::shared_ptr<const Plan>;
inline PlanRef borrowed(const Plan& p) { return {PlanRef(), &p}; }
inline PlanRef owned(Plan p) { return std::make_shared<const Plan>(std::move(p)); }

/// A run on the CPU. `c` is not used after the return, but tensors that it names are.
op::Prepared prepare_cpu(const PlanRef& plan, const Call& c);
/// A run on the GPU or emulator that all tensors of `c` are on. The plan's work list is made once and goes to the
/// device with its arrays at the first run there; both are kept until the next plan().
op::Prepared prepare_cuda(const PlanRef& plan, const Call& c);
/// The tables of a call without a plan, in its GPU's memory, which the host does not read. Lengths and rows beyond the
/// promised ones are cut off; page ids are not checked.
struct CallTables {
  std::optional<TensorView> pages{};       // [B, width] i32 or i64, any strides; absent: K and V are ragged
  std::optional<TensorView> v_pages{};     // those of V, of the same type and strides; absent: `pages`
  std::optional<TensorView> lengths{};     // [B] keys, i32, u32 or i64; absent: all rows from first_keys[b] on
  std::optional<TensorView> first_rows{};  // [B + 1]; absent: `rows` for each request
  int64_t rows = 1;                        // query rows of a request, or the most
  int64_t keys = 0;                        // of a request at most
  std::optional<TensorView> first_keys{};  // ragged: [B + 1] rows of K and V; absent: `keys` for each request
  int64_t row_unit = 1, key_unit = 1;      // what a row counts in first_rows and first_keys
  // The mask: words among the rows of a request (api/draft_mask.h), or keys of this rank's share of a context.
  std::optional<TensorView> words{};   // u16 [rows in all, words of a row], contiguous
  std::optional<TensorView> before{};  // [B] tokens of all ranks before a request's first row
  int64_t world = 1, rank = 0;
};
/// The same with a plan without arrays, which a kernel makes from `tables` at each run. Nothing waits for the GPU, so
/// the call can be captured; a replay reads the tables anew.
op::Prepared prepare_tables_cuda(const PlanRef& plan, const Call& c, const CallTables& tables);
/// The LSE of ragged rows [rows, Hq] to [B, places, Hq]; places behind a request's last row get -inf.
op::Prepared prepare_pad_lse(const CallTables& tables, const TensorView& from, const TensorView& to);
void run_reference(const Plan& p, const Call& c);

/// The candidates of an op that runs one plan: PlanOf(block) on the tensors of CallOf(block).
template <class Block, PlanRef (*PlanOf)(const Block&), Call (*CallOf)(const Block&),
          PlanRef (*CudaPlanOf)(const Block&) = PlanOf>
struct PlanRun {
  static op::Prepared cpu(const Block& a) { return prepare_cpu(PlanOf(a), CallOf(a)); }
  static op::Prepared cuda(const Block& a) { return prepare_cuda(CudaPlanOf(a), CallOf(a)); }
  static void reference(const Block& a) { run_reference(*PlanOf(a), CallOf(a)); }
};
template <class R>
inline constexpr op::Candidate kRunCandidates[] = {op::cuda<R::cuda>(), op::cpu<R::cpu>(),
                                                   op::reference<R::reference>()};

/// Several launches as one, in order. All of them are prepared before it is known that one is unsupported, so that one
/// pass lists all kernels.
class Launches {
 public:
  /// make(): the op::Prepared of the next launch.
  template <class Make>
  void add(const Make& make) {
    all_.emplace_back(new op::Prepared(make()));
  }
  /// Memory that the launches use.
  void keep(std::shared_ptr<const void> memory) { kept_.push_back(std::move(memory)); }
  op::Prepared prepared() && {
    for (const auto& launch : all_)
      if (!launch->supported()) return op::Unsupported{std::move(launch->why_not())};
    return [all = std::move(all_), kept = std::move(kept_)] {
      for (const auto& launch : all) launch->run();
    };
  }

 private:
  std::vector<std::unique_ptr<op::Prepared>> all_;
  std::vector<std::shared_ptr<const void>> kept_;
};

// Of cpu/run.cc, for both devices.
AttentionConfig config_of(const Plan& p, const Call& c = {});
/// ALiBi's slopes, or nothing.
std::vector<float> slopes_of(const Plan& p);
/// ROPE_LLAMA's table for all positions of a plan.
std::shared_ptr<const RopeTable> rope_table_of(const Plan& p);
/// Everything but works, slopes, partial results and the rotation; pointers of the plan's arrays are the host's.
AttentionParams params_of(const Plan& p, const Call& c);

}  // namespace flashinfer::attention
