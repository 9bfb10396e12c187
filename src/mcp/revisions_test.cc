#include <gmock/gmock.h>

#include "mcp/server_testing.h"

namespace assay {
namespace {

using testing::HasSubstr;

TEST_F(ServerTest, AgreesOnARevision) {
  const auto agreed = [&](const char* asked) {
    const McpJson answer = Ask(Request("initialize", {{"protocolVersion", asked}}));
    return answer["result"]["protocolVersion"].get<std::string>();
  };
  EXPECT_EQ(agreed("2025-11-25"), "2025-11-25");
  EXPECT_EQ(agreed("2025-06-18"), "2025-06-18");
  EXPECT_EQ(agreed("2026-07-28"), "2025-11-25");
  EXPECT_EQ(agreed("2023-01-01"), "2025-11-25");
  EXPECT_EQ(Ask(Request("ping", McpJson::object()))["result"], McpJson::object());
  Server().Take(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  EXPECT_TRUE(Said().empty());
}

// Clients of these revisions hung up: they were answered in a newer one.
TEST_F(ServerTest, EarlierRevisionsAreServedWithWhatTheyHave) {
  for (const std::string revision : {"2024-11-05", "2025-03-26"}) {
    const McpJson hello =
        Ask(Request("initialize", {{"protocolVersion", revision}, {"capabilities", {}}}))["result"];
    EXPECT_EQ(hello["protocolVersion"], revision);
    EXPECT_FALSE(hello["serverInfo"].contains("title"));
    const McpJson tool = Ask(Request("tools/list", McpJson::object()))["result"]["tools"][0];
    EXPECT_FALSE(tool.contains("outputSchema") || tool.contains("title"));
    EXPECT_EQ(tool.contains("annotations"), revision == "2025-03-26");
    const McpJson called = CallTool("problem_list", {{"level", 2}})["result"];
    EXPECT_FALSE(called.contains("structuredContent"));
    EXPECT_THAT(called["content"][0]["text"].get<std::string>(), HasSubstr("add_layer_norm"));
  }
}

TEST_F(ServerTest, ABatchIsAnsweredAsOneWhereTheRevisionHasBatches) {
  const McpJson nothing = McpJson::object();
  EXPECT_EQ(Ask(McpJson::array({Request("ping", nothing)}))["error"]["code"], kRpcInvalidRequest);
  Ask(Request("initialize", {{"protocolVersion", "2025-03-26"}}));
  EXPECT_EQ(Ask(McpJson::array())["error"]["code"], kRpcInvalidRequest);
  const McpJson call =
      Request("tools/call", {{"name", "kernel_check"}, {"arguments", Kernel(30)}}, 2);
  WorkerGives(Outcome::kCorrect);
  const McpJson note = {{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}};
  EXPECT_TRUE(Ask(McpJson::array({Request("ping", nothing, 1), call, note, 7,
                                  Request("initialize", {{"protocolVersion", "2025-03-26"}}, 3)}))
                  .is_null());
  WorkEnds();
  const auto said = Said();
  ASSERT_EQ(said.size(), 1u);
  ASSERT_EQ(said[0].size(), 4u);
  EXPECT_EQ(said[0][0]["error"]["code"], kRpcInvalidRequest);  // 7
  EXPECT_EQ(said[0][1]["result"], nothing);
  EXPECT_EQ(said[0][2]["error"]["code"], kRpcInvalidRequest);  // initialize
  EXPECT_EQ(said[0][3]["id"], 2);
  EXPECT_FALSE(said[0][3]["result"].contains("isError"));
  // A call that is cancelled is not waited for.
  EXPECT_TRUE(
      Ask(McpJson::array({Request("ping", nothing, 4), Request("tools/call", call["params"], 5)}))
          .is_null());
  Server().Take(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}})");
  EXPECT_EQ(Said()[0].size(), 1u);
}

TEST_F(ServerTest, TheStatelessRevisionSaysAllInEachRequest) {
  McpJson meta = {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                  {"io.modelcontextprotocol/clientCapabilities", McpJson::object()}};
  const McpJson found = Ask(Request("server/discover", {{"_meta", meta}}))["result"];
  EXPECT_EQ(found["supportedVersions"], McpJson::array({"2026-07-28"}));
  EXPECT_EQ(found["resultType"], "complete");
  EXPECT_EQ(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "assay");
  const McpJson list = Ask(Request("tools/list", {{"_meta", meta}}))["result"];
  EXPECT_EQ(list["tools"].size(), 8u);
  EXPECT_EQ(list["cacheScope"], "private");
  const McpJson called = Ask(Request(
      "tools/call",
      {{"name", "problem_list"}, {"arguments", McpJson::object()}, {"_meta", meta}}))["result"];
  EXPECT_EQ(called["resultType"], "complete");
  EXPECT_EQ(Ask(Request("ping", {{"_meta", meta}}))["error"]["code"], kRpcMethodNotFound);
  meta["io.modelcontextprotocol/protocolVersion"] = "2027-01-01";
  const McpJson error = Ask(Request("tools/list", {{"_meta", meta}}))["error"];
  EXPECT_EQ(error["code"], kRpcUnsupportedVersion);
  EXPECT_EQ(error["data"]["supported"], McpJson::array({"2026-07-28"}));
  EXPECT_EQ(error["data"]["requested"], "2027-01-01");
  meta = {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"}};
  EXPECT_EQ(Ask(Request("tools/list", {{"_meta", meta}}))["error"]["code"], kRpcInvalidParams);
}

}  // namespace
}  // namespace assay
