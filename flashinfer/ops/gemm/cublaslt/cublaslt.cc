// SPDX-License-Identifier: Apache-2.0
// cuBLASLt counts columns first, so out = a . b is computed as out^T = b^T . a^T: its A is our b, its m our n.
#include "flashinfer/ops/gemm/cublaslt/cublaslt.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "flashinfer/core/context.h"
#include "flashinfer/core/cuda/cublaslt.h"
#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/cuda/memory.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/gemm/cublaslt/grids.h"
#include "flashinfer/ops/gemm/cublaslt/search.h"

namespace flashinfer::gemm {
namespace {

using cublaslt::Handle;

constexpr const char* kNotHere = "cuBLASLt runs on GPUs, not on the emulator";
/// NVIDIA advises 32 MiB for sm_90 and newer.
constexpr size_t kWorkspace = size_t{32} << 20;
/// Requested of the heuristic and timed: it orders by its estimate, and later ones rarely win.
constexpr int kAlgorithms = 8;

int type_of(DType t) {
  switch (t) {
    case DType::kF32: return cublaslt::kR32F;
    case DType::kF16: return cublaslt::kR16F;
    case DType::kBF16: return cublaslt::kR16BF;
    case DType::kF8E4M3: return cublaslt::kR8FE4M3;
    default: return cublaslt::kR8FE5M2;
  }
}

/// Column-major, as cuBLASLt sees a matrix of ours: [rows, columns] with `ld` elements between columns; transposed to
/// be multiplied.
struct Matrix {
  int type = 0, transposed = 0, alignment = 0;
  int64_t rows = 0, columns = 0, ld = 0, batch_stride = 0;
  auto operator<=>(const Matrix&) const = default;
};
/// What a choice of an algorithm depends on.
struct Key {
  int device = 0;
  const void* library = nullptr;
  Matrix a, b, d;  // cuBLASLt's: our b, a, out
  int64_t batch = 1;
  int bias = -1;                                                         // its type
  bool fp8 = false;                                                      // 8 bits or less
  int scales_a = cublaslt::kScalar32F, scales_b = cublaslt::kScalar32F;  // of a and b
  bool copies = false;                                                   // scales are copied before each product
  bool alpha = false;                                                    // on the device
  bool own = false;                                                      // another way is there
  auto operator<=>(const Key&) const = default;
};

int alignment_of(const void* p) {
  const auto at = reinterpret_cast<uintptr_t>(p);
  return static_cast<int>(std::min<uintptr_t>(256, at & (~at + 1)));
}

/// `v` [.., r, c] as the matrix that stands for its transpose: rows of ours are columns there. Empty without a
/// dimension of stride 1.
std::optional<Matrix> matrix_of(const TensorView& v) {
  const int64_t r = v.size(-2), c = v.size(-1), sr = v.stride(-2), sc = v.stride(-1);
  Matrix m{.type = type_of(v.dtype()), .alignment = alignment_of(v.data())};
  if (v.rank() == 3 && v.size(0) > 1) m.batch_stride = v.stride(0);
  if ((sc == 1 || c == 1) && (sr >= c || r == 1))
    m.rows = c, m.columns = r, m.ld = std::max(sr, c);
  else if ((sr == 1 || r == 1) && (sc >= r || c == 1))
    m.rows = r, m.columns = c, m.ld = std::max(sc, r), m.transposed = 1;
  else
    return std::nullopt;
  return m;
}

/// The name of a product among processes.
std::string text_of(const Key& k) {
  const auto matrix = [](const Matrix& m) {
    return str(" type ", m.type, m.transposed ? " transposed " : " ", m.rows, "x", m.columns, " ld ", m.ld, " step ",
               m.batch_stride, " at ", m.alignment, ";");
  };
  return str("a", matrix(k.a), " b", matrix(k.b), " d", matrix(k.d), " batch ", k.batch, " bias ", k.bias,
             k.scales_a != cublaslt::kScalar32F ? str(" scales ", k.scales_a, " and ", k.scales_b) : "",
             k.copies ? " copied" : "", k.alpha ? " alpha" : "");
}

// The order of this file's mutexes: who chooses or runs asks for the library's handle, and who runs for a workspace.
constexpr int kChoicesPlace = 0, kChoicePlace = 1, kHandlesPlace = 2, kWorkspacesPlace = 3;

/// Descriptors and the algorithms of one key; as long as the process. Used under its mutex: descriptors hold the
/// pointers of a call.
struct Choice {
  Key key;
  ForkMutex mutex{ForkLayer::kOps, kChoicePlace};
  Handle description = nullptr, a = nullptr, b = nullptr, d = nullptr;
  Tensor zero;                                        // beta, where alpha is on the device
  std::vector<cublaslt::HeuristicResult> algorithms;  // in the heuristic's order
  size_t chosen = 0;                                  // algorithms.size(): the own launch
  bool settled = false;                               // `chosen` is for good
  std::string unsupported;

