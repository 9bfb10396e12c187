#include "web/job_pages.h"

#include <algorithm>

#include "report/text.h"
#include "serve/words.h"
#include "web/parts.h"

namespace assay {
namespace {

constexpr int kReload_s = 5;

// Queued, running or how it ended, with a sign.
Html StateBadge(const Job& job) {
  switch (job.state) {
    case JobState::kQueued:
      return Markup("<span class=\"badge faint\">{} in the queue</span>",
                    job.place > 0 ? fmt::format("{}.", job.place) : "○");
    case JobState::kRunning:
      return Markup(
          "<span class=\"badge warn\"><span aria-hidden=\"true\">▸</span> running</span>");
    case JobState::kDone:
      return job.outcome.empty() ? Markup("<span class=\"badge good\">✔ done</span>")
                                 : OutcomeBadge(job.outcome);
    case JobState::kFailed:
      return Markup("<span class=\"badge bad\">! no verdict</span>");
    case JobState::kCancelled:
      return Markup("<span class=\"badge faint\">– cancelled</span>");
  }
  return {};
}

std::string SizeText(const Job& job) {
  std::string text = job.size;
  for (const auto& [name, value] : job.set)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return text;
}

Html EventList(const JobView& view) {
  const Job& job = view.job;
  Html items;
  for (auto event = view.events.rbegin(); event != view.events.rend(); ++event)
    items += Markup("<li><span class=\"faint\">{}</span><span>{}</span><span>{}</span></li>\n",
                    event->time.size() >= 19 ? event->time.substr(11, 8) : event->time,
                    event->stage.empty() ? event->event : event->stage, event->text);
  const int64_t last = view.events.empty() ? 0 : view.events.back().number;
  const Html live = IsTerminal(job.state)
                        ? Html()
                        : Markup(" data-events=\"/api/jobs/{}/events?after={}\"", job.id, last);
  if (items.empty() && IsTerminal(job.state)) return Paragraph("No events were kept.", "faint");
  return Markup("<ol class=\"events\"{} aria-label=\"events, newest first\">\n{}</ol>\n", live,
                items);
}

// `what`: a sentence. The machines' page says what to do.
Html ForNobody(std::string_view what) {
  return Markup(
      "<div class=\"notice bad\"><p><strong>{}</strong> <a href=\"/machine\">Machines</a> shows "
      "which runners are there, and how one begins. If you run no server, ask your mentor.</p>"
      "</div>\n",
      what);
}

Html Progress(const JobView& view) {
  if (view.job.state != JobState::kRunning) return {};
  double fraction = -1;
  std::string stage;
  for (const JobEventLine& event : view.events)
    if (event.fraction >= 0) {
      fraction = event.fraction;
      stage = event.stage;
    }
  return Markup(
      "<p><label for=\"progress\">{}</label><progress id=\"progress\" max=\"1\"{}>"
      "</progress></p>\n",
      stage.empty() ? "progress of this stage" : "progress of the stage " + stage,
      fraction < 0 ? Html() : Markup(" value=\"{:.2f}\"", fraction));
}

Html JobFacts(const Job& job) {
  Html facts = FactRow("kind", Text(JobKindText(job.kind)));
  facts += FactRow("problem", ProblemLink(job.problem));
  facts += FactRow("size", Text(SizeText(job)));
  facts += FactRow("candidate", Markup("<code>{}</code>", job.name));
  if (!job.author.name.empty())
    facts += FactRow("by", Markup("{} {}", job.author.name, RoleTag(job.author.role)));
  facts += FactRow("submitted (UTC)", TimeText(job.made));
  facts += FactRow("ended (UTC)", TimeText(job.ended));
  facts += FactRow("runner", RunnerText(job.runner, job.own_runner));
  if (job.attempts > 1) facts += FactRow("attempts", Markup("{}", job.attempts));
  return Facts(facts);
}

}  // namespace

std::string_view JobKindText(JobKind kind) {
  switch (kind) {
    case JobKind::kJudge:
      return "judgement";
    case JobKind::kCompare:
      return "comparison";
    case JobKind::kFinalist:
      return "judgement of a finalist, on fresh seeds";
    case JobKind::kSpotCheck:
      return "spot check: somebody else judges a verdict's candidate again";
  }
  return "";
}

std::string RenderJobsPage(const JobsView& view, PageFrame frame) {
  frame.place = Place::kJobs;
  frame.title = "Jobs";
  const bool at_work = view.queued + view.running > 0;
  if (at_work) frame.reload_s = kReload_s;
  Html main = Html::Trusted("<h1>Jobs</h1>\n");
  main += Markup("<p class=\"lead\">{} in the queue, {} running, {}.</p>\n",
                 Counted(view.queued, "job"), view.running, Counted(view.runners, "runner"));
  if (view.for_nobody > 0)
    main +=
        ForNobody(fmt::format("No runner takes {} of the queue.", Counted(view.for_nobody, "job")));
  if (view.jobs.empty())
    main += Paragraph(view.own_alone ? "You have submitted nothing yet." : "No jobs yet.", "faint");
  else {
    PageTable table("jobs", {{"job", "n"},
                             {"state", ""},
                             {"problem", "name"},
                             {"size", ""},
                             {"candidate", "name"},
                             {"by", ""},
                             {"runner", ""},
                             {"submitted (UTC)", ""},
                             {"verdict", ""}});
    for (const Job& job : view.jobs)
      table.Row({Markup("<a href=\"/jobs/{0}\">{0}</a>", job.id), StateBadge(job),
                 ProblemLink(job.problem), Text(SizeText(job)), Markup("<code>{}</code>", job.name),
                 Markup("{} {}", job.author.name, RoleTag(job.author.role)),
                 RunnerText(job.runner, job.own_runner), TimeText(job.made),
                 job.verdict.empty() ? Html() : VerdictLink(job.verdict)});
    main += table.End();
  }
  if (!view.older_than.empty())
    main += Markup("<p><a class=\"button\" href=\"/jobs?before={}\">Older jobs</a></p>\n",
                   UrlPart(view.older_than));
  return RenderPage(frame, at_work ? Refreshed(main, kReload_s) : main);
}

std::string RenderJobPage(const JobView& view, PageFrame frame) {
  const Job& job = view.job;
  frame.place = Place::kJobs;
  frame.title = fmt::format("Job {}", job.id);
  if (!IsTerminal(job.state)) frame.reload_s = kReload_s;
  Html main = Markup("<h1>{} Job {}</h1>\n", StateBadge(job), job.id);
  if (job.state == JobState::kQueued)
    main += Markup(
        "<p class=\"lead\" role=\"status\">{}. Jobs are kept: you may close this page, "
        "and come back to it.</p>\n",
        job.place > 1     ? fmt::format("{} ahead of it", Counted(job.place - 1, "job"))
        : view.for_nobody ? "It is first, and waits for a runner"
                          : "It is next");
  if (view.for_nobody) main += ForNobody("No runner takes this job now.");
  if (!job.failure.empty())
    main += Markup(
        "<div class=\"notice bad\"><p><strong>It ended without a verdict:</strong> {}</p>"
        "<p>This says nothing about the candidate.</p></div>\n",
        job.failure);
  if (!job.verdict.empty())
    main += Markup("<p><a class=\"button first\" href=\"/verdicts/{}\">Its verdict</a></p>\n",
                   UrlPart(job.verdict));
  main += Progress(view) + JobFacts(job);
  if (view.may_cancel && !IsTerminal(job.state))
    main += Markup(
        "<form method=\"post\" action=\"/jobs/{}/cancel\">{}<button class=\"danger\">"
        "Cancel the job</button></form>\n",
        job.id, CsrfField(frame.viewer));
  main += Heading("Events") + EventList(view);
  main += Markup(
      "<p class=\"screen\"><a href=\"/api/jobs/{0}\">The job as JSON</a> · <a "
      "href=\"/api/jobs/{0}/events\">its events</a></p>\n",
      job.id);
  return RenderPage(frame, main);
}

}  // namespace assay
