// Spot checks: a share of the verdicts that count is judged again, by a runner of somebody else's,
// so that a promoted runner cannot make verdicts up unseen.
//
// Theory of operation. Chance decides when a verdict comes, and the runner that sent it hears
// nothing of it. The candidate is then a job of its own, for promoted runners of other owners.
// Verdicts of the server's own runners are not checked: they are the server. The result is compared
// once it is there, and shown; nobody loses a rank by it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/verdict.h"
#include "serve/jobs.h"

namespace assay {

enum class CheckResult { kAgrees, kDiffers, kUndecided };
std::string_view CheckResultName(CheckResult result);  // "agrees", "differs", "undecided"

struct CheckedVerdict {
  CheckResult result = CheckResult::kUndecided;
  std::string text;  // one line
};
// They differ if one is correct and the other is not, if the intervals of their speedups on one
// device model do not overlap, or if the first certifies more than the other's interval has. It is
// undecided where a verdict is unsettled without a speed, or is
// of another device model. Pure.
CheckedVerdict CompareChecked(const Verdict& first, const Verdict& again);

// A check of a job's verdict.
struct SpotCheck {
  int64_t job = 0, checked = 0;  // the job that checks; the job whose verdict is checked
  std::string verdict, runner;   // of the job that checks; empty: not yet
  std::string result, text;      // empty: not yet
  bool has_failed = false;       // it ended without a verdict
};

class SpotChecks {
 public:
  // The database must outlive this object. `share`: of the verdicts, 0 to 1.
  SpotChecks(Database& database, Jobs jobs, double share)
      : database_(database), jobs_(std::move(jobs)), share_(share) {}

  // Asks for a check of a job that has ended with a verdict, if chance wants one and a runner that
  // may judge it was there lately. Returns whether it did.
  Result<bool> MayAsk(int64_t job, Instant now);
  // Notes what a check found. `first`, `again`: the two verdicts.
  Result<void> Note(int64_t job, const Verdict& first, const Verdict& again);
  // The job whose verdict that job checks; 0: it is no check.
  Result<int64_t> CheckedBy(int64_t job);
  // The check of that job's verdict; nullopt: there is none.
  Result<std::optional<SpotCheck>> Of(int64_t job);
  // The ids of verdicts that a check disagreed with.
  Result<std::vector<std::string>> Differing();
  struct Counts {
    int64_t checked = 0, differing = 0, undecided = 0;
  };
  // Checks with a result, by runner: whose verdicts were checked, and who checked. Where two
  // disagree, either may be wrong.
  Result<std::map<int64_t, Counts>> ByRunner();

 private:
  Database& database_;
  Jobs jobs_;
  double share_;
};

}  // namespace assay
