// Messages of JSON-RPC 2.0, one a line, as the Model Context Protocol has them. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>

namespace assay {

using McpJson = nlohmann::ordered_json;

// Codes of errors: JSON-RPC's, and one of the Model Context Protocol.
inline constexpr int kRpcParseError = -32700;
inline constexpr int kRpcInvalidRequest = -32600;
inline constexpr int kRpcMethodNotFound = -32601;
inline constexpr int kRpcInvalidParams = -32602;
inline constexpr int kRpcUnsupportedVersion = -32022;

struct RpcMessage {
  std::optional<McpJson> id;  // text or a whole number; nullopt: a notification
  std::string method;         // empty: an answer, which nobody waits for
  McpJson params = McpJson::object();
};

// The message that a line's JSON is (discarded: the line is none), or the line that answers what is
// no message.
std::variant<RpcMessage, std::string> ParseRpc(McpJson json);

// Lines without their end.
std::string RpcResultLine(const McpJson& id, McpJson result);
std::string RpcErrorLine(const McpJson& id, int code, const std::string& message,
                         const McpJson& data = nullptr);
std::string RpcNotificationLine(const std::string& method, McpJson params);

}  // namespace assay
