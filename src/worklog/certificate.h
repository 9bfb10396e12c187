// The certificate of a worklog: one page as PDF, made without a browser.
#pragma once

#include <string>

#include "base/result.h"
#include "worklog/certificate_sheet.h"
#include "worklog/rubric.h"
#include "worklog/worklog.h"

namespace assay {

// SHA-256 of worklog.md as facts and words render it: `sha256sum worklog.md` gives the same.
std::string WorklogHash(const Worklog& worklog);

// `mentor`: who marked it; empty: marks are not shown.
CertificateSheet SheetOf(const Worklog& worklog, const Grade& grade, const std::string& mentor);

// Returns the PDF. `library`: lib/assay/certificate.so. Errors (kEnvironment): it, or cairo or
// pango, is not there.
Result<std::string> DrawCertificate(const CertificateSheet& sheet, const std::string& library);

}  // namespace assay
