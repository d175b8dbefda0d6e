// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/quantization/fp4/nvfp4.h"

#include <cmath>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/common/nvfp4.h"
#include "flashinfer/ops/common/nvfp4_cuda.h"
#include "flashinfer/ops/quantization/block/cuda.h"
#include "flashinfer/ops/quantization/cases.h"
#include "flashinfer/ops/quantization/kernels/nvfp4_cache_params.h"
#include "flashinfer/ops/quantization/ops.h"
#include "flashinfer/ops/quantization/ref.h"

namespace flashinfer {
namespace {

constexpr const char* kQuantize = "nvfp4_kv_quantize";
constexpr const char* kDequantize = "nvfp4_kv_dequantize";
constexpr const char* kPaged = "nvfp4_kv_dequantize_paged";
constexpr const char* kWhole = "nvfp4_quantize_paged_kv_cache";
inline constexpr jit::Kernel kCacheScales{"flashinfer/ops/quantization/kernels/cuda/nvfp4_cache.cuh",
                                          "flashinfer::cu::nvfp4_cache_scales", "flashinfer::Nvfp4CacheScaleParams"};
inline constexpr jit::Kernel kQuantizeCache{"flashinfer/ops/quantization/kernels/cuda/nvfp4_cache.cuh",
                                            "flashinfer::cu::nvfp4_quantize_cache", "flashinfer::Nvfp4CacheParams"};
inline constexpr jit::Kernel kAmax{"flashinfer/kernels/cpu/nvfp4.h", "flashinfer::cpu::nvfp4_amax",
                                   "flashinfer::Nvfp4AmaxParams"};

/// The one f32 of a scale tensor. ValueError unless it is positive and normal.
float one_scale(const char* who, const TensorView& t) {
  FI_CHECK(t.numel() == 1 && t.dtype() == DType::kF32, ValueError, who, " is ", to_string(t), ", but must be one f32");
  return ops::nvfp4_global(who, t.data_as<float>()[0]);
}
float one_scale(const char* who, const op::ScalarOrTensor& s) {
  return s.tensor() ? one_scale(who, *s.tensor()) : ops::nvfp4_global(who, s.number());
}

// ---- rows ----
void validate_quantize(const Nvfp4KvQuantize& a) {
  if (a.global_scale.device() == kCpu) one_scale("global_scale", a.global_scale);
}
Nvfp4Params rows_of(const TensorView& plain, const TensorView& data, const TensorView& scale, float global) {
  Nvfp4Params p{};
  p.tensor[0] = {ops::token_rows(plain), ops::token_rows(data), ops::token_rows(scale), 1, plain.size(1), global, 0};
  p.tokens = plain.size(0);
  return p;
}
template <const jit::Kernel& K>
op::Prepared prepare(DType t, const Nvfp4Params& params, std::vector<int64_t> slots = {}) {
  return ops::with_kernel<K>(Nvfp4Config{t}, [p = params, slots = std::move(slots)](jit::CpuFn fn) mutable {
    if (!slots.empty()) p.slot = slots.data();
    ops::run_nvfp4(fn, p);
  });
}
op::Prepared prepare_quantize(const Nvfp4KvQuantize& a) {
  Nvfp4Params p = rows_of(a.input, *a.fp4_output, *a.block_scales, a.global_scale.data_as<float>()[0]);
  return prepare<ops::kNvfp4Quantize>(a.input.dtype(), p);
}
void validate_dequantize(const Nvfp4KvDequantize& a) {
  if (a.global_scale.device() == kCpu) one_scale("global_scale", a.global_scale);
  FI_CHECK(op::floats.has(a.output_dtype), ValueError, "output_dtype is ", name(a.output_dtype), ", but must be ",
           to_string(op::floats));
}
op::Prepared prepare_dequantize(const Nvfp4KvDequantize& a) {
  Nvfp4Params p = rows_of(*a.output, a.fp4_data, a.block_scales, a.global_scale.data_as<float>()[0]);
  return prepare<ops::kNvfp4Dequantize>(a.output_dtype, p);
}

// ---- on a GPU ----
op::Prepared prepare_quantize_cuda(const Nvfp4KvQuantize& a, const op::Call& call) {
  const Nvfp4Params rows = rows_of(a.input, *a.fp4_output, *a.block_scales, 1);
  Nvfp4CudaParams p{};
  p.tensor[0] = ops::nvfp4_cuda_tensor(rows.tensor[0], {a.global_scale.data(), 0, 0, 1.0f, DType::kF32, 0});
  p.tokens = rows.tokens;
  return ops::prepare_nvfp4_cuda<ops::kNvfp4QuantizeCuda>(a.input.dtype(), p, call.device);
}
op::Prepared prepare_dequantize_cuda(const Nvfp4KvDequantize& a, const op::Call& call) {
  const Nvfp4Params rows = rows_of(*a.output, a.fp4_data, a.block_scales, 1);
  Nvfp4CudaParams p{};
  p.tensor[0] = ops::nvfp4_cuda_tensor(rows.tensor[0], {a.global_scale.data(), 0, 0, 1.0f, DType::kF32, 0});
  p.tokens = rows.tokens;
  return ops::prepare_nvfp4_cuda<ops::kNvfp4DequantizeCuda>(a.output_dtype, p, call.device);
}

// ---- pages to rows ----
void validate_paged(const Nvfp4KvDequantizePaged& a) {
  const ops::KvPlanes data = ops::kv_planes(a.paged_kv_cache, a.kv_layout),
                      scale = ops::kv_planes(a.kv_cache_sf, a.kv_layout, "kv_cache_sf");
  ops::check_nvfp4_plane("paged_kv_cache", data.k, "kv_cache_sf", scale.k, a.output_k.size(3));
  ops::check_nvfp4_plane("paged_kv_cache", data.v, "kv_cache_sf", scale.v, a.output_v.size(3));
  FI_CHECK(a.output_k.size(2) == data.k.heads, ValueError, "output_k.shape[2] is ", a.output_k.size(2),
           ", but paged_kv_cache has ", data.k.heads, " heads");
  for (const op::ScalarOrTensor* scale : {&a.k_scale, &a.v_scale})
    FI_CHECK(!scale->tensor() || scale->tensor()->numel() == 1, ValueError,
             "k_scale and v_scale must be scalar tensors, but one is ", to_string(*scale->tensor()));
  for (const auto& [s, who] : {std::pair(&a.k_scale, "k_scale"), std::pair(&a.v_scale, "v_scale")})
    if (!s->tensor() || s->tensor()->device() == kCpu) one_scale(who, *s);
  if (a.seq_lens.device().type == DeviceType::kCUDA) return;  // the kernel leaves out what has no page
  const int64_t page_size = data.k.page_size, most = a.output_k.size(1);
  for (int64_t b = 0; b < a.seq_lens.size(0); ++b) {
    const int64_t length = op::index_at(a.seq_lens, b);
    FI_CHECK(length >= 0 && length <= most, ValueError, "seq_lens[", b, "] is ", length, ", but must be in [0, ", most,
             "] (tokens of output_k)");
    FI_CHECK(length <= a.block_tables.size(1) * page_size, RuntimeError,
             "block_tables column count insufficient: seq_lens[", b, "] is ", length, ", but it has ",
             a.block_tables.size(1), " pages of ", page_size);
    const TensorView pages = a.block_tables.select(0, b);
    for (int64_t i = 0; i * page_size < length; ++i) {
      const int64_t page = op::index_at(pages, i);
      FI_CHECK(page >= 0 && page < data.k.pages, ValueError, "block_tables[", b, "][", i, "] is ", page,
               ", but the pool has ", data.k.pages, " pages");
    }
  }
}
/// [b, tokens, heads, dim]
TokenRows batch_rows(const TensorView& t) {
  return {t.data(), std::max<int64_t>(t.size(1), 1), t.stride(0), t.stride(1), t.stride(2)};
}
op::Prepared prepare_paged(const Nvfp4KvDequantizePaged& a) {
  const ops::KvPlanes data = ops::kv_planes(a.paged_kv_cache, a.kv_layout),
                      scale = ops::kv_planes(a.kv_cache_sf, a.kv_layout, "kv_cache_sf");
  const int64_t longest = a.output_k.size(1), page_size = data.k.page_size;
  std::vector<int64_t> slots(static_cast<size_t>(a.seq_lens.size(0) * longest), -1);
  for (int64_t b = 0; b < a.seq_lens.size(0); ++b) {
    const TensorView pages = a.block_tables.select(0, b);
    for (int64_t t = 0, n = op::index_at(a.seq_lens, b); t < n; ++t)
      slots[static_cast<size_t>(b * longest + t)] = op::index_at(pages, t / page_size) * page_size + t % page_size;
  }
  Nvfp4Params p{};
  p.tensor[0] = {batch_rows(a.output_k),
                 ops::token_rows(data.k),
                 ops::token_rows(scale.k),
                 data.k.heads,
                 a.output_k.size(3),
                 one_scale("k_scale", a.k_scale),
                 0};
  p.tensor[1] = {batch_rows(a.output_v),
                 ops::token_rows(data.v),
                 ops::token_rows(scale.v),
                 data.v.heads,
                 a.output_v.size(3),
                 one_scale("v_scale", a.v_scale),
                 0};
  p.tokens = static_cast<int64_t>(slots.size());
  return prepare<ops::kNvfp4Dequantize>(a.output_k.dtype(), p, std::move(slots));
}

op::Prepared prepare_paged_cuda(const Nvfp4KvDequantizePaged& a, const op::Call& call) {
  const ops::KvPlanes data = ops::kv_planes(a.paged_kv_cache, a.kv_layout),
                      scale = ops::kv_planes(a.kv_cache_sf, a.kv_layout, "kv_cache_sf");
  Nvfp4CudaParams p{};
  for (int i = 0; i < 2; ++i) {
    const ops::KvPlane &codes = i ? data.v : data.k, &scales = i ? scale.v : scale.k;
    const TensorView& out = i ? a.output_v : a.output_k;
    p.tensor[i] = {batch_rows(out),
                   ops::token_rows(codes),
                   ops::token_rows(scales),
                   static_cast<uint32_t>(codes.heads),
                   static_cast<uint32_t>(out.size(3)),
                   ops::nvfp4_factor(i ? a.v_scale : a.k_scale),
                   0};
  }
  p.places.kind = TokenPlace::kTable;
  p.places.slots = {a.seq_lens.data(), a.seq_lens.stride(0), a.seq_lens.dtype() == DType::kI64};
  p.places.pages.kv_indices = {a.block_tables.data(), a.block_tables.stride(1), a.block_tables.dtype() == DType::kI64};
  p.places.pages.page_size = data.k.page_size, p.places.pages.pages = data.k.pages;
  // In steps of the table's column stride, which divides that of its rows or is 0.
  const int64_t across = std::max<int64_t>(a.block_tables.stride(1), 1);
  if (a.block_tables.stride(0) % across) return op::Unsupported{"block_tables has rows that no column stride divides"};
  p.places.table_stride = a.block_tables.stride(0) / across;
  p.places.length = std::max<int64_t>(a.output_k.size(1), 1);
  p.tokens = a.seq_lens.size(0) * a.output_k.size(1);
  return ops::prepare_nvfp4_cuda<ops::kNvfp4DequantizeCuda>(a.output_k.dtype(), p, call.device);
}

// ---- a whole cache ----
op::Shape whole_shape(const Nvfp4QuantizePagedKvCache& a, int64_t per) {
  op::Shape s{5, {2}};
  for (int i = 0; i < 4; ++i) s.size[i + 1] = a.k_cache.size(i);
  s.size[4] /= per;
  return s;
}
op::Shape fp4_shape(const Nvfp4QuantizePagedKvCache& a) { return whole_shape(a, 2); }
op::Shape sf_shape(const Nvfp4QuantizePagedKvCache& a) { return whole_shape(a, 16); }
op::Shape two(const Nvfp4QuantizePagedKvCache&) { return {1, {2}}; }
void validate_whole(const Nvfp4QuantizePagedKvCache& a) {
  const ops::KvPlane k = ops::kv_plane(a.k_cache, a.kv_layout == "NHD");
  FI_CHECK(k.page_size % 4 == 0, ValueError, "page_size is ", k.page_size,
           ", but must be a multiple of 4 (V's scales are interleaved by four tokens)");
  FI_CHECK(k.dim % 64 == 0 && k.dim > 0 && k.dim <= 4096, ValueError, "the head dim is ", k.dim,
           ", but must be a multiple of 64 and at most 4096");
  for (const auto& [given, who] : {std::pair(&a.k_global_sf, "k_global_sf"), std::pair(&a.v_global_sf, "v_global_sf")})
    if (*given && (*given)->device() == kCpu) one_scale(who, **given);
}
/// 448 / the largest magnitude; its reciprocal is the scale to decode with.
float encode_scale(const char* who, const ops::KvPlane& plane, jit::CpuFn amax_of_rows) {
  Nvfp4AmaxParams p{};
  p.plain = ops::token_rows(plane);
  p.heads = plane.heads, p.dim = plane.dim, p.tokens = plane.pages * plane.page_size;
  p.tokens_per_task = ops::rows_per_task(p.tokens, plane.heads * plane.dim * 2);
  std::vector<float> largest(static_cast<size_t>(ceil_div(p.tokens, p.tokens_per_task)), 0.0f);
  p.largest = largest.data();
  ops::run_rows(amax_of_rows, p, p.tokens, p.tokens_per_task);
  float amax = 0;
  for (float x : largest) amax = x <= amax ? amax : x;  // keeps a NaN
  FI_CHECK(std::isfinite(amax), ValueError, who, " holds an infinity or NaN: no scale fits it");
  return amax > 0 ? 448.0f / amax : 1.0f;
}
void launch_whole(const Nvfp4QuantizePagedKvCache& a, jit::CpuFn amax_of_rows, jit::CpuFn quantize) {
  const bool nhd = a.kv_layout == "NHD";
  Nvfp4Params p{};
  for (int i = 0; i < 2; ++i) {
    const TensorView& x = i ? a.v_cache : a.k_cache;
    const auto& given = i ? a.v_global_sf : a.k_global_sf;
    const char* who = i ? "v_cache" : "k_cache";
    const ops::KvPlane plain = ops::kv_plane(x, nhd);
    const float encode = given ? given->data_as<float>()[0] : encode_scale(who, plain, amax_of_rows);
    const float global = ops::nvfp4_global(who, 1.0f / encode);
    a.global_scale->data_as<float>()[i * a.global_scale->stride(0)] = global;
    p.tensor[i] = {ops::token_rows(plain),
                   ops::token_rows(ops::kv_plane(a.kv_cache_fp4->select(0, i), nhd)),
                   ops::token_rows(ops::kv_plane(a.kv_cache_sf->select(0, i), nhd)),
                   plain.heads,
                   plain.dim,
                   global,
                   i};
    p.tokens = plain.pages * plain.page_size;
  }
  ops::run_nvfp4(quantize, p);
}
op::Prepared prepare_whole(const Nvfp4QuantizePagedKvCache& a) {
  const Nvfp4Config config{a.k_cache.dtype()};
  const jit::Loaded &amax = jit::cpu_kernel<kAmax>(config), &quantize = jit::cpu_kernel<ops::kNvfp4Quantize>(config);
  for (const jit::Loaded* kernel : {&amax, &quantize})
    if (!kernel->fn) return op::Unsupported{kernel->why_not};
  return [&a, amax = amax.fn, quantize = quantize.fn] { launch_whole(a, amax, quantize); };
}

/// Largest magnitudes, scales, then codes: nothing waits for the host.
op::Prepared prepare_whole_cuda(const Nvfp4QuantizePagedKvCache& a, const op::Call& call) {
  const bool nhd = a.kv_layout == "NHD";
  Nvfp4CacheParams p{};
  Nvfp4CacheScaleParams scales{};
  ops::TensorMost most[2];
  Nvfp4CudaConfig c{a.k_cache.dtype(), true, 256};
  for (int i = 0; i < 2; ++i) {
    const TensorView& x = i ? a.v_cache : a.k_cache;
    const auto& given = i ? a.v_global_sf : a.k_global_sf;
    const ops::KvPlane plain = ops::kv_plane(x, nhd);
    float* const global = a.global_scale->data_as<float>() + i * a.global_scale->stride(0);
    p.tensor[i] = {ops::token_rows(plain),
                   ops::token_rows(ops::kv_plane(a.kv_cache_fp4->select(0, i), nhd)),
                   ops::token_rows(ops::kv_plane(a.kv_cache_sf->select(0, i), nhd)),
                   static_cast<uint32_t>(plain.heads),
                   static_cast<uint32_t>(plain.dim),
                   {global, 0, 0, 1.0f, DType::kF32, 0},
                   0};
    p.together[i] = i ? 4 : 1;
    p.pages = static_cast<uint32_t>(plain.pages), p.page_size = static_cast<uint32_t>(plain.page_size);
    scales.tensor[i] = {nullptr, 0, given ? given->data_as<float>() : nullptr, global};
    c.aligned = c.aligned && ops::nvfp4_aligned(p.tensor[i], 2);
    if (!given) {
      most[i] = ops::tensor_most(x, call.device);
      if (!most[i].why_not.empty()) return op::Unsupported{most[i].why_not};
    }
  }
  p.heads_inside = nhd;
  const int64_t blocks = a.k_cache.numel() / 16;
  if (blocks >= int64_t{1} << 31) return op::Unsupported{"the cache has 2^31 or more blocks of 16"};
  const jit::CudaLoaded &quantize = jit::cuda_kernel<kQuantizeCache>(c, call.device),
                        &scale = jit::cuda_kernel<kCacheScales>(Nvfp4CacheScaleConfig{256}, call.device);
  for (const jit::CudaLoaded* k : {&quantize, &scale})
    if (!k->why_not.empty()) return op::Unsupported{k->why_not};
  return [p, scales, first = most[0], second = most[1], blocks, &quantize, &scale, device = call.device]() mutable {
    Tensor parts[2];
    for (int i = 0; i < 2; ++i) {
      ops::TensorMost& m = i ? second : first;
      if (!m.kernel) continue;
      parts[i] = Tensor::empty({m.params.part_count}, DType::kF32, device);
      scales.tensor[i].parts = m.params.parts = parts[i].data_as<float>();
      scales.tensor[i].part_count = m.params.part_count;
      jit::launch(*m.kernel, m.params, m.launch);
    }
    jit::launch(scale, scales, {.grid = {1, 2, 1}, .block = {256, 1, 1}, .shared_bytes = 32, .pdl = true});
    const cuda::Launch l{.grid = {cuda::grid_size(ceil_div(blocks, 256)), 2, 1}, .block = {256, 1, 1}, .pdl = true};
    ops::launch_unless_empty(quantize, p, l);
  };
}

// ---- tables ----
using Quantize = Nvfp4KvQuantize;
constexpr op::Field quantize_fields[] = {op::in<&Quantize::input>("input", "m 16*blocks", ops::kHalves),
                                         op::in<&Quantize::global_scale>("global_scale", nullptr, DType::kF32),
                                         op::result<&Quantize::fp4_output>("fp4_output", "m 8*blocks", DType::kU8),
                                         op::result<&Quantize::block_scales>("block_scales", "m blocks", DType::kU8)};
using Dequantize = Nvfp4KvDequantize;
constexpr op::Field dequantize_fields[] = {
    op::in<&Dequantize::fp4_data>("fp4_data", "m 8*blocks", ops::kFp4Bytes),
    op::in<&Dequantize::block_scales>("block_scales", "m blocks", ops::kScaleBytes),
    op::in<&Dequantize::global_scale>("global_scale", nullptr, DType::kF32),
    op::attr<&Dequantize::output_dtype>("output_dtype"),
    op::result<&Dequantize::output>("output", "m 16*blocks", op::dtype_from("output_dtype"))};
using Paged = Nvfp4KvDequantizePaged;
constexpr op::Field paged_fields[] = {
    op::paged<&Paged::paged_kv_cache>("paged_kv_cache", nullptr, ops::kFp4Bytes),
    op::paged<&Paged::kv_cache_sf>("kv_cache_sf", nullptr, ops::kScaleBytes),
    op::in<&Paged::block_tables>("block_tables", "b max_pages", op::indices, op::any_layout, op::page_ids),
    op::in<&Paged::seq_lens>("seq_lens", "b", op::indices, op::any_layout),
    op::in<&Paged::k_scale>("k_scale", nullptr, op::required),
    op::in<&Paged::v_scale>("v_scale", nullptr, op::required),
    op::inout<&Paged::output_k>("output_k", "b max_len hkv dk", op::floats),
    op::inout<&Paged::output_v>("output_v", "b max_len hkv dv", op::same_as("output_k")),
    op::attr<&Paged::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError))};
