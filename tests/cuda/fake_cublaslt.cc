// SPDX-License-Identifier: Apache-2.0
#include "fake_cublaslt.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/scalar.h"

namespace {

using namespace flashinfer;
using namespace flashinfer::cublaslt;
using fake::Lt;
using fake::LtMatrix;

constexpr int kInvalidValue = 7, kNotSupported = 15;

Lt& lt() {
  static Lt& l = *new Lt;
  return l;
}
struct Preference {
  uint64_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};
};

/// Reachable, as what the library keeps is.
template <class T>
T* keep() {
  static auto& all = *new std::vector<std::unique_ptr<T>>;
  return all.emplace_back(std::make_unique<T>()).get();
}

double load(int type, const void* p, int64_t i) {
  switch (type) {
    case kR4FE2M1: {  // two numbers a byte, the first one low
      constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
      const int code = static_cast<const uint8_t*>(p)[i / 2] >> (i % 2 * 4) & 15;
      return code & 8 ? -kValues[code & 7] : kValues[code & 7];
    }
    case kR32F: return static_cast<const float*>(p)[i];
    case kR16F: return static_cast<double>(static_cast<float>(static_cast<const f16_t*>(p)[i]));
    case kR16BF: return static_cast<double>(static_cast<float>(static_cast<const bf16_t*>(p)[i]));
    case kR8FE4M3: return static_cast<double>(static_cast<float>(static_cast<const e4m3_t*>(p)[i]));
    default: return static_cast<double>(static_cast<float>(static_cast<const e5m2_t*>(p)[i]));
  }
}
void store(int type, void* p, int64_t i, float x) {
  if (type == kR32F)
    static_cast<float*>(p)[i] = x;
  else if (type == kR16F)
    static_cast<f16_t*>(p)[i] = f16_t(x);
  else
    static_cast<bf16_t*>(p)[i] = bf16_t(x);
}

/// f32 scales of blocks.
bool is_grid(int mode) { return mode == kVec128F32 || mode == kBlock128F32; }
/// Elements along k of a block of bytes of `mode`.
int64_t block_of(int mode) { return mode == kVec16UE4M3 ? 16 : 32; }
/// The scale of element k of line `line` of `lines`. Bytes: tiles of 128 lines by 4 scales, in which lines l, l + 32,
/// l + 64 and l + 96 are neighbours; those of a matrix of a batch behind the last one's.
double block_scale(int mode, const void* scales, int64_t batch, int64_t line, int64_t lines, int64_t k, int64_t depth) {
  const auto* floats = static_cast<const float*>(scales);
  if (mode == kVec128F32) return floats[k / 128 * lines + line];
  if (mode == kBlock128F32) return floats[line / 128 * round_up(ceil_div(depth, 128), 4) + k / 128];
  const int64_t block = block_of(mode), column = k / block, tiles = ceil_div(depth / block, 4);
  const uint8_t byte =
      static_cast<const uint8_t*>(scales)[((batch * ceil_div(lines, 128) + line / 128) * tiles + column / 4) * 512 +
                                          line % 32 * 16 + line % 128 / 32 * 4 + column % 4];
  if (mode == kVec32UE8M0) return std::ldexp(1.0, byte - 127);
  e4m3_t scale;
  std::memcpy(&scale, &byte, 1);
  return static_cast<double>(static_cast<float>(scale));
}

/// As cuBLASLt documents it.
bool supported(const fake::LtDescription& d, const LtMatrix& a, const LtMatrix& b, const LtMatrix& out,
               const Preference& p) {
  const bool fp8 = a.type >= kR8FE4M3;
  if (a.ld < static_cast<int64_t>(a.rows) || b.ld < static_cast<int64_t>(b.rows) ||
      out.ld < static_cast<int64_t>(out.rows))
    return false;
  if (d.compute != kCompute32F || d.scale != kR32F || (!fp8 && a.type != b.type)) return false;
  const int mode = a.type != b.type                ? kScalar32F
                   : a.type == kR4FE2M1            ? kVec16UE4M3
                   : d.scale_mode_a == kVec32UE8M0 ? kVec32UE8M0
                                                   : kScalar32F;
  if (is_grid(d.scale_mode_a) || is_grid(d.scale_mode_b)) {
    if (!is_grid(d.scale_mode_a) || !is_grid(d.scale_mode_b) || a.type < kR8FE4M3 || a.type > kR8FE5M2) return false;
    if (d.scale_mode_a == kBlock128F32 && d.scale_mode_b == kBlock128F32) return false;
    if (lt().version < 120900 || lt().gpu->major != 9 || lt().gpu->minor != 0) return false;
    if (out.rows % 4 != 0 || out.columns % 4 != 0 || a.batch != 1) return false;
  } else if (d.scale_mode_a != mode || d.scale_mode_b != mode || (mode != kScalar32F && lt().gpu->major < 10)) {
    return false;
  }
  // cuBLASLt takes them, but where the scales of the second matrix begin is documented for whole tiles alone.
  const int64_t tile = 4 * block_of(mode);
  if (mode != kScalar32F && a.batch > 1 &&
      (a.columns % 128 != 0 || b.columns % 128 != 0 || static_cast<int64_t>(a.rows) % tile != 0))
    return false;
  if (a.type == kR4FE2M1 && a.rows % 32 != 0) return false;
  if (fp8 && (d.transposed_a != kOpT || d.transposed_b != kOpN || a.rows % 16 != 0 || p.alignment[0] % 16 != 0 ||
              p.alignment[1] % 16 != 0))
    return false;
  return !(a.type == kR8FE5M2 && b.type == kR8FE5M2);
}

