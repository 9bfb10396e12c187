#include "serve/worklogs.h"

#include <fmt/format.h>

#include "serve/words.h"

namespace assay {
namespace {

constexpr int64_t kUploadsMax = 1000;  // of one worklog

WorklogEntry EntryOf(const SqliteStatement& row) {
  WorklogEntry entry;
  entry.id = row.Number(0);
  entry.class_id = row.Number(1);
  entry.author = {row.Number(2), row.Text(3), RoleFromName(row.Text(4)).value_or(Role::kStudent),
                  row.Number(5)};
  entry.worklog = row.Text(6);
  entry.problem = row.Text(7);
  entry.uploads = row.Number(8);
  entry.sent_s = row.Number(9);
  entry.tar = row.Text(10);
  entry.first_s = row.Number(11);
  return entry;
}

}  // namespace

bool MaySeeWorklog(const Account& viewer, const WorklogEntry& entry, const Class& of,
                   int64_t now_s) {
  if (viewer.id == entry.author.id || MayManage(viewer, of)) return true;
  return IsMember(viewer, of) && (of.id == 0 || MaySeeSource(viewer, entry.author, &of, now_s));
}

Result<std::vector<WorklogEntry>> Worklogs::Select(std::string_view condition, int64_t value) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare(fmt::format(
          "SELECT w.id, w.class, a.id, a.name, a.role, a.class_id, w.worklog, w.problem, "
          "last.number, last.time_s, last.tar, first.time_s FROM worklogs w "
          "JOIN accounts a ON a.id = w.account "
          "JOIN uploads last ON last.worklog = w.id AND last.number = "
          "(SELECT max(number) FROM uploads WHERE worklog = w.id) "
          "JOIN uploads first ON first.worklog = w.id AND first.number = 1 "
          "WHERE {} = ? ORDER BY a.name COLLATE NOCASE, a.id, w.id",
          condition)));
  select.Bind(value);
  std::vector<WorklogEntry> entries;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return entries;
    entries.push_back(EntryOf(select));
  }
}

Result<std::optional<WorklogEntry>> Worklogs::Find(int64_t id) {
  ASSAY_ASSIGN_OR_RETURN(auto found, Select("w.id", id));
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

Result<std::vector<WorklogEntry>> Worklogs::OfClass(int64_t class_id) {
  return Select("w.class", class_id);
}

Result<std::vector<int64_t>> Worklogs::TimesSent(int64_t account) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare("SELECT u.time_s FROM uploads u JOIN worklogs w ON w.id = u.worklog "
                        "WHERE w.account = ? ORDER BY u.time_s DESC LIMIT 1000"));
  select.Bind(account);
  std::vector<int64_t> times;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return times;
    times.push_back(select.Number(0));
  }
}

Result<int64_t> Worklogs::RowOf(const Account& author, const Class& of, const Worklog& worklog) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement insert,
      database_.Prepare("INSERT INTO worklogs(class, account, worklog, problem) VALUES(?, ?, ?, ?)"
                        " ON CONFLICT(account, worklog) DO NOTHING"));
  ASSAY_RETURN_IF_ERROR(
      insert.Bind(of.id).Bind(author.id).Bind(worklog.words.id).Bind(worklog.words.problem).Step());
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare("SELECT id FROM worklogs WHERE account = ? AND worklog = ?"));
  ASSAY_RETURN_IF_ERROR(select.Bind(author.id).Bind(worklog.words.id).Step());
  return select.Number(0);
}

Result<void> Worklogs::AddUpload(int64_t row, const UploadedWorklog& uploaded,
                                 const std::string& tar, int64_t time_s) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement last,
      database_.Prepare("SELECT number, tar FROM uploads WHERE worklog = ? ORDER BY number DESC"));
  ASSAY_ASSIGN_OR_RETURN(const bool any, last.Bind(row).Step());
  // The same files once more are the same upload.
  if (any && last.Text(1) == tar) return {};
  const int64_t number = any ? last.Number(0) + 1 : 1;
  if (number > kUploadsMax)
    return UsageError(fmt::format("a worklog is taken {} times at most", kUploadsMax));
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement insert,
      database_.Prepare("INSERT INTO uploads(worklog, number, time_s, tar) VALUES(?, ?, ?, ?)"));
  ASSAY_RETURN_IF_ERROR(insert.Bind(row).Bind(number).Bind(time_s).Bind(tar).Step());
  for (const std::string& fact : uploaded.facts) {
    ASSAY_ASSIGN_OR_RETURN(SqliteStatement add,
                           database_.Prepare("INSERT INTO worklog_facts(worklog, hash, upload) "
                                             "VALUES(?, ?, ?) ON CONFLICT DO NOTHING"));
    ASSAY_RETURN_IF_ERROR(add.Bind(row).Bind(fact).Bind(number).Step());
  }
  return {};
}

Result<int64_t> Worklogs::Restore(const Account& author, const Class& of,
                                  const UploadedWorklog& uploaded, const std::string& tar,
                                  int64_t time_s) {
  int64_t row = 0;
  ASSAY_RETURN_IF_ERROR(database_.Write([&]() -> Result<void> {
    ASSAY_ASSIGN_OR_RETURN(row, RowOf(author, of, uploaded.worklog));
    return AddUpload(row, uploaded, tar, time_s);
  }));
  return row;
}

Granted<WorklogEntry> Worklogs::Keep(const Account& author, const Class& of,
                                     std::span<const TarFile> files,
                                     const UploadedWorklog& uploaded, Instant now) {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<int64_t> sent, TimesSent(author.id));
  if (auto refusal = RefuseToTake(of, sent, of.terms.worklogs_a_day, "worklog", now.utc_s))
    return std::unexpected(std::move(*refusal));
  ASSAY_ASSIGN_OR_RETURN(const std::string tar, tars_.Write(files, TarForm::kPlain));
  ASSAY_ASSIGN_OR_RETURN(const std::string hash, store_.Put(tar));
  ASSAY_ASSIGN_OR_RETURN(const int64_t row, Restore(author, of, uploaded, hash, now.utc_s));
  ASSAY_ASSIGN_OR_RETURN(auto kept, Find(row));
  if (!kept) return std::unexpected(Refusal(500, "the worklog was not kept"));
  return std::move(*kept);
}

Result<std::vector<TarFile>> Worklogs::Files(const WorklogEntry& entry) {
  ASSAY_ASSIGN_OR_RETURN(const std::string tar, store_.Get(entry.tar));
  return tars_.Read(tar, kUploadLimits);
}

Result<UploadHistory> Worklogs::History(const WorklogEntry& entry) {
  UploadHistory history;
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                         database_.Prepare("SELECT hash FROM worklog_facts WHERE worklog = ?"));
  select.Bind(entry.id);
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) break;
    history.facts.push_back(select.Text(0));
  }
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement other,
      database_.Prepare("SELECT 1 FROM worklogs WHERE worklog = ? AND account <> ?"));
  ASSAY_ASSIGN_OR_RETURN(history.of_others, other.Bind(entry.worklog).Bind(entry.author.id).Step());
  return history;
}

Result<Worklogs::Checked> Worklogs::Check(const WorklogEntry& entry) {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<TarFile> files, Files(entry));
  Checked checked;
  ASSAY_ASSIGN_OR_RETURN(checked.uploaded, ReadUploadedWorklog(files));
  ASSAY_ASSIGN_OR_RETURN(const UploadHistory history, History(entry));
  checked.findings = CheckUploadedWorklog(checked.uploaded, history);
  return checked;
}

}  // namespace assay
