#include "propose/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"

namespace assay {
namespace {

using testing::HasSubstr;

TEST(ModelTable, KnowsModelsAndHasDefaults) {
  const auto table = ModelTable::Load("");
  ASSERT_TRUE(table);
  const ModelFacts mini = table->Find("openai", "gpt-5-mini-2025-08-07");
  EXPECT_FALSE(mini.takes_temperature);
  EXPECT_EQ(mini.tokens_field, "max_completion_tokens");
  EXPECT_EQ(mini.usd_in, 0.25);
  // A version that no row names: no price is made up, and nothing that it may refuse is sent.
  EXPECT_EQ(table->Find("openai", "gpt-9").usd_in, 0);
  EXPECT_FALSE(table->Find("openai", "gpt-9").takes_temperature);
  EXPECT_TRUE(table->Find("openai", "gpt-oss-20b").takes_temperature);
  EXPECT_EQ(table->Find("openai", "gpt-4o-2024-08-06").usd_out, 10);
  EXPECT_EQ(table->Find("openai", "gpt-4o-mini").usd_out, 0.6);
  const ModelFacts local = table->Find("openai", "qwen3");
  EXPECT_TRUE(local.takes_temperature && local.takes_seed);
  EXPECT_EQ(local.tokens_field, "max_tokens");
  EXPECT_EQ(table->Find("anthropic", "claude-sonnet-4-5-20250929").usd_out, 15);
  EXPECT_FALSE(table->Find("anthropic", "claude-of-tomorrow").takes_temperature);
  EXPECT_EQ(table->Find("anthropic", "gpt-4o").usd_in, 0);
}

class UsersTable : public testing::Test {
 protected:
  Result<ModelTable> Load(std::string_view text) {
    EXPECT_TRUE(WriteFileAtomically(path_, text));
    return ModelTable::Load(path_);
  }
  TemporaryFolder folder_ = *TemporaryFolder::Create();
  std::string path_ = (folder_.path() / "models.toml").string();
};

TEST_F(UsersTable, GoesBeforeTheBuiltInOne) {
  const auto table = Load(
      "[[model]]\napi = \"openai\"\nname = \"gpt-5*\"\nusd_in = 3\nanswer_tokens_max = 100\n"
      "[[model]]\napi = \"openai\"\nname = \"mine\"\nseed = false\nusd_out = 0.25\n");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->Find("openai", "gpt-5-mini").usd_in, 3);
  EXPECT_EQ(table->Find("openai", "gpt-5-mini").answer_tokens_max, 100);
  EXPECT_FALSE(table->Find("openai", "mine").takes_seed);
  EXPECT_TRUE(table->Find("openai", "mine-2").takes_seed);
  EXPECT_EQ(table->Find("openai", "gpt-4o").usd_in, 2.5);
}

TEST_F(UsersTable, NamesTheLineOfAFault) {
  for (const char* text : {"[[model]]\napi = \"openai\"\nname = \"m\"\nprice = 3\n",
                           "[[model]]\napi = \"openai\"\nname = \"m\"\nusd_in = -1\n",
                           "[[model]]\napi = \"openai\"\nname = \"m\"\nseed = \"yes\"\n",
                           "\n\n\nmodels = 1\n", "\n\n\n[[model]]\nname = \"m\"\n", "\n\n\n=\n"}) {
    const auto table = Load(text);
    ASSERT_FALSE(table) << text;
    EXPECT_EQ(table.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(table.error().message, HasSubstr(path_ + " line 4: ")) << text;
  }
  EXPECT_TRUE(Load(""));
  EXPECT_FALSE(ModelTable::Load(path_ + "-missing"));
}

}  // namespace
}  // namespace assay
