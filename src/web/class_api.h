// The routes of classes, worklogs and marks for programs (docs/class.md).
#pragma once

#include <string>
#include <vector>

#include "serve/class_room.h"
#include "web/route.h"

namespace assay {

// Beside the hall.
struct ClassDesk {
  TarLibrary tars;
  std::string certificate_library;  // lib/assay/certificate.so
};

// Routes that have the desk by reference: it must outlive them.
std::vector<Route> ClassApiRoutes(const ClassDesk& desk);

ServedReply ErrorReply(const Refusal& refusal);
// A worklog's certificate as PDF. Refusals: 403, 404; 409 it is not complete.
Granted<std::string> CertificateOf(const ClassDesk& desk, const GradedWorklog& graded);

}  // namespace assay
