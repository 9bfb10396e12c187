#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "serve/words.h"
#include "web/api.h"
#include "web/reading.h"
#include "web/replies.h"
#include "web/submission.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kEventsAtOnce = 500, kJobsAtOnce = 100;

int64_t NumberOf(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0 ? number : 0;
}

Result<SubmissionFields> FieldsOf(const std::string& body) {
  ASSAY_ASSIGN_OR_RETURN(const Json json, ReadJsonObject(body));
  SubmissionFields fields;
  ASSAY_ASSIGN_OR_RETURN(fields.problem, TextField(json, "problem", true));
  ASSAY_ASSIGN_OR_RETURN(fields.size, TextField(json, "size", false));
  ASSAY_ASSIGN_OR_RETURN(fields.name, TextField(json, "name", true));
  ASSAY_ASSIGN_OR_RETURN(fields.source, TextField(json, "source", true));
  ASSAY_ASSIGN_OR_RETURN(fields.against, TextField(json, "against", false));
  ASSAY_ASSIGN_OR_RETURN(fields.kind, TextField(json, "kind", false));
  ASSAY_ASSIGN_OR_RETURN(fields.key, TextField(json, "key", false));
  const auto set = json.find("set");
  if (set == json.end() || set->is_null()) return fields;
  if (!set->is_object()) return UsageError("set must be an object: {\"ROWS\": 64}");
  for (const auto& [name, value] : set->items())
    fields.set[name] = value.is_string() ? value.get<std::string>() : value.dump();
  return fields;
}

// As this reader may see it.
Result<Json> ShownJob(Hall& hall, const Job& job, const WebRequest& request) {
  Json json = JobJson(job);
  if (job.state == JobState::kQueued) {
    ASSAY_ASSIGN_OR_RETURN(json["for_nobody"], hall.leases().WaitsForNobody(job.id, request.now));
  }
  if (job.failure.empty()) return json;
  ASSAY_ASSIGN_OR_RETURN(const bool hides, HidesWordsOf(hall, job, request));
  if (hides) json["failure"] = kHiddenWords;
  return json;
}

ServedReply PostJob(Hall& hall, const WebRequest& request, const WakeFunction& wake) {
  ASSAY_ASSIGN_OR_REPLY(const SubmissionFields fields, FieldsOf(request.http.body));
  ASSAY_ASSIGN_OR_REPLY(const SubmissionAnswer answer,
                        SubmitCandidate(hall, *request.account, fields, request.now));
  if (answer.status >= 300) {
    ServedReply refusal = ErrorReply(answer.status, answer.why);
    if (answer.retry_after_s > 0)
      refusal.headers.emplace_back("Retry-After", std::to_string(answer.retry_after_s));
    return refusal;
  }
  wake(kQueueTopic);
  ASSAY_ASSIGN_OR_REPLY(Json json, ShownJob(hall, answer.job, request));
  return JsonReply({{"job", std::move(json)}}, answer.status);
}

ServedReply ListJobs(Hall& hall, const WebRequest& request) {
  JobQuery query;
  query.limit = kJobsAtOnce;
  query.before = NumberOf(request.Query("before"));
  if (const std::string state = request.Query("state"); !state.empty()) {
    query.state = JobStateFromName(state);
    if (!query.state)
      return ErrorReply(400, "state must be queued, running, done, failed or cancelled");
  }
  if (request.Query("all").empty()) query.account = request.account->id;
  ASSAY_ASSIGN_OR_REPLY(const std::vector<Job> jobs, hall.jobs().List(query));
  Json list = Json::array();
  for (const Job& job : jobs) {
    ASSAY_ASSIGN_OR_REPLY(Json json, ShownJob(hall, job, request));
    list.push_back(std::move(json));
  }
  return JsonReply({{"jobs", list}});
}

ServedReply NoSuchJob() { return ErrorReply(404, "there is no such job"); }

ServedReply GetJob(Hall& hall, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const auto job, hall.jobs().Find(request.Id("id").value_or(0)));
  if (!job) return NoSuchJob();
  ASSAY_ASSIGN_OR_REPLY(Json json, ShownJob(hall, *job, request));
  return JsonReply({{"job", std::move(json)}});
}

