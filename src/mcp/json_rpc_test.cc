#include "mcp/json_rpc.h"

#include <gmock/gmock.h>

namespace assay {
namespace {

std::variant<RpcMessage, std::string> Parsed(const std::string& line) {
  return ParseRpc(McpJson::parse(line, nullptr, false));
}

McpJson Refusal(const std::string& line) {
  const auto parsed = Parsed(line);
  return McpJson::parse(std::get<std::string>(parsed));
}

TEST(JsonRpc, ReadsARequestAndANotification) {
  const auto request =
      std::get<RpcMessage>(Parsed(R"({"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1}})"));
  EXPECT_EQ(request.method, "ping");
  EXPECT_EQ(*request.id, 7);
  EXPECT_EQ(request.params["a"], 1);
  const auto note = std::get<RpcMessage>(Parsed(R"({"jsonrpc":"2.0","method":"n"})"));
  EXPECT_FALSE(note.id);
}

TEST(JsonRpc, AnAnswerOfTheClientIsNoRequest) {
  EXPECT_EQ(std::get<RpcMessage>(Parsed(R"({"jsonrpc":"2.0","id":1,"result":{}})")).id,
            std::nullopt);
}

TEST(JsonRpc, GarbageIsToldByItsCode) {
  EXPECT_EQ(Refusal("garbage")["error"]["code"], kRpcParseError);
  EXPECT_EQ(Refusal("\xff\xfe")["error"]["code"], kRpcParseError);
  EXPECT_EQ(Refusal("[]")["error"]["code"], kRpcInvalidRequest);
  EXPECT_EQ(Refusal(R"({"id":1,"method":"ping"})")["error"]["code"], kRpcInvalidRequest);
  EXPECT_EQ(Refusal(R"({"jsonrpc":"2.0","id":1})")["id"], 1);
  EXPECT_EQ(Refusal(R"({"jsonrpc":"2.0","id":{},"method":"ping"})")["error"]["code"],
            kRpcInvalidRequest);
  EXPECT_EQ(Refusal(R"({"jsonrpc":"2.0","id":1,"method":"a","params":[1]})")["error"]["code"],
            kRpcInvalidParams);
}

TEST(JsonRpc, NestingOfAnyDepthIsRead) {
  const std::string deep(1'000'000, '[');
  EXPECT_EQ(Refusal(deep)["error"]["code"], kRpcParseError);
  EXPECT_EQ(Refusal(deep + std::string(1'000'000, ']'))["error"]["code"], kRpcInvalidRequest);
}

}  // namespace
}  // namespace assay
