#include "serve/class_transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "model/verdict_json.h"
#include "serve/account_names.h"
#include "serve/words.h"

namespace assay {
namespace {

constexpr int kNamesMax = 1000;  // with one beginning
constexpr size_t kIdBytesMax = 64;
constexpr size_t kNameRoom = 30;  // of a name, where a number follows
constexpr const char* kExportedColumns =
    "jobs.id, accounts.name, kind, state, problem, size, settings, jobs.name, source, opponent, "
    "opponent_name, needs, jobs.made_s, ended_s, attempts, outcome, verdict, failure, "
    "own_runner = 1 FROM jobs "
    "JOIN accounts ON accounts.id = jobs.account WHERE accounts.class_id = ? "
    "AND kind <> 'spot_check' ORDER BY jobs.id";

ClassFileJob JobOfRow(const SqliteStatement& row) {
  ClassFileJob job;
  job.id = row.Number(0);
  std::string* const texts[] = {&job.author,   &job.kind,          &job.state, &job.problem,
                                &job.size,     &job.settings,      &job.name,  &job.source,
                                &job.opponent, &job.opponent_name, &job.needs};
  for (int i = 0; i < 11; ++i) *texts[i] = row.Text(i + 1);
  job.made_s = row.Number(12);
  job.ended_s = row.Number(13);
  job.attempts = row.Number(14);
  job.outcome = row.Text(15);
  job.verdict = row.Text(16);
  job.failure = row.Text(17);
  job.own_runner = row.Number(18) != 0;
  return job;
}

// Out of the database and the archive.
class Exporter {
 public:
  Exporter(const ClassParts& parts, const Class& of, Instant now) : parts_(parts) {
    file_.of = of;
    file_.exported_s = now.utc_s;
  }

  Result<ClassFile> Run() {
    ASSAY_ASSIGN_OR_RETURN(file_.members, parts_.classes.Members(file_.of.id));
    ASSAY_RETURN_IF_ERROR(AddJobs());
    ASSAY_RETURN_IF_ERROR(AddWorklogs());
    ASSAY_RETURN_IF_ERROR(AddFinalists());
    return std::move(file_);
  }

 private:
  Result<void> AddBlob(const std::string& hash) {
    if (hash.empty() || file_.blobs.contains(hash)) return {};
    ASSAY_ASSIGN_OR_RETURN(file_.blobs[hash], parts_.store.Get(hash));
    return {};
  }

  // Returns false if the verdict is not in the archive yet.
  Result<bool> AddVerdict(const std::string& id) {
    RecordQuery query;
    query.kind = RecordKind::kVerdict;
    query.id = id;
    query.limit = 1;
    ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> found, parts_.store.Find(query));
    if (found.empty()) return false;
    ASSAY_ASSIGN_OR_RETURN(file_.verdicts[id], parts_.store.Get(found.front().content));
    return true;
  }

  Result<void> AddJobs() {
    ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                           parts_.database.Prepare(fmt::format("SELECT {}", kExportedColumns)));
    select.Bind(file_.of.id);
    while (true) {
      ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
      if (!found) return {};
      ClassFileJob job = JobOfRow(select);
      bool whole = job.ended_s != 0;
      if (whole && !job.verdict.empty()) {
        ASSAY_ASSIGN_OR_RETURN(whole, AddVerdict(job.verdict));
      }
      if (!whole) {
        ++file_.jobs_left_out;
        continue;
      }
      ASSAY_RETURN_IF_ERROR(AddBlob(job.source));
      ASSAY_RETURN_IF_ERROR(AddBlob(job.opponent));
      file_.jobs.push_back(std::move(job));
    }
  }

