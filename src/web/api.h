// The routes for programs (docs/serve.md, /openapi.json).
#pragma once

#include <vector>

#include "web/route.h"

namespace assay {

// `wake` outlives the routes.
void AddJobRoutes(const WakeFunction& wake, std::vector<Route>* routes);
void AddRunnerRoutes(const WakeFunction& wake, std::vector<Route>* routes);
void AddReadingRoutes(std::vector<Route>* routes);
void AddAccountRoutes(std::vector<Route>* routes);

std::vector<Route> ApiRoutes(const WakeFunction& wake);

// The description of all routes for programs, OpenAPI 3.1.
std::string_view OpenApiText();

}  // namespace assay
