#include "mcp/tool_list.h"

#include <gmock/gmock.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Fault(const std::string& tool, const std::string& arguments) {
  const ToolList list;
  const auto checked = CheckArguments(*list.Find(tool), McpJson::parse(arguments));
  return checked ? "" : checked.error().message;
}

TEST(ToolList, HasTheToolsWithTheirSchemas) {
  const ToolList list;
  EXPECT_THAT(list.Names(),
              ElementsAre("problem_list", "problem_get", "kernel_check", "kernel_judge",
                          "job_status", "compare", "profile", "explain"));
  for (const McpJson& tool : list.tools()) {
    EXPECT_EQ(tool["inputSchema"]["type"], "object") << tool["name"];
    EXPECT_EQ(tool["outputSchema"]["type"], "object") << tool["name"];
    for (const McpJson& argument : tool["inputSchema"]["properties"])
      EXPECT_TRUE(argument.is_object() && argument.contains("description")) << tool["name"];
  }
  EXPECT_EQ(list.Find("kernel_win"), nullptr);
}

TEST(CheckArguments, TakesWhatTheSchemaAllows) {
  EXPECT_EQ(Fault("problem_list", "{}"), "");
  EXPECT_EQ(Fault("problem_get", R"({"problem":"gelu","size":"tiny","set":{"ROWS":64}})"), "");
  EXPECT_EQ(Fault("job_status", R"({"job":"job-0123abcd","wait_s":1.5,"cancel":true})"), "");
}

TEST(CheckArguments, AFaultSaysWhatIsTaken) {
  EXPECT_THAT(Fault("problem_get", "{}"), HasSubstr("problem_get needs 'problem'"));
  EXPECT_THAT(Fault("problem_get", R"({"problm":"gelu"})"),
              AllOf(HasSubstr("did you mean 'problem'"), HasSubstr("size")));
  EXPECT_THAT(Fault("problem_list", R"({"level":1.5})"), HasSubstr("must be a integer"));
  EXPECT_THAT(Fault("problem_list", R"({"level":99})"), HasSubstr("between 1 and 9"));
  EXPECT_THAT(Fault("kernel_check", R"({"problem":"a","language":"rust","source":"x"})"),
              HasSubstr("cpp, c, cuda, python"));
  EXPECT_THAT(Fault("kernel_check", R"({"problem":"a","language":"c","source":""})"),
              HasSubstr("'source' is empty"));
  EXPECT_THAT(Fault("problem_get", R"({"problem":"a","set":{"ROWS":[1]}})"),
              HasSubstr("'set.ROWS' must be a string"));
  EXPECT_THAT(Fault("job_status", R"({"job":"7"})"), HasSubstr("an earlier call gave"));
}

}  // namespace
}  // namespace assay