using Whole = Nvfp4QuantizePagedKvCache;
constexpr op::Field whole_fields[] = {
    op::in<&Whole::k_cache>("k_cache", "p x y d", ops::kHalves),
    op::in<&Whole::v_cache>("v_cache", "p x y d", op::same_as("k_cache")),
    op::attr<&Whole::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::in<&Whole::k_global_sf>("k_global_sf", nullptr, DType::kF32),
    op::in<&Whole::v_global_sf>("v_global_sf", nullptr, DType::kF32),
    op::result<&Whole::kv_cache_fp4>("kv_cache_fp4", nullptr, DType::kU8, op::shape<fp4_shape>, op::unstacked),
    op::result<&Whole::kv_cache_sf>("kv_cache_sf", nullptr, DType::kF8E4M3, op::shape<sf_shape>, op::unstacked),
    op::result<&Whole::global_scale>("global_scale", nullptr, DType::kF32, op::shape<two>, op::as_numbers)};

template <class B>
op::Cost cost(const B& a) {
  double n = 0;
  if constexpr (std::is_same_v<B, Quantize>)
    n = static_cast<double>(a.input.numel());
  else if constexpr (std::is_same_v<B, Dequantize>)
    n = 2 * static_cast<double>(a.fp4_data.numel());
  else if constexpr (std::is_same_v<B, Paged>)
    n = static_cast<double>(a.output_k.numel() + a.output_v.numel());
  else
    n = static_cast<double>(a.k_cache.numel() + a.v_cache.numel());
  return {.bytes = n * (2 + 0.5 + 1.0 / 16)};
}
namespace family = ops::quantization;
constexpr op::Candidate quantize_candidates[] = {op::cuda<prepare_quantize_cuda>(), op::cpu<prepare_quantize>(),
                                                 op::reference<ref::nvfp4_kv_quantize>()};
