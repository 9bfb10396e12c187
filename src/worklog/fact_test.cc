#include "worklog/fact.h"

#include <gtest/gtest.h>

#include "worklog/worklog_testing.h"

namespace assay {
namespace {

std::string Lines(const std::vector<Fact>& facts) {
  std::string text;
  for (const Fact& fact : facts) text += FactLine(fact) + "\n";
  return text;
}

TEST(Fact, LinesComeBackAsTheyWere) {
  MatchBuilder builder = LostMatch();
  const auto facts = ParseFacts(Lines(builder.facts()), "facts.jsonl");
  ASSERT_TRUE(facts);
  EXPECT_EQ(Lines(*facts), Lines(builder.facts()));
}

TEST(Fact, AChangeOfAnyPartIsTold) {
  MatchBuilder builder = LostMatch();
  const std::string text = Lines(builder.facts());
  for (const auto& [was, is] : std::vector<std::pair<std::string, std::string>>{
           {"\\\"ratio\\\":2.0", "\\\"ratio\\\":3.0"},
           {"2026-11-27T10", "2026-11-27T09"},
           {"\"sequence\":2", "\"sequence\":3"},
           {"worklog/predicted", "worklog/measured"}}) {
    std::string changed = text;
    const size_t at = changed.find(was);
    ASSERT_NE(at, std::string::npos) << was;
    changed.replace(at, was.size(), is);
    const auto facts = ParseFacts(changed, "facts.jsonl");
    ASSERT_FALSE(facts) << was;
    EXPECT_EQ(facts.error().kind, ErrorKind::kUsage);
    EXPECT_NE(facts.error().message.find("facts.jsonl line "), std::string::npos);
  }
}

TEST(Fact, AConflictIsTold) {
  const auto facts = ParseFacts("<<<<<<< HEAD\n=======\n>>>>>>> other\n", "facts.jsonl");
  ASSERT_FALSE(facts);
  EXPECT_NE(facts.error().message.find("line 1: a merge left a conflict"), std::string::npos);
  EXPECT_EQ(ConflictLine("a\nb\n>>>>>>> other\n"), 3u);
  EXPECT_EQ(ConflictLine("a\n== b\n"), 0u);
}

TEST(Fact, OtherTextIsRefused) {
  for (const char* text : {"{}", "null", "facts", R"({"schema":"assay.fact/1"})",
                           R"({"schema":"assay.fact/1","kind":"note","sequence":"1"})"})
    EXPECT_FALSE(ParseFactLine(text)) << text;
}

}  // namespace
}  // namespace assay
