// SPDX-License-Identifier: Apache-2.0
#include "examples/llm/gguf.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "examples/llm/tokenizer.h"
#include "made_gguf.h"

namespace llm_test {
namespace {

std::string temporary(const std::string& name) { return "/tmp/llm_tests_" + std::to_string(::getpid()) + "_" + name; }

/// What reading `bytes` as a model file says.
std::string refusal(const std::string& bytes, bool with_tokenizer = false) {
  const std::string path = write_file(temporary("bad.gguf"), bytes);
  std::string message;
  try {
    const llm::Gguf file(path);
    if (with_tokenizer) llm::Tokenizer tokenizer(file);
  } catch (const llm::UserError& e) {
    message = e.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_EQ(message.find(path), 0u) << message;
  }
  ::unlink(path.c_str());
  return message;
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Gguf, ReadsWhatWasWritten) {
  const std::string path = write_file(temporary("good.gguf"), made_gguf({}));
  const llm::Gguf file(path);
  EXPECT_EQ(file.text("general.architecture"), "llama");
  EXPECT_EQ(file.integer("llama.block_count"), 2);
  EXPECT_FLOAT_EQ(static_cast<float>(file.number("llama.attention.layer_norm_rms_epsilon")), 1e-5f);
  EXPECT_EQ(file.array("tokenizer.ggml.tokens").size(), 264u);
  EXPECT_EQ(file.tensor("blk.1.ffn_down.weight", {192, 256}).row_bytes, 192 / 32 * 20);
  EXPECT_THROW(file.tensor("blk.1.ffn_down.weight", {256, 192}), llm::UserError);
  EXPECT_THROW(file.integer("general.architecture"), llm::UserError);
  ::unlink(path.c_str());
}

TEST(Gguf, EveryTruncationIsRejectedInOneLine) {
  const std::string whole = made_gguf({.layers = 1, .heads = 1, .kv_heads = 1, .hidden = 32});
  // Every length of the first part, then steps: the head, each kind of metadata and the data are all cut somewhere.
  for (size_t n = 0; n + 32 < whole.size(); n += n < 300 ? 1 : 173) {
    const std::string message = refusal(whole.substr(0, n));
    ASSERT_FALSE(message.empty()) << n << " of " << whole.size() << " bytes were taken for a model";
  }
}

TEST(Gguf, DamageIsNamed) {
  const std::string whole = made_gguf({});
  std::string other = whole;
  other[0] = 'X';
  expect_contains(refusal(other), "is not a GGUF file");
  other = whole;
  other[4] = 9;
  expect_contains(refusal(other), "GGUF version 9");
  other = whole;
  std::memset(other.data() + 16, 0xff, 8);  // the number of metadata keys
  expect_contains(refusal(other), "metadata keys, more than it has bytes for");
  expect_contains(refusal(""), "only 0 bytes");
  EXPECT_THROW(llm::Gguf("/tmp"), llm::UserError);
  EXPECT_THROW(llm::Gguf("/nonexistent/model.gguf"), llm::UserError);
}

/// Any byte of the head may be wrong: an error or not, never a crash or a read outside of the file (the asan build sees
/// it).
TEST(Gguf, AnyDamagedByteIsSurvived) {
  const std::string whole = made_gguf({.layers = 1, .heads = 1, .kv_heads = 1, .hidden = 32});
  std::mt19937 random(3);
  for (int i = 0; i < 400; ++i) {
    std::string other = whole;
    other[random() % 9000] = static_cast<char>(random());
    refusal(other, true);
  }
}

TEST(Dequantize, BlockFormats) {
  float y[256];
  const auto decode = [&](llm::GgmlType type, const std::string& bytes) {
    const llm::BlockSize block = llm::block_size(type);
    EXPECT_EQ(static_cast<int64_t>(bytes.size()), block.bytes);
    flashinfer::bf16_t out[256];
    llm::dequantize({"", {block.elements, 1}, type, reinterpret_cast<const std::byte*>(bytes.data()), block.bytes}, 0,
                    flashinfer::TensorView(out, {1, block.elements}));
    for (int64_t i = 0; i < block.elements; ++i) y[i] = static_cast<float>(out[i]);
  };
  const std::string two("\x00\x40", 2), minus_one("\x00\xbc", 2), half("\x00\x38", 2);
  decode(llm::GgmlType::kQ4_0, two + "\x1f" + std::string(15, '\0'));
  EXPECT_EQ(y[0], 14.0f);    // 2 * (15 - 8)
  EXPECT_EQ(y[16], -14.0f);  // 2 * (1 - 8)
  EXPECT_EQ(y[31], -16.0f);
  decode(llm::GgmlType::kQ4_1, two + minus_one + std::string(15, '\0') + "\x5a");
  EXPECT_EQ(y[15], 19.0f);
  EXPECT_EQ(y[31], 9.0f);
  EXPECT_EQ(y[0], -1.0f);
  decode(llm::GgmlType::kQ8_0, half + "\x80\x7f" + std::string(30, '\1'));
  EXPECT_EQ(y[0], -64.0f);
  EXPECT_EQ(y[1], 63.5f);
  EXPECT_EQ(y[2], 0.5f);
  decode(llm::GgmlType::kBF16, std::string("\x80\xbf", 2));
  EXPECT_EQ(y[0], -1.0f);

  // Q4_K: scales 1..4 in the low six bits of bytes 0-3, minima 5..8 in 4-7; sub-block 4: scale 9 | 2 << 4, minimum 3 |
  // 1 << 4.
  std::string packed = {1, 2, 3, 4, 5, 6, 7, 8, 0x39, 0, 0, 0};
  packed[0] = static_cast<char>(packed[0] | 2 << 6);
  packed[4] = static_cast<char>(packed[4] | 1 << 6);
  std::string quants(128, '\0');
  quants[0] = 0x73;   // sub-blocks 0 and 1, element 0
  quants[64] = 0x0f;  // sub-block 4, element 0
  decode(llm::GgmlType::kQ4_K, two + half + packed + quants);
  EXPECT_EQ(y[0], 2.0f * 1 * 3 - 0.5f * 5);
  EXPECT_EQ(y[32], 2.0f * 2 * 7 - 0.5f * 6);
  EXPECT_EQ(y[128], static_cast<float>(flashinfer::bf16_t(2.0f * 41 * 15 - 0.5f * 19)));

  // Q6_K: element 32 + 1 (k = 1) of half 1, q = low 5 | high 2 << 4 = 37; scale of its group of 16 is -3.
  std::string low(128, '\0'), high(64, '\0'), scales(16, '\1');
  low[64 + 32 + 1] = 0x05;
  high[32 + 1] = static_cast<char>(2 << 2);
  scales[(128 + 33) / 16] = -3;
  decode(llm::GgmlType::kQ6_K, low + high + scales + half);
  EXPECT_EQ(y[128 + 33], 0.5f * -3 * (37 - 32));
  EXPECT_EQ(y[0], 0.5f * -32);
}

}  // namespace
}  // namespace llm_test
