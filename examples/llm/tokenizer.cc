// SPDX-License-Identifier: Apache-2.0
#include "tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <limits>

namespace llm {
namespace {

std::string utf8(uint32_t c) {  // below U+0800 is all that the byte alphabet needs
  if (c < 0x80) return std::string(1, static_cast<char>(c));
  return {static_cast<char>(0xc0 | (c >> 6)), static_cast<char>(0x80 | (c & 63))};
}

size_t utf8_length(unsigned char lead) { return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4; }

/// Splitting rules applied one after another: each cuts every piece so far into its matches and what lies between them.
struct PreTokenizer {
  const char* name;  // tokenizer.ggml.pre
  std::vector<const char*> rules;
};

// The word rule of GPT-2: contractions, then letters, digits or signs with one blank before them, then blanks.
constexpr const char* kWords = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// Llama 3 and Qwen 2 differ in how many digits make a piece.
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

const std::vector<PreTokenizer>& pre_tokenizers() {
  static const std::vector<PreTokenizer> all = {
      {"smollm", {R"(\p{N})", kWords}}, {"gpt-2", {kWords}}, {"llama-bpe", {kLlama3}}, {"qwen2", {kQwen2}}};
  return all;
}

std::string replace_all(std::string s, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = s.find(from, at)) != std::string::npos; at += to.size()) s.replace(at, from.size(), to);
  return s;
}

}  // namespace

struct Tokenizer::Regexes {
  std::vector<pcre2_code*> codes;
  pcre2_match_data* match = pcre2_match_data_create(1, nullptr);
  ~Regexes() {
    for (pcre2_code* c : codes) pcre2_code_free(c);
    pcre2_match_data_free(match);
  }

  void add(const char* rule) {
    int error;
    size_t offset;
    pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(rule), PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                                     &error, &offset, nullptr);
    if (code == nullptr) throw std::logic_error(std::string("pre-tokenizer rule does not compile: ") + rule);
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without it the interpreter matches the same
    codes.push_back(code);
  }

  /// Lookaheads see the end of the piece as the end of the text. UserError on invalid UTF-8.
  std::vector<std::string_view> cut(const pcre2_code* code, std::string_view piece) const {
    std::vector<std::string_view> out;
    size_t done = 0;
    while (done < piece.size()) {
      const int r =
          pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(piece.data()), piece.size(), done, 0, match, nullptr);
      if (r < 0 && r != PCRE2_ERROR_NOMATCH) throw UserError("the prompt is not valid UTF-8");
      const PCRE2_SIZE* span = pcre2_get_ovector_pointer(match);
      const size_t begin = r < 0 ? piece.size() : span[0], end = r < 0 ? piece.size() : span[1];
      if (begin > done) out.push_back(piece.substr(done, begin - done));
      if (end > begin) out.push_back(piece.substr(begin, end - begin));
      done = std::max(end, done + (r >= 0 && end == begin ? 1 : 0));
    }
    return out;
  }
};

Tokenizer::~Tokenizer() = default;

Tokenizer::Tokenizer(const Gguf& file) : path_(file.path()), regexes_(std::make_unique<Regexes>()) {
  if (const auto model = file.text("tokenizer.ggml.model"); model != "gpt2")
    throw UserError(path_ + ": tokenizer.ggml.model is " + std::string(model) +
                    ", but this program knows gpt2 (byte-level BPE)");
  const std::string pre(file.text_or("tokenizer.ggml.pre", "gpt-2"));
  std::string known;
  for (const PreTokenizer& p : pre_tokenizers()) {
    known += (known.empty() ? "" : ", ") + std::string(p.name);
    if (p.name != pre) continue;
    for (const char* rule : p.rules) regexes_->add(rule);
  }
  if (regexes_->codes.empty())
    throw UserError(path_ + ": tokenizer.ggml.pre is " + pre + ", but this program has rules for " + known);

  const auto& tokens = file.array("tokenizer.ggml.tokens");
  for (const GgufValue& t : tokens) {
    const auto* s = std::get_if<std::string_view>(&t);
    if (s == nullptr) throw UserError(path_ + ": tokenizer.ggml.tokens has an entry that is not a string");
    ids_.emplace(*s, static_cast<int32_t>(tokens_.size()));
    tokens_.emplace_back(*s);
  }
  control_.assign(tokens_.size(), false);
  if (file.has("tokenizer.ggml.token_type")) {
    const auto& types = file.array("tokenizer.ggml.token_type");
    for (size_t i = 0; i < std::min(types.size(), tokens_.size()); ++i) {
      const auto* type = std::get_if<int64_t>(&types[i]);
      control_[i] = type != nullptr && *type == 3;
    }
  }
  load_merges(file);
  read_template(file);
}

