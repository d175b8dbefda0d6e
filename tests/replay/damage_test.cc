// SPDX-License-Identifier: Apache-2.0
// Dumps that are torn, changed, incomplete or hostile: one clear line, and the rest is replayed.
#include "tests/replay/twist.h"

#include "flashinfer/core/int_math.h"

namespace flashinfer::twist {
namespace {

using replay::Outcome;
namespace stdfs = std::filesystem;

const std::vector<float> kX = {1, 2, 3, 4};
TensorView x_of(const std::vector<float>& v) { return TensorView(v.data(), {static_cast<int64_t>(v.size())}); }

class Damage : public ReplayTest {
 protected:
  void SetUp() override {
    record([] {
      op::call(kOp, Twist{.x = x_of(kX)});
      op::call(kOp, Twist{.x = x_of(kX), .scale = 2});
    });
    ASSERT_EQ(replay::replay(session()).passed(), 2);
  }
  /// The first call's result; the second must always pass.
  replay::CallResult first() {
    const auto report = replay::replay(session());
    EXPECT_EQ(report.calls.size(), 2u);
    EXPECT_EQ(report.calls.back().outcome, Outcome::kPassed);
    return report.calls.front();
  }
  /// Flips one bit of the first tensor byte in a .pt file.
  static void flip(const stdfs::path& file) {
    std::string text = probe::read(file);
    const size_t at = text.find("/data/0");
    ASSERT_NE(at, std::string::npos);
    text[round_up(at + 7, 64)] ^= 1;  // data begins at the next multiple of 64 after name and padding
    write(file, text);
  }
};

TEST_F(Damage, TornLastLine) {
  const auto file = dump() / "metadata.jsonl";
  const std::string text = probe::read(file);
  write(file, text + text.substr(0, 100));
  auto r = first();
  EXPECT_EQ(r.outcome, Outcome::kPassed);
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_EQ(r.notes[0], "metadata.jsonl: 1 torn line left out, the one before is used");
  write(file, text.substr(0, text.size() - 40));  // the record of completion itself: what remains is "inputs saved"
  r = first();
  EXPECT_EQ(r.outcome, Outcome::kNeverCompleted);
}

TEST_F(Damage, UnreadableMetadata) {
  write(dump() / "metadata.jsonl", "{\"function_name\": ");
  const auto report = replay::replay(session());  // such a call has no sequence number: order is not checked
  EXPECT_EQ(report.passed(), 1);
  EXPECT_EQ(report.count(Outcome::kError), 1);
  for (const auto& c : report.calls)
    EXPECT_TRUE(c.outcome != Outcome::kError || c.message == "metadata.jsonl holds no whole line") << c.message;
}

TEST_F(Damage, CallWithoutItsFirstRecord) {
  const stdfs::path folder = dump();
  write(folder / "metadata.jsonl", "");
  const std::string note =
      folder.filename().string() + ": the process ended before the call's first record; nothing of it was recorded";
  const auto report = replay::replay(session());
  EXPECT_EQ(report.calls.size(), 1u);
  EXPECT_EQ(report.passed(), 1);
  EXPECT_EQ(report.exit_code(), 0);
  ASSERT_EQ(report.notes.size(), 1u);  // session.jsonl may list the call: its folder is not gone
  EXPECT_EQ(report.notes[0], note);
  const auto single = replay::replay(folder);
  EXPECT_EQ(single.calls.size(), 0u);
  EXPECT_EQ(single.exit_code(), 0);
  EXPECT_EQ(single.notes, std::vector<std::string>{note});
}

TEST_F(Damage, ChangedInput) {
  flip(dump() / "inputs.pt");
  const auto r = first();
  EXPECT_EQ(r.outcome, Outcome::kError);
  EXPECT_EQ(r.message, "inputs.pt: the checksum of arg_0 is not the recorded one: the values were changed");
}

TEST_F(Damage, ChangedOutputAndNoChecksumInTheMetadata) {
  flip(dump() / "outputs.pt");
  edit(dump(), [](formats::Json& j) {
    for (auto& [key, d] : j["tensor_details"].items()) d.erase("checksum");
  });
  const auto r = first();
  EXPECT_EQ(r.outcome, Outcome::kError);
  EXPECT_NE(r.message.find("the bytes were changed"), std::string::npos) << r.message;
}

TEST_F(Damage, MissingFiles) {
  stdfs::remove(dump() / "outputs.pt");
  EXPECT_EQ(first().message, "the recorded output result_0 is missing (no outputs.pt or .safetensors)");
  stdfs::remove(dump() / "inputs.pt");
  EXPECT_EQ(first().message, "the file of inputs (inputs.pt or .safetensors) is missing");
}

TEST_F(Damage, CutOffTensorFile) {
  const std::string text = probe::read(dump() / "inputs.pt");
  write(dump() / "inputs.pt", text.substr(0, text.size() / 2));
  const auto r = first();
  EXPECT_EQ(r.outcome, Outcome::kError);
  EXPECT_NE(r.message.find("inputs.pt: zip: no end of central directory"), std::string::npos) << r.message;
}

TEST_F(Damage, AFolderThatIsGone) {
  const stdfs::path gone = dump(1);
  stdfs::remove_all(gone);
  auto report = replay::replay(session());
  EXPECT_EQ(report.passed(), 1);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0], "session.jsonl lists twist (" + gone.filename().string() + "), whose folder is gone");
}

