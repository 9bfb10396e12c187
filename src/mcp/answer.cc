#include "mcp/answer.h"

#include <fmt/format.h>

#include <cmath>

#include "model/outcome.h"
#include "web/parts.h"
#include "worker_client/event.h"

namespace assay {
namespace {

// Of a worker's event; null: nothing was heard yet.
McpJson ProgressFacts(const McpJob& job, int64_t now_ns) {
  const double seconds = static_cast<double>(now_ns - job.began_ns) * 1e-9;
  McpJson facts = {{"stage", "starting"}, {"text", "starting"}, {"fraction", 0.0}};
  if (const auto event = ParseWorkerEvent(job.event);
      event && event->kind == WorkerEvent::Kind::kProgress) {
    facts["stage"] = event->stage;
    facts["text"] = event->text;
    facts["fraction"] = event->fraction;
  }
  facts["seconds"] = seconds;
  return facts;
}

std::string NextOfError(const McpJob& job, const Error& error) {
  if (job.seconds_max > 0 && job.seconds >= job.seconds_max)
    return fmt::format(
        "The job used up its {:.0f} s. Judge at a smaller size, or with a smaller budget_s.",
        job.seconds_max);
  switch (error.kind) {
    case ErrorKind::kUsage:
      return "Change the call as the error says, and call again.";
    case ErrorKind::kUnjudged:
      return "This machine lacks what the candidate needs, so calling again changes nothing: "
             "choose another language.";
    default:
      return "This says nothing about the candidate. Call again once; if it fails again, stop and "
             "report it: `assay doctor` tells the user what is missing.";
  }
}

std::string NextOf(const McpJob& job) {
  switch (job.state) {
    case McpJobState::kQueued:
    case McpJobState::kRunning:
      return fmt::format("Call job_status with {{\"job\": \"{}\", \"wait_s\": 30}}.", job.handle);
    case McpJobState::kCancelled:
      return "Nothing was decided about the candidate. Call again when you want it judged.";
    case McpJobState::kFailed:
      return NextOfError(job, job.done->error());
    case McpJobState::kDone:
      break;
  }
  if ((*job.done)->verdict && job.tool == "compare" &&
      (*job.done)->verdict->outcome == Outcome::kUnsettled)
    return "The difference is too small for this machine, now: keep either, or call compare with "
           "measure once more.";
  if ((*job.done)->verdict) return NextAfter(*(*job.done)->verdict);
  return "Write a candidate that spares what takes most of the time, and call kernel_check.";
}

// The head of a job's text: its state in one line.
std::string HeadOf(const McpJob& job, const McpJson& facts) {
  std::string head = fmt::format("{}: {}", job.handle, job.tool);
  if (!job.problem.empty()) head += fmt::format(" of {}", job.problem);
  head += fmt::format(", {}", McpJobStateName(job.state));
  if (job.state == McpJobState::kRunning)
    head += fmt::format(" for {:.0f} s: {}", facts["progress"]["seconds"].get<double>(),
                        facts["progress"]["text"].get<std::string>());
  if (job.ended()) head += fmt::format(" after {:.1f} s", job.seconds);
  if (facts.contains("verdict"))
    head += fmt::format("; verdict {}", facts["verdict"].get<std::string>());
  return head + ".";
}

bool IsDisturbed(const Verdict& verdict) {
  const BaselineResult* result = HeadlineOf(verdict);
  return result != nullptr && result->why_unsettled &&
         result->why_unsettled->cause == UnsettledCause::kDisturbed;
}

}  // namespace

ToolReply RefusedReply(const Error& error) { return {nullptr, error.message, true}; }

McpJson BudgetFacts(const Budget& budget) {
  return {{"calls_left", budget.calls_left()}, {"seconds_left", budget.seconds_left()}};
}

McpJson VerdictFacts(const Verdict& verdict) {
  McpJson facts = {{"verdict", verdict.id},
                   {"outcome", OutcomeName(verdict.outcome)},
                   {"message", verdict.message},
                   {"correct", IsCorrect(verdict.outcome)}};
  const BaselineResult* result = HeadlineOf(verdict);
  if (result == nullptr || result->speedup <= 0) return facts;
  facts["speed"] = {
      {"baseline", verdict.speed->headline}, {"decision", result->decision},
      {"speedup", result->speedup},          {"ci_low", result->ci_low},
      {"ci_high", result->ci_high},          {"certified_speedup", 0.0},
      {"time_ns", result->time_ns},          {"candidate_time_ns", result->candidate_time_ns}};
  // Less is no gain: beside a larger speedup it would look like a contradiction.
  if (result->certified_speedup > 1)
    facts["speed"]["certified_speedup"] = result->certified_speedup;
  // Too few pairs have no interval, and JSON has no infinity.
  for (const char* name : {"ci_low", "ci_high"})
    if (!std::isfinite(facts["speed"][name].get<double>())) facts["speed"].erase(name);
  return facts;
}

std::string NextAfter(const Verdict& verdict) {
  switch (verdict.outcome) {
    case Outcome::kCorrect:
      return "It is correct. Call kernel_judge with the same arguments to have its speed judged.";
    case Outcome::kFaster:
      return "It is certified to be faster. To gain more, call profile with the source and change "
             "what limits it; compare with measure tells whether a new version gains over this "
             "one.";
    case Outcome::kTie:
    case Outcome::kSlower:
    case Outcome::kNotFaster:
      return "It is correct and not faster. Call profile with the source to see what limits it, "
             "change that, and call kernel_judge again.";
    case Outcome::kUnsettled:
      if (IsDisturbed(verdict))
        return "Its speed stayed open, since other programs disturbed the measurement: wait until "
               "they have ended, and call kernel_judge again.";
      return "Its speed stayed open, which says nothing against it. Call kernel_judge again, with "
             "a larger budget_s.";
    case Outcome::kWrong:
    case Outcome::kWeightsDiffer:
      return "Mend what the feedback names, and call kernel_check.";
    case Outcome::kBuildFailed:
      return "Mend the errors at the lines that the feedback names, and call kernel_check.";
    case Outcome::kCrashed:
      return "It crashed: look for accesses outside of the arguments, at sizes that are no "
             "multiple "
             "of a vector or a tile, too. Then call kernel_check.";
    case Outcome::kTimedOut:
      return "It took too long: look for a loop that does not end, or a wait. Then call "
             "kernel_check.";
    case Outcome::kOutOfMemory:
      return "It took more memory than a candidate may: hold less at once. Then call kernel_check.";
    case Outcome::kFoul:
      return "It broke a rule, so no speed counts. Compute each call's outputs from that call's "
             "inputs, within the call; problem_get has the rules. Then call kernel_check.";
  }
  return "";
}

ToolReply JobReply(const McpJob& job, const Budget& budget, int64_t now_ns) {
  ToolReply reply;
  McpJson& facts = reply.structured;
  facts = {{"job", job.handle}, {"tool", job.tool}, {"state", McpJobStateName(job.state)}};
  if (!job.problem.empty()) facts["problem"] = job.problem;
  if (job.state == McpJobState::kRunning) facts["progress"] = ProgressFacts(job, now_ns);
  if (job.ended()) facts["seconds"] = job.seconds;
  std::string body;
  if (job.state == McpJobState::kDone) {
    const WorkDone& done = **job.done;
    if (done.verdict) {
      facts.update(VerdictFacts(*done.verdict));
      facts["feedback"] = body = FeedbackText(done.feedback);
    } else {
      facts["text"] = body = done.text;
    }
  } else if (job.state == McpJobState::kFailed) {
    facts["error"] = body = job.done->error().message;
    reply.is_error = true;
  }
  facts["budget"] = BudgetFacts(budget);
  facts["next"] = NextOf(job);
  reply.text = HeadOf(job, facts) + "\n";
  if (!body.empty()) reply.text += "\n" + body + "\n";
  reply.text += fmt::format("\nBudget left: {} calls, {:.0f} s.\nNext: {}", budget.calls_left(),
                            budget.seconds_left(), facts["next"].get<std::string>());
  return reply;
}

}  // namespace assay
