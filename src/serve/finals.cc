#include "serve/finals.h"

#include <fmt/format.h>

namespace assay {
namespace {

constexpr char kBoardSeparator = '\n';

// The server asks, so that no quota of the member's counts.
constexpr QueueLimits kFinalLimits{
    .queued_max = 0, .queued_by_account_max = 1'000'000, .made_a_day_max = 1'000'000};

}  // namespace

Result<void> Finals::Close(Class& of, Instant now) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement update,
      database_.Prepare("UPDATE classes SET closed_s = ? WHERE id = ? AND closed_s = 0"));
  ASSAY_RETURN_IF_ERROR(update.Bind(now.utc_s).Bind(of.id).Step());
  of.closed_s = now.utc_s;
  return {};
}

Result<bool> Finals::IsWaiting(int64_t class_id) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare("SELECT 1 FROM jobs JOIN accounts ON accounts.id = jobs.account "
                        "WHERE accounts.class_id = ? AND jobs.kind = 'judge' "
                        "AND (jobs.state IN ('queued', 'running') "
                        "OR EXISTS (SELECT 1 FROM endings WHERE endings.job = jobs.id)) LIMIT 1"));
  return select.Bind(class_id).Step();
}

Result<std::vector<Contender>> Finals::Contenders(const Class& of) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare(
          "SELECT jobs.id, jobs.account, board.problem, board.size, jobs.settings, board.device, "
          "board.precision, board.verdict, board.ci_low FROM board "
          "JOIN jobs ON jobs.id = board.job JOIN accounts ON accounts.id = jobs.account "
          "WHERE accounts.class_id = ? AND accounts.role <> 'mentor' AND jobs.kind = 'judge' "
          "AND board.speedup > 0 AND board.outcome IN "
          "('faster', 'slower', 'tie', 'not_faster', 'unsettled')"));
  select.Bind(of.id);
  std::vector<Contender> contenders;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return contenders;
    Contender each{select.Number(0), select.Number(1), {}, select.Text(7), select.Real(8)};
    for (int column = 2; column <= 6; ++column) {
      if (column > 2) each.board += kBoardSeparator;
      each.board += select.Text(column);
    }
    contenders.push_back(std::move(each));
  }
}

Result<bool> Finals::Ask(const Class& of, const Contender& best, Instant now) {
  ASSAY_ASSIGN_OR_RETURN(const auto job, jobs_.Find(best.job));
  if (!job) return UsageError(fmt::format("there is no job {}", best.job));
  NewJob asked;
  asked.kind = JobKind::kFinalist;
  asked.author = job->author;
  asked.problem = job->problem;
  asked.size = job->size;
  asked.set = job->set;
  asked.name = job->name;
  asked.source_hash = job->source_hash;
  asked.key = fmt::format("final of class {} job {}", of.id, best.job);
  bool room = true;
  const auto ask = [&]() -> Result<void> {
    ASSAY_ASSIGN_OR_RETURN(const Submitted submitted, jobs_.Submit(asked, kFinalLimits, now));
    room = submitted.result == Submission::kAccepted || submitted.result == Submission::kKnown;
    if (!room) return {};
    ASSAY_ASSIGN_OR_RETURN(SqliteStatement insert,
                           database_.Prepare("INSERT INTO finalists(class, account, board, best, "
                                             "job) VALUES(?, ?, ?, ?, ?)"));
    insert.Bind(of.id).Bind(best.account).Bind(best.board).Bind(best.job).Bind(submitted.job.id);
    ASSAY_RETURN_IF_ERROR(insert.Step());
    return {};
  };
  ASSAY_RETURN_IF_ERROR(database_.Write(ask));
  return room;
}

Result<int> Finals::Tend(Instant now) {
  ASSAY_ASSIGN_OR_RETURN(std::vector<Class> all, classes_.All());
  int asked = 0;
  for (Class& each : all) {
    if (each.finals_s != 0 || !IsOver(each, now.utc_s)) continue;
    if (each.closed_s == 0) ASSAY_RETURN_IF_ERROR(Close(each, now));
    ASSAY_ASSIGN_OR_RETURN(const bool waits, IsWaiting(each.id));
    if (waits) continue;
    ASSAY_ASSIGN_OR_RETURN(const std::vector<Contender> contenders, Contenders(each));
    bool room = true;
    for (const Contender& best : Finalists(contenders)) {
      ASSAY_ASSIGN_OR_RETURN(
          SqliteStatement known,
          database_.Prepare(
              "SELECT 1 FROM finalists WHERE class = ? AND account = ? AND board = ?"));
      ASSAY_ASSIGN_OR_RETURN(const bool is_known,
                             known.Bind(each.id).Bind(best.account).Bind(best.board).Step());
      if (is_known) continue;
      ASSAY_ASSIGN_OR_RETURN(room, Ask(each, best, now));
      if (!room) break;
      ++asked;
    }
    if (!room) continue;
    ASSAY_ASSIGN_OR_RETURN(
        SqliteStatement update,
        database_.Prepare("UPDATE classes SET finals_s = ? WHERE id = ? AND finals_s = 0"));
    ASSAY_RETURN_IF_ERROR(update.Bind(now.utc_s).Bind(each.id).Step());
  }
  return asked;
}

Result<std::vector<FinalistRow>> Finals::Of(int64_t class_id) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare(
          "SELECT f.best, f.job, ifnull(b.speedup, 0), ifnull(b.ci_low, 0), ifnull(b.ci_high, 0), "
          "ifnull(l.speedup, 0), ifnull(l.ci_low, 0), ifnull(l.ci_high, 0) FROM finalists f "
          "JOIN accounts a ON a.id = f.account "
          "LEFT JOIN board b ON b.job = f.best LEFT JOIN board l ON l.job = f.job "
          "WHERE f.class = ? ORDER BY f.board, ifnull(l.ci_low, b.ci_low) DESC, f.account"));
  select.Bind(class_id);
  std::vector<FinalistRow> rows;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return rows;
    ASSAY_ASSIGN_OR_RETURN(const auto best, jobs_.Find(select.Number(0)));
    ASSAY_ASSIGN_OR_RETURN(const auto final_job, jobs_.Find(select.Number(1)));
    if (!best || !final_job) continue;
    FinalistRow row{best->author, *best, *final_job};
    row.best_speedup = select.Real(2);
    row.best_low = select.Real(3);
    row.best_high = select.Real(4);
    row.final_speedup = select.Real(5);
    row.final_low = select.Real(6);
    row.final_high = select.Real(7);
    rows.push_back(std::move(row));
  }
}

}  // namespace assay
