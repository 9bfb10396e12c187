#include "mcp/tool_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>

#include "base/check.h"
#include "mcp/tools_text.h"
#include "problem/nearest.h"

namespace assay {
namespace {

bool HasType(const McpJson& value, const std::string& type) {
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  return type == "object" && value.is_object();
}

std::vector<std::string> TypesOf(const McpJson& schema) {
  const auto type = schema.find("type");
  if (type == schema.end()) return {};
  if (type->is_array()) return type->get<std::vector<std::string>>();
  return {type->get<std::string>()};
}

Result<void> CheckText(const std::string& name, const McpJson& schema, const std::string& text) {
  if (text.size() < schema.value("minLength", size_t{0}))
    return UsageError(fmt::format("'{}' is empty", name));
  if (const auto most = schema.value("maxLength", text.size()); text.size() > most)
    return UsageError(
        fmt::format("'{}' has {} bytes; at most {} are taken", name, text.size(), most));
  if (const auto pattern = schema.find("pattern"); pattern != schema.end()) {
    // Patterns are short, and so are texts that may match them.
    constexpr size_t kMatchedMax = 100;
    if (text.size() > kMatchedMax ||
        !std::regex_match(text, std::regex(pattern->get<std::string>())))
      return UsageError(
          fmt::format("'{}' is no id: {}", name, schema.value("description", std::string())));
  }
  return {};
}

Result<void> CheckValue(const std::string& name, const McpJson& schema, const McpJson& value) {
  if (const auto words = schema.find("enum"); words != schema.end()) {
    if (std::ranges::find(*words, value) != words->end()) return {};
    const auto known = words->get<std::vector<std::string>>();
    return UsageError(fmt::format("'{}' is one of: {}", name, fmt::join(known, ", ")));
  }
  const std::vector<std::string> types = TypesOf(schema);
  if (std::ranges::none_of(types, [&](const auto& type) { return HasType(value, type); }))
    return UsageError(fmt::format("'{}' must be a {}", name, fmt::join(types, " or a ")));
  if (value.is_string()) return CheckText(name, schema, value.get_ref<const std::string&>());
  if (value.is_number()) {
    const auto least = schema.find("minimum"), most = schema.find("maximum");
    if ((least != schema.end() && value < *least) || (most != schema.end() && value > *most))
      return UsageError(
          fmt::format("'{}' lies between {} and {}", name, least->dump(), most->dump()));
  }
  if (value.is_object())
    for (const auto& [key, each] : value.items())
      ASSAY_RETURN_IF_ERROR(
          CheckValue(fmt::format("{}.{}", name, key), schema["additionalProperties"], each));
  return {};
}

}  // namespace

ToolList::ToolList() {
  McpJson all = McpJson::parse(kToolsText);
  for (McpJson& tool : all["tools"]) {
    for (McpJson& argument : tool["inputSchema"]["properties"])
      if (argument.is_string()) argument = McpJson(all["arguments"][argument.get<std::string>()]);
    if (tool["outputSchema"].is_string())
      tool["outputSchema"] = McpJson(all["results"][tool["outputSchema"].get<std::string>()]);
  }
  tools_ = std::move(all["tools"]);
}

std::vector<std::string> ToolList::Names() const {
  std::vector<std::string> names;
  for (const McpJson& tool : tools_) names.push_back(tool["name"]);
  return names;
}

const McpJson* ToolList::Find(const std::string& name) const {
  const auto found =
      std::ranges::find_if(tools_, [&](const McpJson& tool) { return tool["name"] == name; });
  return found == tools_.end() ? nullptr : &*found;
}

Result<void> CheckArguments(const McpJson& tool, const McpJson& arguments) {
  const McpJson& schema = tool["inputSchema"];
  const McpJson& properties = schema["properties"];
  std::vector<std::string> known;
  for (const auto& [name, property] : properties.items()) known.push_back(name);
  for (const auto& [name, value] : arguments.items()) {
    const auto property = properties.find(name);
    if (property == properties.end())
      return UsageError(fmt::format("{} takes no '{}'{}; it takes: {}",
                                    tool["name"].get<std::string>(), name.substr(0, 100),
                                    Suggestion(name, known), fmt::join(known, ", ")));
    ASSAY_RETURN_IF_ERROR(CheckValue(name, *property, value));
  }
  if (const auto required = schema.find("required"); required != schema.end())
    for (const McpJson& name : *required)
      if (!arguments.contains(name.get<std::string>()))
        return UsageError(fmt::format(
            "{} needs '{}': {}", tool["name"].get<std::string>(), name.get<std::string>(),
            properties[name.get<std::string>()].value("description", std::string())));
  return {};
}

}  // namespace assay
