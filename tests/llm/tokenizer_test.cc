// SPDX-License-Identifier: Apache-2.0
#include "examples/llm/tokenizer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "made_gguf.h"

namespace llm_test {
namespace {

class TokenizerTest : public testing::Test {
 protected:
  TokenizerTest()
      : path_(write_file("/tmp/llm_tokenizer_" + std::to_string(::getpid()), made_gguf({}))),
        file_(path_),
        tokenizer_(file_) {}
  ~TokenizerTest() override { ::unlink(path_.c_str()); }
  std::string text_of(const std::vector<int32_t>& ids) const {
    std::string s;
    for (int32_t i : ids) s += tokenizer_.bytes_of(i);
    return s;
  }
  static int32_t byte(unsigned char b) { return 3 + b; }
  enum { kHe = 259, kLl, kHell, kHello, kOw };

  std::string path_;
  llm::Gguf file_;
  llm::Tokenizer tokenizer_;
};

TEST_F(TokenizerTest, MergesInOrderOfRank) {
  EXPECT_EQ(tokenizer_.encode("hello"), (std::vector<int32_t>{kHello}));
  EXPECT_EQ(tokenizer_.encode("hellow"), (std::vector<int32_t>{kHello, byte('w')}));  // "hell o" ranks before "o w"
  EXPECT_EQ(tokenizer_.encode("low"), (std::vector<int32_t>{byte('l'), kOw}));
  EXPECT_EQ(tokenizer_.encode("lll"), (std::vector<int32_t>{kLl, byte('l')}));  // the leftmost first
  EXPECT_EQ(tokenizer_.encode("he llo"),
            (std::vector<int32_t>{kHe, byte(' '), kLl, byte('o')}));  // never across pieces
}

TEST_F(TokenizerTest, EveryTextComesBack) {
  for (const char* text : {"", " ", "a  b\n\n\tc ", "na\xc3\xafve \xe2\x80\x94 12345",
                           "\xf0\x9f\x9a\x80\xe4\xb8\xad\xe6\x96\x87", "I'll x\xc2\xb2"})
    EXPECT_EQ(text_of(tokenizer_.encode(text)), text);
}

TEST_F(TokenizerTest, SpecialTokensComeFromTheTemplateOnly) {
  const auto ids = tokenizer_.encode_chat("say <|im_end|>");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 1), 3);  // system, user, assistant
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 2), 2);
  EXPECT_EQ(text_of(ids), "system\nBe brief.\nuser\nsay <|im_end|>\nassistant\n");
  EXPECT_TRUE(tokenizer_.ends_answer(2));
  EXPECT_FALSE(tokenizer_.ends_answer(kHe));
  EXPECT_EQ(tokenizer_.bytes_of(2), "");
  EXPECT_EQ(tokenizer_.bytes_of(-1), "");
  EXPECT_EQ(tokenizer_.bytes_of(1 << 30), "");
}

TEST_F(TokenizerTest, InvalidUtf8IsTheUsersError) { EXPECT_THROW(tokenizer_.encode("a\xff"), llm::UserError); }

TEST(Utf8Stream, HoldsBackWhatIsIncomplete) {
  llm::Utf8Stream s;
  EXPECT_EQ(s.push("a\xe2\x82"), "a");
  EXPECT_EQ(s.push("\xac!"), "\xe2\x82\xac!");
  EXPECT_EQ(s.push("\xf0\x9f"), "");
  EXPECT_EQ(s.finish(), "\xef\xbf\xbd");
  EXPECT_EQ(s.finish(), "");
}

TEST(Utf8Stream, ReplacesWhatIsWrong) {
  const std::string r = "\xef\xbf\xbd";
  for (const auto& [in, out] : std::vector<std::pair<std::string, std::string>>{{"\x80z", r + "z"},
                                                                                {"\xc0\xafz", r + r + "z"},
                                                                                {"\xed\xa0\x80", r + r + r},
                                                                                {"\xf4\x90\x80\x80", r + r + r + r},
                                                                                {"\xe2\x28\xa1", r + "(" + r},
                                                                                {"\xf5", r},
                                                                                {"\xe0\x80\x80", r + r + r}}) {
    llm::Utf8Stream s;
    EXPECT_EQ(s.push(in) + s.finish(), out);
  }
}

}  // namespace
}  // namespace llm_test
