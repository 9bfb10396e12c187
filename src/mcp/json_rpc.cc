#include "mcp/json_rpc.h"

#include <utility>

namespace assay {
namespace {

std::string Dump(const McpJson& json) {
  return json.dump(-1, ' ', false, McpJson::error_handler_t::replace);
}

}  // namespace

std::variant<RpcMessage, std::string> ParseRpc(McpJson json) {
  if (json.is_discarded())
    return RpcErrorLine(nullptr, kRpcParseError,
                        "the line is no JSON: send one JSON-RPC message a line");
  if (!json.is_object())
    return RpcErrorLine(
        nullptr, kRpcInvalidRequest,
        "a message is one JSON object a line; revision 2025-03-26 alone has batches");
  RpcMessage message;
  if (const auto id = json.find("id"); id != json.end()) {
    // A fraction or an object cannot be told back as it came.
    if (!id->is_string() && !id->is_number_integer())
      return RpcErrorLine(nullptr, kRpcInvalidRequest, "'id' is a text or a whole number");
    message.id = *id;
  }
  const McpJson told = message.id.value_or(nullptr);
  const auto version = json.find("jsonrpc");
  if (version == json.end() || *version != "2.0")
    return RpcErrorLine(told, kRpcInvalidRequest, "'jsonrpc' must be \"2.0\"");
  const auto method = json.find("method");
  if (method == json.end() && (json.contains("result") || json.contains("error")))
    return RpcMessage{};
  if (method == json.end() || !method->is_string() || method->get_ref<std::string&>().empty())
    return RpcErrorLine(told, kRpcInvalidRequest, "'method' is missing, or is no text");
  message.method = method->get<std::string>();
  if (const auto params = json.find("params"); params != json.end()) {
    if (!params->is_object())
      return RpcErrorLine(told, kRpcInvalidParams, "'params' must be an object");
    message.params = std::move(*params);
  }
  return message;
}

std::string RpcResultLine(const McpJson& id, McpJson result) {
  McpJson line = {{"jsonrpc", "2.0"}, {"id", id}};
  line["result"] = std::move(result);
  return Dump(line);
}

std::string RpcErrorLine(const McpJson& id, int code, const std::string& message,
                         const McpJson& data) {
  McpJson error = {{"code", code}, {"message", message}};
  if (!data.is_null()) error["data"] = data;
  return Dump({{"jsonrpc", "2.0"}, {"id", id}, {"error", std::move(error)}});
}

std::string RpcNotificationLine(const std::string& method, McpJson params) {
  McpJson line = {{"jsonrpc", "2.0"}, {"method", method}};
  line["params"] = std::move(params);
  return Dump(line);
}

}  // namespace assay