constexpr op::Candidate dequantize_candidates[] = {op::cuda<prepare_dequantize_cuda>(), op::cpu<prepare_dequantize>(),
                                                   op::reference<ref::nvfp4_kv_dequantize>()};
constexpr op::Candidate paged_candidates[] = {op::cuda<prepare_paged_cuda>(), op::cpu<prepare_paged>(),
                                              op::reference<ref::nvfp4_kv_dequantize_paged>()};
constexpr op::Candidate whole_candidates[] = {op::cuda<prepare_whole_cuda>(), op::cpu<prepare_whole>(),
                                              op::reference<ref::nvfp4_quantize_paged_kv_cache>()};
constexpr const char* kModule = "flashinfer.quantization";
}  // namespace

namespace ops::quantization {
constinit const op::Op kv_quantize_op = op::define<Quantize, validate_quantize, cost<Quantize>>(
    kQuantize, kModule, "Quantises rows to NVFP4: two e2m1 codes a byte, an e4m3 scale for 16.", quantize_fields,
    quantize_candidates, kv_quantize_cases);
constinit const op::Op kv_dequantize_op = op::define<Dequantize, validate_dequantize, cost<Dequantize>>(
    kDequantize, kModule, "Rows of NVFP4 as floats: code * scale * global_scale.", dequantize_fields,
    dequantize_candidates, kv_dequantize_cases);
constinit const op::Op kv_dequantize_paged_op = op::define<Paged, validate_paged, cost<Paged>>(
    kPaged, kModule, "Requests of a paged NVFP4 cache as contiguous rows of floats.", paged_fields, paged_candidates,
    kv_dequantize_paged_cases);
constinit const op::Op quantize_paged_op = op::define<Whole, validate_whole, cost<Whole>>(
    kWhole, kModule, "Quantises a paged cache to NVFP4, V's scales interleaved by four tokens.", whole_fields,
    whole_candidates, quantize_paged_cases);
}  // namespace ops::quantization

std::pair<Tensor, Tensor> nvfp4_kv_quantize(const Quantize& a) { return op::call(family::kv_quantize_op, a); }
Tensor nvfp4_kv_dequantize(const Dequantize& a) { return op::call(family::kv_dequantize_op, a); }
void nvfp4_kv_dequantize_paged(const Paged& a) { op::call(family::kv_dequantize_paged_op, a); }
std::tuple<Tensor, Tensor, Tensor> nvfp4_quantize_paged_kv_cache(const Whole& a) {
  return op::call(family::quantize_paged_op, a);
}

}  // namespace flashinfer
