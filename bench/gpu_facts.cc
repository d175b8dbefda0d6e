// SPDX-License-Identifier: Apache-2.0
// What the kernels and the emulator assume of a GPU, asked of the GPU itself: the layouts of tensor-core operands, the
// errors of the special functions, every code of the conversions, how many bits the sums of a product keep, how many
// blocks an SM runs. One JSON array of facts on stdout, each {"fact", "ok", what was measured ...}; exit status 1 when
// one is not as assumed.
//
//   bench_gpu_facts [cuda:N | emu]     on the emulator the wrappers' own models are what is checked
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "bench/gpu_facts_params.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/cuda/memory.h"
#include "flashinfer/core/cuda/module.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/flashinfer.h"
#include "flashinfer/jit/cuda.h"
#include "flashinfer/jit/nvrtc.h"

namespace flashinfer {
namespace {

using Json = nlohmann::ordered_json;
using gpu_facts::Config;
constexpr char kFile[] = "bench/gpu_facts.cuh";
constexpr jit::Kernel kFunctions{kFile, "gpu_facts::functions", "gpu_facts::FunctionsParams"};
constexpr jit::Kernel kCodes{kFile, "gpu_facts::codes", "gpu_facts::CodesParams"};
constexpr jit::Kernel kProduct{kFile, "gpu_facts::product", "gpu_facts::ProductParams"};

/// A tensor on the device and its values on the host after fetch().
template <class T>
struct Both {
  Both(std::vector<T> values, Device d)
      : host(std::move(values)),
        there(to_device(Tensor::copy_of(bytes(), {static_cast<int64_t>(bytes().size())}).view(), d)) {}
  T* data() { return static_cast<T*>(there.data()); }
  const std::vector<T>& fetch() {
    const Tensor back = to_device(there.view(), kCpu);
    std::memcpy(host.data(), back.data(), host.size() * sizeof(T));
    return host;
  }
  std::span<const uint8_t> bytes() const {
    return {reinterpret_cast<const uint8_t*>(host.data()), host.size() * sizeof(T)};
  }
  std::vector<T> host;
  Tensor there;
};

template <const jit::Kernel& K, class Params>
void run(Device device, const Params& p, unsigned blocks, int threads, int element = 0) {
  const jit::CudaLoaded& k = jit::cuda_kernel<K>(Config{.threads = threads, .element = element}, device);
  FI_CHECK(k.why_not.empty(), RuntimeError, k.why_not);
  cuda::Launch l;
  l.grid[0] = blocks, l.block[0] = static_cast<unsigned>(threads), l.shared_bytes = 2048;
  jit::launch(k, p, l);
}

// ---- special functions ----

/// The largest error over `x`, in units of `bound`, and the argument where it is.
struct Worst {
  double error = 0, at = 0;
  void take(double e, double x) {
    if (!(e <= error)) error = e, at = x;
  }
  Json row(const char* fact, double bound) const {
    return {{"fact", fact}, {"error", error}, {"bound", bound}, {"at", at}, {"ok", error <= bound}};
  }
};

std::vector<Json> functions(Device device) {
  std::vector<float> x, positive;
  std::mt19937 random(1);
  for (int i = 0; i < 1 << 16; ++i) {
    x.push_back(std::uniform_real_distribution<float>(i % 2 ? -126.0f : -2.0f, i % 2 ? 127.9f : 2.0f)(random));
    positive.push_back(
        std::exp2(std::uniform_real_distribution<float>(i % 2 ? -60.0f : -1.0f, i % 2 ? 60.0f : 1.0f)(random)));
  }
  const size_t n = x.size();
  Both<float> in(x, device), pos(positive, device), e(x, device), t(x, device), l(x, device), r(x, device),
      s(x, device);
  run<kFunctions>(device,
                  gpu_facts::FunctionsParams{in.data(), pos.data(), e.data(), t.data(), l.data(), r.data(), s.data(),
                                             static_cast<int64_t>(n)},
                  16, 128);
  for (Both<float>* y : {&e, &t, &l, &r, &s}) y->fetch();
  Worst exp2, tanh, log2, rcp, rsqrt;
  for (size_t i = 0; i < n; ++i) {
    const double a = static_cast<double>(x[i]), b = static_cast<double>(positive[i]);
    const auto relative = [](float y, double right) { return std::abs(static_cast<double>(y) / right - 1); };
    exp2.take(relative(e.host[i], std::exp2(a)), a);
    if (a != 0) tanh.take(relative(t.host[i], std::tanh(a)), a);
    if (b >= 0.5 && b <= 2) log2.take(std::abs(static_cast<double>(l.host[i]) - std::log2(b)), b);
    rcp.take(relative(r.host[i], 1 / b), b);
    rsqrt.take(relative(s.host[i], 1 / std::sqrt(b)), b);
  }
  return {exp2.row("ex2.approx, relative", std::exp2(-22.0)), tanh.row("tanh.approx, relative", std::exp2(-10.9)),
          log2.row("lg2.approx on [0.5, 2], absolute", std::exp2(-21.9)),
          rcp.row("rcp.approx, relative", std::exp2(-23.0)), rsqrt.row("rsqrt.approx, relative", std::exp2(-22.3))};
}

// ---- conversions ----

/// Rounds to the nearest of a format's values, ties to the even code, by search: `value` of the codes 0 .. `last`,
/// which rise from 0; larger magnitudes give `beyond`.
uint32_t nearest(double magnitude, uint32_t last, uint32_t beyond, double limit,
                 const std::function<double(uint32_t)>& value) {
  if (magnitude >= limit) return beyond;
  uint32_t low = 0, high = last;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (value(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - value(low), above = value(high) - magnitude;
  return below < above || (below == above && low % 2 == 0) ? low : high;
}
/// Value of a code of a float with those bits, without sign, infinities or NaN.
double value_of(uint32_t code, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1, exponent = static_cast<int>(code >> mantissa_bits);
  const double mantissa = static_cast<double>(code & ((1u << mantissa_bits) - 1)) / (1 << mantissa_bits);
  return exponent == 0 ? std::ldexp(mantissa, 1 - bias) : std::ldexp(1 + mantissa, exponent - bias);
}
/// A format that numbers are rounded to: `last` code of a number, the code beyond `limit`, of NaN.
struct Format {
  const char* name;
  int exponent_bits, mantissa_bits;
  uint32_t last, beyond, nan;
  double limit;
  uint32_t code(float x) const {
    if (std::isnan(x)) return nan;
    const auto value = [this](uint32_t c) { return value_of(c, exponent_bits, mantissa_bits); };
    const uint32_t sign = std::signbit(x) ? 1u << (exponent_bits + mantissa_bits) : 0;
    return sign | nearest(std::abs(static_cast<double>(x)), last, beyond, limit, value);
  }
};

struct Mismatches {
  int64_t count = 0;
  std::string first;
  void take(float x, uint32_t got, uint32_t right) {
    if (got != right && count++ == 0) first = str(x, " gives ", got, ", not ", right);
  }
  Json row(const std::string& fact, size_t of) const {
    return {{"fact", fact}, {"wrong", count}, {"of", of}, {"first", first}, {"ok", count == 0}};
  }
};

std::vector<Json> codes(Device device) {
  std::vector<float> x;  // every bf16, what lies halfway to the next one, and its neighbours
  for (uint32_t high = 0; high < 65536; ++high)
    for (const uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u}) x.push_back(std::bit_cast<float>(high << 16 | low));
  for (uint32_t f = 0; f + 1 < 0x7c00; ++f)  // ties of f16
    x.push_back(static_cast<float>((value_of(f, 5, 10) + value_of(f + 1, 5, 10)) / 2));
  const size_t n = x.size();
  Both<float> in(x, device), from_f16(std::vector<float>(65536), device), from_e4m3(std::vector<float>(256), device),
      from_e5m2(std::vector<float>(256), device), from_e2m1(std::vector<float>(16), device);
  Both<uint16_t> bf16(std::vector<uint16_t>(n), device), f16(std::vector<uint16_t>(n), device);
  Both<uint8_t> e4m3(std::vector<uint8_t>(n), device), e5m2(std::vector<uint8_t>(n), device),
      int8(std::vector<uint8_t>(n), device), e2m1(std::vector<uint8_t>(n), device);
  run<kCodes>(device,
              gpu_facts::CodesParams{in.data(), bf16.data(), f16.data(), e4m3.data(), e5m2.data(), int8.data(),
                                     e2m1.data(), from_f16.data(), from_e4m3.data(), from_e5m2.data(), from_e2m1.data(),
                                     static_cast<int64_t>(n)},
              64, 128);
  bf16.fetch(), f16.fetch(), e4m3.fetch(), e5m2.fetch(), int8.fetch(), e2m1.fetch();

  const double f16_limit = 65520, bf16_limit = std::ldexp(2 - std::exp2(-8), 127);
  const Format formats[] = {{"f32 to bf16", 8, 7, 0x7f7f, 0x7f80, 0, bf16_limit},
                            {"f32 to f16", 5, 10, 0x7bff, 0x7c00, 0, f16_limit},
                            {"f32 to e4m3, saturating", 4, 3, 0x7e, 0x7e, 0x7f, 448},
                            {"f32 to e5m2, saturating", 5, 2, 0x7b, 0x7b, 0x7f, 57344},
                            {"f32 to e2m1, saturating", 2, 1, 7, 7, 0, 6}};
  Mismatches wrong[5], wrong_int8, wrong_nan;
  for (size_t i = 0; i < n; ++i) {
    const uint32_t got[] = {bf16.host[i], f16.host[i], e4m3.host[i], e5m2.host[i], e2m1.host[i]};
    for (int f = 0; f < 5; ++f) {
      const bool sixteen = f < 2, is_nan = std::isnan(x[i]);
      if (is_nan && sixteen)
        wrong_nan.take(x[i], (got[f] & 0x7fffu) > (f == 0 ? 0x7f80u : 0x7c00u), 1);
      else if (!is_nan || f != 4)
        wrong[f].take(x[i], got[f], formats[f].code(x[i]));
    }
    const double clamped = std::clamp(static_cast<double>(x[i]), -128.0, 127.0);
    wrong_int8.take(x[i], int8.host[i],
                    std::isnan(x[i])
                        ? 0u
                        : static_cast<uint32_t>(static_cast<uint8_t>(static_cast<int8_t>(std::nearbyint(clamped)))));
  }
  std::vector<Json> rows;
  for (int f = 0; f < 5; ++f) rows.push_back(wrong[f].row(formats[f].name, n));
  rows.push_back(wrong_nan.row("NaN stays NaN in bf16 and f16", n));
  rows.push_back(wrong_int8.row("f32 to int8, saturating", n));

  const auto widened = [&](const char* fact, Both<float>& got, int exponent_bits, int mantissa_bits,
                           uint32_t first_special) {
    Mismatches w;
    got.fetch();
    const uint32_t sign = 1u << (exponent_bits + mantissa_bits);
    for (uint32_t c = 0; c < 2 * sign; ++c) {
      if ((c & (sign - 1)) >= first_special) continue;  // infinities and NaN
      const double right = value_of(c & (sign - 1), exponent_bits, mantissa_bits);
      w.take(got.host[c], std::bit_cast<uint32_t>(got.host[c]),
             std::bit_cast<uint32_t>(static_cast<float>(c & sign ? -right : right)));
    }
    rows.push_back(w.row(fact, 2 * sign));
  };
  widened("f16 to f32", from_f16, 5, 10, 0x7c00), widened("e4m3 to f32", from_e4m3, 4, 3, 0x7f);
  widened("e5m2 to f32", from_e5m2, 5, 2, 0x7c), widened("e2m1 to f32", from_e2m1, 2, 1, 8);
  return rows;
}

// ---- tensor cores ----

/// Elements of one format: bytes of a row or column of 32 bytes.
struct Elements {
  int element;
  const char* name;
  int bytes;
  uint32_t code(float x) const { return element == 0 ? bf16_t(x).bits : element == 1 ? f16_t(x).bits : e4m3_t(x).bits; }
  int k() const { return 32 / bytes; }
  void put(std::vector<char>& to, size_t tile_bytes, size_t tile, int row, int k_index, float x) const {
    const uint32_t c = code(x);
    std::memcpy(to.data() + tile * tile_bytes + static_cast<size_t>(row * 32 + k_index * bytes), &c,
                static_cast<size_t>(bytes));
  }
};
struct Products {
  Products(int tiles, Device d)
      : count(tiles), device(d), a(tiles * 512), b(tiles * 256), c(tiles * 128), d_rows(tiles * 128) {}
  void compute(int element) {
    Both<char> ga(a, device), gb(b, device), gs(std::vector<char>(a.size()), device);
    Both<float> gc(c, device), gd(std::vector<float>(c.size()), device), gr(std::vector<float>(c.size()), device);
    run<kProduct>(device, gpu_facts::ProductParams{ga.data(), gb.data(), gc.data(), gd.data(), gr.data(), gs.data()},
                  static_cast<unsigned>(count), 32, element);
    d = gd.fetch(), d_rows = gr.fetch(), stored = gs.fetch();
  }
  int count;
  Device device;
  std::vector<char> a, b, stored;
  std::vector<float> c, d, d_rows;
};

std::vector<Json> layouts(const Elements& type, Device device) {
  constexpr int kTiles = 64;
  Products p(kTiles, device);
  std::mt19937 random(2);
  const auto draw = [&] { return static_cast<float>(static_cast<int>(random() % 7) - 3); };
  std::vector<float> right(p.c.size()), a(16 * 32), b(8 * 32);
  for (size_t t = 0; t < kTiles; ++t) {
    for (int k = 0; k < type.k(); ++k) {
      for (int i = 0; i < 16; ++i) type.put(p.a, 512, t, i, k, a[static_cast<size_t>(i * 32 + k)] = draw());
      for (int j = 0; j < 8; ++j) type.put(p.b, 256, t, j, k, b[static_cast<size_t>(j * 32 + k)] = draw());
    }
    for (size_t i = 0; i < 16; ++i)
      for (size_t j = 0; j < 8; ++j) {
        float sum = p.c[t * 128 + i * 8 + j] = draw();
        for (size_t k = 0; k < static_cast<size_t>(type.k()); ++k) sum += a[i * 32 + k] * b[j * 32 + k];
        right[t * 128 + i * 8 + j] = sum;
      }
  }
  p.compute(type.element);
  std::vector<Json> rows{
      {{"fact", str("ldmatrix and mma of ", type.name, ": exact on small integers")}, {"ok", p.d == right}},
      {{"fact", str("stmatrix gives back what ldmatrix took, ", type.name)}, {"ok", p.stored == p.a}}};
  if (type.bytes == 2) rows.push_back({{"fact", str("ldmatrix.trans of B, ", type.name)}, {"ok", p.d_rows == right}});
  return rows;
}

/// How many bits below its largest term a sum keeps: of c and a product, and of two products.
Json accumulation(const Elements& type, Device device) {
  constexpr int kPowers = 25;
  Products with_c(kPowers, device), with_product(kPowers, device);
  for (int j = 0; j < kPowers; ++j) {
    const auto tile = static_cast<size_t>(j);
    for (Products* p : {&with_c, &with_product})
      type.put(p->a, 512, tile, 0, 0, 1.0f), type.put(p->b, 256, tile, 0, 0, 1.0f);
    with_c.c[tile * 128] = std::exp2(static_cast<float>(j));
    // 2^j as two factors that every format has: e4m3 ends at 448.
    if (j > 16 && type.bytes == 1) continue;
    type.put(with_product.a, 512, tile, 0, 1, std::exp2(static_cast<float>((j + 1) / 2)));
    type.put(with_product.b, 256, tile, 0, 1, std::exp2(static_cast<float>(j / 2)));
  }
  const auto bits = [&](Products& p, int powers) {
    p.compute(type.element);
    int kept = 0;
    while (kept < powers && p.d[static_cast<size_t>(kept) * 128] == std::exp2(static_cast<float>(kept)) + 1) ++kept;
    return kept - 1;
  };
  const int c = bits(with_c, 24), product = bits(with_product, type.bytes == 1 ? 17 : 24);
  // The tolerances of the case tables leave room for sums that keep 10 bits below their largest term.
  return {{"fact", str("sums of mma, ", type.name, ": bits kept below the largest term")},
          {"of c and a product", c},
          {"of two products", product},
          {"ok", c >= 10 && product >= 10}};
}

// ---- residency ----

/// A block notes its multiprocessor and the times of its begin and end, 200 us apart.
constexpr char kResident[] = R"(
struct Params { unsigned* sm; unsigned long long* begin; unsigned long long* end; };
extern "C" __global__ void flashinfer_kernel(const __grid_constant__ Params p) {
  unsigned long long t0, t;
  unsigned sm;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t0));
  asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); while (t - t0 < 200000);
  if (threadIdx.x == 0) p.sm[blockIdx.x] = sm, p.begin[blockIdx.x] = t0, p.end[blockIdx.x] = t;
}
)";