void Tokenizer::load_merges(const Gguf& file) {
  // Printable bytes stand for themselves in the token texts; the other 68 for U+0100, U+0101, ... in order.
  uint32_t next = 256;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    symbol_of_byte_[b] = utf8(printable ? static_cast<uint32_t>(b) : next++);
    byte_of_symbol_[symbol_of_byte_[b]] = static_cast<uint8_t>(b);
    const auto it = ids_.find(symbol_of_byte_[b]);
    id_of_byte_[b] = it == ids_.end() ? -1 : it->second;
  }
  const auto& merges = file.array("tokenizer.ggml.merges");
  merges_.reserve(merges.size());
  int32_t rank = 0;
  for (const GgufValue& m : merges) {
    const auto* line = std::get_if<std::string_view>(&m);
    const size_t blank = line == nullptr ? std::string_view::npos : line->find(' ', 1);
    if (blank == std::string_view::npos)
      throw UserError(path_ + ": tokenizer.ggml.merges[" + std::to_string(rank) + "] is not a pair");
    const std::string left(line->substr(0, blank)), right(line->substr(blank + 1));
    const auto l = ids_.find(left), r = ids_.find(right), both = ids_.find(left + right);
    if (l == ids_.end() || r == ids_.end() || both == ids_.end())
      throw UserError(path_ + ": tokenizer.ggml.merges[" + std::to_string(rank) + "] makes no token of the vocabulary");
    const uint64_t key = static_cast<uint64_t>(l->second) << 32 | static_cast<uint32_t>(r->second);
    merges_.emplace(key, Merge{rank++, both->second});
  }
}

void Tokenizer::read_template(const Gguf& file) {
  const auto valid = [this](int64_t id) { return id >= 0 && id < static_cast<int64_t>(tokens_.size()); };
  if (const int64_t id = file.integer_or("tokenizer.ggml.eos_token_id", -1); valid(id))
    end_ids_.push_back(static_cast<int32_t>(id));
  if (const int64_t id = file.integer_or("tokenizer.ggml.eot_token_id", -1); valid(id))
    end_ids_.push_back(static_cast<int32_t>(id));
  if (file.flag_or("tokenizer.ggml.add_bos_token", false))
    if (const int64_t id = file.integer_or("tokenizer.ggml.bos_token_id", -1); valid(id))
      bos_ = static_cast<int32_t>(id);

  const std::string text = replace_all(std::string(file.text_or("tokenizer.chat_template", "")), "\\n", "\n");
  chatml_ =
      text.find("<|im_start|>") != std::string::npos && special("<|im_start|>") >= 0 && special("<|im_end|>") >= 0;
  if (!chatml_) return;
  end_ids_.push_back(special("<|im_end|>"));
  // The default system prompt is spelt out in the template where a conversation does not begin with one.
  constexpr std::string_view kOpen = "<|im_start|>system\n";
  if (const size_t open = text.find(kOpen); open != std::string::npos)
    if (const size_t close = text.find("<|im_end|>", open); close != std::string::npos)
      default_system_ = text.substr(open + kOpen.size(), close - open - kOpen.size());
  if (default_system_.find('\'') != std::string::npos || default_system_.find('{') != std::string::npos)
    default_system_.clear();
}

