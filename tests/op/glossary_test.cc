// SPDX-License-Identifier: Apache-2.0
// Every argument has a sentence, and no sentence is about a name that no op has.
#include "flashinfer/op/glossary.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "flashinfer/op/registry.h"

namespace flashinfer {
namespace {

TEST(Glossary, EveryArgumentHasASentence) {
  std::string without;
  std::set<std::string_view> used;
  for (const op::Op* o : op::all_ops())
    for (const op::Field& f : o->fields) {
      used.insert(f.name);
      const bool shown = f.role != op::Role::kResult && f.role != op::Role::kSelf && !f.internal;
      if (shown && !f.doc && !op::meaning(f.name)) without += str(" ", o->name, ".", f.name);
    }
  EXPECT_EQ(without, "") << "add them to op/glossary.cc, or op::doc to the field";
  for (const op::Term& t : op::glossary()) EXPECT_TRUE(used.contains(t.name)) << t.name << " is no op's argument";
}

TEST(Glossary, FindsTermsByName) {
  for (const op::Term& t : op::glossary()) EXPECT_STREQ(op::meaning(t.name), t.meaning);
  EXPECT_EQ(op::meaning("epsilon"), nullptr);
  EXPECT_EQ(op::meaning("ep"), nullptr);
}

}  // namespace
}  // namespace flashinfer
