// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/quantization/op.h"

#include <algorithm>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/append.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/quantization/cases.h"
#include "flashinfer/ops/quantization/kernels/layout_params.h"
#include "flashinfer/ops/quantization/kernels/params.h"
#include "flashinfer/ops/quantization/ops.h"
#include "flashinfer/ops/quantization/ref.h"

namespace flashinfer {
namespace {

inline constexpr jit::Kernel kPack{"flashinfer/ops/quantization/kernels/cpu/packbits.h", "flashinfer::cpu::pack_bits",
                                   "flashinfer::PackBitsParams"};
constexpr const char* kPackBits = "packbits";
constexpr const char* kSegments = "segment_packbits";

int64_t bytes_for(int64_t bits) { return bits > 0 ? ceil_div(bits, 8) : 0; }
op::Shape packed_shape(const PackBits& a) { return {1, {bytes_for(a.x.size(0))}}; }
op::Shape packed_shape(const SegmentPackBits& a) {
  const Tensor indptr = host_readable(a.indptr);  // of a GPU: waits for its stream
  int64_t total = 0;
  for (int64_t s = 0; s + 1 < indptr.size(0); ++s)
    total += bytes_for(op::index_at(indptr, s + 1) - op::index_at(indptr, s));
  return {1, {total}};
}

PackBitsConfig config_of(const std::string& bitorder) { return {bitorder == "big"}; }
void run(jit::CpuFn fn, const TensorView& x, const TensorView& y, const int64_t* from, const int64_t* to,
         int64_t segments) {
  PackBitsParams p{static_cast<const uint8_t*>(x.data()), y.data_as<uint8_t>(), from, to, segments, 0};
  p.bytes_per_task = ops::rows_per_task(to[segments], 9);  // eight read, one written
  ops::run_rows(fn, p, to[segments], p.bytes_per_task);
}

void launch(const PackBits& a, jit::CpuFn fn) {
  const int64_t from[2] = {0, a.x.size(0)}, to[2] = {0, bytes_for(a.x.size(0))};
  run(fn, a.x, *a.y, from, to, 1);
}

void validate_segments(const SegmentPackBits& a) {
  const Tensor indptr = host_readable(a.indptr);
  const int64_t last = op::check_indptr("indptr", indptr), n = a.x.size(0);
  FI_CHECK(last == n, ValueError, "indptr[", a.indptr.size(0) - 1, "] is ", last, ", but x has ", n, " elements");
}
void launch(const SegmentPackBits& a, jit::CpuFn fn) {
  const int64_t segments = a.indptr.size(0) - 1;
  std::vector<int64_t> from(static_cast<size_t>(segments) + 1), to(from.size());
  for (size_t s = 0; s < from.size(); ++s) {
    from[s] = op::index_at(a.indptr, static_cast<int64_t>(s));
    if (s) to[s] = to[s - 1] + bytes_for(from[s] - from[s - 1]);
    if (a.new_indptr->dtype() == DType::kI64)
      a.new_indptr->data_as<int64_t>()[static_cast<int64_t>(s) * a.new_indptr->stride(0)] = to[s];
    else
      a.new_indptr->data_as<int32_t>()[static_cast<int64_t>(s) * a.new_indptr->stride(0)] = static_cast<int32_t>(to[s]);
  }
  run(fn, a.x, *a.y, from.data(), to.data(), segments);
}
template <class B>
op::Prepared prepare(const B& a) {
  return ops::with_kernel<kPack>(config_of(a.bitorder), [&a](jit::CpuFn fn) { launch(a, fn); });
}

inline constexpr jit::Kernel kPackCuda{"flashinfer/ops/quantization/kernels/cuda/layout.cuh",
                                       "flashinfer::cu::pack_bits", "flashinfer::PackBitsCudaParams"};
op::Prepared prepare_cuda(const PackBits& a, const op::Call& call) {
  const PackBitsCudaParams p{static_cast<const uint8_t*>(a.x.data()), a.y->data_as<uint8_t>(), a.x.size(0)};
  const bool aligned = reinterpret_cast<uintptr_t>(p.x) % 16 == 0 && reinterpret_cast<uintptr_t>(p.y) % 2 == 0;
  const PackBitsCudaConfig c{a.bitorder == "big", aligned, 256};
  cuda::Launch l;
  l.block[0] = static_cast<unsigned>(c.threads);
  const int64_t blocks = ceil_div(p.n, int64_t{16} * c.threads);
  if (blocks >= int64_t{1} << 31) return op::Unsupported{"x has 2^43 elements or more"};
  l.grid[0] = cuda::grid_size(blocks);
  l.pdl = true;
  return ops::prepare_cuda<kPackCuda>(c, p, call.device, l);
}

inline constexpr jit::Kernel kPackSegmentsCuda{"flashinfer/ops/quantization/kernels/cuda/layout.cuh",
                                               "flashinfer::cu::pack_segments", "flashinfer::PackSegmentsCudaParams"};
/// The first bytes of the segments, on the device.
template <class I>
void put_offsets(const SegmentPackBits& a) {
  const Tensor indptr = host_readable(a.indptr);
  std::vector<I> to(static_cast<size_t>(indptr.size(0)));
  for (size_t s = 1; s < to.size(); ++s) {
    const auto i = static_cast<int64_t>(s);
    to[s] = static_cast<I>(to[s - 1] + bytes_for(op::index_at(indptr, i) - op::index_at(indptr, i - 1)));
  }
  copy_bytes(a.new_indptr->data(), a.new_indptr->device(), to.data(), kCpu, to.size() * sizeof(I));
}
op::Prepared prepare_segments_cuda(const SegmentPackBits& a, const op::Call& call) {
  if (!a.new_indptr->is_contiguous()) return op::Unsupported{"new_indptr must be contiguous on a GPU"};
  const PackSegmentsCudaParams p{
      static_cast<const uint8_t*>(a.x.data()), a.y->data_as<uint8_t>(), ops::strided_indices(a.indptr),
      ops::strided_indices(*a.new_indptr),     a.indptr.size(0) - 1,    a.y->size(0)};
  const PackBitsCudaConfig c{a.bitorder == "big", 0, 128};
  cuda::Launch l;
  l.grid[0] = cuda::grid_size(ceil_div(p.bytes, c.threads));
  l.block[0] = static_cast<unsigned>(c.threads);
  l.pdl = true;
  return ops::with_cuda_kernel<kPackSegmentsCuda>(c, call.device, [&a, p, l](const jit::CudaLoaded& kernel) {
    a.new_indptr->dtype() == DType::kI64 ? put_offsets<int64_t>(a) : put_offsets<int32_t>(a);
    ops::launch_unless_empty(kernel, p, l);
  });
}

template <class B>
op::Cost cost(const B& a) {
  return {.bytes = 1.125 * static_cast<double>(a.x.numel())};
}

inline constexpr DTypeSet kBytes = DTypeSet(DType::kBool) | DType::kU8;
template <class B>
constexpr op::Shape (*kShape)(const B&) = packed_shape;
constexpr op::Field packbits_fields[] = {
    op::in<&PackBits::x>("x", "n", kBytes),
    op::attr<&PackBits::bitorder>("bitorder", op::choices("big|little")),
    op::result<&PackBits::y>("y", nullptr, DType::kU8, op::shape<kShape<PackBits>>),
};
constexpr op::Field segments_fields[] = {
    op::in<&SegmentPackBits::x>("x", "n", kBytes),
    op::in<&SegmentPackBits::indptr>("indptr", "b+1", op::indices, op::any_layout),
    op::attr<&SegmentPackBits::bitorder>("bitorder", op::choices("big|little")),
    op::result<&SegmentPackBits::y>("y", nullptr, DType::kU8, op::shape<kShape<SegmentPackBits>>),
    op::result<&SegmentPackBits::new_indptr>("new_indptr", "b+1", op::same_as("indptr")),
};
constexpr op::Candidate packbits_candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare<PackBits>>(),
                                                 op::reference<ref::packbits>()};
constexpr op::Candidate segments_candidates[] = {op::cuda<prepare_segments_cuda>(), op::cpu<prepare<SegmentPackBits>>(),
                                                 op::reference<ref::segment_packbits>()};
constexpr const char* kModule = "flashinfer.quantization";
constinit const op::Op packbits_op = op::define<PackBits, nullptr, cost<PackBits>>(
    kPackBits, kModule, "Eight booleans a byte, as numpy.packbits.", packbits_fields, packbits_candidates,
    ops::quantization::packbits_cases);
constinit const op::Op segments_op = op::define<SegmentPackBits, validate_segments, cost<SegmentPackBits>>(
    kSegments, kModule, "Eight booleans a byte; each segment starts at a byte.", segments_fields, segments_candidates,
    ops::quantization::segment_packbits_cases);

constexpr const op::Op* kOps[] = {&packbits_op,
                                  &segments_op,
                                  &ops::quantization::kv_quantize_op,
                                  &ops::quantization::kv_dequantize_op,
                                  &ops::quantization::kv_dequantize_paged_op,
                                  &ops::quantization::quantize_paged_op,
                                  &ops::quantization::fp4_op,
                                  &ops::quantization::nvfp4_op,
                                  &ops::quantization::global_scale_op,
                                  &ops::quantization::batched_op,
                                  &ops::quantization::mxfp4_op,
                                  &ops::quantization::into_op,
                                  &ops::quantization::mxfp8_op,
                                  &ops::quantization::grouped_mxfp8_op,
                                  &ops::quantization::mxfp8_dequantize_op,
                                  &ops::quantization::fp4_to_float_op,
                                  &ops::quantization::mxfp4_dequantize_op,
                                  &ops::quantization::mxfp4_dequantize_host_op,
                                  &ops::quantization::interleave_op,
                                  &ops::quantization::shuffle_op,
                                  &ops::quantization::shuffle_scales_op,
                                  &ops::quantization::reorder_op,
                                  &ops::quantization::block_layout_op,
                                  &ops::quantization::silu_fp4_op,
                                  &ops::quantization::grouped_fp4_op,
                                  &ops::quantization::silu_experts_fp4_op,
                                  &ops::quantization::group8_op,
                                  &ops::quantization::tensor8_op,
                                  &ops::quantization::sage_op,
                                  &ops::quantization::swiglu_mxfp8_op,
                                  &ops::quantization::swiglu_mxfp8_backward_op,
                                  &ops::quantization::smooth_op};
}  // namespace

Tensor packbits(const PackBits& a) { return op::call(packbits_op, a); }
std::pair<Tensor, Tensor> segment_packbits(const SegmentPackBits& a) { return op::call(segments_op, a); }

namespace ops::quantization {
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace ops::quantization

}  // namespace flashinfer
