#include "mcp/attempt.h"

#include <map>

#include "base/hash.h"
#include "model/outcome.h"

namespace assay {
namespace {

constexpr size_t kTextMax = 1000;

std::string Dump(const McpJson& json) {
  return json.dump(-1, ' ', false, McpJson::error_handler_t::replace);
}

McpJson ContentOf(const std::string& session, const std::string& tool, const std::string& what) {
  return {{"schema", "assay.mcp.attempt/1"},
          {"session", session},
          {"tool", tool.substr(0, kTextMax)},
          {"what", what}};
}

// Arguments that are text, number or truth; a source by its hash. Others are no tool's.
McpJson KeptArguments(const McpJson& arguments) {
  McpJson kept = McpJson::object();
  for (const auto& [name, value] : arguments.items()) {
    if (kept.size() >= 20 || name.size() > kTextMax) continue;
    if (name == "source" && value.is_string())
      kept[name] = Sha256Hex(value.get_ref<const std::string&>());
    else if (value.is_string())
      kept[name] = value.get_ref<const std::string&>().substr(0, kTextMax);
    else if (value.is_primitive())
      kept[name] = value;
  }
  return kept;
}

}  // namespace

NewRecord RecordOfCall(const std::string& session, const std::string& tool,
                       const McpJson& arguments, const std::string& error) {
  McpJson content = ContentOf(session, tool, error.empty() ? "answered" : "refused");
  content["arguments"] = KeptArguments(arguments);
  if (!error.empty()) content["error"] = error.substr(0, kTextMax);
  NewRecord record;
  record.facts = {RecordKind::kNote, content["tool"], "", "", ""};
  record.content = Dump(content);
  return record;
}

NewRecord RecordOfJob(const std::string& session, const std::string& what, const McpJob& job,
                      bool free) {
  McpJson content = ContentOf(session, job.tool, what);
  content["job"] = job.handle;
  if (free) content["free"] = true;
  if (what == "began") content["seconds_max"] = job.seconds_max;
  NewRecord record;
  record.facts = {RecordKind::kNote, job.tool, job.handle, job.problem, ""};
  if (what == "ended") {
    content["state"] = McpJobStateName(job.state);
    content["seconds"] = job.seconds;
    if (job.done && *job.done && (*job.done)->verdict) {
      const Verdict& verdict = *(*job.done)->verdict;
      content["verdict"] = verdict.id;
      content["outcome"] = record.facts.outcome = OutcomeName(verdict.outcome);
    }
    if (job.done && !*job.done) content["error"] = job.done->error().message.substr(0, kTextMax);
  }
  record.content = Dump(content);
  if (job.source) record.source = job.source->content;
  record.terms = job.terms;
  return record;
}

Spent SpentBy(const std::string& session, std::span<const std::string> contents) {
  Spent spent;
  std::map<std::string, double> open;  // seconds that a job was given
  for (const std::string& text : contents) {
    const McpJson content = McpJson::parse(text, nullptr, false);
    if (!content.is_object() || content.value("session", "") != session) continue;
    const std::string what = content.value("what", ""), job = content.value("job", "");
    if (what == "asked" && !content.value("free", false)) ++spent.calls;
    if (what == "began") open[job] = content.value("seconds_max", 0.0);
    if (what != "ended") continue;
    open.erase(job);
    spent.seconds += content.value("seconds", 0.0);
  }
  for (const auto& [job, seconds] : open) spent.seconds += seconds;
  return spent;
}

}  // namespace assay
