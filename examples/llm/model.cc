// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include <flashinfer/core/int_math.h>

namespace llm {

using flashinfer::bf16_t;
using flashinfer::Device;
using flashinfer::DeviceType;
using flashinfer::DType;
using flashinfer::Tensor;
using flashinfer::TensorView;

ModelShape::ModelShape(const Gguf& file) {
  const auto fail = [&](const std::string& what) { throw UserError(file.path() + ": " + what); };
  const std::string architecture(file.text("general.architecture"));
  if (architecture != "llama") fail("general.architecture is " + architecture + ", but this program runs llama");
  const auto positive = [&](const char* key, int64_t otherwise) {
    const std::string name = std::string("llama.") + key;
    const int64_t v = otherwise > 0 ? file.integer_or(name, otherwise) : file.integer(name);
    if (v < 1 || v > (int64_t{1} << 24)) fail(name + " is " + std::to_string(v) + ", not a sensible size");
    return v;
  };
  layers = positive("block_count", 0);
  width = positive("embedding_length", 0);
  hidden = positive("feed_forward_length", 0);
  heads = positive("attention.head_count", 0);
  kv_heads = positive("attention.head_count_kv", heads);
  head_dim = positive("attention.key_length", std::max<int64_t>(width / heads, 1));
  rotary_dim = positive("rope.dimension_count", head_dim);
  context = positive("context_length", 0);
  vocabulary = static_cast<int64_t>(file.array("tokenizer.ggml.tokens").size());
  if (heads % kv_heads != 0)
    fail(std::to_string(heads) + " query heads cannot share " + std::to_string(kv_heads) + " key-value heads");
  if (file.integer_or("llama.attention.value_length", head_dim) != head_dim)
    fail("keys and values of different length are not supported");
  if (file.integer_or("llama.expert_count", 0) > 0) fail("mixture-of-experts models are not supported");
  if (rotary_dim > head_dim || rotary_dim % 2 != 0) fail("llama.rope.dimension_count is " + std::to_string(rotary_dim));
  eps = file.number("llama.attention.layer_norm_rms_epsilon");
  rope_theta = file.number_or("llama.rope.freq_base", 10000.0);
  const std::string scaling(file.text_or("llama.rope.scaling.type", "none"));
  if (scaling != "none" && scaling != "linear") fail("RoPE scaling of type " + scaling + " is not supported");
  rope_scale = scaling == "linear" ? file.number_or("llama.rope.scaling.factor", 1.0) : 1.0;
  for (const char* tensor : {"rope_freqs.weight", "blk.0.attn_q.bias", "blk.0.attn_output.bias"})
    if (file.has_tensor(tensor)) fail(std::string("tensor ") + tensor + " is not supported");
}

// ---- ranks ----

namespace {
/// The share of `n` units of each rank, in order; they differ by one at most.
Columns share_of(int64_t n, int64_t unit, int rank, int size) {
  Columns c;
  const int64_t units = flashinfer::ceil_div(n, unit);
  for (int r = 0; r < size; ++r) {
    const int64_t begin = std::min(n, units * r / size * unit), end = std::min(n, units * (r + 1) / size * unit);
    c.of.push_back(end - begin);
    if (r == rank) c.first = begin, c.own = end - begin;
  }
  return c;
}
}  // namespace

Split::Split(const ModelShape& s, int rank, int size) {
  constexpr int64_t kBlock = 16;  // outputs of a block of packed weights
  const auto require = [size](int64_t parts, const char* what) {
    if (parts < size)
      throw UserError("--tensor-parallel " + std::to_string(size) + ": the model has " + std::to_string(parts) + " " +
                      what + ", so at most " + std::to_string(parts) + " ranks can share it");
  };
  require(s.kv_heads, "key-value heads");
  require(flashinfer::ceil_div(s.width, kBlock), "blocks of 16 columns in its width");
  require(flashinfer::ceil_div(s.hidden, kBlock), "blocks of 16 columns in its hidden layer");
  require(flashinfer::ceil_div(s.vocabulary, kBlock), "blocks of 16 tokens in its vocabulary");
  const int64_t group = s.heads / s.kv_heads;
  const Columns kv = share_of(s.kv_heads, 1, rank, size);
  first_kv_head = kv.first, kv_heads = kv.own, heads = kv.own * group;
  key = share_of(s.kv_heads * s.head_dim, s.head_dim, rank, size);
  query = share_of(s.heads * s.head_dim, group * s.head_dim, rank, size);
  width = share_of(s.width, kBlock, rank, size);
  hidden = share_of(s.hidden, kBlock, rank, size);
  vocabulary = share_of(s.vocabulary, kBlock, rank, size);
}

// ---- batch ----

void Batch::clear() {
  for (Part* p : {&decode, &prefill, &all}) {
    p->row_indptr.assign(1, 0);
    p->page_indptr.assign(1, 0);
    p->pages.clear();
    p->last_page_len.clear();
  }
  for (auto* v : {&tokens, &positions, &request_of_row, &logit_rows}) v->clear();
}

void Batch::add(std::span<const int32_t> new_tokens, int64_t length, std::span<const int32_t> pages, int64_t page_size,
                bool decoding, bool wants_logits) {
  const int64_t total = length + static_cast<int64_t>(new_tokens.size()), used = flashinfer::ceil_div(total, page_size);
  const auto request = static_cast<int32_t>(all.requests());
  for (Part* p : {decoding ? &decode : &prefill, &all}) {
    p->row_indptr.push_back(p->row_indptr.back() + static_cast<int32_t>(new_tokens.size()));
    p->page_indptr.push_back(p->page_indptr.back() + static_cast<int32_t>(used));
    p->pages.insert(p->pages.end(), pages.begin(), pages.begin() + used);
    p->last_page_len.push_back(static_cast<int32_t>(total - (used - 1) * page_size));
  }
  for (size_t i = 0; i < new_tokens.size(); ++i) {
    tokens.push_back(new_tokens[i]);
    positions.push_back(static_cast<int32_t>(length) + static_cast<int32_t>(i));
    request_of_row.push_back(request);
  }
  if (wants_logits) logit_rows.push_back(static_cast<int32_t>(tokens.size()) - 1);
}

// ---- weights ----

namespace {

Tensor vector_bf16(const Gguf& file, const std::string& name, int64_t n, Device device) {
  const GgufTensor& t = file.tensor(name, {n});
  Tensor out = Tensor::empty({n}, DType::kBF16);
  dequantize(t, 0, out.view().unsqueeze(0));
  return device == flashinfer::kCpu ? out : flashinfer::to_device(out, device);
}

/// Linear layers that become one weight, one below the other: of each some of its outputs.
struct Part {
  Part(std::string n, int64_t outputs_of_all, const Columns& c)
      : name(std::move(n)), all(outputs_of_all), first(c.first), outputs(c.own) {}
  std::string name;
  int64_t all, first, outputs;
};
using Parts = std::vector<Part>;

struct LayerParts {
  Parts qkv, output, gate_up, down;
};
LayerParts layer_parts(const ModelShape& s, const Split& own, int64_t layer) {
  const std::string p = "blk." + std::to_string(layer) + ".";
  const int64_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  return {{{p + "attn_q.weight", q, own.query}, {p + "attn_k.weight", kv, own.key}, {p + "attn_v.weight", kv, own.key}},
          {{p + "attn_output.weight", s.width, own.width}},
          {{p + "ffn_gate.weight", s.hidden, own.hidden}, {p + "ffn_up.weight", s.hidden, own.hidden}},
          {{p + "ffn_down.weight", s.width, own.width}}};
}

/// Throws for a file that lacks a layer or has one of another size before any time is spent on the others.
void check_layers(const Gguf& file, const ModelShape& s, const Split& own) {
  const auto check = [&](const Parts& parts, int64_t inputs) {
    for (const Part& p : parts) file.tensor(p.name, {inputs, p.all});
  };
  for (int64_t i = 0; i < s.layers; ++i) {
    const LayerParts l = layer_parts(s, own, i);
    check(l.qkv, s.width);
    check(l.output, s.heads * s.head_dim);
    check(l.gate_up, s.width);
    check(l.down, s.hidden);
  }
}

int64_t outputs_of(const Parts& parts) {
  int64_t n = 0;
  for (const Part& p : parts) n += p.outputs;
  return n;
}
/// The format that all parts share and mm_gguf supports; empty when they must be converted to bf16.
std::string common_format(const Gguf& file, int64_t inputs, const Parts& parts) {
  const GgmlType type = file.tensor(parts.front().name, {inputs, parts.front().all}).type;
  for (const Part& p : parts)
    if (file.tensor(p.name, {inputs, p.all}).type != type) return "";
  return type == GgmlType::kQ4_0 || type == GgmlType::kQ4_1 || type == GgmlType::kQ8_0 ? block_size(type).name : "";
}
std::array<int64_t, 3> packed_shape(const Gguf& file, int64_t inputs, const Parts& parts) {
  const int64_t panels = flashinfer::ceil_div(outputs_of(parts), 16);
  const std::string format = common_format(file, inputs, parts);
  if (format.empty()) return {panels, 1 + flashinfer::ceil_div(inputs, 2), 32};  // of prepare_mm_weights
  const int64_t block = 16 * block_size(file.tensor(parts.front().name, {inputs, parts.front().all}).type).bytes;
  return {panels, 1 + flashinfer::ceil_div(inputs / 32 * block, 64), 64};  // of prepare_gguf_weights
}
int64_t packed_bytes(const Gguf& file, int64_t inputs, const Parts& parts) {
  const auto [panels, lines, width] = packed_shape(file, inputs, parts);
  return panels * lines * 64;
}

/// All packed weights in one allocation: the allocator gives huge pages to blocks of 2 MB or more, and most weights of
/// a small model are smaller (one row times a weight: 23-30 GB/s on small pages, 30-34 GB/s on huge ones).
class Slab {
 public:
  explicit Slab(int64_t bytes) : memory_(Tensor::empty({bytes}, DType::kU8)) {}
  Tensor take(DType type, const std::array<int64_t, 3>& shape) {  // of lines of 64 bytes
    const std::array strides{shape[1] * shape[2], shape[2], int64_t{1}};
    const Tensor out(TensorView(memory_.data_as<uint8_t>() + used_, type, shape, strides), memory_.owner());
    used_ += shape[0] * shape[1] * 64;
    return out;
  }

