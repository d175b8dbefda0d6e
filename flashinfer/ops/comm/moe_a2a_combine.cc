// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include "flashinfer/ops/comm/gpu_moe_a2a.h"
#include "flashinfer/ops/comm/moe_a2a_layout.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/common/task_scratch.h"
#include "flashinfer/ops/quantization/block/launch.h"

namespace flashinfer {
namespace ops::comm {
namespace {
using A = MoeA2aCombine;
using op::Shape;

inline constexpr jit::Kernel kCombine{"flashinfer/ops/comm/kernels/cpu/moe_combine.h", "flashinfer::cpu::moe_combine",
                                      "flashinfer::MoeCombineParams"};
inline constexpr jit::Kernel kNarrow{"flashinfer/ops/comm/kernels/cpu/moe_combine.h", "flashinfer::cpu::moe_narrow",
                                     "flashinfer::MoeNarrowParams"};

DType out_dtype(const A& a) { return a.output_dtype.value_or(a.payload.dtype()); }
MoeCombineQuant quant_of(const A& a) {
  if (out_dtype(a) == DType::kF8E4M3) return MoeCombineQuant::kMxfp8;
  if (out_dtype(a) != DType::kU8) return MoeCombineQuant::kNone;
  return a.output_scales && a.output_scales->dtype() == DType::kF8E4M3 ? MoeCombineQuant::kNvfp4
                                                                       : MoeCombineQuant::kMxfp4;
}
int64_t hidden(const A& a) { return a.payload.size(2); }
int64_t block_of(const A& a) { return quant_of(a) == MoeCombineQuant::kNvfp4 ? 16 : 32; }
Shape out_shape(const A& a) {
  return {2, {a.local_num_tokens, out_dtype(a) == DType::kU8 ? hidden(a) / 2 : hidden(a)}};
}
int64_t row_bytes(const A& a) { return hidden(a) * a.payload.item_size(); }

void check_output(const A& a) {
  const DType out = out_dtype(a);
  FI_CHECK((op::floats | DType::kF8E4M3 | DType::kU8).has(out), ValueError, "output_dtype is ", name(out),
           ", but must be float16, bfloat16, float32, float8_e4m3fn (MXFP8) or uint8 (FP4)");
  if (quant_of(a) == MoeCombineQuant::kNone) {
    FI_CHECK(!a.output_scales, ValueError, "output_scales is given, but output_dtype is ", name(out));
    return;
  }
  FI_CHECK(!a.use_low_precision, ValueError, "use_low_precision is True, but output_dtype is ", name(out));
  FI_CHECK(a.output_scales, ValueError, "output_scales is None, but output_dtype is ", name(out));
  FI_CHECK(a.sf_layout >= 0 && a.sf_layout <= 2, ValueError, "sf_layout is ", a.sf_layout,
           ", but must be 0 (128x4), 1 (8x4) or 2 (linear)");
  FI_CHECK(hidden(a) % block_of(a) == 0, ValueError, "payload.shape[2] is ", hidden(a), ", but must be a multiple of ",
           block_of(a));
  const TensorView& s = *a.output_scales;
  const int64_t bytes = sf_bytes(static_cast<SfLayout>(a.sf_layout), a.local_num_tokens, hidden(a) / block_of(a));
  FI_CHECK(s.item_size() == 1 && s.numel() == bytes && s.is_contiguous(), ValueError, "output_scales is ", to_string(s),
           ", but must be ", bytes, " contiguous bytes");
  FI_CHECK(std::isfinite(a.output_scalar_scale) && a.output_scalar_scale > 0, ValueError, "output_scalar_scale is ",
           a.output_scalar_scale, ", but must be a positive number");
}
void validate(const A& a) {
  check_backend(a.backend);
  const MoeA2aMemory m = memory_of(a.workspace, a.metainfo, a.ep_rank, a.ep_size);
  const MoeA2aHeader& h = *m.header;
  FI_CHECK(h.dispatched, RuntimeError, "combine called before successful dispatch");
  const auto as_dispatched = [](const char* what, int64_t is, int64_t was) {
    FI_CHECK(is == was, ValueError, what, " is ", is, ", but was ", was, " in the dispatch");
  };
  as_dispatched("local_num_tokens", a.local_num_tokens, h.tokens);
  as_dispatched("runtime_max_tokens_per_rank", a.runtime_max_tokens_per_rank, h.runtime_max);
  as_dispatched("top_k", a.top_k, h.top_k);
  as_dispatched("combine_payload_offset", a.combine_payload_offset, h.combine_offset);
  FI_CHECK(a.payload.size(0) == a.ep_size && a.payload.size(1) == h.runtime_max, ValueError, "payload is ",
           to_string(a.payload), ", but must be [", a.ep_size, ", ", h.runtime_max, ", hidden]");
  const int64_t end = h.combine_offset + a.ep_size * h.runtime_max * row_bytes(a);
  FI_CHECK(end <= m.peers.bytes(), ValueError, "workspace has ", m.peers.bytes(), " bytes a rank, but ", end,
           " are needed for ", to_string(a.payload));
  const bool there = a.payload.data() == m.peers.own() + h.combine_offset;
  FI_CHECK(there || !a.payload_in_workspace, ValueError,
           "payload_in_workspace is True, but payload is not the workspace's memory at combine_payload_offset");
  FI_CHECK(a.payload_in_workspace || !there, ValueError,
           "payload is the workspace's memory at combine_payload_offset, but payload_in_workspace is False");
  FI_CHECK(!a.use_low_precision || a.payload.dtype() == DType::kBF16, ValueError,
           "use_low_precision is True, but payload is ", name(a.payload.dtype()), ", not bfloat16");
  active_ranks(a.active_rank_mask, a.enable_rank_mask, m);
  check_output(a);
}

/// The rows for other ranks to where they read them. Own rows are read where they are, unless all are narrowed.
void share_rows(jit::CpuFn narrow, const A& a, const MoeA2aMemory& m, uint64_t active) {
  const MoeA2aHeader& h = *m.header;
  const int32_t* counts = m.counts_of(a.ep_rank);
  const int64_t row = row_bytes(a), slice = h.runtime_max * row;
  const auto* from = static_cast<const std::byte*>(a.payload.data());
  std::byte* to = m.peers.own() + h.combine_offset;
  m.header->bytes_sent = 0;
  for (int64_t s = 0; s < a.ep_size; ++s) {
    if (!(active >> s & 1)) continue;
    if (narrow) {
      MoeNarrowParams p{.from = from + s * slice, .to = to + s * slice, .rows = counts[s], .d = hidden(a)};
      p.row_bytes = row, p.rows_per_task = rows_per_task(p.rows, row + hidden(a));
      run_rows(narrow, p, p.rows, p.rows_per_task);
    } else if (!a.payload_in_workspace && s != a.ep_rank) {
      copy_bytes(from + s * slice, to + s * slice, counts[s] * row);
    }
    const int64_t used = narrow ? hidden(a) : row, step = narrow ? row : std::max<int64_t>(1, counts[s]) * row;
    for (int64_t at = 0; at < counts[s] * row; at += step)  // narrowed rows lie apart
      m.peers.window->put(static_cast<int>(s), m.peers.rank, h.combine_offset + s * slice + at, narrow ? used : step);
    m.header->bytes_sent += counts[s] * (narrow ? hidden(a) : row);
  }
}

flashinfer::comm::Signature signature_of(const A& a, const MoeA2aHeader& h, uint64_t active) {
  return signature(CallKind::kMoeCombine, {h.runtime_max, hidden(a), static_cast<int64_t>(a.payload.dtype()),
                                           h.combine_offset, a.use_low_precision, static_cast<int64_t>(active)});
}
void launch(jit::CpuFn fn, jit::CpuFn narrow, const A& a) {
  const MoeA2aMemory m = memory_of(a.workspace, a.metainfo, a.ep_rank, a.ep_size);
  MoeA2aHeader& h = *m.header;
  const uint64_t active = active_ranks(a.active_rank_mask, a.enable_rank_mask, m);
  share_rows(narrow, a, m, active);
  m.peers.meet(signature_of(a, h, active), active);
  MoeCombineParams p{.places = m.places(), .tokens = h.tokens, .top_k = h.top_k, .d = hidden(a)};
  p.row_bytes = row_bytes(a);
  for (int64_t r = 0; r < a.ep_size; ++r)
    p.source[r] = m.peers.of(r) + h.combine_offset + a.ep_rank * h.runtime_max * p.row_bytes;
  if (!narrow)
    p.source[a.ep_rank] = static_cast<const std::byte*>(a.payload.data()) + a.ep_rank * h.runtime_max * p.row_bytes;
  p.out = a.output->data();
  p.layout = static_cast<SfLayout>(a.sf_layout), p.scale = static_cast<float>(a.output_scalar_scale);
  p.padded_rows = sf_padded_rows(p.layout, p.tokens);
  const bool quantises = quant_of(a) != MoeCombineQuant::kNone;
  if (quantises) p.scales = a.output_scales->data();
  const int64_t rows = quantises ? p.padded_rows : p.tokens;
  p.rows_per_task = rows_per_task(rows, (1 + std::min(a.top_k, a.ep_size)) * p.row_bytes);
  run_rows_with_scratch(fn, p, rows, p.rows_per_task, p.d);
  h.dispatched = 0;
}
op::Prepared prepare(const A& a) {
  const MoeCombineConfig config{
      .payload = a.use_low_precision ? DType::kF8E4M3 : a.payload.dtype(), .out = out_dtype(a), .quant = quant_of(a)};
  const jit::Loaded& kernel = jit::cpu_kernel<kCombine>(config);
  if (!kernel.fn) return op::Unsupported{kernel.why_not};
  jit::CpuFn narrow = nullptr;
  if (a.use_low_precision) {
    const jit::Loaded& n = jit::cpu_kernel<kNarrow>(MoeNarrowConfig{a.payload.dtype()});
    if (!n.fn) return op::Unsupported{n.why_not};
    narrow = n.fn;
  }
  return [fn = kernel.fn, narrow, &a] { launch(fn, narrow, a); };
}
op::Prepared prepare_cuda(const A& a) {
  const MoeA2aMemory m = memory_of(a.workspace, a.metainfo, a.ep_rank, a.ep_size);
  const uint64_t active = active_ranks(a.active_rank_mask, a.enable_rank_mask, m);
  return prepare_combine_on_gpu(a, m, active, out_dtype(a), quant_of(a), signature_of(a, *m.header, active));
}
void fill_internal(A& a) { fill_for_recording(a, MoeA2aRead::kPlaces); }

op::Cost cost(const A& a) {
  const double rows = static_cast<double>(a.local_num_tokens * std::min(a.top_k, a.ep_size)),
               row = static_cast<double>(row_bytes(a));
  return {.bytes = rows * row * 3 + static_cast<double>(a.local_num_tokens) * row,
          .flops = rows * static_cast<double>(hidden(a))};
}

constexpr op::Field fields[] = {
    op::in<&A::payload>("payload", "n m h", op::floats, op::contiguous),
    op::attr<&A::local_num_tokens>("local_num_tokens", op::required),
    op::scratch<&A::workspace>("workspace", nullptr, DType::kU8, op::required),
    op::in<&A::metainfo>("metainfo", "6", DType::kI64, op::contiguous),
    op::attr<&A::runtime_max_tokens_per_rank>("runtime_max_tokens_per_rank", op::required),
    op::attr<&A::ep_rank>("ep_rank", op::required),
    op::attr<&A::ep_size>("ep_size", op::required),
    op::attr<&A::top_k>("top_k", op::required),
    op::attr<&A::combine_payload_offset>("combine_payload_offset", op::required),
    op::attr<&A::payload_in_workspace>("payload_in_workspace"),
    op::attr<&A::output_dtype>("output_dtype"),
    op::inout<&A::output_scales>("output_scales", nullptr, DTypeSet(DType::kU8) | DType::kF8E4M3),
    op::attr<&A::output_scalar_scale>("output_scalar_scale"),
    op::attr<&A::sf_layout>("sf_layout", op::literal("SfLayout.layout_linear"), op::enumeration(ops::kSfLayouts)),
    op::out<&A::output>("output", nullptr, op::shape<out_shape>, op::dtype<out_dtype>, op::contiguous),
    op::attr<&A::use_low_precision>("use_low_precision", op::keyword_only),
    op::attr<&A::enable_pdl>("enable_pdl"),
    op::attr<&A::enable_rank_mask>("enable_rank_mask"),
    op::in<&A::active_rank_mask>("active_rank_mask", nullptr, DType::kU64),
    op::attr<&A::backend>("backend"),
    op::attr<&A::group>("group", op::internal),
    op::attr<&A::call>("call", op::internal),
    op::attr<&A::ranks>("ranks", op::internal),
    op::in<&A::workspace_state>("workspace_state", "b", DType::kU8, op::internal),
};
constexpr op::Candidate candidates[] = {on_gpus<prepare_cuda>(), op::cpu<prepare>()};
}  // namespace

constinit const op::Op moe_a2a_combine_op = op::collective(op::define<A, validate, cost, fill_internal>(
    "moe_a2a_combine", "flashinfer.comm",
    "The sum of what the ranks of a token's experts computed, in the order of its experts.", fields, candidates,
    nullptr));
}  // namespace ops::comm

Tensor moe_a2a_combine(const MoeA2aCombine& a) { return op::call(ops::comm::moe_a2a_combine_op, a); }

}  // namespace flashinfer
