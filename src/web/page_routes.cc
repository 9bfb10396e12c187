#include "web/page_routes.h"

#include <fmt/format.h>

#include <cstdio>
#include <map>

#include "ladder/readme_table.h"
#include "ladder/rows.h"
#include "web/entry_pages.h"
#include "web/replies.h"

namespace assay {

PageFrame FrameOf(const PageParts& parts, const WebRequest& request, Place place) {
  PageFrame frame;
  frame.place = place;
  frame.viewer.account = request.account;
  frame.viewer.csrf = request.csrf;
  frame.example = parts.example;
  return frame;
}

ServedReply HtmlReply(std::string html, int status) {
  return {status, std::move(html), "text/html; charset=utf-8"};
}

ServedReply ErrorPageOf(const PageParts& parts, int status, const std::string& message,
                        const WebRequest* request) {
  PageFrame frame;
  if (request != nullptr) frame = FrameOf(parts, *request, Place::kElsewhere);
  ErrorView view;
  view.status = status;
  view.message = message;
  return HtmlReply(RenderErrorPage(view, frame), status);
}

ServedReply ErrorPageOf(const PageParts& parts, const Error& error, const WebRequest& request) {
  if (error.kind == ErrorKind::kUsage) return ErrorPageOf(parts, 400, error.message, &request);
  std::fputs(fmt::format("assay: {}\n", error.message).c_str(), stderr);
  return ErrorPageOf(parts, 503, "the server cannot do this now: try again later", &request);
}

std::vector<LadderView> RecordedLadders(const std::string& folder) {
  std::vector<LadderView> views;
  const auto ladders = FindLadders(folder);
  if (!ladders) return views;
  std::map<std::string, std::vector<LadderRow>> files;  // each is read once
  for (const Ladder& ladder : *ladders) {
    const auto path = ResultsPath(ladder);
    if (!path) continue;
    const auto [file, is_new] = files.try_emplace(*path);
    if (is_new)
      if (auto rows = ReadRows(*path, "")) file->second = std::move(*rows);
    for (const LadderSize& size : ladder.sizes)
      views.push_back({ladder, size, NewestResults(ladder, size, ladder.rungs, file->second)});
  }
  return views;
}

std::vector<Route> PageRoutes(const PageParts& parts) {
  std::vector<Route> routes;
  AddBoardPages(parts, &routes);
  AddVerdictPages(parts, &routes);
  AddJobPages(parts, &routes);
  AddRunPages(parts, &routes);
  AddLoginPages(parts, &routes);
  return routes;
}

}  // namespace assay
