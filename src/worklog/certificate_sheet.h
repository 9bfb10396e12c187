// A certificate's text, for the library that draws it (lib/assay/certificate.so). It is one of
// its own, opened when it is needed: cairo and pango would slow each start of assay.
#pragma once

#include <string>

namespace assay {

struct CertificateSide {
  std::string title, best, note;
};

// All of it is printable text.
struct CertificateSheet {
  std::string author, subject, tier;  // the author may be empty
  CertificateSide hand, model;
  std::string race, marks;     // may be empty
  std::string worklog, hash;   // a line that names the worklog, and its hash
  std::string title, created;  // of the document
};

// The library's one function, "AssayDrawCertificate": appends the PDF. False: it cannot be drawn.
using DrawCertificateFunction = bool (*)(const CertificateSheet& sheet, std::string* pdf);

}  // namespace assay
