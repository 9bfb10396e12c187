#include "serve/member_work.h"

#include <fmt/format.h>

#include "report/text.h"
#include "score/attempt.h"
#include "serve/job_rows.h"
#include "serve/words.h"

namespace assay {
namespace {

std::string FinalText(const FinalistRow& row) {
  const Job& job = row.final;
  const std::string of = job.size.empty() ? job.problem : job.problem + " " + job.size;
  if (!IsTerminal(job.state)) return fmt::format("{} {}", of, JobStateName(job.state));
  if (job.verdict.empty()) return of + " no verdict";
  const char* const checked = row.final_differs ? " (a spot check disagrees)" : "";
  if (row.final_speedup <= 0) return fmt::format("{} {}{}", of, job.outcome, checked);
  return fmt::format("{} {} [{}, {}]{}", of, FormatRatio(row.final_speedup),
                     FormatRatio(row.final_low), FormatRatio(row.final_high), checked);
}

}  // namespace

Result<std::map<int64_t, MemberWork>> WorkOfMembers(Database& database, Finals& finals,
                                                    int64_t class_id) {
  std::map<int64_t, MemberWork> work;
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement jobs,
      database.Prepare("SELECT account, count(*) FROM jobs JOIN accounts ON accounts.id = account"
                       " WHERE class_id = ? AND kind IN ('judge', 'compare') GROUP BY account"));
  jobs.Bind(class_id);
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool more, jobs.Step());
    if (!more) break;
    work[jobs.Number(0)].jobs = jobs.Number(1);
  }
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement problems,
      database.Prepare("SELECT jobs.account, max(board.stage >= ?2 AND NOT prepares_weights),"
                       " max(board.certified > 1 AND NOT prepares_weights)"
                       " FROM board JOIN jobs ON jobs.id = board.job"
                       " JOIN accounts ON accounts.id = jobs.account"
                       " WHERE accounts.class_id = ?1 AND jobs.own_runner <> ?3"
                       " AND jobs.settings = '{}'"  // the constants of all
                       " GROUP BY jobs.account, board.problem"));
  problems.Bind(class_id).Bind(static_cast<int64_t>(Stage::kCorrect)).Bind(kOwnRunner);
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool more, problems.Step());
    if (!more) break;
    work[problems.Number(0)].correct += problems.Number(1);
    work[problems.Number(0)].faster += problems.Number(2);
  }
  ASSAY_ASSIGN_OR_RETURN(std::vector<FinalistRow> rows, finals.Of(class_id));
  for (FinalistRow& row : rows) work[row.account.id].finals.push_back(std::move(row));
  return work;
}

std::string FinalsText(const MemberWork& work) {
  std::string text;
  for (const FinalistRow& row : work.finals) text += (text.empty() ? "" : "; ") + FinalText(row);
  return text;
}

}  // namespace assay