  Result<void> AddWorklogs() {
    ASSAY_ASSIGN_OR_RETURN(const auto entries, parts_.worklogs.OfClass(file_.of.id));
    std::set<std::string> members, mentors;
    for (const Account& each : file_.members) members.insert(each.name);
    for (const WorklogEntry& entry : entries) {
      ClassFileWorklog worklog{entry.author.name, entry.worklog, entry.problem, {}, {}};
      if (!members.contains(worklog.author)) continue;
      ASSAY_ASSIGN_OR_RETURN(worklog.marks, parts_.grades.All(entry.id));
      for (const KeptMarks& each : worklog.marks)
        if (!members.contains(each.mentor)) mentors.insert(each.mentor);
      ASSAY_ASSIGN_OR_RETURN(
          SqliteStatement select,
          parts_.database.Prepare(
              "SELECT time_s, tar FROM uploads WHERE worklog = ? ORDER BY number"));
      select.Bind(entry.id);
      while (true) {
        ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
        if (!found) break;
        worklog.uploads.push_back({select.Number(0), select.Text(1)});
        ASSAY_RETURN_IF_ERROR(AddBlob(worklog.uploads.back().tar));
      }
      file_.worklogs.push_back(std::move(worklog));
    }
    file_.mentors.assign(mentors.begin(), mentors.end());
    return {};
  }

  Result<void> AddFinalists() {
    ASSAY_ASSIGN_OR_RETURN(
        SqliteStatement select,
        parts_.database.Prepare("SELECT accounts.name, board, best, job FROM finalists JOIN "
                                "accounts ON accounts.id = finalists.account WHERE class = ?"));
    select.Bind(file_.of.id);
    while (true) {
      ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
      if (!found) return {};
      file_.finalists.push_back(
          {select.Text(0), select.Text(1), select.Number(2), select.Number(3)});
    }
  }

  const ClassParts& parts_;
  ClassFile file_;
};

Result<void> CheckJob(const ClassFileJob& job, const ClassFile& file) {
  const auto settings = nlohmann::json::parse(job.settings, nullptr, false);
  bool plain = settings.is_object() && !job.problem.empty() && !job.name.empty();
  if (plain)
    for (const auto& each : settings) plain &= each.is_string();
  if (!plain) return UsageError(fmt::format("job {} of the class file is no job", job.id));
  if (job.verdict.empty()) return {};
  const auto verdict = VerdictFromJson(file.verdicts.at(job.verdict));
  const bool is_id = job.verdict.size() <= kIdBytesMax &&
                     job.verdict.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_id || !verdict || verdict->id != job.verdict || verdict->candidate.hash != job.source ||
      OutcomeName(verdict->outcome) != job.outcome)
    return UsageError(
        fmt::format("the verdict of job {} of the class file is not on its source", job.id));
  return {};
}

// Into the database, within one transaction.
class Importer {
 public:
  Importer(const ClassParts& parts, const ClassFile& file, const Account& by, Instant now)
      : parts_(parts), file_(file), by_(by), now_(now) {}

  Granted<ImportedClass> Run() {
    ASSAY_ASSIGN_OR_RETURN(const auto known, parts_.classes.FindByKey(file_.of.key));
    if (known)
      return std::unexpected(Refusal(
          409, fmt::format("this class is here, as class {}: it is imported once", known->id)));
    Class of = file_.of;
    if (LacksFinals()) of.finals_s = 0;
    ASSAY_ASSIGN_OR_RETURN(imported_.made, parts_.classes.Restore(std::move(of)));
    for (const Account& member : file_.members)
      ASSAY_RETURN_IF_ERROR(AddMember(member.name, member.role));
    for (const std::string& mentor : file_.mentors)
      if (!accounts_.contains(mentor)) ASSAY_RETURN_IF_ERROR(AddMember(mentor, Role::kMentor));
    ASSAY_RETURN_IF_ERROR(MeetRunner());
    for (const ClassFileJob& job : file_.jobs) ASSAY_RETURN_IF_ERROR(AddJob(job));
    for (const ClassFileWorklog& worklog : file_.worklogs)
      ASSAY_RETURN_IF_ERROR(AddWorklog(worklog));
    for (const ClassFileFinalist& finalist : file_.finalists)
      ASSAY_RETURN_IF_ERROR(AddFinalist(finalist));
    imported_.members = accounts_.size();
    imported_.jobs = jobs_.size();
    imported_.worklogs = file_.worklogs.size();
    return std::move(imported_);
  }

