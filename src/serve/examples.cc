#include "serve/examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "archive/judged.h"
#include "archive/sqlite_store.h"
#include "base/files.h"
#include "base/hash.h"
#include "model/json_node.h"
#include "model/verdict_json.h"
#include "serve/accounts.h"
#include "serve/board.h"
#include "serve/classes.h"
#include "serve/database.h"
#include "serve/worklog_upload.h"
#include "serve/worklogs.h"
#include "worklog/match.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kFileBytesMax = size_t{16} << 20;
constexpr std::string_view kKernels = "kernels/";  // before the paths in the verdicts

struct ExamplePlayer {
  std::string name;
  Role role = Role::kStudent;
};

// players.json.
struct Cast {
  std::string class_name, runner;
  ExamplePlayer hand, model;                     // of the worklog
  std::map<std::string, ExamplePlayer> kernels;  // by "softmax/fused.cpp"
  std::map<std::string, std::string> found;      // players, by verdicts of searches
};

Result<Cast> ReadCast(const fs::path& path) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileBytesMax));
  ASSAY_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text));
  std::string error;
  const JsonNode root = document.Root(&error);
  Cast cast;
  root.At("schema").OneOf({"assay.examples/1"});
  cast.class_name = root.At("class").Text();
  cast.runner = root.At("runner").Text();
  cast.hand = {root.At("worklog").At("hand").Text(), Role::kStudent};
  cast.model = {root.At("worklog").At("model").Text(), Role::kMachine};
  root.At("players").ForEach([&](const JsonNode& node) {
    const bool machine = node.At("role").OneOf({"student", "machine"}) == "machine";
    const ExamplePlayer player{node.At("name").Text(), machine ? Role::kMachine : Role::kStudent};
    node.At("kernels").ForEach(
        [&](const JsonNode& kernel) { cast.kernels[kernel.Text()] = player; });
  });
  root.At("found").ForEachMember([&](const std::string& verdict, const JsonNode& player) {
    cast.found[verdict] = player.Text();
  });
  if (!error.empty()) return UsageError(fmt::format("{}: {}", path.string(), error));
  return cast;
}

// A source as it was judged.
Result<std::string> ReadJudged(const fs::path& path, const std::string& hash) {
  ASSAY_ASSIGN_OR_RETURN(std::string source, ReadFile(path, kFileBytesMax));
  if (Sha256Hex(source) != hash)
    return UsageError(
        fmt::format("{} is not as it was judged: judge it again, or take it back", path.string()));
  return source;
}

Result<void> AddKernels(const ExampleFolders& folders, const Cast& cast, Examples* examples) {
  const fs::path path = fs::path(folders.examples) / "verdicts.jsonl";
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileBytesMax));
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    ASSAY_ASSIGN_OR_RETURN(Verdict verdict, VerdictFromJson(text.substr(at, end - at)));
    at = end + 1;
    std::string kernel = verdict.candidate.path;
    if (kernel.starts_with(kKernels)) kernel.erase(0, kKernels.size());
    const auto found = cast.kernels.find(kernel);
    if (found == cast.kernels.end()) continue;
    ASSAY_ASSIGN_OR_RETURN(std::string source,
                           ReadJudged(fs::path(folders.kernels) / kernel, verdict.candidate.hash));
    examples->candidates.push_back(
        {found->second.name, found->second.role, std::move(source), std::move(verdict)});
  }
  return {};
}

Result<void> AddWorklog(const Cast& cast, Examples* examples) {
  const fs::path path = fs::path(examples->worklog) / "facts.jsonl";
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileBytesMax));
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Fact> facts, ParseFacts(text, path.string()));
  ASSAY_ASSIGN_OR_RETURN(const Match match, ReadMatch(facts));
  for (const VersionFact& version : match.versions) {
    if (!version.verdict) continue;
    const ExamplePlayer& player = version.said.player == Player::kModel ? cast.model : cast.hand;
    ASSAY_ASSIGN_OR_RETURN(std::string source,
                           ReadJudged(fs::path(examples->worklog) / version.said.file,
                                      version.verdict->candidate.hash));
    examples->candidates.push_back({player.name, player.role, std::move(source), *version.verdict});
  }
  return {};
}

Error ErrorOf(const Refusal& refusal) { return {ErrorKind::kUsage, refusal.why}; }

// A verdict of a search that a player submitted: its terms say so, too.
NewRecord SubmittedBy(const Examples& examples, NewRecord record) {
  const auto found = examples.found.find(record.facts.id);
  if (record.facts.kind != RecordKind::kVerdict || found == examples.found.end()) return record;
  ServedTerms served;
  served.author = found->second;
  served.role = examples.Players().at(found->second);
  served.runner = examples.runner;
  Json terms = Json::parse(record.terms, nullptr, false);
  terms.update(Json::parse(ServedTermsText(served)));
  record.terms = terms.dump();
  return record;
}

