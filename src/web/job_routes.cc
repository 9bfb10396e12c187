#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "web/job_pages.h"
#include "web/machine_page.h"
#include "web/page_routes.h"
#include "web/reading.h"
#include "web/replies.h"
#include "web/submission.h"
#include "web/submit_page.h"

namespace assay {
namespace {

using Json = nlohmann::json;

constexpr int64_t kJobsShown = 50, kEventsShown = 200;
constexpr int64_t kJobsOfMedian = 51;

ServedReply ShowJobs(const PageParts& parts, Hall& hall, const WebRequest& request) {
  JobQuery query;
  query.limit = kJobsShown;
  JobsView view;
  view.own_alone = request.Query("own") == "1";
  if (view.own_alone) query.account = request.account->id;
  if (const std::string before = request.Query("before");
      !before.empty() && before.size() < 18 &&
      before.find_first_not_of("0123456789") == std::string::npos)
    query.before = std::stoll(before);
  ASSAY_ASSIGN_OR_PAGE(view.jobs, hall.jobs().List(query));
  ASSAY_ASSIGN_OR_PAGE(const Jobs::QueueFacts queue, hall.jobs().Queue());
  ASSAY_ASSIGN_OR_PAGE(const std::vector<KnownRunner> runners, hall.leases().Runners(request.now));
  ASSAY_ASSIGN_OR_PAGE(view.for_nobody, hall.leases().WaitingForNobody(request.now));
  view.queued = queue.queued;
  view.running = queue.running;
  view.runners = std::ranges::count_if(runners, &KnownRunner::is_there);
  if (std::ssize(view.jobs) == kJobsShown) view.older_than = std::to_string(view.jobs.back().id);
  return HtmlReply(RenderJobsPage(view, FrameOf(parts, request, Place::kJobs)));
}

std::string TextIn(const Json& event, const char* name) {
  const auto found = event.find(name);
  return found != event.end() && found->is_string() ? found->get<std::string>() : std::string();
}

JobEventLine LineOf(const JobEvent& event) {
  JobEventLine line;
  line.number = event.number;
  line.time = event.time;
  const Json json = Json::parse(event.body, nullptr, false);
  if (!json.is_object()) return line;
  line.event = TextIn(json, "event");
  line.stage = TextIn(json, "stage");
  for (const char* name : {"text", "why", "failure", "runner", "outcome", "state"})
    if (line.text.empty()) line.text = TextIn(json, name);
  if (const auto fraction = json.find("fraction"); fraction != json.end() && fraction->is_number())
    line.fraction = fraction->get<double>();
  return line;
}

ServedReply ShowJob(const PageParts& parts, Hall& hall, const WebRequest& request) {
  ASSAY_ASSIGN_OR_PAGE(const auto job, hall.jobs().Find(request.Id("id").value_or(0)));
  if (!job) return ErrorPageOf(parts, 404, "there is no such job", &request);
  ASSAY_ASSIGN_OR_PAGE(std::vector<JobEvent> events, hall.jobs().Events(job->id, 0, 5000));
  JobView view;
  view.job = *job;
  const size_t first = events.size() > kEventsShown ? events.size() - kEventsShown : 0;
  ASSAY_ASSIGN_OR_PAGE(const bool hides, HidesWordsOf(hall, *job, request));
  if (hides && !job->failure.empty()) view.job.failure = kHiddenWords;
  for (size_t i = first; i < events.size(); ++i) {
    if (hides) events[i].body = WithoutWords(events[i].body);
    view.events.push_back(LineOf(events[i]));
  }
  const bool has_ended = !job->ended.empty();
  ASSAY_ASSIGN_OR_PAGE(view.for_nobody, hall.leases().WaitsForNobody(job->id, request.now));
  view.may_cancel = !has_ended && MayCancel(request, *job);
  PageFrame frame = FrameOf(parts, request, Place::kJobs);
  if (!has_ended) frame.reload_s = 5;
  return HtmlReply(RenderJobPage(view, frame));
}

ServedReply CancelJob(const PageParts& parts, Hall& hall, const WebRequest& request) {
  const int64_t id = request.Id("id").value_or(0);
  ASSAY_ASSIGN_OR_PAGE(const auto job, hall.jobs().Find(id));
  if (!job) return ErrorPageOf(parts, 404, "there is no such job", &request);
  if (!MayCancel(request, *job)) return ErrorPageOf(parts, 403, kWhoMayCancel, &request);
  ASSAY_ASSIGN_OR_PAGE(const bool cancelled, hall.jobs().Cancel(id, request.now));
  if (cancelled) parts.wake(JobTopic(id));
  return Redirect(fmt::format("/jobs/{}", id));
}

// How much longer and how often this account may submit.
Result<void> AddLimits(Hall& hall, const WebRequest& request, SubmitView* view) {
  if (!request.account) return {};
  ASSAY_ASSIGN_OR_RETURN(const SubmitTerms terms, hall.submit_terms(*request.account, request.now));
  ASSAY_ASSIGN_OR_RETURN(const Jobs::AccountFacts account,
                         hall.jobs().OfAccount(request.account->id, request.now));
  view->over = terms.refusal;
  view->left_today = std::max<int64_t>(0, terms.limits.made_a_day_max - account.made_today);
  if (terms.deadline_s != 0) view->deadline = UtcText(terms.deadline_s);
  return {};
}

Result<SubmitView> SubmitViewOf(Hall& hall, const WebRequest& request) {
  SubmitView view;
  ASSAY_ASSIGN_OR_RETURN(const auto refused, hall.leases().RefusedByAll(request.now));
  for (const OfferedProblem& problem : hall.catalogue().all()) {
    SubmitChoice choice{problem.facts.name, {}, {}};
    for (const auto& [size, values] : problem.facts.sizes) {
      choice.sizes.push_back(size);
      const Leases::ProblemSize each{problem.facts.name, size};
      if (std::ranges::find(refused, each) != refused.end()) choice.too_large.push_back(size);
    }
    view.problems.push_back(std::move(choice));
  }
  // Anybody may write an address, and the page has a command to copy.
  if (const auto known = hall.catalogue().Find(request.Query("problem")); known) {
    view.problem = (*known)->facts.name;
    if ((*known)->facts.sizes.contains(request.Query("size"))) view.size = request.Query("size");
  }
  if (IsVerdictId(request.Query("against"))) view.against = request.Query("against");
  ASSAY_ASSIGN_OR_RETURN(const Jobs::QueueFacts queue, hall.jobs().Queue());
  view.queued = queue.queued;
  ASSAY_RETURN_IF_ERROR(AddLimits(hall, request, &view));
  view.source_bytes_max = kSourceBytesMax;
  return view;
}

ServedReply ShowSubmit(const PageParts& parts, Hall& hall, const WebRequest& request) {
  ASSAY_ASSIGN_OR_PAGE(const SubmitView view, SubmitViewOf(hall, request));
  return HtmlReply(RenderSubmitPage(view, FrameOf(parts, request, Place::kJobs)));
}

// Forms send line breaks as CR LF.
std::string WithoutCarriageReturns(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] != '\r' || i + 1 >= text.size() || text[i + 1] != '\n') plain += text[i];
  return plain;
}