  size_t ways() const { return algorithms.size() + key.own; }
};
/// What a call adds to the choice.
struct Call {
  Device device;
  const void *a, *b, *bias;
  void* out;
  const void *scale_a, *scale_b;
  const float* alpha;
  std::shared_ptr<op::Prepared> own;    // null: not needed
  std::shared_ptr<op::Prepared> grids;  // before each product of cuBLASLt; null: the scales have its layouts
  Tensor grid_memory;
};

void set(Handle description, int attribute, const auto& value) {
  cublaslt::check(cublaslt::library().cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value),
                  "cublasLtMatmulDescSetAttribute");
}

Handle layout(const Matrix& m, int64_t batch) {
  const cublaslt::Library& lt = cublaslt::library();
  Handle h = nullptr;
  cublaslt::check(
      lt.cublasLtMatrixLayoutCreate(&h, m.type, static_cast<uint64_t>(m.rows), static_cast<uint64_t>(m.columns), m.ld),
      "cublasLtMatrixLayoutCreate");
  if (batch == 1) return h;
  const auto count = static_cast<int32_t>(batch);
  cublaslt::check(lt.cublasLtMatrixLayoutSetAttribute(h, cublaslt::kBatchCount, &count, sizeof count),
                  "cublasLtMatrixLayoutSetAttribute");
  cublaslt::check(
      lt.cublasLtMatrixLayoutSetAttribute(h, cublaslt::kBatchOffset, &m.batch_stride, sizeof m.batch_stride),
      "cublasLtMatrixLayoutSetAttribute");
  return h;
}

/// The library's handle of a device; as long as the process.
Handle handle_of(int device) {
  static constinit ForkMutex mutex(ForkLayer::kOps, kHandlesPlace);
  static auto& handles = *new std::map<std::pair<const void*, int>, Handle>;
  const std::lock_guard lock(mutex);
  Handle& h = handles[{&cublaslt::library(), device}];
  const cuda::Current current(device);
  const cuda::BesideCapture beside;
  if (h == nullptr) cublaslt::check(cublaslt::library().cublasLtCreate(&h), "cublasLtCreate");
  return h;
}

/// 0.0f on a device, whatever the call's stream does meanwhile.
Tensor zero_on(int device) {
  const cuda::BesideCapture beside;
  const cuda::Stream stream(device);
  Context context = Context::current();
  context.stream = stream.get();
  const ContextScope scope(context);
  return to_device(Tensor::zeros({1}, DType::kF32).view(), {DeviceType::kCUDA, static_cast<int16_t>(device)});
}

/// Descriptors, then the heuristic's list. Descriptors stay with the choice for good.
void choose(Choice& c) {
  const Key& k = c.key;
  const cublaslt::Library& lt = cublaslt::library();
  cublaslt::check(lt.cublasLtMatmulDescCreate(&c.description, cublaslt::kCompute32F, cublaslt::kR32F),
                  "cublasLtMatmulDescCreate");
  set(c.description, cublaslt::kTransA, int32_t{k.a.transposed ? cublaslt::kOpT : cublaslt::kOpN});
  set(c.description, cublaslt::kTransB, int32_t{k.b.transposed ? cublaslt::kOpT : cublaslt::kOpN});
  if (k.bias >= 0) {
    set(c.description, cublaslt::kEpilogue, uint32_t{cublaslt::kEpilogueBias});
    set(c.description, cublaslt::kBiasType, int32_t{k.bias});
  }
  if (k.fp8) set(c.description, cublaslt::kFastAccum, int8_t{0});  // sums of fp8 in f32 throughout
  if (k.scales_a != cublaslt::kScalar32F) {
    set(c.description, cublaslt::kAScaleMode, int32_t{k.scales_a});
    set(c.description, cublaslt::kBScaleMode, int32_t{k.scales_b});
  }
  if (k.alpha) {
    set(c.description, cublaslt::kPointerMode, int32_t{cublaslt::kPointersOnDevice});
    c.zero = zero_on(k.device);
  }
  c.a = layout(k.a, k.batch), c.b = layout(k.b, k.batch), c.d = layout(k.d, k.batch);
  Handle preference = nullptr;
  cublaslt::check(lt.cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const auto prefer = [&](int attribute, const auto& value) {
    cublaslt::check(lt.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
                    "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(cublaslt::kMaxWorkspace, uint64_t{kWorkspace});
  prefer(cublaslt::kAlignmentA, static_cast<uint32_t>(k.a.alignment)),
      prefer(cublaslt::kAlignmentB, static_cast<uint32_t>(k.b.alignment));
  prefer(cublaslt::kAlignmentC, static_cast<uint32_t>(k.d.alignment)),
      prefer(cublaslt::kAlignmentD, static_cast<uint32_t>(k.d.alignment));
  int found = 0;
  c.algorithms.resize(kAlgorithms);
  const cublaslt::Status s = lt.cublasLtMatmulAlgoGetHeuristic(handle_of(k.device), c.description, c.a, c.b, c.d, c.d,
                                                               preference, kAlgorithms, c.algorithms.data(), &found);
  lt.cublasLtMatmulPreferenceDestroy(preference);
  const cublaslt::Status first = s != 0 ? s : c.algorithms[0].state;
  c.algorithms.resize(s == 0 ? static_cast<size_t>(found) : 0);
  std::erase_if(c.algorithms, [](const cublaslt::HeuristicResult& r) { return r.state != 0; });
  c.settled = c.ways() < 2 || !env::flag("FLASHINFER_CUBLASLT_SEARCH");
  if (c.algorithms.empty())
    c.unsupported =
        str("cuBLASLt ", lt.version / 10000, ".", lt.version / 100 % 100,
            " has no algorithm for these types, layouts and alignments (", lt.cublasLtGetStatusName(first), ")");
}

Choice& choice_of(const Key& k) {
  static constinit ForkMutex mutex(ForkLayer::kOps, kChoicesPlace);
  static auto& choices = *new std::map<Key, std::unique_ptr<Choice>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Choice>& c = choices[k];
  if (c) return *c;
  auto made = std::make_unique<Choice>();
  made->key = k;
  const cuda::Current current(k.device);
  choose(*made);
  c = std::move(made);
  return *c;
}

struct LtGrids {
  LtGrid a, b;
};
/// The result's columns have squares: cuBLASLt has none on both sides, and of rows there may be a scale for each.
LtGrids grids_of(const LtProduct& p) {
  return {lt_grid(*p.grid_a, p.a.size(0), p.a.size(1), false), lt_grid(*p.grid_b, p.b.size(1), p.a.size(1), true)};
}

/// The key of a product; or why cuBLASLt has no way to describe it.
std::string key_of(const LtProduct& p, int device, Key& k) {
  k.device = device, k.library = &cublaslt::library();
  const auto a = matrix_of(p.b), b = matrix_of(p.a), d = matrix_of(p.out);
  if (!a || !b)
    return str(a ? "a" : "b", " is ", to_string(a ? p.a : p.b),
               ": cuBLASLt needs one of a matrix's dimensions without gaps");
  if (!d || d->transposed) return str("out is ", to_string(p.out), ": cuBLASLt needs its rows without gaps");
  k.a = *a, k.b = *b, k.d = *d, k.batch = p.out.rank() == 3 ? p.out.size(0) : 1;
  k.bias = p.bias ? type_of(p.bias->dtype()) : -1;
  k.fp8 = size_of(p.a.dtype()) == 1;
  if (p.blocks_a) k.scales_a = k.scales_b = p.fp4 ? cublaslt::kVec16UE4M3 : cublaslt::kVec32UE8M0;
  if (p.grid_a) {
    const LtGrids g = grids_of(p);
    k.scales_a = g.b.mode, k.scales_b = g.a.mode, k.copies = !g.a.as_given || !g.b.as_given;
  }
  k.alpha = p.alpha != nullptr, k.own = p.own != nullptr;
  if (p.a.size(-1) == 0) return "k is 0, and cuBLASLt takes only products of something";
  if (p.bias && p.bias->stride(0) != 1 && p.bias->size(0) > 1) return "bias has gaps between elements";
  if (k.batch > INT32_MAX) return "the batch is more than 32 bits hold";
  if (!k.fp8) return {};
  // A matrix whose other dimension is 1 has both layouts.
  const auto along_k = [](Matrix& m, bool is_a, int64_t depth) {
    if (m.rows != depth && m.ld == m.rows && m.rows == 1)
      m.rows = depth, m.columns = 1, m.ld = depth, m.transposed = !m.transposed;
    return m.transposed == (is_a ? 1 : 0);
  };
  const int64_t depth = p.a.size(-1);
  if (!along_k(k.a, true, depth) || !along_k(k.b, false, depth))
    return "fp8 products of cuBLASLt read both matrices along k: a [m, k] row by row and b as the transposed view of a "
           "[n, k] weight";
  for (const auto& [name, m] : {std::pair("a", &k.b), std::pair("b", &k.a)})
    if (m->alignment % 16 != 0 || m->ld % 16 != 0 || (k.batch > 1 && m->batch_stride % 16 != 0))
      return str(p.fp4 ? "fp4" : "fp8", " rows of ", name,
                 " must begin at 16 bytes, which its address and strides do not give");
  if (p.blocks_a && (alignment_of(p.blocks_a) < 16 || alignment_of(p.blocks_b) < 16))
    return "scales of blocks must begin at 16 bytes";
  if (p.fp4)  // counted in numbers, two a byte
    for (Matrix* m : {&k.a, &k.b}) m->type = cublaslt::kR4FE2M1, m->rows *= 2, m->ld *= 2, m->batch_stride *= 2;
  // Whole tiles follow one another. NVIDIA does not say whether a matrix of others begins in a tile of its own.
  const int64_t m = k.b.columns, n = k.a.columns, blocks_of_tile = (p.fp4 ? 16 : 32) * 4;
  if (p.blocks_a && k.batch > 1 && (m % 128 != 0 || n % 128 != 0 || k.a.rows % blocks_of_tile != 0))
    return str("scales of blocks of a batch need whole tiles, m and n multiples of 128 and k of ", blocks_of_tile,
               ", but m is ", m, ", n ", n, " and k ", k.a.rows);
  return {};
}

constinit ForkMutex workspaces_mutex(ForkLayer::kOps, kWorkspacesPlace);
auto& workspaces() {
  static auto& all = *new std::map<std::tuple<const void*, int, Handle>, Tensor>;
  return all;
}
void drop_workspace(int index, Handle stream) {
  Tensor gone;  // released without the lock
  const std::lock_guard lock(workspaces_mutex);
  if (const auto it = workspaces().find({&cuda::driver(), index, stream}); it != workspaces().end())
    gone = std::move(it->second), workspaces().erase(it);
}

/// Memory that a stream's products share; those of one stream run one after another. Under capture it becomes the
/// graph's own.
Tensor workspace_of(Device device, size_t bytes) {
  if (bytes == 0) return {};
  Handle const stream = Context::current().stream;
  if (cuda::capturing(device.index, stream)) return Tensor::empty({static_cast<int64_t>(bytes)}, DType::kU8, device);
  static std::once_flag once;  // a later stream may have the handle of one that is gone, and must not take its memory
  std::call_once(once, [] { cuda::on_stream_end(drop_workspace); });
  const std::lock_guard lock(workspaces_mutex);
  Tensor& t = workspaces()[{&cuda::driver(), device.index, stream}];
  if (!t.defined()) t = Tensor::empty({static_cast<int64_t>(kWorkspace)}, DType::kU8, device);
  return t;
}

enum class Scales { kScalar, kBlocks, kGrids };
/// Why the library, the driver or the GPU cannot multiply `type` with such scales; empty when they can.
std::string unsupported_on(int device, DType type, Scales scales) {
  if (std::string why = cuda::why_no_device(device); !why.empty()) return why;
  const cublaslt::Library& lt = cublaslt::library();
  if (!lt.why_not.empty()) return lt.why_not;
  if (const int driver = cuda::driver().version; lt.version / 10000 > static_cast<size_t>(driver / 1000))
    return str("the driver is for CUDA ", cuda::version_text(driver), ", but cuBLASLt is ", lt.version / 10000, ".",
               lt.version / 100 % 100, ": update the driver, or install an nvidia-cublas ", driver / 1000, ".x");
  const cuda::DeviceInfo& gpu = cuda::device_info(device);
  const int capability = gpu.major * 10 + gpu.minor;
  if (scales != Scales::kScalar) {
    const bool grids = scales == Scales::kGrids;
    const char* const what = grids ? "f32 scales of blocks" : "scales of blocks";
    if (grids ? capability != 90 : capability < 100)
      return str("products with ", what, " need compute capability ", grids ? "9.0" : "10.0", ", but ", gpu.name,
                 " has ", gpu.major, ".", gpu.minor);
    if (lt.version < size_t{grids ? 120900u : 120800u})
      return str("products with ", what, " need cuBLASLt ", grids ? "12.9" : "12.8", ", but it is ", lt.version / 10000,
                 ".", lt.version / 100 % 100);
  }
  if (size_of(type) == 1 && capability < 89)
    return str("fp8 products need compute capability 8.9, but ", gpu.name, " has ", gpu.major, ".", gpu.minor);
  if (capability < 80)
    return str("bfloat16 products need compute capability 8.0, but ", gpu.name, " has ", gpu.major, ".", gpu.minor);
  return {};
}

void run(Choice& c, const Call& p) {
  const Key& k = c.key;
  const cuda::Current current(k.device);
  const cuda::BesideCapture beside;  // at an algorithm's first use cuBLASLt loads its kernel
  Handle const stream = Context::current().stream;
  const std::lock_guard lock(c.mutex);
  const size_t own = c.algorithms.size();
  const auto needs = [&](size_t way) { return way == own ? 0 : c.algorithms[way].workspace; };
  size_t most = needs(c.chosen);
  if (!c.settled)
    for (size_t way = 0; way < own; ++way) most = std::max(most, needs(way));
  const Tensor workspace = workspace_of(p.device, most);
  if (p.bias) set(c.description, cublaslt::kBiasPointer, p.bias);
  if (k.fp8) {
    set(c.description, cublaslt::kAScalePointer, p.scale_b);
    set(c.description, cublaslt::kBScalePointer, p.scale_a);
  }
  const auto multiply = [&](size_t way) {
    if (p.grids) p.grids->run();
    const float one = 1, zero = 0;
    const void *const alpha = p.alpha ? p.alpha : &one, *const beta = p.alpha ? c.zero.data() : &zero;
    return cublaslt::library().cublasLtMatmul(handle_of(k.device), c.description, alpha, p.b, c.a, p.a, c.b, beta,
                                              p.out, c.d, p.out, c.d, &c.algorithms[way].algorithm,
                                              workspace.defined() ? workspace.data() : nullptr, needs(way), stream);
  };
  if (!c.settled) {
    std::vector<std::string> names;
    for (const cublaslt::HeuristicResult& r : c.algorithms) names.push_back(name_of(r.algorithm));
    if (p.own && p.own->supported()) names.emplace_back("own");
    const auto compute = [&](size_t way) { return way == own ? (p.own->run(), 0) : multiply(way); };
    c.settled = settle(k.device, stream, text_of(k), names, compute, c.chosen);
  }
  if (c.chosen == own && p.own && p.own->supported()) return p.own->run();
  cublaslt::check(multiply(c.chosen == own ? 0 : c.chosen), "cublasLtMatmul");
}
/// Whether a call takes the own launch and nothing else.
bool takes_own(Choice& c, const Call& p) {
  const std::lock_guard lock(c.mutex);
  return c.settled && c.chosen == c.algorithms.size() && p.own && p.own->supported();
}
/// Sets the scales of `call`, and the copies of those that cuBLASLt reads in another layout. Why there are none.
std::string set_grids(const LtProduct& p, Call& call) {
  const LtGrids grids = grids_of(p);
  call.scale_a = p.grid_a->p, call.scale_b = p.grid_b->p;
  // Those of b begin at 16 bytes behind those of a, whose m is a multiple of 4.
  const int64_t of_a = grids.a.as_given ? 0 : grids.a.size(), of_b = grids.b.as_given ? 0 : grids.b.size();
  if (of_a + of_b == 0) return {};
  call.grid_memory = Tensor::empty({of_a + of_b}, DType::kF32, call.device);
  float* const memory = call.grid_memory.data_as<float>();
  std::vector<GridMove> moves;
  if (of_a) moves.push_back({*p.grid_a, grids.a, memory}), call.scale_a = memory;
  if (of_b) moves.push_back({*p.grid_b, grids.b, memory + of_a}), call.scale_b = memory + of_a;
  call.grids.reset(new op::Prepared(prepare_grid_layout(moves, call.device)));
  return call.grids->supported() ? std::string() : call.grids->why_not();
}
/// Whether a call may take, or time, the own launch.
bool needs_own(Choice& c) {
  const std::lock_guard lock(c.mutex);
  return c.key.own && (!c.settled || c.chosen == c.algorithms.size());
}

}  // namespace

std::string why_no_grids(Device device, int64_t m, int64_t n, int64_t grid_k) {
  if (device.type != DeviceType::kCUDA) return kNotHere;
  if (std::string why = unsupported_on(device.index, DType::kF8E4M3, Scales::kGrids); !why.empty()) return why;
  if (grid_k != 128) return str("cuBLASLt has f32 scales of 128 along k, but these are of ", grid_k);
  if (m % 4 != 0 || n % 4 != 0)
    return str("products with f32 scales of blocks need m and n that are multiples of 4, but m is ", m, " and n ", n);
  return {};
}

op::Prepared prepare_cublaslt(const LtProduct& p, Device device) {
  if (device.type != DeviceType::kCUDA) return op::Unsupported{kNotHere};
  std::string why = p.grid_a
                        ? why_no_grids(device, p.a.size(0), p.b.size(1), p.grid_k)
                        : unsupported_on(device.index, p.a.dtype(), p.blocks_a ? Scales::kBlocks : Scales::kScalar);
  if (!why.empty()) return op::Unsupported{why};
  if (p.out.numel() == 0) return [] {};
  Key k;
  if (why = key_of(p, device.index, k); !why.empty()) return op::Unsupported{why};
  Choice& c = choice_of(k);
  if (!c.unsupported.empty()) return op::Unsupported{c.unsupported};
  Call call{.device = device,
            .a = p.a.data(),
            .b = p.b.data(),
            .bias = p.bias ? p.bias->data() : nullptr,
            .out = p.out.data(),
            .scale_a = p.blocks_a ? p.blocks_a : p.scale_a,
            .scale_b = p.blocks_b ? p.blocks_b : p.scale_b,
            .alpha = p.alpha,
            .own = needs_own(c) ? std::shared_ptr<op::Prepared>(new op::Prepared((*p.own)())) : nullptr,
            .grids = nullptr,
            .grid_memory = {}};
  if (p.grid_a && !takes_own(c, call))
    if (why = set_grids(p, call); !why.empty()) return op::Unsupported{why};
  return [&c, call = std::move(call)] { run(c, call); };
}

}  // namespace flashinfer::gemm