int32_t Tokenizer::special(std::string_view name) const {
  const auto it = ids_.find(std::string(name));
  return it == ids_.end() ? -1 : it->second;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::string_view> pieces{text};
  for (const pcre2_code* code : regexes_->codes) {
    std::vector<std::string_view> next;
    for (std::string_view p : pieces) {
      const auto cuts = regexes_->cut(code, p);
      next.insert(next.end(), cuts.begin(), cuts.end());
    }
    pieces = std::move(next);
  }
  std::vector<int32_t> out;
  for (std::string_view p : pieces) encode_piece(p, &out);
  return out;
}

/// Joins the neighbours whose merge has the lowest rank, the leftmost first, until none is left. Quadratic in the
/// length of a piece, which is a word.
void Tokenizer::encode_piece(std::string_view piece, std::vector<int32_t>* out) const {
  std::vector<int32_t> ids;
  for (unsigned char b : piece) {
    if (id_of_byte_[b] < 0) throw UserError(path_ + ": the vocabulary has no token for byte " + std::to_string(b));
    ids.push_back(id_of_byte_[b]);
  }
  while (ids.size() > 1) {
    Merge best{std::numeric_limits<int32_t>::max(), -1};
    size_t at = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto it = merges_.find(static_cast<uint64_t>(ids[i]) << 32 | static_cast<uint32_t>(ids[i + 1]));
      if (it != merges_.end() && it->second.rank < best.rank) best = it->second, at = i;
    }
    if (best.result < 0) break;
    ids[at] = best.result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  out->insert(out->end(), ids.begin(), ids.end());
}

std::vector<int32_t> Tokenizer::encode_chat(std::string_view message) const {
  std::vector<int32_t> out;
  if (bos_ >= 0) out.push_back(bos_);
  const auto add = [&](std::string_view text) {
    const auto ids = encode(text);
    out.insert(out.end(), ids.begin(), ids.end());
  };
  if (!chatml_) {
    add(message);
    return out;
  }
  const auto turn = [&](std::string_view text) {
    out.push_back(special("<|im_start|>"));
    add(text);
    out.push_back(special("<|im_end|>"));
    add("\n");
  };
  if (!default_system_.empty()) turn("system\n" + default_system_);
  turn("user\n" + std::string(message));
  out.push_back(special("<|im_start|>"));
  add("assistant\n");
  return out;
}

std::string Tokenizer::bytes_of(int32_t token) const {
  if (token < 0 || token >= vocabulary() || control_[static_cast<size_t>(token)]) return {};
  const std::string& text = tokens_[static_cast<size_t>(token)];
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t n = utf8_length(static_cast<unsigned char>(text[i]));
    const auto it = byte_of_symbol_.find(text.substr(i, n));
    if (it == byte_of_symbol_.end()) return text;  // a token added as plain text
    out.push_back(static_cast<char>(it->second));
    i += n;
  }
  return out;
}

bool Tokenizer::ends_answer(int32_t token) const {
  return std::find(end_ids_.begin(), end_ids_.end(), token) != end_ids_.end();
}

std::string Utf8Stream::push(std::string_view bytes) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  pending_ += bytes;
  std::string out;
  size_t at = 0;
  while (at < pending_.size()) {
    const auto lead = static_cast<unsigned char>(pending_[at]);
    const size_t n = utf8_length(lead);
    bool valid = lead < 0x80 || (lead >= 0xc2 && lead < 0xf5);
    size_t have = 1;
    for (; valid && have < n && at + have < pending_.size(); ++have) {
      const auto c = static_cast<unsigned char>(pending_[at + have]);
      // The second byte also excludes over-long forms, surrogates and code points above U+10FFFF.
      const unsigned low = have > 1 ? 0x80 : lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
      const unsigned high = have > 1 ? 0xbf : lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
      if (c < low || c > high) break;
    }
    if (valid && have == n) {
      out += pending_.substr(at, n);
      at += n;
    } else if (valid && at + have == pending_.size()) {
      break;  // incomplete so far
    } else {
      out += kReplacement;
      at += have;
    }
  }
  pending_.erase(0, at);
  return out;
}

std::string Utf8Stream::finish() {
  const bool rest = !pending_.empty();
  pending_.clear();
  return rest ? "\xef\xbf\xbd" : "";
}

}  // namespace llm
