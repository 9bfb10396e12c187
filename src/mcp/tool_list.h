// The tools that clients see, and the check of what they call them with. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "mcp/json_rpc.h"

namespace assay {

class ToolList {
 public:
  ToolList();

  // As tools/list tells them.
  const McpJson& tools() const { return tools_; }
  std::vector<std::string> Names() const;
  // Null: there is none of this name.
  const McpJson* Find(const std::string& name) const;

 private:
  McpJson tools_;
};

// Checks a call's arguments against a tool's inputSchema. Errors (kUsage) name the argument, and
// what it must be.
Result<void> CheckArguments(const McpJson& tool, const McpJson& arguments);

}  // namespace assay
