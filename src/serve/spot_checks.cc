#include "serve/spot_checks.h"

#include <fmt/format.h>

#include "base/secret.h"
#include "report/text.h"
#include "score/attempt.h"
#include "serve/board.h"
#include "serve/leases.h"

namespace assay {
namespace {

constexpr size_t kChanceBytes = 4;
// The margin of a clear case is 22 to 65%, by how long calls are.
constexpr double kClearFactor = 1.65;

// True in `share` of all calls.
Result<bool> Draw(double share) {
  ASSAY_ASSIGN_OR_RETURN(const std::string digits, RandomHex(kChanceBytes));
  return static_cast<double>(std::stoul(digits, nullptr, 16)) / 4294967296.0 < share;
}

// The interval of an attempt's speedup. A clear case ends before there is one: then it lies as far
// above the speedup as what was certified lies below.
struct Interval {
  double low = 0, high = 0;
};

Interval IntervalOf(const Attempt& attempt) {
  if (attempt.ci_low > 0 && attempt.ci_high > 0) return {attempt.ci_low, attempt.ci_high};
  const double low =
      attempt.certified_speedup > 0 ? attempt.certified_speedup : attempt.speedup / kClearFactor;
  return {low, attempt.speedup * attempt.speedup / low};
}

std::string TextOf(const Attempt& attempt) {
  if (attempt.ci_low <= 0 || attempt.ci_high <= 0) return FormatRatio(attempt.speedup);
  return fmt::format("{} [{}, {}]", FormatRatio(attempt.speedup), FormatRatio(attempt.ci_low),
                     FormatRatio(attempt.ci_high));
}

}  // namespace

std::string_view CheckResultName(CheckResult result) {
  return result == CheckResult::kAgrees    ? "agrees"
         : result == CheckResult::kDiffers ? "differs"
                                           : "undecided";
}

CheckedVerdict CompareChecked(const Verdict& first, const Verdict& again) {
  const Attempt one = AttemptOf(first), other = AttemptOf(again);
  const std::string outcomes =
      fmt::format("{} first, {} again", OutcomeName(first.outcome), OutcomeName(again.outcome));
  const bool is_unsettled =
      first.outcome == Outcome::kUnsettled || again.outcome == Outcome::kUnsettled;
  if (one.correct() != other.correct()) return {CheckResult::kDiffers, outcomes};
  if (one.speedup <= 0 || other.speedup <= 0)
    return {is_unsettled ? CheckResult::kUndecided : CheckResult::kAgrees, outcomes};
  const std::string speeds = fmt::format("{} first, {} again", TextOf(one), TextOf(other));
  if (DeviceOf(first.machine) != DeviceOf(again.machine))
    return {CheckResult::kUndecided, speeds + ", on another machine"};
  const Interval first_range = IntervalOf(one), again_range = IntervalOf(other);
  const bool overlap = first_range.low <= again_range.high && again_range.low <= first_range.high;
  // An interval that is wide enough overlaps with all others.
  if (overlap && one.certified_speedup > again_range.high)
    return {CheckResult::kDiffers,
            fmt::format("{}; {} certified first", speeds, FormatRatio(one.certified_speedup))};
  return {overlap ? CheckResult::kAgrees : CheckResult::kDiffers, speeds};
}

Result<bool> SpotChecks::MayAsk(int64_t job, Instant now) {
  ASSAY_ASSIGN_OR_RETURN(const bool drawn, Draw(share_));
  if (!drawn) return false;
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare("SELECT CASE WHEN first.device LIKE 'cuda%' THEN 'cuda' ELSE 'cpu' END"
                        " FROM jobs JOIN runners AS first ON first.id = jobs.runner"
                        " JOIN accounts ON accounts.id = first.account"
                        " WHERE jobs.id = ?1 AND jobs.state = 'done' AND jobs.own_runner = 0"
                        " AND jobs.kind IN ('judge', 'finalist') AND accounts.is_server = 0"
                        " AND EXISTS (SELECT 1 FROM runners AS other WHERE other.promoted = 1"
                        "   AND other.account <> first.account AND other.account <> jobs.account"
                        "   AND other.seen_s > ?2"
                        "   AND (other.device LIKE 'cuda%') = (first.device LIKE 'cuda%'))"));
  ASSAY_ASSIGN_OR_RETURN(const bool wanted,
                         select.Bind(job).Bind(now.utc_s - kRunnerIsThereS).Step());
  if (!wanted) return false;
  ASSAY_ASSIGN_OR_RETURN(const auto checked, jobs_.Find(job));
  if (!checked) return false;
  NewJob asked;
  asked.kind = JobKind::kSpotCheck;
  asked.author = checked->author;
  asked.problem = checked->problem;
  asked.size = checked->size;
  asked.set = checked->set;
  asked.name = checked->name;
  asked.source_hash = checked->source_hash;
  asked.needs = select.Text(0);
  bool has_room = false;
  const auto ask = [&]() -> Result<void> {
    ASSAY_ASSIGN_OR_RETURN(const Submitted submitted, jobs_.Submit(asked, now));
    has_room = submitted.result == Submission::kAccepted;
    if (!has_room) return {};
    ASSAY_ASSIGN_OR_RETURN(SqliteStatement insert,
                           database_.Prepare("INSERT INTO spot_checks(job, checked) VALUES(?, ?)"));
    ASSAY_RETURN_IF_ERROR(insert.Bind(submitted.job.id).Bind(job).Step());
    return {};
  };
  ASSAY_RETURN_IF_ERROR(database_.Write(ask));
  return has_room;
}

