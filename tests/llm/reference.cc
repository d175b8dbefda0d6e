// SPDX-License-Identifier: Apache-2.0
#include "reference.h"

#include "flashinfer/core/int_math.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>

namespace llm_reference {
namespace {

using Vector = std::vector<double>;

double half_to_double(const uint8_t* p) {
  const int bits = p[0] | p[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31) throw std::runtime_error("a scale is not finite");
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

struct Matrix {
  int64_t inputs = 0, outputs = 0;
  uint32_t type = 0;
  const uint8_t* bytes = nullptr;

  int64_t bytes_of_row() const {
    switch (type) {
      case 0: return inputs * 4;
      case 1: return inputs * 2;
      case 2: return inputs / 32 * 18;
      case 3: return inputs / 32 * 20;
      case 8: return inputs / 32 * 34;
      default: throw std::runtime_error("the reference has no decoder for tensor type " + std::to_string(type));
    }
  }
  double element(const uint8_t* row, int64_t i) const {
    const int64_t block = i / 32, at = i % 32;
    switch (type) {
      case 0: {
        float f;
        std::memcpy(&f, row + 4 * i, 4);
        return f;
      }
      case 1: return half_to_double(row + 2 * i);
      case 2: {
        const uint8_t* b = row + block * 18;
        const int q = at < 16 ? b[2 + at] % 16 : b[2 + at - 16] / 16;
        return half_to_double(b) * (q - 8);
      }
      case 3: {
        const uint8_t* b = row + block * 20;
        const int q = at < 16 ? b[4 + at] % 16 : b[4 + at - 16] / 16;
        return half_to_double(b) * q + half_to_double(b + 2);
      }
      default: {
        const uint8_t* b = row + block * 34;
        const int q = b[2 + at] < 128 ? b[2 + at] : b[2 + at] - 256;
        return half_to_double(b) * q;
      }
    }
  }
  Vector row(int64_t r) const {
    const uint8_t* p = bytes + r * bytes_of_row();
    Vector v(static_cast<size_t>(inputs));
    for (int64_t i = 0; i < inputs; ++i) v[static_cast<size_t>(i)] = element(p, i);
    return v;
  }
  /// y[t] = W x[t] for all tokens, a weight row decoded once.
  std::vector<Vector> apply(const std::vector<Vector>& x) const {
    std::vector<Vector> y(x.size(), Vector(static_cast<size_t>(outputs)));
    for (int64_t r = 0; r < outputs; ++r) {
      const Vector w = row(r);
      for (size_t t = 0; t < x.size(); ++t) {
        double sum = 0;
        for (size_t i = 0; i < w.size(); ++i) sum += w[i] * x[t][i];
        y[t][static_cast<size_t>(r)] = sum;
      }
    }
    return y;
  }
};

/// The few keys and all tensors of a GGUF file; everything else is stepped over.
struct File {
  std::vector<uint8_t> bytes;
  std::map<std::string, double> numbers;
  std::map<std::string, Matrix> tensors;
  size_t at = 0;

  template <class T>
  T get() {
    T v;
    std::memcpy(&v, &bytes.at(at + sizeof(T) - 1) - (sizeof(T) - 1), sizeof(T));
    at += sizeof(T);
    return v;
  }
  std::string string() {
    const auto n = static_cast<size_t>(get<uint64_t>());
    std::string s(reinterpret_cast<const char*>(&bytes.at(at)), n);
    at += n;
    return s;
  }
  double scalar(uint32_t type) {
    switch (type) {
      case 0: return get<uint8_t>();
      case 1: return get<int8_t>();
      case 2: return get<uint16_t>();
      case 3: return get<int16_t>();
      case 4: return get<uint32_t>();
      case 5: return get<int32_t>();
      case 6: return static_cast<double>(get<float>());
      case 7: return get<uint8_t>();
      case 8: string(); return NAN;
      case 9: {
        const auto element = get<uint32_t>();
        for (auto n = get<uint64_t>(); n > 0; --n) scalar(element);
        return NAN;
      }
      case 10: return static_cast<double>(get<uint64_t>());
      case 11: return static_cast<double>(get<int64_t>());
      default: return get<double>();
    }
  }
  explicit File(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
    at = 8;
    const auto tensor_count = get<uint64_t>(), key_count = get<uint64_t>();
    for (uint64_t i = 0; i < key_count; ++i) {
      const std::string key = string();
      numbers[key] = scalar(get<uint32_t>());
    }
    std::map<std::string, uint64_t> offsets;
    for (uint64_t i = 0; i < tensor_count; ++i) {
      const std::string name = string();
      Matrix m;
      const auto rank = get<uint32_t>();
      m.inputs = static_cast<int64_t>(get<uint64_t>());
      m.outputs = rank > 1 ? static_cast<int64_t>(get<uint64_t>()) : 1;
      m.type = get<uint32_t>();
      offsets[name] = get<uint64_t>();
      tensors[name] = m;
    }
    const size_t align = numbers.count("general.alignment") ? static_cast<size_t>(numbers["general.alignment"]) : 32;
    const size_t start = flashinfer::round_up(at, align);
    for (auto& [name, m] : tensors) {
      m.bytes = &bytes.at(start + offsets[name]);
      bytes.at(start + offsets[name] + static_cast<size_t>(m.bytes_of_row() * m.outputs) - 1);  // throws when truncated
    }
  }
  double number(const std::string& key, double otherwise) const {
    const auto it = numbers.find(key);
    return it == numbers.end() ? otherwise : it->second;
  }
};

std::vector<Vector> normalised(const std::vector<Vector>& x, const Vector& weight, double eps) {
  std::vector<Vector> y = x;
  for (Vector& v : y) {
    double squares = 0;
    for (double e : v) squares += e * e;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(v.size()) + eps);
    for (size_t i = 0; i < v.size(); ++i) v[i] *= scale * weight[i];
  }
  return y;
}

/// Rotates the pairs (2d, 2d + 1) of every head: files of this architecture store Q and K in that order.
void rotate(Vector* v, size_t head_dim, size_t rotated, double position, double base) {
  for (size_t h = 0; h < v->size(); h += head_dim) {
    for (size_t d = 0; d < rotated / 2; ++d) {
      const double angle = position * std::pow(base, -2.0 * static_cast<double>(d) / static_cast<double>(rotated));
      double &a = (*v)[h + 2 * d], &b = (*v)[h + 2 * d + 1];
      const double x = a, y = b;
      a = x * std::cos(angle) - y * std::sin(angle);
      b = x * std::sin(angle) + y * std::cos(angle);
    }
  }
}

std::vector<Vector> attention(const std::vector<Vector>& q, const std::vector<Vector>& k, const std::vector<Vector>& v,
                              size_t heads, size_t kv_heads, size_t head_dim) {
  std::vector<Vector> out(q.size(), Vector(heads * head_dim, 0.0));
  for (size_t t = 0; t < q.size(); ++t) {
    for (size_t h = 0; h < heads; ++h) {
      const size_t from = h / (heads / kv_heads) * head_dim;
      Vector weight(t + 1);
      double sum = 0;
      for (size_t s = 0; s <= t; ++s) {
        double dot = 0;
        for (size_t d = 0; d < head_dim; ++d) dot += q[t][h * head_dim + d] * k[s][from + d];
        weight[s] = std::exp(dot / std::sqrt(static_cast<double>(head_dim)));
        sum += weight[s];
      }
      for (size_t s = 0; s <= t; ++s)
        for (size_t d = 0; d < head_dim; ++d) out[t][h * head_dim + d] += weight[s] / sum * v[s][from + d];
    }
  }
  return out;
}

void add(std::vector<Vector>* x, const std::vector<Vector>& y) {
  for (size_t t = 0; t < x->size(); ++t)
    for (size_t i = 0; i < (*x)[t].size(); ++i) (*x)[t][i] += y[t][i];
}

}  // namespace

std::vector<double> last_logits(const std::string& gguf_path, const std::vector<int32_t>& tokens) {
  const File file(gguf_path);
  const auto size = [&](const char* key) { return static_cast<size_t>(file.number(std::string("llama.") + key, 0)); };
  const size_t layers = size("block_count"), heads = size("attention.head_count"),
               kv_heads = size("attention.head_count_kv");
  const Matrix& embedding = file.tensors.at("token_embd.weight");
  const size_t head_dim = static_cast<size_t>(
      file.number("llama.attention.key_length", static_cast<double>(embedding.inputs) / static_cast<double>(heads)));
  const size_t rotated = static_cast<size_t>(file.number("llama.rope.dimension_count", static_cast<double>(head_dim)));
  const double eps = file.number("llama.attention.layer_norm_rms_epsilon", 1e-5),
               base = file.number("llama.rope.freq_base", 1e4);

  std::vector<Vector> x;
  for (int32_t token : tokens) x.push_back(embedding.row(token));
  for (size_t layer = 0; layer < layers; ++layer) {
    const auto weight = [&](const char* name) -> const Matrix& {
      return file.tensors.at("blk." + std::to_string(layer) + "." + name + ".weight");
    };
    const auto a = normalised(x, weight("attn_norm").row(0), eps);
    auto q = weight("attn_q").apply(a), k = weight("attn_k").apply(a);
    const auto v = weight("attn_v").apply(a);
    for (size_t t = 0; t < x.size(); ++t) {
      rotate(&q[t], head_dim, rotated, static_cast<double>(t), base);
      rotate(&k[t], head_dim, rotated, static_cast<double>(t), base);
    }
    add(&x, weight("attn_output").apply(attention(q, k, v, heads, kv_heads, head_dim)));
    const auto b = normalised(x, weight("ffn_norm").row(0), eps);
    auto gate = weight("ffn_gate").apply(b);
    const auto up = weight("ffn_up").apply(b);
    for (size_t t = 0; t < x.size(); ++t)
      for (size_t i = 0; i < gate[t].size(); ++i) gate[t][i] *= up[t][i] / (1 + std::exp(-gate[t][i]));
    add(&x, weight("ffn_down").apply(gate));
  }
  const auto last = normalised({x.back()}, file.tensors.at("output_norm.weight").row(0), eps);
  const auto output = file.tensors.find("output.weight");
  return (output == file.tensors.end() ? embedding : output->second).apply(last)[0];
}

}  // namespace llm_reference