 private:
  Tensor memory_;
  int64_t used_ = 0;
};

/// fn(part, first of its rows, rows to take) in parallel, 64 rows a task.
template <class F>
void each_rows(const Gguf& file, int64_t inputs, const Parts& parts, const F& fn) {
  int64_t first = 0;
  for (const Part& p : parts) {
    const GgufTensor& t = file.tensor(p.name, {inputs, p.all});
    constexpr int64_t kRows = 64;  // a task's share
    flashinfer::parallel_for(flashinfer::ceil_div(p.outputs, kRows), [&](int64_t task) {
      for (int64_t r = task * kRows; r < std::min((task + 1) * kRows, p.outputs); ++r) fn(t, p.first + r, first + r);
    });
    first += p.outputs;
  }
}

/// The parts as one matrix, bf16 [outputs, inputs].
Tensor decoded(const Gguf& file, int64_t inputs, const Parts& parts) {
  const Tensor weight = Tensor::empty({outputs_of(parts), inputs}, DType::kBF16);
  int64_t first = 0;
  for (const Part& p : parts) {
    dequantize(file.tensor(p.name, {inputs, p.all}), p.first, weight.view().slice(0, first, first + p.outputs));
    first += p.outputs;
  }
  return weight;
}

/// The parts as one weight, packed.
Weight packed(const Gguf& file, int64_t inputs, const Parts& parts, Slab& slab) {
  const std::string format = common_format(file, inputs, parts);
  Weight out{slab.take(format.empty() ? DType::kBF16 : DType::kU8, packed_shape(file, inputs, parts)), format};
  if (format.empty()) {
    const Tensor weight = decoded(file, inputs, parts);
    flashinfer::prepare_mm_weights({.b = weight.view().transpose(0, 1), .out = out.data});
    return out;
  }
  const int64_t bytes = file.tensor(parts.front().name, {inputs, parts.front().all}).row_bytes;
  const Tensor weight = Tensor::empty({outputs_of(parts), bytes}, DType::kU8);
  each_rows(file, inputs, parts, [&](const GgufTensor& t, int64_t from, int64_t to) {
    std::memcpy(weight.data_as<uint8_t>() + to * bytes, t.data + from * bytes, static_cast<size_t>(bytes));
  });
  flashinfer::prepare_gguf_weights({.b_blocks = weight, .format = format, .out = out.data});
  return out;
}

TensorView ids(const std::vector<int32_t>& v) { return TensorView(std::span<const int32_t>(v)); }

}  // namespace

Model::Model(const Gguf& file, int64_t pages, int64_t page_size, int64_t max_rows, const Progress& progress,
             Device device, const Parallel& parallel)
    : file_(file),
      shape_(file_),
      parallel_(parallel),
      split_(shape_, parallel.rank, parallel.size),
      pages_(pages),
      page_size_(page_size),
      device_(device) {
  const ModelShape& s = shape_;
  const Split& own = split_;
  const int64_t q = s.heads * s.head_dim;
  embedding_ = &file_.tensor("token_embd.weight", {s.width, s.vocabulary});
  check_layers(file_, s, own);
  final_norm_ = vector_bf16(file_, "output_norm.weight", s.width, device);
  const Parts head{
      {file_.has_tensor("output.weight") ? "output.weight" : "token_embd.weight", s.vocabulary, own.vocabulary}};
  int64_t bytes = packed_bytes(file_, s.width, head);
  for (int64_t i = 0; i < s.layers; ++i) {
    const LayerParts parts = layer_parts(s, own, i);
    bytes += packed_bytes(file_, s.width, parts.qkv) + packed_bytes(file_, q, parts.output) +
             packed_bytes(file_, s.width, parts.gate_up) + packed_bytes(file_, s.hidden, parts.down);
  }
  const bool gpu = device.type == DeviceType::kCUDA;
  Slab slab(gpu ? 0 : bytes);
  const auto weight = [&](int64_t inputs, const Parts& parts) {
    if (!gpu) return packed(file_, inputs, parts, slab);
    const Tensor plain = decoded(file_, inputs, parts);
    return Weight{flashinfer::to_device(plain, device), ""};
  };
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string prefix = "blk." + std::to_string(i) + ".";
    Layer l;
    l.attention_norm = vector_bf16(file_, prefix + "attn_norm.weight", s.width, device);
    l.mlp_norm = vector_bf16(file_, prefix + "ffn_norm.weight", s.width, device);
    const LayerParts parts = layer_parts(s, own, i);
    l.qkv = weight(s.width, parts.qkv);
    l.output = weight(q, parts.output);
    l.gate_up = weight(s.width, parts.gate_up);
    l.down = weight(s.hidden, parts.down);
    l.kv = Tensor::empty({pages, 2, page_size, own.kv_heads, s.head_dim}, DType::kBF16, device);
    layers_.push_back(std::move(l));
    progress(static_cast<double>(i + 1) / static_cast<double>(s.layers + 8));
  }
  lm_head_ = weight(s.width, head);
  progress(1.0);