// The records of all verdicts and searches, with their times.
std::vector<ExportedRecord> RecordsOf(const Examples& examples) {
  std::vector<ExportedRecord> records;
  std::set<std::pair<RecordKind, std::string>> files;  // each is recorded once
  const auto add = [&](NewRecord record, const std::string& time) {
    if (record.once && !files.emplace(record.facts.kind, record.content).second) return;
    records.push_back({std::move(record), time});
  };
  for (const ExampleCandidate& candidate : examples.candidates) {
    const Verdict& verdict = candidate.verdict;
    ServedTerms served;
    served.author = candidate.player;
    served.role = candidate.role;
    served.size = verdict.problem.size;
    served.runner = examples.runner;
    const JudgedSource judged{fs::path(verdict.candidate.path).filename().string(),
                              candidate.source, verdict.problem.name, ServedTermsText(served)};
    for (NewRecord& record : RecordsOfVerdict(judged, verdict))
      add(std::move(record), verdict.created);
  }
  for (const ExportedRecord& each : examples.searches)
    add(SubmittedBy(examples, each.record), each.time);
  return records;
}

// In one transaction, since each waits for the disk: the archive asks for the time of each record.
Result<std::unique_ptr<SqliteStore>> MakeArchive(const std::string& path,
                                                 const std::vector<ExportedRecord>& records) {
  size_t at = 0;
  SqliteStoreOptions options;
  options.now = [&] { return at < records.size() ? records[at++].time : UtcTimestamp(); };
  ASSAY_ASSIGN_OR_RETURN(const auto archive, SqliteStore::Open(path, options));
  std::vector<NewRecord> made;
  for (const ExportedRecord& each : records) made.push_back(each.record);
  ASSAY_RETURN_IF_ERROR(archive->Append(made));
  return SqliteStore::Open(path);
}

// A class of all players, with the worklog of one of them.
Result<void> AddClass(const Examples& examples, const TarLibrary& tars, Database& database,
                      Store& archive) {
  const Instant now = InstantNow();
  Accounts accounts(database);
  ClassTerms terms;
  terms.name = examples.class_name;
  const auto made = Classes(database, accounts).Make(terms, now);
  if (!made) return std::unexpected(ErrorOf(made.error()));
  for (const auto& [name, role] : examples.Players())
    ASSAY_RETURN_IF_ERROR(accounts.Make(name, role, made->id, now));
  ASSAY_ASSIGN_OR_RETURN(const auto author, accounts.FindByName(examples.worklog_player));
  if (!author) return UsageError(fmt::format("{} is no player", examples.worklog_player));
  ASSAY_ASSIGN_OR_RETURN(const std::vector<TarFile> files, FilesOfWorklogFolder(examples.worklog));
  ASSAY_ASSIGN_OR_RETURN(const UploadedWorklog uploaded, ReadUploadedWorklog(files));
  const auto kept = Worklogs(database, archive, tars).Keep(*author, *made, files, uploaded, now);
  return kept ? Result<void>() : std::unexpected(ErrorOf(kept.error()));
}

}  // namespace

std::map<std::string, Role> Examples::Players() const {
  std::map<std::string, Role> players;
  for (const ExampleCandidate& candidate : candidates)
    players.emplace(candidate.player, candidate.role);
  return players;
}

Result<Examples> ReadExamples(const ExampleFolders& folders) {
  const fs::path folder = folders.examples;
  ASSAY_ASSIGN_OR_RETURN(const Cast cast, ReadCast(folder / "players.json"));
  Examples examples;
  examples.class_name = cast.class_name;
  examples.runner = cast.runner;
  examples.worklog = (folder / "worklog").string();
  examples.worklog_player = cast.hand.name;
  examples.found = cast.found;
  ASSAY_RETURN_IF_ERROR(AddKernels(folders, cast, &examples));
  ASSAY_RETURN_IF_ERROR(AddWorklog(cast, &examples));
  std::stable_sort(examples.candidates.begin(), examples.candidates.end(),
                   [](const ExampleCandidate& a, const ExampleCandidate& b) {
                     return a.verdict.created < b.verdict.created;
                   });
  const auto players = examples.Players();
  for (const auto& [verdict, player] : examples.found)
    if (!players.contains(player))
      return UsageError(fmt::format("players.json: {} has no candidate of its own", player));
  ASSAY_ASSIGN_OR_RETURN(const std::string machine,
                         ReadFile(folder / "machine.json", kFileBytesMax));
  ASSAY_ASSIGN_OR_RETURN(examples.machine, MachineProfileFromJson(machine));
  const fs::path searches = folder / "searches.jsonl";
  ASSAY_ASSIGN_OR_RETURN(const std::string records, ReadFile(searches, kFileBytesMax));
  ASSAY_ASSIGN_OR_RETURN(examples.searches, ParseExportedRecords(records, searches.string()));
  return examples;
}

Result<void> FillWithExamples(const Examples& examples, const TarLibrary& tars,
                              const std::string& folder) {
  const fs::path path = fs::path(folder) / "archive.sqlite";
  if (fs::exists(path))
    return UsageError(fmt::format("{} has an archive: examples go into a fresh folder", folder));
  ASSAY_ASSIGN_OR_RETURN(const auto database, Database::Open(folder));
  ASSAY_ASSIGN_OR_RETURN(const auto archive, MakeArchive(path.string(), RecordsOf(examples)));
  return AddClass(examples, tars, *database, *archive);
}

}  // namespace assay