ServedReply CancelJob(Hall& hall, const WebRequest& request, const WakeFunction& wake) {
  const int64_t id = request.Id("id").value_or(0);
  ASSAY_ASSIGN_OR_REPLY(auto job, hall.jobs().Find(id));
  if (!job) return NoSuchJob();
  if (!MayCancel(request, *job)) return ErrorReply(403, kWhoMayCancel);
  ASSAY_ASSIGN_OR_REPLY(const bool cancelled, hall.jobs().Cancel(id, request.now));
  if (cancelled) wake(JobTopic(id));
  ASSAY_ASSIGN_OR_REPLY(job, hall.jobs().Find(id));
  return JsonReply({{"job", JobJson(*job)}});
}

Json EventJson(const JobEvent& event, bool hides) {
  const std::string body = hides ? WithoutWords(event.body) : event.body;
  return {
      {"number", event.number}, {"time", event.time}, {"event", Json::parse(body, nullptr, false)}};
}

// The events of a job as they come, as server-sent events; it ends after the job's end.
std::shared_ptr<const ServedStream> StreamOf(Hall& hall, int64_t job, int64_t after, bool hides) {
  struct Reader {
    int64_t after;
    bool is_new = true, ended = false;
  };
  auto reader = std::make_shared<Reader>(after);
  const auto next = [&hall, job, reader, hides]() -> std::optional<std::string> {
    if (reader->ended) return std::nullopt;
    const std::scoped_lock lock(hall.mutex);
    const auto events = hall.jobs().Events(job, reader->after, kEventsAtOnce);
    if (!events) return std::nullopt;
    std::string text;
    for (const JobEvent& event : *events) {
      text += fmt::format("id: {}\ndata: {}\n\n", event.number,
                          hides ? WithoutWords(event.body) : event.body);
      reader->after = event.number;
    }
    // Those that come again after the end hear of nothing.
    const auto now = hall.jobs().Find(job);
    reader->ended = events->size() < kEventsAtOnce && now && *now && IsTerminal((*now)->state);
    if (reader->ended && text.empty()) return std::nullopt;
    if (text.empty()) text = std::exchange(reader->is_new, false) ? ":\n\n" : ": there\n\n";
    return text;
  };
  ServedStream stream{JobTopic(job), next};
  stream.ended = [reader] { return reader->ended; };
  return std::make_shared<ServedStream>(std::move(stream));
}

ServedReply GetEvents(Hall& hall, const WebRequest& request) {
  const int64_t id = request.Id("id").value_or(0);
  ASSAY_ASSIGN_OR_REPLY(const auto job, hall.jobs().Find(id));
  if (!job) return NoSuchJob();
  ASSAY_ASSIGN_OR_REPLY(const bool hides, HidesWordsOf(hall, *job, request));
  if (request.http.Header("accept").find("text/event-stream") != std::string::npos) {
    const std::string last = request.http.Header("last-event-id");
    ServedReply reply;
    reply.content_type = "text/event-stream";
    reply.stream =
        StreamOf(hall, id, NumberOf(last.empty() ? request.Query("after") : last), hides);
    return reply;
  }
  ASSAY_ASSIGN_OR_REPLY(const std::vector<JobEvent> events,
                        hall.jobs().Events(id, NumberOf(request.Query("after")), kEventsAtOnce));
  Json list = Json::array();
  for (const JobEvent& event : events) list.push_back(EventJson(event, hides));
  ASSAY_ASSIGN_OR_REPLY(Json json, ShownJob(hall, *job, request));
  return JsonReply({{"events", list}, {"job", std::move(json)}});
}

}  // namespace

void AddJobRoutes(const WakeFunction& wake, std::vector<Route>* routes) {
  routes->push_back(
      {"POST", "/api/jobs", Access::kMember,
       [&wake](Hall& hall, const WebRequest& request) { return PostJob(hall, request, wake); }});
  routes->push_back({"GET", "/api/jobs", Access::kMember, ListJobs});
  routes->push_back({"GET", "/api/jobs/{id}", Access::kMember, GetJob});
  routes->push_back(
      {"DELETE", "/api/jobs/{id}", Access::kMember,
       [&wake](Hall& hall, const WebRequest& request) { return CancelJob(hall, request, wake); }});
  routes->push_back({"GET", "/api/jobs/{id}/events", Access::kMember, GetEvents});
}

}  // namespace assay
