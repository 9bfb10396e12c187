#include "serve/hall.h"

#include <fmt/format.h>

#include <algorithm>

#include "archive/judged.h"
#include "base/hash.h"
#include "model/verdict_json.h"
#include "serve/hall_archive.h"
#include "serve/job_terms.h"

namespace assay {
namespace {

constexpr size_t kViewsMax = 64;
constexpr size_t kIdBytesMax = 64;

}  // namespace

Result<std::unique_ptr<Hall>> Hall::Open(HallOptions options, Catalogue catalogue) {
  const std::string folder = options.folder;
  std::unique_ptr<Hall> hall(new Hall(std::move(options), std::move(catalogue)));
  ASSAY_ASSIGN_OR_RETURN(hall->database_, Database::Open(folder));
  ASSAY_ASSIGN_OR_RETURN(hall->archive_, OpenHallArchive(*hall->database_, hall->options_.archive));
  hall->leases_.emplace(*hall->database_, hall->options_.leases);
  hall->board_.emplace(*hall->database_, *hall->archive_);
  hall->submit_terms = [limits = hall->options_.queue](const Account&, Instant) {
    return Result<SubmitTerms>(SubmitTerms{limits, "", 0});
  };
  hall->source_hidden_until_s = [](const Account&, const BoardEntry&, Instant) {
    return Result<int64_t>(0);
  };
  ASSAY_RETURN_IF_ERROR(hall->Settle());
  ASSAY_RETURN_IF_ERROR(hall->board_->Load());
  ASSAY_RETURN_IF_ERROR(hall->board_->CatchUp());
  return hall;
}

Result<void> Hall::CheckVerdict(const Job& job, const std::string& text, std::string* id,
                                std::string* outcome) {
  ASSAY_ASSIGN_OR_RETURN(const Verdict verdict, VerdictFromJson(text));
  const auto problem = catalogue_.Find(job.problem);
  ASSAY_RETURN_IF_ERROR(CheckJobTerms(job, problem ? *problem : nullptr, verdict));
  if (verdict.id.empty() || verdict.id.size() > kIdBytesMax ||
      verdict.id.find_first_not_of("0123456789abcdef") != std::string::npos)
    return UsageError("this verdict has no id of hexadecimal digits");
  RecordQuery same;
  same.id = verdict.id;
  same.limit = 1;
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> known, archive_->Find(same));
  if (!known.empty()) return UsageError("there is a record with this verdict's id");
  *id = verdict.id;
  *outcome = OutcomeName(verdict.outcome);
  return {};
}

Result<Ending> Hall::End(int64_t job_id, const std::string& lease, const std::string& text,
                         Instant now) {
  ASSAY_ASSIGN_OR_RETURN(const auto job, jobs().Find(job_id));
  if (!job) return UsageError(fmt::format("there is no job {}", job_id));
  std::string id, outcome;
  // The verdict of a job that has ended is in the archive: the lease decides alone.
  if (job->state == JobState::kRunning)
    ASSAY_RETURN_IF_ERROR(CheckVerdict(*job, text, &id, &outcome));
  ASSAY_ASSIGN_OR_RETURN(const Ending ending,
                         leases_->EndWithVerdict(job_id, lease, text, id, outcome, now));
  // The job has ended, whatever comes of this: it is tried again later.
  if (ending != Ending::kCounted) return ending;
  (void)Settle();
  (void)spot_checks().MayAsk(job_id, now);
  return ending;
}

Result<void> Hall::NoteCheck(const Job& job, const Verdict& again) {
  if (job.kind != JobKind::kSpotCheck) return {};
  SpotChecks checks = spot_checks();
  ASSAY_ASSIGN_OR_RETURN(const int64_t checked, checks.CheckedBy(job.id));
  ASSAY_ASSIGN_OR_RETURN(const auto first_job, jobs().Find(checked));
  if (!first_job) return {};
  RecordQuery query;
  query.kind = RecordKind::kVerdict;
  query.id = first_job->verdict;
  query.limit = 1;
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> records, archive_->Find(query));
  if (records.empty()) return {};
  ASSAY_ASSIGN_OR_RETURN(const std::string text, archive_->Get(records.front().content));
  ASSAY_ASSIGN_OR_RETURN(const Verdict first, VerdictFromJson(text));
  return checks.Note(job.id, first, again);
}

