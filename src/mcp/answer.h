// Answers to clients about jobs and verdicts: facts as JSON, the same as text, and a good next
// call. Shows neither seeds nor what a candidate printed (docs/feedback.md). Pure.
#pragma once

#include <string>
#include <vector>

#include "mcp/jobs.h"
#include "mcp/json_rpc.h"
#include "model/verdict.h"

namespace assay {

// The answer to a call of a tool.
struct ToolReply {
  McpJson structured;  // null: none
  std::string text;    // all of it, for a client that shows no more
  bool is_error = false;
};

ToolReply RefusedReply(const Error& error);

McpJson BudgetFacts(const Budget& budget);

// As results.job of tools.json.
ToolReply JobReply(const McpJob& job, const Budget& budget, int64_t now_ns);

// Of a verdict: "verdict", "outcome", "message", "correct", "speed".
McpJson VerdictFacts(const Verdict& verdict);

// The next call that most clients will want after a verdict.
std::string NextAfter(const Verdict& verdict);

}  // namespace assay
