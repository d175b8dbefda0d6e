// SPDX-License-Identifier: Apache-2.0
// Byte-level BPE from the metadata of a GGUF file, and the chat template.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gguf.h"

namespace llm {

class Tokenizer {
 public:
  /// UserError: another tokenizer than byte-level BPE, a pre-tokenizer that this program does not support, merges that
  /// name no token.
  explicit Tokenizer(const Gguf& file);
  ~Tokenizer();

  int32_t vocabulary() const { return static_cast<int32_t>(tokens_.size()); }
  /// Plain text: text that spells a special token stays text. UserError when it is not valid UTF-8.
  std::vector<int32_t> encode(std::string_view text) const;
  /// One user message in the model's chat template with its default system prompt, up to where the answer begins; the
  /// plain text (after BOS if the file asks for it) when the file has no template.
  std::vector<int32_t> encode_chat(std::string_view message) const;
  /// The bytes a token stands for; nothing for control tokens. They may end inside a UTF-8 sequence: see Utf8Stream.
  std::string bytes_of(int32_t token) const;
  bool ends_answer(int32_t token) const;

 private:
  struct Regexes;
  void load_merges(const Gguf& file);
  void read_template(const Gguf& file);
  void encode_piece(std::string_view piece, std::vector<int32_t>* out) const;
  int32_t special(std::string_view name) const;

  std::string path_;
  std::vector<std::string> tokens_;
  std::vector<bool> control_;
  std::unordered_map<std::string, int32_t> ids_;
  struct Merge {
    int32_t rank, result;
  };
  std::unordered_map<uint64_t, Merge> merges_;  // by left id << 32 | right id
  std::string symbol_of_byte_[256];
  int32_t id_of_byte_[256];
  std::unordered_map<std::string, uint8_t> byte_of_symbol_;
  std::unique_ptr<Regexes> regexes_;
  std::vector<int32_t> end_ids_;
  int32_t bos_ = -1;
  bool chatml_ = false;
  std::string default_system_;
};

/// Passes on whole UTF-8 characters only; what can never become one is replaced by U+FFFD.
class Utf8Stream {
 public:
  std::string push(std::string_view bytes);
  std::string finish();

 private:
  std::string pending_;
};

}  // namespace llm