  const auto buffer = [&](int64_t n, DType t = DType::kBF16) { return Tensor::empty({max_rows, n}, t, device); };
  residual_ = buffer(s.width);
  embedded_ = flashinfer::host_can_read(device) ? residual_ : Tensor::empty({max_rows, s.width}, DType::kBF16);
  hidden_ = buffer(s.width);
  qkv_ = buffer(own.query.own + 2 * own.key.own);
  attention_ = buffer(own.query.own);
  gate_up_ = buffer(2 * own.hidden.own);
  activated_ = buffer(own.hidden.own);
  all_attention_ = attention_, all_activated_ = activated_;
  if (parallel.size == 1) return;
  all_attention_ = buffer(q), all_activated_ = buffer(s.hidden);
  own_ = buffer(own.width.own);
  int64_t most = 0;  // columns that a rank gives the others
  for (const Columns* c : {&own.query, &own.width, &own.hidden}) most = std::max(most, std::ranges::max(c->of));
  const int64_t logits_as_bf16 = flashinfer::ceil_div(2 * std::ranges::max(own.vocabulary.of), most);
  shared_ = std::make_unique<flashinfer::AllReduceFusionWorkspace>(
      flashinfer::AllReduceFusionWorkspaceInit{.group = parallel.group,
                                               .rank = parallel.rank,
                                               .world_size = parallel.size,
                                               .max_token_num = std::max(max_rows, logits_as_bf16),
                                               .hidden_dim = most,
                                               .dtype = DType::kBF16});
}

