// Every route of a server: pages and those for programs, with classes.
#pragma once

#include <vector>

#include "web/class_api.h"
#include "web/page_routes.h"

namespace assay {

// `parts` and `desk` outlive the routes.
std::vector<Route> AllRoutes(const PageParts& parts, const ClassDesk& desk);

}  // namespace assay