 private:
  // A final that had not ended is no job of the file's: it is asked for anew.
  bool LacksFinals() const {
    return std::any_of(
        file_.finalists.begin(), file_.finalists.end(), [&](const ClassFileFinalist& each) {
          return std::none_of(file_.jobs.begin(), file_.jobs.end(),
                              [&](const ClassFileJob& job) { return job.id == each.job; });
        });
  }

  // Nobody here has seen who ran the verdicts: the board shows them as those of the importing
  // mentor's own runner.
  Result<void> MeetRunner() {
    ASSAY_ASSIGN_OR_RETURN(
        SqliteStatement insert,
        parts_.database.Prepare("INSERT INTO runners(account, name, device, version, machine, "
                                "seen_s) VALUES(?, 'imported', '', '', '', 0) ON CONFLICT DO "
                                "UPDATE SET name = excluded.name RETURNING id"));
    ASSAY_RETURN_IF_ERROR(insert.Bind(by_.id).Step());
    runner_ = insert.Number(0);
    ASSAY_RETURN_IF_ERROR(insert.Step());
    return {};
  }

  Result<void> AddMember(const std::string& name, Role role) {
    ASSAY_RETURN_IF_ERROR(CheckAccountName(name));
    std::string free = name;
    for (int i = 2; i < kNamesMax; ++i) {
      ASSAY_ASSIGN_OR_RETURN(const auto taken, parts_.accounts.FindAlike(free));
      if (!taken) break;
      free = fmt::format("{} ({})", Beginning(name), i);
    }
    ASSAY_ASSIGN_OR_RETURN(accounts_[name],
                           parts_.accounts.Make(free, role, imported_.made.id, now_));
    if (free != name) imported_.renamed.emplace_back(name, free);
    return {};
  }

  // As much of a name as leaves room for a number, in whole characters.
  static std::string Beginning(std::string name) {
    if (name.size() <= kNameRoom) return name;
    size_t end = kNameRoom;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
    name.resize(end);
    while (name.ends_with(' ')) name.pop_back();
    return name;
  }

  Result<void> AddJob(const ClassFileJob& job) {
    ASSAY_ASSIGN_OR_RETURN(
        SqliteStatement insert,
        parts_.database.Prepare(
            "INSERT INTO jobs(kind, state, account, problem, size, settings, name, source, "
            "opponent, opponent_name, needs, client_key, request_hash, tag, made_s, ended_s, "
            "attempts, outcome, verdict, failure, runner, own_runner) "
            "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', '', 0, ?, ?, ?, ?, ?, ?, ?, ?) "
            "RETURNING id"));
    insert.Bind(job.kind).Bind(job.state).Bind(accounts_.at(job.author).id).Bind(job.problem);
    insert.Bind(job.size).Bind(job.settings).Bind(job.name).Bind(job.source).Bind(job.opponent);
    insert.Bind(job.opponent_name).Bind(job.needs).Bind(job.made_s).Bind(job.ended_s);
    insert.Bind(job.attempts).Bind(job.outcome).Bind(job.verdict).Bind(job.failure);
    ASSAY_RETURN_IF_ERROR(
        insert.Bind(runner_).Bind(job.own_runner ? kOwnRunner : kImportedRunner).Step());
    const int64_t id = jobs_[job.id] = insert.Number(0);
    ASSAY_RETURN_IF_ERROR(insert.Step());
    if (job.verdict.empty()) return {};
    ASSAY_ASSIGN_OR_RETURN(
        SqliteStatement ending,
        parts_.database.Prepare("INSERT INTO endings(job, verdict) VALUES(?, ?)"));
    ASSAY_RETURN_IF_ERROR(ending.Bind(id).Bind(file_.verdicts.at(job.verdict)).Step());
    return {};
  }