// ---- forward ----

/// The same memory for the CPU: the emulator's is the host's.
static TensorView for_cpu(const TensorView& v) { return TensorView(v.data(), v.dtype(), v.shape(), v.strides()); }

Tensor Model::placed(const std::vector<int32_t>& v) const {
  return device_ == flashinfer::kCpu ? Tensor(ids(v), nullptr) : flashinfer::to_device(ids(v), device_);
}

void Model::multiply(const TensorView& a, const Weight& w, const TensorView& out) const {
  if (device_.type == DeviceType::kCUDA)
    flashinfer::mm_bf16({.a = a, .b = w.data.view().transpose(0, 1), .out = out, .out_dtype = out.dtype()});
  else if (w.format.empty())
    flashinfer::mm_bf16({.a = for_cpu(a), .b = w.data, .out = for_cpu(out), .out_dtype = out.dtype()});
  else
    flashinfer::mm_gguf({.a = for_cpu(a),
                         .b_blocks = w.data,
                         .format = w.format,
                         .out = for_cpu(out),
                         .out_dtype = out.dtype(),
                         .quantize_a = quantize_});
}

void Model::gather(const TensorView& own, const Columns& columns, const TensorView& out) {
  flashinfer::all_gather({.input = own, .workspace = *shared_, .columns = columns.of, .out = out});
}

