// SPDX-License-Identifier: Apache-2.0
// Every argument has a sentence, a family's own are in its folder, and no sentence is about a name that no op has.
#include "flashinfer/op/glossary.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "flashinfer/op/registry.h"

namespace flashinfer {
namespace {

TEST(Glossary, EveryArgumentHasASentence) {
  for (const op::Family& family : op::families())
    for (const op::Op* o : family.ops)
      for (const op::Field& f : o->fields) {
        const bool shown = f.role != op::Role::kResult && f.role != op::Role::kSelf && !f.internal;
        const char* meaning = op::meaning(*o, f);
        EXPECT_TRUE(meaning || !shown) << o->name << "." << f.name << ": say it in flashinfer/ops/" << family.name
                                       << "/terms.cc, or in the field (op::doc)";
      }
}

TEST(Glossary, HasWhatSeveralFamiliesNameAndTheyHaveTheRest) {
  std::map<std::string_view, std::set<std::string_view>> users;
  for (const op::Family& family : op::families()) {
    std::set<std::string_view> names, terms;
    for (const op::Op* o : family.ops)
      for (const op::Field& f : o->fields) names.insert(f.name), users[f.name].insert(family.name);
    for (const op::Term& t : family.terms) {
      EXPECT_TRUE(names.contains(t.name)) << family.name << "/terms.cc: " << t.name << " is no op's argument";
      EXPECT_TRUE(terms.insert(t.name).second) << family.name << "/terms.cc: " << t.name << " is there twice";
    }
  }
  for (const op::Term& t : op::glossary())
    EXPECT_GT(users[t.name].size(), 1u) << "op/glossary.cc: " << t.name << " belongs to "
                                        << (users[t.name].empty() ? "no op"
                                                                  : std::string(*users[t.name].begin()) + "/terms.cc");
}

TEST(Glossary, AFieldGoesBeforeItsFamilyAndThatBeforeTheGlossary) {
  const op::Op& rope = *op::find_op("apply_rope");
  op::Field f;
  f.name = "epsilon";
  EXPECT_EQ(op::meaning(rope, f), nullptr);
  for (const op::Term& t : op::glossary()) {
    f.name = t.name;
    EXPECT_STREQ(op::meaning(rope, f), t.meaning);
  }
  const op::Family* family = op::family_of(rope);
  ASSERT_TRUE(family && !family->terms.empty());
  EXPECT_STREQ(family->name, "rope");
  for (const op::Term& t : family->terms) {
    f.name = t.name;
    EXPECT_STREQ(op::meaning(rope, f), t.meaning);
  }
  f.doc = "its own";
  EXPECT_STREQ(op::meaning(rope, f), "its own");
}

}  // namespace
}  // namespace flashinfer
