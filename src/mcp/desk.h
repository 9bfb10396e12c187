// The tools: a call's arguments in, an answer out, or a job to wait for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "archive/judged.h"
#include "mcp/answer.h"
#include "mcp/jobs.h"
#include "mcp/tool_list.h"
#include "model/machine_profile.h"
#include "problem/suite.h"
#include "search/prompt.h"
#include "session/asked_terms.h"

namespace assay {

// A verdict with the source of its candidate.
struct KnownVerdict {
  Verdict verdict;
  std::string source;  // empty: not known
};

// The world of the tools. Work runs on another thread: ask_worker, read_code and
// profile_reference must allow that.
struct DeskPorts {
  std::function<Result<std::vector<Suite>>()> suites;
  std::function<Result<ProblemRequest>(const ProblemChoice&)> resolve;
  // Sends a worker a request's line, whose id is kJobRequestId, and returns the verdict or the
  // description that it answers, as JSON (JobWorker::Judge).
  std::function<Result<std::string>(const std::string& line, double seconds_max, const WorkLook&,
                                    StopToken)>
      ask_worker;
  // The machine code of a candidate, for feedback; may give none.
  std::function<NativeCode(const CandidateSource&, StopToken)> read_code;
  // The time of a reference by operator, as text.
  std::function<Result<std::string>(const ProblemRequest&, StopToken)> profile_reference;
  // Writes an opponent's source to a file, and returns its path.
  std::function<Result<std::string>(const std::string& name, const std::string& source)> write_file;
  // Of verdicts that no job of this process gave.
  std::function<Result<KnownVerdict>(const std::string& id)> find_verdict;
  // The content of the newest record on a job of another process; empty: there is none.
  std::function<std::string(const std::string& handle)> find_attempt;
  std::function<Result<std::string>()> fresh_handle;
  std::function<void(NewRecord)> record;
  std::function<void(const JudgedSource&, const Verdict&)> judged;
  std::function<int64_t()> now_ns;
};

struct DeskTerms {
  AskedTerms judging;     // without a problem
  bool counters = false;  // its GPU has Nsight Compute: `profile` reads counters, too
  std::string session;
  MachineProfile machine;
  const PromptTemplates* templates = nullptr;
};

// A job whose end a call waits for.
struct ToolWait {
  std::string job;
  double seconds = 0;
  bool owns = false;  // the client does not know its handle yet
  std::function<ToolReply(const McpJob&)> answer;
};

class Desk {
 public:
  // The seat must outlive this object.
  Desk(Seat& seat, Budget budget, DeskPorts ports, DeskTerms terms);

  // Calls a tool. Its name must be one of the list's.
  std::variant<ToolReply, ToolWait> Call(const std::string& tool, const McpJson& arguments);
  const ToolList& list() const { return list_; }
  McpJobs& jobs() { return jobs_; }

 private:
  using Outcome = Result<std::variant<ToolReply, ToolWait>>;

  Outcome Serve(const std::string& tool, const McpJson& arguments);
  Outcome ListProblems(const McpJson& arguments);
  Outcome GetProblem(const McpJson& arguments);
  Outcome Judge(const std::string& tool, const McpJson& arguments);
  Outcome ProfileReference(const McpJson& arguments);
  Outcome Status(const McpJson& arguments);
  Outcome Compare(const McpJson& arguments);
  Outcome Explain(const McpJson& arguments);

  // Makes a job's work of judging `source` under `terms`.
  std::function<SeatWork(double)> JudgeWork(AskedTerms terms, const CandidateSource& source);
  Result<std::string> AddJob(McpJob job, bool free);
  ToolWait WaitFor(const std::string& handle, double seconds, bool owns);
  ToolReply ReplyOn(const McpJob& job) const;
  Result<KnownVerdict> Find(const std::string& reference);
  Result<ToolReply> ReplyOnOther(const std::string& handle) const;
  void Ended(const McpJob& job);

  const ToolList list_;
  const DeskPorts ports_;
  const DeskTerms terms_;
  Budget budget_;
  McpJobs jobs_;
  std::map<std::string, std::vector<std::string>> signatures_;  // by terms
};

}  // namespace assay
