// The routes for browsers: they read the hall, and render pages.
#pragma once

#include <string>
#include <vector>

#include "web/ladder_pages.h"
#include "web/layout.h"
#include "web/route.h"
#include "web/site.h"

namespace assay {

struct PageParts {
  WakeFunction wake;
  bool example = false;             // the server shows examples
  std::vector<LadderView> ladders;  // recorded ones
};

// `parts` outlives the routes.
void AddBoardPages(const PageParts& parts, std::vector<Route>* routes);
void AddVerdictPages(const PageParts& parts, std::vector<Route>* routes);
void AddJobPages(const PageParts& parts, std::vector<Route>* routes);
void AddRunPages(const PageParts& parts, std::vector<Route>* routes);
void AddLoginPages(const PageParts& parts, std::vector<Route>* routes);
std::vector<Route> PageRoutes(const PageParts& parts);

// Recorded ladders in a folder, with the rows that stand for them. Those that cannot be read are
// left out.
std::vector<LadderView> RecordedLadders(const std::string& folder);

PageFrame FrameOf(const PageParts& parts, const WebRequest& request, Place place);
ServedReply HtmlReply(std::string html, int status = 200);
ServedReply ErrorPageOf(const PageParts& parts, int status, const std::string& message,
                        const WebRequest* request);
ServedReply ErrorPageOf(const PageParts& parts, const Error& error, const WebRequest& request);

}  // namespace assay

// Returns the error of a Result as a page. `parts` and `request` are names at that place.
#define ASSAY_ASSIGN_OR_PAGE_(result, target, expression)                     \
  auto result = (expression);                                                 \
  if (!result) return ::assay::ErrorPageOf(parts, (result).error(), request); \
  target = std::move(result).value()
#define ASSAY_ASSIGN_OR_PAGE(target, expression) \
  ASSAY_ASSIGN_OR_PAGE_(ASSAY_CONCATENATE_REPLY(assay_page_, __LINE__), target, expression)
