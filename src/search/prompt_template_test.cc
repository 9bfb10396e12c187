#include "search/prompt_template.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/files.h"

namespace assay {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string FaultOf(std::string_view text) {
  const auto checked = CheckTemplate(text, "mine.md");
  return checked ? std::string() : checked.error().message;
}

TEST(Template, FillsInParts) {
  EXPECT_EQ(
      FillTemplate("a {{idea}} b {{ problem }}{{machine}}", {{"idea", "1"}, {"problem", "2"}}),
      "a 1 b 2");
  EXPECT_EQ(FillTemplate("no part: {x} {{", {}), "no part: {x} {{");
}

TEST(Template, PartsAreNotTemplatesThemselves) {
  EXPECT_EQ(FillTemplate("{{reference}}", {{"reference", "{{problem}}"}, {"problem", "no"}}),
            "{{problem}}");
}

TEST(Template, ShowsASectionIfItsPartIsThere) {
  constexpr std::string_view kText =
      "a\n{{#idea}}\nIdea: {{idea}}\n{{#machine}}\non {{machine}}\n{{/machine}}\n{{/idea}}\nb\n";
  EXPECT_EQ(FillTemplate(kText, {}), "a\nb\n");
  EXPECT_EQ(FillTemplate(kText, {{"machine", "M"}}), "a\nb\n");
  EXPECT_EQ(FillTemplate(kText, {{"idea", "I"}}), "a\nIdea: I\nb\n");
  EXPECT_EQ(FillTemplate(kText, {{"idea", "I"}, {"machine", "M"}}), "a\nIdea: I\non M\nb\n");
}

TEST(Template, FaultsNameTheLine) {
  EXPECT_EQ(FaultOf("{{idea}}{{#machine}}x{{/machine}}"), "");
  EXPECT_THAT(FaultOf("a\n\n{{machnie}}"),
              AllOf(HasSubstr("mine.md line 3"), HasSubstr("did you mean 'machine'?")));
  EXPECT_THAT(FaultOf("{{#idea}}"), HasSubstr("{{#idea}} is not closed"));
  EXPECT_THAT(FaultOf("{{#idea}}{{#machine}}{{/idea}}{{/machine}}"),
              HasSubstr("{{/idea}} closes no open section"));
}

class Templates : public testing::Test {
 protected:
  Templates() : folder_(TemporaryFolder::Create().value()) {}
  std::string Mine(const std::string& file, const std::string& text) const {
    EXPECT_TRUE(WriteFileAtomically(folder_.path() / file, text));
    return folder_.path().string();
  }
  const std::string shipped_ = ASSAY_SOURCE_DIRECTORY "/prompts";
  const TemporaryFolder folder_;
};

TEST_F(Templates, TheShippedOnesAreWhole) {
  const auto templates = PromptTemplates::Load(shipped_, "");
  ASSERT_TRUE(templates) << templates.error().message;
  EXPECT_THAT(templates->Text("refine"), HasSubstr("{{parent}}"));
}

TEST_F(Templates, AUsersFileTakesTheShippedOnesPlace) {
  const auto templates = PromptTemplates::Load(shipped_, Mine("refine.md", "Faster: {{parent}}"));
  ASSERT_TRUE(templates) << templates.error().message;
  EXPECT_EQ(templates->Text("refine"), "Faster: {{parent}}");
  EXPECT_THAT(templates->Text("repair"), HasSubstr("Repair it"));
}

TEST_F(Templates, AUsersFaultsAreNamed) {
  EXPECT_THAT(PromptTemplates::Load(shipped_, Mine("refine.md", "{{parnet}}")).error().message,
              AllOf(HasSubstr("refine.md line 1"), HasSubstr("'parent'")));
  EXPECT_THAT(PromptTemplates::Load(shipped_, shipped_ + "/nowhere").error().message,
              HasSubstr("there is no such folder"));
}

TEST_F(Templates, AFileThatReplacesNoneIsRefused) {
  EXPECT_THAT(PromptTemplates::Load(shipped_, Mine("refin.md", "x")).error().message,
              AllOf(HasSubstr("refin.md replaces no template"), HasSubstr("'refine'")));
}

}  // namespace
}  // namespace assay
