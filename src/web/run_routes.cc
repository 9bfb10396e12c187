#include <algorithm>

#include "web/page_routes.h"
#include "web/reading.h"
#include "web/replies.h"
#include "web/run_pages.h"

namespace assay {
namespace {

constexpr int64_t kRunsShown = 20, kLiveS = 120;

// A search is live if it has steps in hand and was heard of lately.
Result<RunView> ReadRun(Hall& hall, const Journal& journal, Instant now) {
  RunView view = ViewOfRun(journal);
  for (const bool oldest : {true, false}) {
    RecordQuery query;
    query.id = view.settings.id;
    query.oldest_first = oldest;
    query.limit = 1;
    ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> found, hall.archive().Find(query));
    if (found.empty()) continue;
    if (oldest) view.began = found[0].time;
    if (!oldest) view.is_live = view.in_hand > 0 && now.utc_s - UtcSeconds(found[0].time) < kLiveS;
  }
  return view;
}

ServedReply ShowRuns(const PageParts& parts, Hall& hall, const WebRequest& request) {
  RecordQuery query;
  query.kind = RecordKind::kSearch;
  query.limit = kRunsShown;
  ASSAY_ASSIGN_OR_PAGE(const std::vector<Record> searches, hall.archive().Find(query));
  std::vector<RunView> views;
  for (const Record& record : searches) {
    const auto journal = Journal::Open(hall.archive(), record.facts.id);
    if (!journal) continue;
    ASSAY_ASSIGN_OR_PAGE(RunView view, ReadRun(hall, *journal, request.now));
    views.push_back(std::move(view));
  }
  return HtmlReply(RenderRunsPage(views, FrameOf(parts, request, Place::kRuns)));
}

ServedReply ShowRun(const PageParts& parts, Hall& hall, const WebRequest& request) {
  const auto journal = Journal::Open(hall.archive(), request.captures.at("id"));
  if (!journal) return ErrorPageOf(parts, 404, journal.error().message, &request);
  ASSAY_ASSIGN_OR_PAGE(const RunView view, ReadRun(hall, *journal, request.now));
  return HtmlReply(RenderRunPage(view, FrameOf(parts, request, Place::kRuns)));
}

ServedReply ShowLadders(const PageParts& parts, Hall&, const WebRequest& request) {
  return HtmlReply(RenderLaddersPage(parts.ladders, FrameOf(parts, request, Place::kLadders)));
}

ServedReply ShowLadder(const PageParts& parts, Hall&, const WebRequest& request) {
  std::vector<LadderView> sizes;
  for (const LadderView& view : parts.ladders)
    if (LadderPageName(view.ladder) == request.captures.at("name")) sizes.push_back(view);
  if (sizes.empty()) return ErrorPageOf(parts, 404, "there is no such ladder", &request);
  return HtmlReply(RenderLadderPage(sizes, FrameOf(parts, request, Place::kLadders)));
}

}  // namespace

void AddRunPages(const PageParts& parts, std::vector<Route>* routes) {
  const auto with_parts = [&parts](auto handler) {
    return [&parts, handler](Hall& hall, const WebRequest& request) {
      return handler(parts, hall, request);
    };
  };
  routes->push_back({"GET", "/runs", Access::kReader, with_parts(ShowRuns)});
  routes->push_back({"GET", "/runs/{id}", Access::kReader, with_parts(ShowRun)});
  routes->push_back({"GET", "/ladders", Access::kReader, with_parts(ShowLadders)});
  routes->push_back({"GET", "/ladders/{name}", Access::kReader, with_parts(ShowLadder)});
}

}  // namespace assay