Result<void> SpotChecks::Note(int64_t job, const Verdict& first, const Verdict& again) {
  const CheckedVerdict found = CompareChecked(first, again);
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement update,
      database_.Prepare("UPDATE spot_checks SET result = ?, text = ? WHERE job = ?"));
  update.Bind(CheckResultName(found.result)).Bind(found.text);
  ASSAY_RETURN_IF_ERROR(update.Bind(job).Step());
  return {};
}

Result<int64_t> SpotChecks::CheckedBy(int64_t job) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                         database_.Prepare("SELECT checked FROM spot_checks WHERE job = ?"));
  ASSAY_ASSIGN_OR_RETURN(const bool found, select.Bind(job).Step());
  return found ? select.Number(0) : 0;
}

Result<std::optional<SpotCheck>> SpotChecks::Of(int64_t job) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare("SELECT spot_checks.job, jobs.verdict, coalesce(runners.name, ''), result,"
                        " text, jobs.state IN ('failed', 'cancelled') FROM spot_checks"
                        " JOIN jobs ON jobs.id = spot_checks.job"
                        " LEFT JOIN runners ON runners.id = jobs.runner WHERE checked = ?"));
  ASSAY_ASSIGN_OR_RETURN(const bool found, select.Bind(job).Step());
  if (!found) return std::nullopt;
  return SpotCheck{
      select.Number(0),     job, select.Text(1), select.Text(2), select.Text(3), select.Text(4),
      select.Number(5) != 0};
}

Result<std::vector<std::string>> SpotChecks::Differing() {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare("SELECT verdict FROM spot_checks JOIN jobs ON jobs.id = checked"
                        " WHERE result = 'differs' ORDER BY jobs.id"));
  std::vector<std::string> verdicts;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool more, select.Step());
    if (!more) return verdicts;
    verdicts.push_back(select.Text(0));
  }
}

Result<std::map<int64_t, SpotChecks::Counts>> SpotChecks::ByRunner() {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare("SELECT runner, count(*), count(*) FILTER (WHERE result = 'differs'),"
                        " count(*) FILTER (WHERE result = 'undecided') FROM"
                        " (SELECT runner, result FROM spot_checks JOIN jobs ON jobs.id = checked"
                        "  UNION ALL"
                        "  SELECT runner, result FROM spot_checks JOIN jobs ON jobs.id = job)"
                        " WHERE result <> '' GROUP BY runner"));
  std::map<int64_t, Counts> counts;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool more, select.Step());
    if (!more) return counts;
    counts[select.Number(0)] = {select.Number(1), select.Number(2), select.Number(3)};
  }
}

}  // namespace assay
