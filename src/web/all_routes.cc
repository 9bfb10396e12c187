#include "web/all_routes.h"

#include <utility>

#include "web/api.h"
#include "web/class_site.h"

namespace assay {

std::vector<Route> AllRoutes(const PageParts& parts, const ClassDesk& desk) {
  std::vector<Route> routes = PageRoutes(parts);
  const auto add = [&](std::vector<Route> more) {
    for (Route& route : more) routes.push_back(std::move(route));
  };
  add(ApiRoutes(parts.wake));
  add(ClassApiRoutes(desk));
  add(ClassPageRoutes(desk, [&parts](const WebRequest& request) {
    return FrameOf(parts, request, Place::kElsewhere);
  }));
  return routes;
}

}  // namespace assay