ServedReply PostSubmit(const PageParts& parts, Hall& hall, const WebRequest& request) {
  SubmissionFields fields;
  fields.problem = request.Form("problem");
  fields.size = request.Form("size");
  fields.name = request.Form("name");
  fields.source = WithoutCarriageReturns(request.Form("source"));
  fields.against = request.Form("against");
  for (const FormPart& file : request.files) {
    if (file.name != "file" || file.content.empty()) continue;
    fields.source = file.content;
    if (fields.name.empty()) fields.name = file.file_name;
  }
  ASSAY_ASSIGN_OR_PAGE(const SubmissionAnswer answer,
                       SubmitCandidate(hall, *request.account, fields, request.now));
  if (answer.status < 300) {
    parts.wake(kQueueTopic);
    return Redirect(fmt::format("/jobs/{}", answer.job.id));
  }
  ASSAY_ASSIGN_OR_PAGE(SubmitView view, SubmitViewOf(hall, request));
  view.problem = fields.problem;
  view.size = fields.size;
  view.name = fields.name;
  view.source = fields.source.size() <= kSourceBytesMax ? fields.source : "";
  view.against = fields.against;
  view.fault = answer.why;
  ServedReply reply =
      HtmlReply(RenderSubmitPage(view, FrameOf(parts, request, Place::kJobs)), answer.status);
  if (answer.retry_after_s > 0)
    reply.headers.emplace_back("Retry-After", std::to_string(answer.retry_after_s));
  return reply;
}

