#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "serve/given_job.h"
#include "web/api.h"
#include "web/replies.h"
#include "web/submission.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kWaitMaxS = 30;
constexpr size_t kNameBytesMax = 100, kMachineBytesMax = size_t{256} << 10;
constexpr size_t kVerdictBytesMax = size_t{8} << 20;

Result<KnownRunner> RunnerOf(const Json& json) {
  KnownRunner runner;
  ASSAY_ASSIGN_OR_RETURN(runner.name, TextField(json, "runner", true));
  ASSAY_ASSIGN_OR_RETURN(runner.device, TextField(json, "device", true));
  ASSAY_ASSIGN_OR_RETURN(runner.version, TextField(json, "version", false));
  if (runner.name.empty() || runner.name.size() > kNameBytesMax ||
      runner.version.size() > kNameBytesMax || runner.device.size() > kNameBytesMax)
    return UsageError("runner, device and version are names of up to 100 bytes");
  if (runner.device != "cpu" && !runner.device.starts_with("cuda"))
    return UsageError("device must be cpu, or a GPU such as cuda:0");
  if (const auto machine = json.find("machine"); machine != json.end() && machine->is_object()) {
    runner.machine = machine->dump(-1, ' ', false, Json::error_handler_t::replace);
    if (runner.machine.size() > kMachineBytesMax) return UsageError("machine is too large");
  }
  return runner;
}

ServedReply PostTake(Hall& hall, const WebRequest& request, const WakeFunction& wake) {
  ASSAY_ASSIGN_OR_REPLY(const Json json, ReadJsonObject(request.http.body));
  ASSAY_ASSIGN_OR_REPLY(const KnownRunner facts, RunnerOf(json));
  const auto wait_s = json.find("wait_s");
  const int seconds = wait_s != json.end() && wait_s->is_number_integer()
                          ? std::clamp(wait_s->get<int>(), 0, kWaitMaxS)
                          : 0;
  const Account owner = *request.account;
  const auto ask = [&hall, &wake, owner, facts](bool last) -> std::optional<ServedReply> {
    const std::scoped_lock lock(hall.mutex);
    const auto given =
        GiveJob(hall, owner, facts, InstantNow(), [&wake](int64_t job) { wake(JobTopic(job)); });
    if (!given) return ErrorReply(given.error());
    if (*given) return JsonReply(Json::parse((*given)->body));
    if (last) return ServedReply{204, ""};
    return std::nullopt;
  };
  ServedReply reply;
  reply.wait = std::make_shared<ServedWait>(ServedWait{kQueueTopic, 1000 * seconds, ask});
  return reply;
}

ServedReply PostProgress(Hall& hall, const WebRequest& request, const WakeFunction& wake) {
  ASSAY_ASSIGN_OR_REPLY(const Json json, ReadJsonObject(request.http.body));
  ASSAY_ASSIGN_OR_REPLY(const std::string lease, TextField(json, "lease", true));
  const int64_t job = request.Id("id").value_or(0);
  const auto event = json.find("event");
  std::string line;
  if (event != json.end() && event->is_object())
    line = event->dump(-1, ' ', false, Json::error_handler_t::replace);
  ASSAY_ASSIGN_OR_REPLY(const bool go_on, hall.leases().Renew(job, lease, line, request.now));
  if (go_on && !line.empty()) wake(JobTopic(job));
  return JsonReply({{"go_on", go_on}});
}

Result<Ending> EndJob(Hall& hall, const WebRequest& request, const Json& json) {
  const int64_t job = request.Id("id").value_or(0);
  ASSAY_ASSIGN_OR_RETURN(const std::string lease, TextField(json, "lease", true));
  if (const auto verdict = json.find("verdict"); verdict != json.end() && verdict->is_object())
    return hall.End(job, lease, verdict->dump(-1, ' ', false, Json::error_handler_t::replace),
                    request.now);
  const auto error = json.find("error");
  if (error == json.end() || !error->is_object())
    return UsageError("send a verdict, or an error in its place");
  RunnerError told;
  ASSAY_ASSIGN_OR_RETURN(told.kind, TextField(*error, "kind", true));
  ASSAY_ASSIGN_OR_RETURN(told.message, TextField(*error, "message", true));
  return hall.leases().EndWithError(job, lease, told, request.now);
}

ServedReply PostEnd(Hall& hall, const WebRequest& request, const WakeFunction& wake) {
  ASSAY_ASSIGN_OR_REPLY(const Json json, ReadJsonObject(request.http.body));
  ASSAY_ASSIGN_OR_REPLY(const Ending ending, EndJob(hall, request, json));
  wake(JobTopic(request.Id("id").value_or(0)));
  if (ending == Ending::kRequeued) wake(kQueueTopic);
  return JsonReply({{"counted", ending != Ending::kNotCounted}});
}

ServedReply ListRunners(Hall& hall, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const std::vector<KnownRunner> runners, hall.leases().Runners(request.now));
  Json list = Json::array();
  for (const KnownRunner& runner : runners)
    list.push_back({{"id", runner.id},
                    {"name", runner.name},
                    {"owner", runner.owner.name},
                    {"device", runner.device},
                    {"version", runner.version},
                    {"promoted", runner.promoted},
                    {"seen", runner.seen},
                    {"there", runner.is_there},
                    {"job", runner.job == 0 ? Json() : Json(runner.job)}});
  return JsonReply({{"runners", list}});
}

ServedReply PostPromotion(Hall& hall, const WebRequest& request, const WakeFunction& wake) {
  ASSAY_ASSIGN_OR_REPLY(const Json json, ReadJsonObject(request.http.body));
  const auto promoted = json.find("promoted");
  if (promoted == json.end() || !promoted->is_boolean())
    return ErrorReply(400, "promoted must be true or false");
  ASSAY_ASSIGN_OR_REPLY(
      const bool found,
      hall.leases().Promote(request.Id("id").value_or(0), promoted->get<bool>(), request.now));
  if (!found) return ErrorReply(404, "there is no such runner");
  wake(kQueueTopic);
  return JsonReply({{"promoted", promoted->get<bool>()}});
}

}  // namespace

void AddRunnerRoutes(const WakeFunction& wake, std::vector<Route>* routes) {
  const auto with_wake = [&wake](auto handler) {
    return [&wake, handler](Hall& hall, const WebRequest& request) {
      return handler(hall, request, wake);
    };
  };
  routes->push_back({"POST", "/api/runner/take", Access::kMember, with_wake(PostTake)});
  routes->push_back(
      {"POST", "/api/runner/jobs/{id}/progress", Access::kMember, with_wake(PostProgress)});
  routes->push_back(
      {"POST", "/api/runner/jobs/{id}/end", Access::kMember, with_wake(PostEnd), kVerdictBytesMax});
  routes->push_back({"GET", "/api/runners", Access::kMember, ListRunners});
  routes->push_back(
      {"POST", "/api/runners/{id}/promotion", Access::kServerMentor, with_wake(PostPromotion)});
}

}  // namespace assay