TEST_F(Damage, AnotherVersionAndAnUnknownOp) {
  edit(dump(), [](formats::Json& j) { j["op_version"] = 7; });
  EXPECT_EQ(first().message, "recorded with version 7 of twist, but this library has version 1");
  edit(dump(), [](formats::Json& j) { j["function_name"] = "os.system"; });
  const auto r = first();
  EXPECT_EQ(r.outcome, Outcome::kUnknownOp);
  EXPECT_EQ(r.message, "no op of this name (recorded from module tests.replay)");
}

TEST_F(Damage, ArgumentsThatDoNotFit) {
  edit(dump(), [](formats::Json& j) { j["input_metadata"]["kwarg_nonsense"] = 1; });
  EXPECT_EQ(first().message, "Execution failed: TypeError: twist() got an unexpected keyword argument 'nonsense'");
  edit(dump(), [](formats::Json& j) {
    j["input_metadata"].erase("kwarg_nonsense");
    j["tensor_details"]["arg_0"]["stride"] = {int64_t{1} << 60};
  });
  EXPECT_NE(first().message.find("arg_0: its strides reach beyond"), std::string::npos) << first().message;
  edit(dump(), [](formats::Json& j) {
    j["tensor_details"]["arg_0"]["stride"] = {1};
    j["tensor_details"]["arg_0"]["device"] = "cuda:99";
  });
  EXPECT_NE(first().message.find("arg_0 was on cuda:99"), std::string::npos) << first().message;
  EXPECT_EQ(replay::replay(session(), {.device = kCpu}).passed(), 2);
}

TEST_F(Damage, LinksOutOfTheSessionAreRejected) {
  stdfs::rename(dump() / "inputs.pt", folder / "elsewhere.pt");
  stdfs::create_symlink(folder / "elsewhere.pt", dump() / "inputs.pt");
  const auto r = first();
  EXPECT_EQ(r.outcome, Outcome::kError);
  EXPECT_NE(r.message.find("leads out of"), std::string::npos) << r.message;
  const stdfs::path whole = dump(1);
  stdfs::rename(whole, folder / "moved");
  stdfs::create_directory_symlink(folder / "moved", whole);
  for (const auto& c : replay::replay(session()).calls)
    EXPECT_NE(c.message.find("leads out of"), std::string::npos) << c.message;
}

TEST_F(Damage, NothingThere) {
  EXPECT_THROW(replay::replay(folder / "nowhere"), ValueError);
  stdfs::create_directory(folder / "empty");
  EXPECT_THROW(replay::replay(folder / "empty"), ValueError);
}

TEST_F(Damage, TornSessionFileIsANote) {
  write(session() / "session.jsonl", probe::read(session() / "session.jsonl") + "{\"function");
  const auto report = replay::replay(session());
  EXPECT_EQ(report.passed(), 2);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0], "session.jsonl: 1 torn line left out");
}

}  // namespace
}  // namespace flashinfer::twist
