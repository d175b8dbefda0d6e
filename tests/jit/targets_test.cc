// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/targets.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "flashinfer/core/check.h"

namespace flashinfer::jit {
namespace {

std::vector<std::string> names(const std::vector<Target>& targets) {
  std::vector<std::string> list;
  for (const Target t : targets) list.emplace_back(name(t));
  return list;
}
using Names = std::vector<std::string>;

TEST(Targets, RunWhereTheirSuffixLetsThem) {
  EXPECT_EQ(names(targets_for(7, 5)), (Names{"sm_75"}));
  EXPECT_EQ(names(targets_for(8, 0)), (Names{"sm_80"}));
  EXPECT_EQ(names(targets_for(8, 7)), (Names{"sm_86", "sm_80"}));
  EXPECT_EQ(names(targets_for(8, 9)), (Names{"sm_89", "sm_86", "sm_80"}));
  EXPECT_EQ(names(targets_for(9, 0)), (Names{"sm_90a", "sm_90"}));
  EXPECT_EQ(names(targets_for(10, 0)), (Names{"sm_100a", "sm_100f"}));
  EXPECT_EQ(names(targets_for(10, 3)), (Names{"sm_103a", "sm_103f", "sm_100f"}));
  EXPECT_EQ(names(targets_for(12, 0)), (Names{"sm_120a", "sm_120f"}));
  EXPECT_EQ(names(targets_for(12, 1)), (Names{"sm_121a", "sm_121f", "sm_120f"}));
  EXPECT_TRUE(targets_for(7, 0).empty());
  EXPECT_TRUE(targets_for(13, 0).empty());
}

TEST(Targets, ListIsReadAsItsUsersWriteIt) {
  EXPECT_EQ(names(parse_arch_list(" 8.0 9.0a  10.0f")), (Names{"sm_80", "sm_90a", "sm_100f"}));
  EXPECT_EQ(names(parse_arch_list("7.5 9.0 10.0 10.3 12.0 12.1")),
            (Names{"sm_75", "sm_90a", "sm_100a", "sm_103a", "sm_120f", "sm_121a"}));
  EXPECT_TRUE(parse_arch_list("").empty());
  for (const char* bad : {"80", "8.", "8.0x", "7.0", "9.0f", "8.0a", "sm_80", "..", "10.0af", "99999999999.0"})
    EXPECT_THROW(parse_arch_list(bad), ValueError) << bad;
  try {
    parse_arch_list("6.1");
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find(
                  "holds \"6.1\", but must be a blank separated list of 7.5, 8.0, 8.6, 8.9, 9.0, 9.0a, 10.0a"),
              std::string::npos)
        << e.what();
  }
}

TEST(Targets, AreAskedAmongThoseAllowed) {
  const auto allowed = parse_arch_list("8.0 10.0f");
  EXPECT_EQ(names(targets_for(8, 9, allowed)), (Names{"sm_80"}));
  EXPECT_EQ(names(targets_for(10, 3, allowed)), (Names{"sm_100f"}));
  EXPECT_TRUE(targets_for(9, 0, allowed).empty());
}

TEST(Targets, HaveNamesAndFeatures) {
  for (const Target t : all_targets()) EXPECT_EQ(parse_target(name(t)), t);
  const auto arch = [](const char* n) { return arch_of(parse_target(n)); };
  EXPECT_FALSE(arch("sm_75").async_copy);
  EXPECT_TRUE(arch("sm_80").async_copy && !arch("sm_86").fp8_mma && arch("sm_89").fp8_mma);
  EXPECT_TRUE(arch("sm_90").clusters && !arch("sm_90").wgmma && arch("sm_90a").wgmma && !arch("sm_100a").wgmma);
  EXPECT_TRUE(arch("sm_100f").tensor_memory && !arch("sm_120a").tensor_memory && arch("sm_120f").block_scaled_mma);
  EXPECT_EQ(arch_of_number(75).number, 75);
  EXPECT_EQ(arch_of_number(87).number, 86);  // what is not in the table has what is there of the nearest before it
  EXPECT_EQ(arch_of_number(121).number, 121);
  EXPECT_THROW(arch_of(Target::kNative), InternalError);
  EXPECT_THROW(parse_target("sm_42"), ValueError);
}

TEST(Targets, EmulatedArchIsOfTheScope) {
  constexpr Device kEmu{DeviceType::kEmu, 0};
  EXPECT_EQ(arch_number(kEmu), 90);
  {
    const EmulatedArch ampere(80);
    EXPECT_EQ(arch_number(kEmu), 80);
  }
  EXPECT_EQ(arch_number(kEmu), 90);
}

}  // namespace
}  // namespace flashinfer::jit
