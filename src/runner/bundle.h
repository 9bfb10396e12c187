// The bundle of a verdict: all that another machine needs to judge the same again (docs/serve.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/verdict.h"
#include "runner/job.h"

namespace assay {

inline constexpr std::string_view kBundleSchema = "assay.bundle/1";

struct Bundle {
  NamedSource problem;  // its name and its file
  std::string size;
  NamedSource candidate;
  std::optional<NamedSource> opponent;
  std::string terms;  // JSON: as in a worker's request
  Verdict verdict;
};

// Reads a bundle, and checks that its files are those of the verdict, by their hashes. Errors:
// kUsage.
Result<Bundle> ParseBundle(const std::string& text);

// Returns the bundle as a job. Its problem is the one of the installed suites if that is the same
// file: a suite says more of it. Terms that the bundle leaves out are those that the verdict tells.
TakenJob JobOfBundle(const Bundle& bundle, const std::vector<std::string>& suites);

// A URL of a verdict: its page, its document, or its bundle.
struct VerdictUrl {
  std::string server, id;
};
// Errors: kUsage.
Result<VerdictUrl> ParseVerdictUrl(const std::string& url);

// Two verdicts on one candidate, side by side.
struct Agreement {
  enum class Kind {
    kAgrees,  // the same outcome, and the intervals of the speedup overlap where both have one
    kDiffers,
    kUndecided,  // one of them is `unsettled`
  };
  Kind kind = Kind::kDiffers;
  std::string text;  // one line
};
Agreement Compare(const Verdict& there, const Verdict& here);
std::string_view AgreementName(Agreement::Kind kind);  // "agrees", "differs", "undecided"

}  // namespace assay