void multiply(const fake::LtCall& c) {
  const auto host = [](const void* p) { return fake::host(p); };
  const auto &a = c.a, &b = c.b, &d = c.d;
  const int mode = c.description.scale_mode_a;
  const auto one_scale = [&](const void* p) {
    return p && mode == kScalar32F ? *static_cast<const float*>(host(p)) : 1.0;
  };
  const double scale = one_scale(c.description.scale_a) * one_scale(c.description.scale_b) *
                       (c.alpha ? *static_cast<const float*>(host(c.alpha)) : 1.0);
  const auto blocks = [&](int64_t batch, int64_t i, int64_t j, int64_t k, int64_t depth) {
    if (mode == kScalar32F) return 1.0;
    return block_scale(mode, host(c.description.scale_a), batch, i, static_cast<int64_t>(d.rows), k, depth) *
           block_scale(c.description.scale_mode_b, host(c.description.scale_b), batch, j,
                       static_cast<int64_t>(d.columns), k, depth);
  };
  const bool ta = c.description.transposed_a, tb = c.description.transposed_b;
  const auto depth = static_cast<int64_t>(ta ? a.rows : a.columns);
  for (int64_t batch = 0; batch < d.batch; ++batch)
    for (int64_t j = 0; j < static_cast<int64_t>(d.columns); ++j)
      for (int64_t i = 0; i < static_cast<int64_t>(d.rows); ++i) {
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k)
          sum += load(a.type, host(c.pa), batch * a.batch_offset + (ta ? k + i * a.ld : i + k * a.ld)) *
                 load(b.type, host(c.pb), batch * b.batch_offset + (tb ? j + k * b.ld : k + j * b.ld)) *
                 blocks(batch, i, j, k, depth);
        sum *= scale;
        if (c.description.epilogue == kEpilogueBias) sum += load(c.description.bias_type, host(c.description.bias), i);
        store(d.type, host(c.pd), batch * d.batch_offset + i + j * d.ld, static_cast<float>(sum));
      }
}

}  // namespace