/// Blocks of one multiprocessor that do run at once, beside what the driver's occupancy says: the driver chooses how
/// much of the L1 cache is shared memory.
std::vector<Json> residency(Device device) {
  const cuda::DeviceInfo& info = cuda::device_info(device.index);
  const cuda::Function f =
      cuda::load(jit::nvrtc_compile(kResident, str("sm_", info.major, info.minor)), "flashinfer_kernel", device.index);
  std::vector<Json> rows;
  for (const int kilobytes : {0, 16, 38, 48, 74, 98, 110}) {
    if (kilobytes * 1024 > info.shared_per_block) continue;
    const int said = cuda::occupancy(f, 128, static_cast<size_t>(kilobytes) * 1024), blocks = said * info.sms;
    const auto n = static_cast<size_t>(blocks);
    Both<unsigned> sm(std::vector<unsigned>(n), device);
    Both<unsigned long long> begin(std::vector<unsigned long long>(n), device),
        end(std::vector<unsigned long long>(n), device);
    struct {
      void *sm, *begin, *end;
    } p{sm.data(), begin.data(), end.data()};
    cuda::Launch l;
    l.grid[0] = static_cast<unsigned>(blocks), l.block[0] = 128,
    l.shared_bytes = static_cast<unsigned>(kilobytes) * 1024;
    cuda::launch(f, &p, l, Context::current().stream, "residency");
    sm.fetch(), begin.fetch(), end.fetch();
    int most = 0;
    for (size_t i = 0; i < n; ++i) {  // blocks of the same SM that run when block i begins
      int at_once = 0;
      for (size_t j = 0; j < n; ++j)
        at_once += sm.host[j] == sm.host[i] && begin.host[j] <= begin.host[i] && end.host[j] > begin.host[i];
      most = std::max(most, at_once);
    }
    rows.push_back({{"fact", str("blocks an SM of 128 threads and ", kilobytes, " KB")},
                    {"occupancy", said},
                    {"at once", most},
                    {"ok", most >= said}});
  }
  return rows;
}