  Result<void> AddWorklog(const ClassFileWorklog& worklog) {
    const Account& author = accounts_.at(worklog.author);
    int64_t row = 0;
    for (const ClassFileUpload& upload : worklog.uploads) {
      ASSAY_ASSIGN_OR_RETURN(const std::vector<TarFile> files,
                             parts_.tars.Read(file_.blobs.at(upload.tar), kUploadLimits));
      ASSAY_ASSIGN_OR_RETURN(const UploadedWorklog uploaded, ReadUploadedWorklog(files));
      if (uploaded.worklog.words.id != worklog.worklog)
        return UsageError(
            fmt::format("an upload of the worklog {} is of another one", worklog.worklog));
      ASSAY_ASSIGN_OR_RETURN(row, parts_.worklogs.Restore(author, imported_.made, uploaded,
                                                          upload.tar, upload.time_s));
    }
    for (const KeptMarks& each : worklog.marks) {
      const auto mentor = accounts_.find(each.mentor);
      if (mentor == accounts_.end())
        return UsageError(fmt::format("{}, who gave marks, is nobody of the class", each.mentor));
      ASSAY_RETURN_IF_ERROR(parts_.grades.Restore(row, mentor->second.id, each));
    }
    return {};
  }

  Result<void> AddFinalist(const ClassFileFinalist& finalist) {
    if (!jobs_.contains(finalist.job)) return {};
    ASSAY_ASSIGN_OR_RETURN(
        SqliteStatement insert,
        parts_.database.Prepare(
            "INSERT INTO finalists(class, account, board, best, job) VALUES(?, ?, ?, ?, ?)"));
    insert.Bind(imported_.made.id).Bind(accounts_.at(finalist.author).id).Bind(finalist.board);
    insert.Bind(jobs_.at(finalist.best)).Bind(jobs_.at(finalist.job));
    ASSAY_RETURN_IF_ERROR(insert.Step());
    return {};
  }

  const ClassParts& parts_;
  const ClassFile& file_;
  const Account& by_;
  Instant now_;
  int64_t runner_ = 0;
  ImportedClass imported_;
  std::map<std::string, Account> accounts_;  // by their names in the file
  std::map<int64_t, int64_t> jobs_;          // by their ids in the file
};

}  // namespace

Result<std::string> SheetOfClass(const ClassParts& parts, const Class& of) {
  ASSAY_ASSIGN_OR_RETURN(const auto entries, parts.worklogs.OfClass(of.id));
  ASSAY_ASSIGN_OR_RETURN(const auto members, parts.classes.Members(of.id));
  ASSAY_ASSIGN_OR_RETURN(const Rubric rubric, RubricOf(of));
  std::vector<GradedWorklog> graded;
  for (const WorklogEntry& entry : entries) {
    ASSAY_ASSIGN_OR_RETURN(GradedWorklog each, parts.grades.Graded(entry, of));
    graded.push_back(std::move(each));
  }
  ASSAY_ASSIGN_OR_RETURN(const auto work, WorkOfMembers(parts.database, parts.finals, of.id));
  return ClassSheet(graded, members, rubric, work);
}

Result<std::string> ExportClass(const ClassParts& parts, const Class& of, Instant now) {
  ASSAY_ASSIGN_OR_RETURN(const ClassFile file, Exporter(parts, of, now).Run());
  ASSAY_ASSIGN_OR_RETURN(const std::string sheet, SheetOfClass(parts, of));
  return WriteClassFile(file, sheet, parts.tars);
}

Granted<ImportedClass> ImportClass(const ClassParts& parts, std::string_view bytes,
                                   const Account& by, Instant now) {
  ASSAY_ASSIGN_OR_RETURN(const ClassFile file, ReadClassFile(bytes, parts.tars));
  ClassTerms terms = file.of.terms;
  terms.deadline_s = 0;
  ASSAY_RETURN_IF_ERROR(CheckClassTerms(terms, now.utc_s));
  if (file.of.key.empty())
    return std::unexpected(Refusal(400, "the class file has no key: export the class again"));
  for (const ClassFileJob& job : file.jobs) ASSAY_RETURN_IF_ERROR(CheckJob(job, file));
  for (const auto& [hash, content] : file.blobs) ASSAY_RETURN_IF_ERROR(parts.store.Put(content));
  return WriteOrRefuse<ImportedClass>(parts.database, [&]() -> Granted<ImportedClass> {
    return Importer(parts, file, by, now).Run();
  });
}

}  // namespace assay