void Model::multiply_all(const TensorView& a, const Weight& w, const Columns& columns, const TensorView& out) {
  if (!shared_) return multiply(a, w, out);
  const TensorView own = rows(own_, a.size(0));
  multiply(a, w, own);
  gather(own, columns, out);
}

void Model::embed(std::span<const int32_t> tokens) {
  const TensorView out = for_cpu(embedded_);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    dequantize(*embedding_, tokens[i], out.slice(0, row, row + 1));
  }
  if (embedded_.data() != residual_.data())
    flashinfer::copy_bytes(residual_.data(), device_, embedded_.data(), flashinfer::kCpu,
                           tokens.size() * static_cast<size_t>(shape_.width) * sizeof(bf16_t));
}

void Model::plan(const Batch& batch) {
  if (batch.decode.requests() > 0)
    decode_.plan({.indptr = ids(batch.decode.page_indptr),
                  .indices = ids(batch.decode.pages),
                  .last_page_len = ids(batch.decode.last_page_len),
                  .num_qo_heads = split_.heads,
                  .num_kv_heads = split_.kv_heads,
                  .head_dim = shape_.head_dim,
                  .page_size = page_size_,
                  .q_data_type = DType::kBF16});
  if (batch.prefill.requests() > 0)
    prefill_.plan({.qo_indptr = ids(batch.prefill.row_indptr),
                   .paged_kv_indptr = ids(batch.prefill.page_indptr),
                   .paged_kv_indices = ids(batch.prefill.pages),
                   .paged_kv_last_page_len = ids(batch.prefill.last_page_len),
                   .num_qo_heads = split_.heads,
                   .num_kv_heads = split_.kv_heads,
                   .head_dim_qk = shape_.head_dim,
                   .page_size = page_size_,
                   .causal = true,
                   .q_data_type = DType::kBF16});
}