std::vector<Json> all(Device device) {
  std::vector<Json> rows;
  const auto part = [&](const char* name, const std::function<std::vector<Json>()>& make) {
    try {
      for (Json& r : make()) rows.push_back(std::move(r));
    } catch (const std::exception& e) {
      rows.push_back({{"fact", name}, {"error", e.what()}, {"ok", false}});
    }
  };
  const bool gpu = device.type == DeviceType::kCUDA;
  part("special functions", [&] { return functions(device); });
  part("conversions", [&] { return codes(device); });
  const int capability = gpu ? cuda::device_info(device.index).major * 10 + cuda::device_info(device.index).minor : 90;
  for (const Elements& type : {Elements{0, "bf16", 2}, Elements{1, "f16", 2}, Elements{2, "e4m3", 1}}) {
    if (capability < (type.bytes == 1 ? 89 : 80)) continue;
    part(type.name, [&] { return layouts(type, device); });
    part(type.name, [&] { return std::vector<Json>{accumulation(type, device)}; });
  }
  if (gpu) part("residency", [&] { return residency(device); });
  return rows;
}

}  // namespace
}  // namespace flashinfer

int main(int argc, char** argv) {
  using namespace flashinfer;
  std::vector<Json> rows;
  try {
    const std::string name = argc > 1 ? argv[1] : "cuda:0";
    const std::optional<Device> device = parse_device(name);
    FI_CHECK(device && *device != kCpu, ValueError, "the device is '", name, "', not cuda:N or emu");
    rows = all(*device);
  } catch (const std::exception& e) {
    rows = {{{"fact", "the device"}, {"error", e.what()}, {"ok", false}}};
  }
  std::printf("%s\n", Json(rows).dump(1).c_str());
  std::fflush(stdout);
  std::_Exit(std::ranges::all_of(rows, [](const Json& r) { return r["ok"] == true; }) ? 0 : 1);
}
