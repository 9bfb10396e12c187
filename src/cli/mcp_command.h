// assay mcp: the tools of a language model's program, on JSON-RPC lines.
#pragma once

#include <cstdint>
#include <string>

#include "cli/options.h"
#include "mcp/budget.h"

namespace assay {

struct McpOptions {
  BudgetLimits budget;
  std::string session, device, archive;
  AskedTerms asked;  // but for the problem and the device
  bool allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

int RunMcp(const McpOptions& options);

}  // namespace assay