/// From the fused projection in qkv_ to attention_: rotate, append to the cache, attend.
void Model::attend(const Batch& batch, const Indices& at, const Layer& layer) {
  const int64_t n = static_cast<int64_t>(batch.tokens.size()), d = shape_.head_dim, decoding = batch.decode.rows();
  const TensorView fused = rows(qkv_, n);
  const auto heads = [&](int64_t first, int64_t count) {  // heads of the fused rows as [n, count, d]
    return TensorView(fused.data_as<bf16_t>() + first * d, DType::kBF16, std::array{n, count, d},
                      std::array{fused.stride(0), d, int64_t{1}}, device_);
  };
  const TensorView q = heads(0, split_.heads), k = heads(split_.heads, split_.kv_heads),
                   v = heads(split_.heads + split_.kv_heads, split_.kv_heads);
  flashinfer::apply_rope_pos_ids_inplace({.q = q,
                                          .k = k,
                                          .pos_ids = at.positions,
                                          .rotary_dim = shape_.rotary_dim,
                                          .interleave = true,  // the order Q and K have in files of this architecture
                                          .rope_scale = shape_.rope_scale,
                                          .rope_theta = shape_.rope_theta});
  flashinfer::append_paged_kv_cache({.append_key = k,
                                     .append_value = v,
                                     .batch_indices = at.request_of_row,
                                     .positions = at.positions,
                                     .paged_kv_cache = layer.kv,
                                     .kv_indices = at.pages,
                                     .kv_indptr = at.page_indptr,
                                     .kv_last_page_len = at.last_page_len});
  const TensorView out = rows(attention_, n).view({n, split_.heads, d});
  if (decoding > 0)
    decode_.run({.q = q.slice(0, 0, decoding), .paged_kv_cache = layer.kv, .out = out.slice(0, 0, decoding)});
  if (n > decoding)
    prefill_.run({.q = q.slice(0, decoding, n), .paged_kv_cache = layer.kv, .out = out.slice(0, decoding, n)});
}

TensorView Model::forward(const Batch& batch) {
  const int64_t n = static_cast<int64_t>(batch.tokens.size()), wanted = static_cast<int64_t>(batch.logit_rows.size());
  const TensorView residual = rows(residual_, n), hidden = rows(hidden_, n), qkv = rows(qkv_, n),
                   attention = rows(all_attention_, n), gate_up = rows(gate_up_, n),
                   own_activated = rows(activated_, n), activated = rows(all_activated_, n);
  embed(batch.tokens);
  plan(batch);
  const Indices at{placed(batch.positions), placed(batch.request_of_row), placed(batch.all.pages),
                   placed(batch.all.page_indptr), placed(batch.all.last_page_len)};
  bool first = true;
  for (const Layer& layer : layers_) {
    if (first)
      flashinfer::rmsnorm({.input = residual, .weight = layer.attention_norm, .eps = shape_.eps, .out = hidden});
    else  // the same call adds the previous layer's output to the residual stream
      flashinfer::fused_add_rmsnorm(
          {.input = hidden, .residual = residual, .weight = layer.attention_norm, .eps = shape_.eps});
    first = false;
    multiply(hidden, layer.qkv, qkv);
    attend(batch, at, layer);
    if (shared_) gather(rows(attention_, n), split_.query, attention);
    multiply_all(attention, layer.output, split_.width, hidden);
    flashinfer::fused_add_rmsnorm({.input = hidden, .residual = residual, .weight = layer.mlp_norm, .eps = shape_.eps});
    multiply(hidden, layer.gate_up, gate_up);
    flashinfer::silu_and_mul({.input = gate_up, .out = own_activated});
    if (shared_) gather(own_activated, split_.hidden, activated);
    multiply_all(activated, layer.down, split_.width, hidden);
  }
  flashinfer::fused_add_rmsnorm({.input = hidden, .residual = residual, .weight = final_norm_, .eps = shape_.eps});

  if (wanted == 0) return {};
  if (!logits_ || logits_.size(0) < wanted) {
    wanted_ = Tensor::empty({wanted, shape_.width}, DType::kBF16, device_);
    logits_ = Tensor::empty({wanted, shape_.vocabulary}, DType::kF32, device_);
    if (shared_) own_logits_ = Tensor::empty({wanted, split_.vocabulary.own}, DType::kF32, device_);
  }
  for (int64_t i = 0; i < wanted; ++i)
    flashinfer::copy_bytes(wanted_.data_as<bf16_t>() + i * shape_.width, device_,
                           hidden.data_as<bf16_t>() + batch.logit_rows[static_cast<size_t>(i)] * shape_.width, device_,
                           static_cast<size_t>(shape_.width) * sizeof(bf16_t));
  const TensorView logits = rows(logits_, wanted);
  if (!shared_) {
    multiply(rows(wanted_, wanted), lm_head_, logits);
    return logits;
  }
  const TensorView own = rows(own_logits_, wanted);
  multiply(rows(wanted_, wanted), lm_head_, own);
  for (int64_t i = 0; i < wanted; ++i)  // the shared memory has room for one row
    gather(own.slice(0, i, i + 1), split_.vocabulary, logits.slice(0, i, i + 1));
  return logits;
}

}  // namespace llm
