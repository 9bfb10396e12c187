#include "serve/board.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/verdict_json.h"
#include "serve/words.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kRecordsAtOnce = 256;
constexpr const char* kAgainst = "against";

std::string TextIn(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool FlagIn(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

}  // namespace

std::string DeviceOf(const Machine& machine) {
  const std::string& name = machine.gpu.empty() ? machine.cpu : machine.gpu;
  return machine.gpu.empty() ? name : name.substr(0, name.find(" ("));
}

std::string BoardSizeOf(const Job& job) {
  if (job.set.empty()) return job.size;
  std::string size;
  for (const auto& [name, value] : job.set)
    size += fmt::format("{}{}={}", size.empty() ? "--set " : " --set ", name, value);
  return size;
}

std::string ServedTermsText(const ServedTerms& served) {
  const Json json{{"served",
                   {{"job", served.job},
                    {"kind", JobKindName(served.kind)},
                    {"author", served.author},
                    {"role", RoleName(served.role)},
                    {"size", served.size},
                    {"runner", served.runner},
                    {"own_runner", served.own_runner},
                    {"own_constants", served.own_constants}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ServedTerms ReadServedTerms(const std::string& terms) {
  ServedTerms served;
  const Json json = Json::parse(terms, nullptr, false);
  if (!json.is_object() || !json.contains("served") || !json["served"].is_object()) return served;
  const Json& object = json["served"];
  if (const auto job = object.find("job"); job != object.end() && job->is_number_integer())
    served.job = job->get<int64_t>();
  served.kind = JobKindFromName(TextIn(object, "kind")).value_or(JobKind::kJudge);
  served.author = TextIn(object, "author");
  served.role = RoleFromName(TextIn(object, "role")).value_or(Role::kStudent);
  served.size = TextIn(object, "size");
  served.runner = TextIn(object, "runner");
  served.own_runner = FlagIn(object, "own_runner");
  served.own_constants = FlagIn(object, "own_constants");
  return served;
}

Attempt BoardRow::attempt() const {
  Attempt attempt;
  attempt.stage = stage;
  attempt.prepares_weights = prepares_weights;
  attempt.speedup = entry.speedup;
  attempt.ci_low = entry.ci_low;
  attempt.ci_high = entry.ci_high;
  attempt.time_ns = entry.time_ns;
  attempt.certified_speedup = certified;
  return attempt;
}

BoardRow BoardRowOf(const Record& record, const Verdict& verdict, const ServedTerms& served) {
  const Attempt attempt = AttemptOf(verdict);
  BoardRow row;
  BoardEntry& entry = row.entry;
  entry.sequence = record.sequence;
  entry.job = served.job;
  entry.verdict = verdict.id;
  entry.problem = verdict.problem.name;
  entry.size = verdict.problem.size.empty() ? served.size : verdict.problem.size;
  entry.gpu_or_cpu = DeviceOf(verdict.machine);
  if (verdict.correctness) entry.precision = verdict.correctness->precision_class;
  entry.form = CandidateFormName(verdict.candidate.form);
  entry.author = served.author;
  entry.role = served.role;
  entry.outcome = OutcomeName(verdict.outcome);
  entry.speedup = attempt.speedup;
  entry.ci_low = attempt.ci_low;
  entry.ci_high = attempt.ci_high;
  entry.time_ns = attempt.time_ns;
  if (verdict.roofline) entry.percent_of_peak = verdict.roofline->percent_of_peak;
  entry.time = record.time;
  entry.source_hash = record.source.empty() ? verdict.candidate.hash : record.source;
  entry.runner = served.runner;
  entry.foul = verdict.outcome == Outcome::kFoul;
  row.stage = attempt.stage;
  row.certified = attempt.certified_speedup;
  row.prepares_weights = attempt.prepares_weights;
  row.own_runner = served.own_runner;
  row.own_constants = served.own_constants;
  if (verdict.foul) row.foul_rule = verdict.foul->rule;
  return row;
}

void Board::Hold(BoardRow row) {
  row.author = authors_.try_emplace(row.entry.author, authors_.size()).first->second;
  row.problem = problems_.try_emplace(row.entry.problem, problems_.size()).first->second;
  verdicts_[row.entry.verdict] = rows_.size();
  if (row.counts()) Offer(row.entry);
  rows_.push_back(std::move(row));
}

void Board::Offer(const BoardEntry& entry) {
  choices_.problems.insert(entry.problem);
  if (!entry.size.empty()) choices_.sizes.insert(entry.size);
  if (!entry.precision.empty()) choices_.precisions.insert(entry.precision);
  if (!entry.gpu_or_cpu.empty()) choices_.devices.insert(entry.gpu_or_cpu);
}

Result<void> Board::Load() {
  ASSAY_ASSIGN_OR_RETURN(
      sequence_, database_.Number("SELECT number FROM settings WHERE name = 'board sequence'"));
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare("SELECT sequence, job, verdict, problem, size, device, precision, form,"
                        " author, role, outcome, stage, prepares_weights, speedup, ci_low, ci_high,"
                        " certified, time_ns, percent_of_peak, time, source, runner, own_runner,"
                        " foul_rule, own_constants"
                        " FROM board ORDER BY sequence"));
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return {};
    BoardRow row;
    BoardEntry& entry = row.entry;
    entry.sequence = select.Number(0);
    entry.job = select.Number(1);
    entry.verdict = select.Text(2);
    entry.problem = select.Text(3);
    entry.size = select.Text(4);
    entry.gpu_or_cpu = select.Text(5);
    entry.precision = select.Text(6);
    entry.form = select.Text(7);
    entry.author = select.Text(8);
    entry.role = RoleFromName(select.Text(9)).value_or(Role::kStudent);
    entry.outcome = select.Text(10);
    row.stage = static_cast<Stage>(select.Number(11));
    row.prepares_weights = select.Number(12) != 0;
    entry.speedup = select.Real(13);
    entry.ci_low = select.Real(14);
    entry.ci_high = select.Real(15);
    row.certified = select.Real(16);
    entry.time_ns = select.Real(17);
    entry.percent_of_peak = select.Real(18);
    entry.time = select.Text(19);
    entry.source_hash = select.Text(20);
    entry.runner = select.Text(21);
    row.own_runner = select.Number(22) != 0;
    row.foul_rule = select.Text(23);
    row.own_constants = select.Number(24) != 0;
    entry.foul = entry.outcome == OutcomeName(Outcome::kFoul);
    Hold(std::move(row));
  }
}

Result<void> Board::Keep(const BoardRow& row) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement insert,
      database_.Prepare("INSERT OR REPLACE INTO board VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
                        " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  const BoardEntry& entry = row.entry;
  insert.Bind(entry.sequence).Bind(entry.job).Bind(entry.verdict).Bind(entry.problem);
  insert.Bind(entry.size).Bind(entry.gpu_or_cpu).Bind(entry.precision).Bind(entry.form);
  insert.Bind(entry.author).Bind(RoleName(entry.role)).Bind(entry.outcome);
  insert.Bind(static_cast<int64_t>(row.stage)).Bind(int64_t{row.prepares_weights});
  insert.BindReal(entry.speedup).BindReal(entry.ci_low).BindReal(entry.ci_high);
  insert.BindReal(row.certified).BindReal(entry.time_ns).BindReal(entry.percent_of_peak);
  insert.Bind(entry.time).Bind(entry.source_hash).Bind(entry.runner);
  ASSAY_RETURN_IF_ERROR(insert.Bind(int64_t{row.own_runner})
                            .Bind(row.foul_rule)
                            .Bind(int64_t{row.own_constants})
                            .Step());
  return {};
}

// A record that cannot be read is left out: `assay archive verify` tells of it.
Result<void> Board::Add(const Record& record) {
  const auto text = archive_.Get(record.content);
  const auto verdict =
      text ? VerdictFromJson(*text) : Result<Verdict>(std::unexpected(text.error()));
  if (!verdict || (verdict->speed && verdict->speed->headline == kAgainst)) return {};
  ServedTerms served;
  if (!record.terms.empty())
    if (const auto terms = archive_.Get(record.terms)) served = ReadServedTerms(*terms);
  if (served.kind == JobKind::kCompare || served.kind == JobKind::kSpotCheck) return {};
  BoardRow row = BoardRowOf(record, *verdict, served);
  ASSAY_RETURN_IF_ERROR(Keep(row));
  Hold(std::move(row));
  return {};
}

Result<int64_t> Board::CatchUp() {
  while (true) {
    RecordQuery query;
    query.kind = RecordKind::kVerdict;
    query.after = sequence_;
    query.oldest_first = true;
    query.limit = kRecordsAtOnce;
    ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> records, archive_.Find(query));
    if (records.empty()) return sequence_;
    const size_t held = rows_.size();
    const auto done = database_.Write([&]() -> Result<void> {
      for (const Record& record : records) ASSAY_RETURN_IF_ERROR(Add(record));
      ASSAY_ASSIGN_OR_RETURN(
          SqliteStatement keep,
          database_.Prepare("INSERT INTO settings(name, number) VALUES('board sequence', ?)"
                            " ON CONFLICT(name) DO UPDATE SET number = excluded.number"));
      ASSAY_RETURN_IF_ERROR(keep.Bind(records.back().sequence).Step());
      return {};
    });
    if (!done) {
      rows_.resize(held);
      std::erase_if(verdicts_, [&](const auto& each) { return each.second >= held; });
      return std::unexpected(done.error());
    }
    sequence_ = records.back().sequence;
  }
}

const BoardRow* Board::Find(const std::string& verdict) const {
  const auto found = verdicts_.find(verdict);
  return found == verdicts_.end() ? nullptr : &rows_[found->second];
}

}  // namespace assay
