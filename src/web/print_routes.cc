// The routes of a server, a line each: "POST member /api/jobs". tests/e2e/test_serve_sessions.py
// covers each that changes something.
#include <cstdio>

#include "web/all_routes.h"

namespace assay {
namespace {

const char* AccessName(Access access) {
  switch (access) {
    case Access::kAnyone:
      return "anyone";
    case Access::kReader:
      return "reader";
    case Access::kMember:
      return "member";
    case Access::kMentor:
      return "mentor";
    case Access::kServerMentor:
      return "server_mentor";
  }
  return "";
}

Result<void> PrintRoutes() {
  ASSAY_ASSIGN_OR_RETURN(TarLibrary tars,
                         TarLibrary::Open(ASSAY_BUILD_DIRECTORY "/lib/assay/tar.so"));
  const ClassDesk desk{std::move(tars), ""};
  const PageParts parts;
  for (const Route& route : AllRoutes(parts, desk))
    std::printf("%s %s %s\n", route.method.c_str(), AccessName(route.access),
                route.pattern.c_str());
  return {};
}

}  // namespace
}  // namespace assay

int main() {
  if (const auto printed = assay::PrintRoutes(); !printed) {
    std::fprintf(stderr, "%s\n", printed.error().message.c_str());
    return 1;
  }
  return 0;
}