Result<double> MinutesOfAJob(Hall& hall) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      hall.database().Prepare("SELECT events.time_s, jobs.ended_s FROM jobs JOIN events ON"
                              " events.job = jobs.id AND events.number = 2 WHERE state = 'done'"
                              " ORDER BY jobs.id DESC LIMIT ?"));
  select.Bind(kJobsOfMedian);
  std::vector<double> minutes;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) break;
    minutes.push_back(static_cast<double>(select.Number(1) - select.Number(0)) / 60);
  }
  if (minutes.empty()) return 0;
  std::ranges::nth_element(minutes, minutes.begin() + std::ssize(minutes) / 2);
  return std::max(0.0, minutes[minutes.size() / 2]);
}

ServedReply ShowMachine(const PageParts& parts, Hall& hall, const WebRequest& request) {
  MachineView view;
  view.may_promote = request.account && request.account->ManagesServer();
  view.server = request.origin;
  ASSAY_ASSIGN_OR_PAGE(view.for_nobody, hall.leases().WaitingForNobody(request.now));
  ASSAY_ASSIGN_OR_PAGE(const auto checks, hall.spot_checks().ByRunner());
  ASSAY_ASSIGN_OR_PAGE(const std::vector<KnownRunner> runners, hall.leases().Runners(request.now));
  if (!hall.machine().cpu.empty()) view.profiles.push_back(hall.machine());
  for (const KnownRunner& runner : runners) {
    ASSAY_ASSIGN_OR_PAGE(const bool is_server, hall.accounts().IsServer(runner.owner.id));
    RunnerLine line{runner.name,
                    runner.device,
                    runner.version,
                    is_server ? "" : runner.owner.name,
                    runner.promoted,
                    runner.seen,
                    runner.job,
                    runner.is_there,
                    runner.id,
                    0,
                    0,
                    0,
                    runner.owner.ManagesServer()};
    if (const auto found = checks.find(runner.id); found != checks.end()) {
      line.checked = found->second.checked;
      line.differing = found->second.differing;
      line.undecided = found->second.undecided;
    }
    view.runners.push_back(std::move(line));
    if (!runner.promoted) continue;  // what it says of its machine is its owner's word
    const auto profile = MachineProfileFromJson(runner.machine);
    const bool known = !profile || std::ranges::any_of(view.profiles, [&](const auto& each) {
      return each.cpu == profile->cpu && each.created == profile->created;
    });
    if (!known) view.profiles.push_back(*profile);
  }
  ASSAY_ASSIGN_OR_PAGE(const Jobs::QueueFacts queue, hall.jobs().Queue());
  view.queued = queue.queued;
  view.running = queue.running;
  ASSAY_ASSIGN_OR_PAGE(view.minutes_a_job, MinutesOfAJob(hall));
  return HtmlReply(RenderMachinePage(view, FrameOf(parts, request, Place::kMachine)));
}

ServedReply PostPromotion(const PageParts& parts, Hall& hall, const WebRequest& request) {
  ASSAY_ASSIGN_OR_PAGE(const bool found,
                       hall.leases().Promote(request.Id("id").value_or(0),
                                             request.Form("promoted") == "yes", request.now));
  if (!found) return ErrorPageOf(parts, 404, "there is no such runner", &request);
  parts.wake(kQueueTopic);
  return Redirect("/machine");
}

}  // namespace

void AddJobPages(const PageParts& parts, std::vector<Route>* routes) {
  const auto with_parts = [&parts](auto handler) {
    return [&parts, handler](Hall& hall, const WebRequest& request) {
      return handler(parts, hall, request);
    };
  };
  routes->push_back({"GET", "/jobs", Access::kMember, with_parts(ShowJobs)});
  routes->push_back({"GET", "/jobs/{id}", Access::kMember, with_parts(ShowJob)});
  routes->push_back({"POST", "/jobs/{id}/cancel", Access::kMember, with_parts(CancelJob)});
  routes->push_back({"GET", "/submit", Access::kAnyone, with_parts(ShowSubmit)});
  routes->push_back({"POST", "/submit", Access::kMember, with_parts(PostSubmit)});
  routes->push_back({"GET", "/machine", Access::kReader, with_parts(ShowMachine)});
  routes->push_back(
      {"POST", "/runners/{id}/promotion", Access::kServerMentor, with_parts(PostPromotion)});
}

}  // namespace assay