Result<void> Hall::Archive(const Leases::KeptVerdict& kept) {
  ASSAY_ASSIGN_OR_RETURN(const auto job, jobs().Find(kept.job));
  ASSAY_ASSIGN_OR_RETURN(const Verdict verdict, VerdictFromJson(kept.verdict));
  if (!job) return EnvironmentError(fmt::format("there is no job {}", kept.job));
  ASSAY_ASSIGN_OR_RETURN(std::string source, archive_->Get(job->source_hash));
  ASSAY_RETURN_IF_ERROR(NoteCheck(*job, verdict));
  const ServedTerms served{job->id,           job->kind,   job->author.name, job->author.role,
                           BoardSizeOf(*job), job->runner, job->own_runner,  !job->set.empty()};
  std::vector<NewRecord> records;
  if (const auto problem = catalogue_.Find(job->problem); problem)
    if (auto file = catalogue_.Text(**problem); file)
      records.push_back(
          RecordOfFile(RecordKind::kReference, (*problem)->path, job->problem, std::move(*file)));
  const JudgedSource judged{job->name, std::move(source), job->problem, ServedTermsText(served)};
  for (NewRecord& record : RecordsOfVerdict(judged, verdict)) records.push_back(std::move(record));
  records.back().once = true;  // if the last process ended between the two files
  ASSAY_RETURN_IF_ERROR(archive_->Append(records));
  return leases_->Archived(kept.job);
}

Result<void> Hall::Settle() {
  ASSAY_ASSIGN_OR_RETURN(const auto kept, leases_->NotArchived());
  for (const Leases::KeptVerdict& each : kept) ASSAY_RETURN_IF_ERROR(Archive(each));
  return {};
}

Result<const Board*> Hall::CaughtUpBoard() {
  ASSAY_RETURN_IF_ERROR(board_->CatchUp());
  return &*board_;
}

Result<void> Hall::CatchUpViews() {
  ASSAY_ASSIGN_OR_RETURN(const int64_t sequence, board_->CatchUp());
  if (sequence == views_sequence_) return {};
  standings_.clear();
  boards_.clear();
  texts_.Clear();
  views_sequence_ = sequence;
  return {};
}

template <typename View>
Result<std::shared_ptr<const View>> Hall::Remembered(
    std::vector<Kept<View>>* kept, const BoardQuery& query,
    const std::function<View(const std::vector<BoardRow>&)>& make) {
  ASSAY_RETURN_IF_ERROR(CatchUpViews());
  for (const Kept<View>& each : *kept)
    if (each.query == query) return each.view;
  if (kept->size() >= kViewsMax) kept->erase(kept->begin());
  kept->push_back({query, std::make_shared<const View>(make(board_->rows()))});
  return kept->back().view;
}

Result<std::shared_ptr<const PlayerBoard>> Hall::Standings(const BoardQuery& query) {
  int64_t asked = 0;
  for (const OfferedProblem& problem : catalogue_.all()) {
    const std::string& name = problem.facts.name;
    asked += (query.problems.empty() || query.problems.contains(name)) &&
             (query.problem.empty() || query.problem == name);
  }
  return Remembered<PlayerBoard>(&standings_, query, [&](const std::vector<BoardRow>& rows) {
    return RankPlayers(rows, query, asked);
  });
}

Result<std::shared_ptr<const std::vector<ProblemBoard>>> Hall::BoardsOf(const BoardQuery& query) {
  return Remembered<std::vector<ProblemBoard>>(
      &boards_, query, [&](const std::vector<BoardRow>& rows) { return RankProblem(rows, query); });
}

Result<std::shared_ptr<const std::string>> Hall::TextOfBoard(
    const std::string& name, const BoardQuery& query,
    const std::function<Result<std::string>()>& make) {
  ASSAY_RETURN_IF_ERROR(CatchUpViews());
  if (auto known = texts_.Find(name, query)) return known;
  ASSAY_ASSIGN_OR_RETURN(std::string text, make());
  return texts_.Keep(name, query, std::move(text));
}

}  // namespace assay
