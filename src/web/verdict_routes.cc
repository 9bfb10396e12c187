#include <fmt/format.h>

#include "web/compare_page.h"
#include "web/page_routes.h"
#include "web/reading.h"
#include "web/replies.h"
#include "web/submission.h"
#include "web/verdict_page.h"

namespace assay {
namespace {

std::string FileNameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

VerdictView ViewOf(const ReadVerdict& read, const WebRequest& request) {
  VerdictView view;
  view.verdict = read.verdict;
  view.author = read.served.author;
  view.role = read.served.role;
  view.runner = read.served.runner;
  view.of_own_runner = read.served.own_runner;
  view.job = read.served.job;
  view.source = read.source;
  if (read.hidden_until_s != 0) view.hidden_until = UtcText(read.hidden_until_s);
  view.server = request.origin;
  view.may_rejudge = !read.source.empty() && read.verdict.speed && !read.verdict.speed->against;
  return view;
}

// Whether the reader may submit now: signed in, and before the deadline.
Result<bool> MaySubmit(Hall& hall, const WebRequest& request) {
  if (!request.account) return false;
  ASSAY_ASSIGN_OR_RETURN(const SubmitTerms terms, hall.submit_terms(*request.account, request.now));
  return terms.refusal.empty();
}

ServedReply NoSuchVerdict(const PageParts& parts, const WebRequest& request) {
  return ErrorPageOf(parts, 404, "there is no such verdict", &request);
}

ServedReply ShowVerdict(const PageParts& parts, Hall& hall, const WebRequest& request) {
  ASSAY_ASSIGN_OR_PAGE(const auto read, FindVerdict(hall, request.captures.at("id"), request));
  if (!read) return NoSuchVerdict(parts, request);
  VerdictView view = ViewOf(*read, request);
  if (view.job != 0) {
    ASSAY_ASSIGN_OR_PAGE(view.check, hall.spot_checks().Of(view.job));
  }
  const BoardRow row = BoardRowOf(read->record, read->verdict, read->served);
  ASSAY_ASSIGN_OR_PAGE(const bool may_submit, MaySubmit(hall, request));
  view.may_rejudge = view.may_rejudge && may_submit;
  BoardQuery query;
  query.problem = view.verdict.problem.name;
  query.device = row.entry.gpu_or_cpu;
  query.precision = row.entry.precision;
  ASSAY_ASSIGN_OR_PAGE(const auto boards, hall.BoardsOf(query));
  for (const ProblemBoard& board : *boards)
    for (const PlacedEntry& placed : board.entries)
      if (view.best_other.empty() && placed.row.entry.verdict != view.verdict.id &&
          placed.row.entry.size == view.verdict.problem.size)
        view.best_other = placed.row.entry.verdict;
  ASSAY_ASSIGN_OR_PAGE(const Board* board, hall.CaughtUpBoard());
  for (BoardRow& other : OnEachDevice(board->rows(), row))
    view.on_devices.push_back(std::move(other.entry));
  return HtmlReply(RenderVerdictPage(view, FrameOf(parts, request, Place::kBoard)));
}

// The job that judges b against a and has not ended; 0: none.
Result<int64_t> PairedJob(Hall& hall, const ReadVerdict& a, const ReadVerdict& b) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      hall.database().Prepare("SELECT id FROM jobs WHERE kind = 'compare' AND source = ?"
                              " AND opponent = ? AND state IN ('queued', 'running') LIMIT 1"));
  const std::string& candidate = b.verdict.candidate.hash;
  ASSAY_ASSIGN_OR_RETURN(const bool found,
                         select.Bind(candidate).Bind(a.verdict.candidate.hash).Step());
  return found ? select.Number(0) : 0;
}

ServedReply ShowCompare(const PageParts& parts, Hall& hall, const WebRequest& request) {
  ASSAY_ASSIGN_OR_PAGE(const auto a, FindVerdict(hall, request.Query("a"), request));
  ASSAY_ASSIGN_OR_PAGE(const auto b, FindVerdict(hall, request.Query("b"), request));
  if (!a || !b) return NoSuchVerdict(parts, request);
  CompareView view;
  view.a = ViewOf(*a, request);
  view.b = ViewOf(*b, request);
  ASSAY_ASSIGN_OR_PAGE(const auto paired, FindPaired(hall, *a, *b));
  if (paired) {
    view.paired = paired->result;
    view.paired_verdict = paired->id;
  }
  ASSAY_ASSIGN_OR_PAGE(view.job, PairedJob(hall, *a, *b));
  ASSAY_ASSIGN_OR_PAGE(const bool may_submit, MaySubmit(hall, request));
  view.may_ask = may_submit && !a->source.empty() && !b->source.empty();
  return HtmlReply(RenderComparePage(view, FrameOf(parts, request, Place::kBoard)));
}

// Asks for a judgement of that verdict's candidate; of another one against it, if `against` is
// given.
ServedReply Ask(const PageParts& parts, Hall& hall, const WebRequest& request,
                const ReadVerdict& read, const std::string& against) {
  if (read.source.empty())
    return ErrorPageOf(parts, 404, "its source was not kept, or is hidden", &request);
  SubmissionFields fields;
  fields.problem = read.verdict.problem.name;
  fields.size = read.verdict.problem.size;
  if (fields.size.empty()) fields.set = read.verdict.problem.set;
  fields.name = FileNameOf(read.verdict.candidate.path);
  fields.source = read.source;
  fields.against = against;
  ASSAY_ASSIGN_OR_PAGE(const SubmissionAnswer answer,
                       SubmitCandidate(hall, *request.account, fields, request.now));
  if (answer.status >= 300) return ErrorPageOf(parts, answer.status, answer.why, &request);
  parts.wake(kQueueTopic);
  return Redirect(fmt::format("/jobs/{}", answer.job.id));
}

ServedReply PostCompare(const PageParts& parts, Hall& hall, const WebRequest& request) {
  ASSAY_ASSIGN_OR_PAGE(const auto b, FindVerdict(hall, request.Form("b"), request));
  if (!b) return NoSuchVerdict(parts, request);
  return Ask(parts, hall, request, *b, request.Form("a"));
}

ServedReply PostRejudge(const PageParts& parts, Hall& hall, const WebRequest& request) {
  ASSAY_ASSIGN_OR_PAGE(const auto read, FindVerdict(hall, request.captures.at("id"), request));
  if (!read) return NoSuchVerdict(parts, request);
  return Ask(parts, hall, request, *read, "");
}

}  // namespace

void AddVerdictPages(const PageParts& parts, std::vector<Route>* routes) {
  const auto with_parts = [&parts](auto handler) {
    return [&parts, handler](Hall& hall, const WebRequest& request) {
      return handler(parts, hall, request);
    };
  };
  routes->push_back({"GET", "/verdicts/{id}", Access::kReader, with_parts(ShowVerdict)});
  routes->push_back({"POST", "/verdicts/{id}/rejudge", Access::kMember, with_parts(PostRejudge)});
  routes->push_back({"GET", "/compare", Access::kReader, with_parts(ShowCompare)});
  routes->push_back({"POST", "/compare", Access::kMember, with_parts(PostCompare)});
}

}  // namespace assay
