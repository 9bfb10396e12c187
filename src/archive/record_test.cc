#include "archive/record.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

Record Sample() {
  Record record;
  record.sequence = 7;
  record.facts = {RecordKind::kVerdict, "a.cpp", "3f2a9c01d4e7", "softmax", "faster"};
  record.time = "2026-11-27T10:00:00Z";
  record.content = "aa";
  record.source = "bb";
  record.terms = "cc";
  record.parent = kFirstParent;
  return record;
}

TEST(RecordHash, DependsOnEveryField) {
  const std::string hash = RecordHash(Sample());
  EXPECT_EQ(hash.size(), 64u);
  EXPECT_EQ(RecordHash(Sample()), hash);
  const auto changed = [](auto change) {
    Record record = Sample();
    change(record);
    return RecordHash(record);
  };
  EXPECT_NE(changed([](Record& record) { record.sequence = 8; }), hash);
  EXPECT_NE(changed([](Record& record) { record.facts.kind = RecordKind::kFailure; }), hash);
  EXPECT_NE(changed([](Record& record) { record.facts.name = "b.cpp"; }), hash);
  EXPECT_NE(changed([](Record& record) { record.facts.id = ""; }), hash);
  EXPECT_NE(changed([](Record& record) { record.facts.problem = "relu"; }), hash);
  EXPECT_NE(changed([](Record& record) { record.facts.outcome = "tie"; }), hash);
  EXPECT_NE(changed([](Record& record) { record.time = "2026-11-27T10:00:01Z"; }), hash);
  EXPECT_NE(changed([](Record& record) { record.content = "ab"; }), hash);
  EXPECT_NE(changed([](Record& record) { record.source = ""; }), hash);
  EXPECT_NE(changed([](Record& record) { record.terms = "cd"; }), hash);
  EXPECT_NE(changed([](Record& record) { record.parent = "00"; }), hash);
  EXPECT_EQ(changed([](Record& record) { record.hash = "of itself"; }), hash);
}

TEST(RecordHash, TextCannotMoveFromFieldToField) {
  Record one = Sample(), other = Sample();
  one.facts.name = "a";
  one.facts.id = "b\n1 c";
  other.facts.name = "a\n1 b";
  other.facts.id = "c";
  EXPECT_NE(RecordHash(one), RecordHash(other));
}

TEST(RecordKind, HasANameThatLeadsBack) {
  for (const char* name : {"candidate", "verdict", "failure", "run", "note"})
    EXPECT_EQ(RecordKindName(RecordKindFromName(name).value()), name);
  EXPECT_FALSE(RecordKindFromName("other"));
}

}  // namespace
}  // namespace assay