extern "C" {

fake::Lt* fake_lt() { return &lt(); }

Status cublasLtCreate(Handle* h) { return *h = &lt(), 0; }
size_t cublasLtGetVersion() { return lt().version; }
const char* cublasLtGetStatusName(Status s) {
  return s == kNotSupported ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_OF_THE_TEST";
}
Status cublasLtMatmulDescCreate(Handle* h, int compute, int scale) {
  auto* d = keep<fake::LtDescription>();
  d->compute = compute, d->scale = scale;
  return *h = d, 0;
}
Status cublasLtMatmulDescSetAttribute(Handle h, int attribute, const void* value, size_t bytes) {
  auto& d = *static_cast<fake::LtDescription*>(h);
  const auto put = [&](auto& to) {
    if (bytes != sizeof to) return kInvalidValue;
    std::memcpy(&to, value, bytes);
    return 0;
  };
  switch (attribute) {
    case kTransA: return put(d.transposed_a);
    case kTransB: return put(d.transposed_b);
    case kEpilogue: return put(d.epilogue);
    case kBiasPointer: return put(d.bias);
    case kAScalePointer: return put(d.scale_a);
    case kBScalePointer: return put(d.scale_b);
    case kFastAccum: return put(d.fast);
    case kBiasType: return put(d.bias_type);
    case kAScaleMode: return put(d.scale_mode_a);
    case kBScaleMode: return put(d.scale_mode_b);
    case kPointerMode: return put(d.pointers);
    default: return kInvalidValue;
  }
}
Status cublasLtMatmulDescDestroy(Handle) { return 0; }
Status cublasLtMatrixLayoutCreate(Handle* h, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  auto* m = keep<LtMatrix>();
  m->type = type, m->rows = rows, m->columns = columns, m->ld = ld;
  return *h = m, 0;
}
Status cublasLtMatrixLayoutSetAttribute(Handle h, int attribute, const void* value, size_t bytes) {
  auto& m = *static_cast<LtMatrix*>(h);
  if (attribute == kBatchCount && bytes == 4) return std::memcpy(&m.batch, value, 4), 0;
  if (attribute == kBatchOffset && bytes == 8) return std::memcpy(&m.batch_offset, value, 8), 0;
  return kInvalidValue;
}
Status cublasLtMatrixLayoutDestroy(Handle) { return 0; }
Status cublasLtMatmulPreferenceCreate(Handle* h) { return *h = keep<Preference>(), 0; }
Status cublasLtMatmulPreferenceSetAttribute(Handle h, int attribute, const void* value, size_t bytes) {
  auto& p = *static_cast<Preference*>(h);
  if (attribute == kMaxWorkspace && bytes == 8) return std::memcpy(&p.workspace, value, 8), 0;
  if (attribute >= kAlignmentA && attribute <= kAlignmentD && bytes == 4)
    return std::memcpy(&p.alignment[attribute - kAlignmentA], value, 4), 0;
  return kInvalidValue;
}
Status cublasLtMatmulPreferenceDestroy(Handle) { return 0; }
Status cublasLtMatmulAlgoGetHeuristic(Handle, Handle description, Handle a, Handle b, Handle c, Handle d,
                                      Handle preference, int wanted, HeuristicResult* r, int* found) {
  ++lt().heuristics;
  const auto& p = *static_cast<Preference*>(preference);
  const bool any = c == d &&
                   supported(*static_cast<fake::LtDescription*>(description), *static_cast<LtMatrix*>(a),
                             *static_cast<LtMatrix*>(b), *static_cast<LtMatrix*>(d), p) &&
                   lt().workspace <= p.workspace;
  *found = any ? std::min(wanted, static_cast<int>(lt().ms.size())) : 0;
  for (int i = 0; i < *found; ++i) {
    r[i] = {.algorithm = {}, .workspace = lt().workspace, .state = 0, .waves = 1, .reserved = {}};
    std::memcpy(r[i].algorithm.data, p.alignment, sizeof p.alignment);
    r[i].algorithm.data[6] = static_cast<uint64_t>(i), r[i].algorithm.data[7] = 77;
  }
  return any ? 0 : kNotSupported;
}
Status cublasLtMatmul(Handle, Handle description, const void* alpha, const void* a, Handle la, const void* b, Handle lb,
                      const void* beta, const void* c, Handle, void* d, Handle ld, const Algorithm* algorithm,
                      void* workspace, size_t bytes, Handle stream) {
  if (const int status = std::exchange(lt().fail, 0)) return status;
  if (algorithm->data[7] != 77 || bytes < lt().workspace || (bytes && !workspace) || c != d) return kInvalidValue;
  const bool on_device = static_cast<fake::LtDescription*>(description)->pointers == kPointersOnDevice;
  if (!on_device && (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0))
    return kInvalidValue;
  const auto& described = *static_cast<fake::LtDescription*>(description);
  for (const auto& [mode, scale] :
       {std::pair(described.scale_mode_a, described.scale_a), {described.scale_mode_b, described.scale_b}})
    if (mode != kScalar32F && reinterpret_cast<uintptr_t>(scale) % 16 != 0) return kInvalidValue;
  const double ms = lt().ms.at(algorithm->data[6]);
  if (ms < 0) return kNotSupported;
  fake::LtCall call{*static_cast<fake::LtDescription*>(description),
                    *static_cast<LtMatrix*>(la),
                    *static_cast<LtMatrix*>(lb),
                    *static_cast<LtMatrix*>(ld),
                    a,
                    b,
                    workspace,
                    d,
                    bytes,
                    {},
                    stream,
                    algorithm->data[6],
                    on_device ? alpha : nullptr,
                    on_device ? beta : nullptr};
  std::memcpy(call.alignment, algorithm->data, sizeof call.alignment);
  lt().calls.push_back(call);
  return lt().gpu->enqueue(stream, "product", [call, ms] { multiply(call), lt().gpu->clock_ms += ms; });
}

}  // extern "C"
