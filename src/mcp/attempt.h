// The records of what clients called (docs/mcp.md). Pure.
#pragma once

#include <span>
#include <string>

#include "archive/record.h"
#include "mcp/jobs.h"
#include "mcp/json_rpc.h"

namespace assay {

// A call that was answered or refused at once: `error` is empty, or says why.
NewRecord RecordOfCall(const std::string& session, const std::string& tool,
                       const McpJson& arguments, const std::string& error);

// Events of a job: "asked", "began", "ended". `free`: it costs no call.
NewRecord RecordOfJob(const std::string& session, const std::string& what, const McpJob& job,
                      bool free);

struct Spent {
  int64_t calls = 0;
  double seconds = 0;
};
// The cost of a session by these records' contents, oldest first. A job that began and has no
// end spent all that it was given.
Spent SpentBy(const std::string& session, std::span<const std::string> contents);

}  // namespace assay
