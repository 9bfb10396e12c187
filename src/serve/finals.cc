#include "serve/finals.h"

#include <fmt/format.h>

namespace assay {
namespace {

constexpr char kBoardSeparator = '\n';

}  // namespace

Result<void> Finals::Close(Class& of, Instant now) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement update,
      database_.Prepare("UPDATE classes SET closed_s = ? WHERE id = ? AND closed_s = 0"));
  ASSAY_RETURN_IF_ERROR(update.Bind(now.utc_s).Bind(of.id).Step());
  of.closed_s = now.utc_s;
  return TakeFromOwnRunners(of, now);
}

Result<void> Finals::TakeFromOwnRunners(const Class& of, Instant now) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement update,
      database_.Prepare("UPDATE jobs SET state = 'queued', lease = '', attempts = attempts - 1"
                        " WHERE state = 'running' AND own_runner = 1 AND account IN"
                        " (SELECT id FROM accounts WHERE class_id = ?) RETURNING id"));
  update.Bind(of.id);
  std::vector<int64_t> taken;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool more, update.Step());
    if (!more) break;
    taken.push_back(update.Number(0));
  }
  for (const int64_t job : taken)
    ASSAY_RETURN_IF_ERROR(AddJobEvent(
        database_, job, now, R"({"event":"requeued","why":"the deadline of its class is over"})"));
  return {};
}

Result<std::map<int64_t, std::string>> Finals::Awaited(int64_t class_id) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare("SELECT accounts.id, accounts.name FROM accounts WHERE class_id = ? "
                        "AND role <> 'mentor' AND EXISTS (SELECT 1 FROM jobs "
                        "WHERE jobs.account = accounts.id AND jobs.kind = 'judge' "
                        "AND (jobs.state IN ('queued', 'running') "
                        "OR EXISTS (SELECT 1 FROM endings WHERE endings.job = jobs.id)))"));
  select.Bind(class_id);
  std::map<int64_t, std::string> awaited;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool more, select.Step());
    if (!more) return awaited;
    awaited[select.Number(0)] = select.Text(1);
  }
}

Result<std::vector<Contender>> Finals::Contenders(const Class& of) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare(
          "SELECT jobs.id, jobs.account, board.problem, board.size, jobs.settings, board.device, "
          "board.precision, board.verdict, board.ci_low FROM board "
          "JOIN jobs ON jobs.id = board.job JOIN accounts ON accounts.id = jobs.account "
          "WHERE accounts.class_id = ? AND accounts.role <> 'mentor' AND jobs.kind = 'judge' "
          "AND board.own_runner = 0 "
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

Result<std::optional<int64_t>> Finals::Submit(const Job& best, Instant now) {
  NewJob asked;
  asked.kind = JobKind::kFinalist;
  asked.author = best.author;
  asked.problem = best.problem;
  asked.size = best.size;
  asked.set = best.set;
  asked.name = best.name;
  asked.source_hash = best.source_hash;
  ASSAY_ASSIGN_OR_RETURN(const Submitted submitted, jobs_.Submit(asked, now));
  if (submitted.result != Submission::kAccepted) return std::nullopt;
  return submitted.job.id;
}

Result<bool> Finals::Ask(const Class& of, const Contender& best, Instant now) {
  ASSAY_ASSIGN_OR_RETURN(const auto job, jobs_.Find(best.job));
  if (!job) return UsageError(fmt::format("there is no job {}", best.job));
  bool room = true;
  const auto ask = [&]() -> Result<void> {
    ASSAY_ASSIGN_OR_RETURN(const auto submitted, Submit(*job, now));
    room = submitted.has_value();
    if (!room) return {};
    ASSAY_ASSIGN_OR_RETURN(SqliteStatement insert,
                           database_.Prepare("INSERT INTO finalists(class, account, board, best, "
                                             "job) VALUES(?, ?, ?, ?, ?)"));
    insert.Bind(of.id).Bind(best.account).Bind(best.board).Bind(best.job).Bind(*submitted);
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
    if (each.closed_s == 0)
      ASSAY_RETURN_IF_ERROR(database_.Write([&] { return Close(each, now); }));
    ASSAY_ASSIGN_OR_RETURN(const auto awaited, Awaited(each.id));
    ASSAY_ASSIGN_OR_RETURN(std::vector<Contender> contenders, Contenders(each));
    std::erase_if(contenders, [&](const Contender& one) { return awaited.contains(one.account); });
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
    if (!room || !awaited.empty()) continue;
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
          "ifnull(l.speedup, 0), ifnull(l.ci_low, 0), ifnull(l.ci_high, 0), "
          "EXISTS (SELECT 1 FROM spot_checks WHERE checked = f.job AND result = 'differs') "
          "FROM finalists f "
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
    row.final_differs = select.Number(8) != 0;
    rows.push_back(std::move(row));
  }
}

Result<std::vector<int64_t>> Finals::AskAgain(int64_t class_id, Instant now) {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<FinalistRow> rows, Of(class_id));
  std::vector<int64_t> again;
  const auto done = database_.Write([&]() -> Result<void> {
    for (const FinalistRow& row : rows) {
      if (row.final.state != JobState::kFailed) continue;
      ASSAY_ASSIGN_OR_RETURN(const auto submitted, Submit(row.best, now));
      if (!submitted) break;
      ASSAY_ASSIGN_OR_RETURN(
          SqliteStatement update,
          database_.Prepare("UPDATE finalists SET job = ? WHERE class = ? AND job = ?"));
      ASSAY_RETURN_IF_ERROR(update.Bind(*submitted).Bind(class_id).Bind(row.final.id).Step());
      again.push_back(*submitted);
    }
    return {};
  });
  if (!done) return std::unexpected(done.error());
  return again;
}

}  // namespace assay
