#include "worker_client/event.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "model/verdict_json.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;
using Kind = WorkerEvent::Kind;

constexpr const char* kSchema = "assay.worker/1";
constexpr std::array<std::pair<std::string_view, Kind>, 8> kEventKinds{
    {{"ready", Kind::kReady},
     {"progress", Kind::kProgress},
     {"verdict", Kind::kVerdict},
     {"unjudged", Kind::kUnjudged},
     {"known", Kind::kKnown},
     {"description", Kind::kDescription},
     {"done", Kind::kDone},
     {"error", Kind::kFailed}}};

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json EventOf(const std::string& id, std::string_view event) {
  return {{"schema", kSchema}, {"event", event}, {"id", id}};
}

void AddWhy(const Error& error, Json* line) {
  if (error.code != ErrorCode::kNone) (*line)["code"] = ErrorCodeName(error.code);
  (*line)["message"] = error.message;
}

// A field, or `otherwise` where it is missing or of the wrong kind.
template <typename T>
T Field(const Json& object, const char* name, T otherwise) {
  try {
    return object.value(name, otherwise);
  } catch (const Json::exception&) {
    return otherwise;
  }
}

}  // namespace

bool WorkerEvent::IsAnswer() const {
  return kind == Kind::kVerdict || kind == Kind::kUnjudged || kind == Kind::kKnown ||
         kind == Kind::kDescription;
}

std::optional<WorkerEvent> ParseWorkerEvent(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const std::string name = Field(json, "event", std::string());
  const auto kind = std::ranges::find(kEventKinds, name, &decltype(kEventKinds)::value_type::first);
  if (kind == kEventKinds.end()) return std::nullopt;
  WorkerEvent event;
  event.kind = kind->second;
  event.id = Field(json, "id", event.id);
  if (const auto candidate = json.find("candidate"); candidate != json.end())
    if (candidate->is_number_unsigned()) event.candidate = candidate->get<size_t>();
  if (event.kind == Kind::kDescription) event.candidate = 0;
  if (event.IsAnswer() && !event.candidate) return std::nullopt;
  event.stage = Field(json, "stage", event.stage);
  event.text = Field(json, "text", event.text);
  event.fraction = Field(json, "fraction", event.fraction);
  if (json.contains("verdict")) event.verdict = Dump(json["verdict"]);
  event.artifact = Field(json, "artifact", event.artifact);
  event.signature = Field(json, "signature", event.signature);
  const bool is_usage = Field(json, "kind", std::string()) == "usage";
  event.error.kind = event.kind == Kind::kUnjudged ? ErrorKind::kUnjudged
                     : is_usage                    ? ErrorKind::kUsage
                                                   : ErrorKind::kEnvironment;
  event.error.message = Field(json, "message", event.error.message);
  event.error.code = ErrorCodeFromName(Field(json, "code", std::string()));
  event.line = line;
  return event;
}

std::string ReadyLine(std::string_view version) {
  return Dump({{"schema", kSchema}, {"event", "ready"}, {"version", version}});
}

std::string ProgressLine(const std::string& id, const ProgressEvent& event) {
  Json line = EventOf(id, "progress");
  line["stage"] = JudgeStageName(event.stage);
  line["text"] = event.text;
  line["fraction"] = std::clamp(event.fraction, 0.0, 1.0);
  if (event.candidates > 0) line["candidate"] = event.candidate;
  return Dump(line);
}

std::string VerdictLine(const std::string& id, size_t candidate, const Verdict& verdict) {
  Json line = EventOf(id, "verdict");
  line["candidate"] = candidate;
  line["verdict"] = Json::parse(VerdictToJson(verdict, -1));
  return Dump(line);
}

std::string UnjudgedLine(const std::string& id, size_t candidate, const Error& error) {
  Json line = EventOf(id, "unjudged");
  line["candidate"] = candidate;
  AddWhy(error, &line);
  return Dump(line);
}

std::string KnownLine(const std::string& id, size_t candidate, const std::string& artifact) {
  Json line = EventOf(id, "known");
  line["candidate"] = candidate;
  line["artifact"] = artifact;
  return Dump(line);
}

std::string DescriptionLine(const std::string& id, const ProblemRequest& problem,
                            const ProblemDescription& description) {
  Json line = EventOf(id, "description");
  line["problem"] = problem.name;
  line["device"] = problem.device;
  line["set"] = problem.set;
  line["signature"] = Json::array();
  for (const wire::ArgumentSpec& argument : description.arguments)
    line["signature"].push_back(DescribeArgument(argument));
  return Dump(line);
}

std::string DoneLine(const std::string& id) { return Dump(EventOf(id, "done")); }

std::string ErrorLine(const std::string& id, const Error& error) {
  Json line = EventOf(id, "error");
  line["kind"] = ErrorKindName(error.kind);
  AddWhy(error, &line);
  return Dump(line);
}

}  // namespace assay
