// The commands of a match that judge versions against each other, or take in what was judged beside
// them: duel and also.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/hash.h"
#include "cli/exit_code.h"
#include "cli/places.h"
#include "cli/print.h"
#include "cli/search_parts.h"
#include "cli/worklog_command.h"
#include "cli/worklog_judge.h"
#include "cli/worklog_match.h"
#include "report/card.h"
#include "report/terminal.h"
#include "report/text.h"
#include "worklog/facts_text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

int Ended(const Result<int>& code) { return code ? *code : ReportError(code.error()); }

struct Pair {
  const VersionFact* version = nullptr;
  const VersionFact* other = nullptr;
};

Result<Pair> PairOf(const WorklogDuelOptions& options, const Match& match) {
  Pair pair;
  if (options.version.empty()) {
    pair = {match.Best(Player::kHand), match.Best(Player::kModel)};
    if (pair.version == nullptr || pair.other == nullptr)
      return UsageError(
          "a side has no correct version with a speed yet: name two versions, such as v1 v2");
    return pair;
  }
  if (options.other.empty())
    return UsageError(fmt::format("name the version that {} is judged against", options.version));
  pair = {match.Find(options.version), match.Find(options.other)};
  for (const auto& [found, name] :
       {std::pair{pair.version, options.version}, std::pair{pair.other, options.other}})
    if (found == nullptr)
      return UsageError(
          fmt::format("{} was never measured: assay worklog status lists the versions", name));
  if (pair.version == pair.other) return UsageError("name two versions");
  return pair;
}

Result<void> CheckUnchanged(const Worklog& worklog, const VersionFact& version) {
  const Attempted& said = version.said;
  if (Sha256Hex(worklog.SourceOf(version)) == said.source_hash) return {};
  return UsageError(fmt::format("{} is not what was measured as {}: git restore {}", said.file,
                                said.version, said.file));
}

Result<int> RunDuel(const WorklogDuelOptions& options) {
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  ASSAY_ASSIGN_OR_RETURN(OpenedMatch opened, OpenToRecord(options.place));
  const Match& match = opened.worklog.match;
  ASSAY_ASSIGN_OR_RETURN(const Pair pair, PairOf(options, match));
  const std::string name = pair.version->said.version, other = pair.other->said.version;
  if (const DuelFact* duel = match.Duel(*pair.version, *pair.other);
      duel != nullptr && duel->Settled())
    return UsageError(fmt::format("{} and {} have a decision, and the first one counts: {}", name,
                                  other, Printable(DuelText(match, *duel), true)));
  ASSAY_RETURN_IF_ERROR(CheckUnchanged(opened.worklog, *pair.version));
  ASSAY_RETURN_IF_ERROR(CheckUnchanged(opened.worklog, *pair.other));
  const std::string text(opened.worklog.SourceOf(*pair.version));
  ASSAY_ASSIGN_OR_RETURN(
      const CandidateSource source,
      CandidateFromText(name + fs::path(pair.version->said.file).extension().string(), text));
  MatchBegun terms = match.begun;
  const std::string against = fs::absolute(opened.folder.PathOf(pair.other->said.file)).string();
  ASSAY_ASSIGN_OR_RETURN(terms.terms, WithOpponent(terms.terms, against));
  if (options.budget_s > 0) {
    ASSAY_ASSIGN_OR_RETURN(terms.terms, WithBudget(terms.terms, options.budget_s));
  }
  MatchLog log(*opened.store, opened.folder, match);
  const auto verdict = JudgeVersion(terms, source, options.quiet, InstallInterruptHandler());
  if (!verdict) {
    if (verdict.error().kind != ErrorKind::kInterrupted)
      ASSAY_RETURN_IF_ERROR(log.Record(Dueled{name, other, "", verdict.error().message}));
    return std::unexpected(verdict.error());
  }
  ASSAY_RETURN_IF_ERROR(
      log.RecordDuel(name, other, {source.path, text, terms.problem, terms.terms}, *verdict));
  CardStyle style = CardStyleFor(DetectTerminal(STDOUT_FILENO));
  style.saved = KeepVerdict(*verdict);
  Print(RenderCardAlone(*verdict, style));
  ASSAY_ASSIGN_OR_RETURN(opened.worklog, opened.folder.Read());
  Print(fmt::format(
      "{}\n",
      Printable(DuelText(opened.worklog.match, opened.worklog.match.duels.back()), style.unicode)));
  return kExitGood;
}

Result<int> RunAlso(const WorklogAlsoOptions& options) {
  if (options.why.find_first_not_of(" \t\r\n") == std::string::npos)
    return UsageError("--why is empty: say it in words");
  ASSAY_RETURN_IF_ERROR(CheckSource(options.why, "--why"));
  ASSAY_ASSIGN_OR_RETURN(OpenedMatch opened, OpenToRecord(options.place));
  MatchLog log(*opened.store, opened.folder, opened.worklog.match);
  for (const std::string& id : options.verdicts)
    ASSAY_RETURN_IF_ERROR(log.RecordBesides(id, options.why));
  const size_t before = opened.worklog.match.besides.size();
  ASSAY_ASSIGN_OR_RETURN(opened.worklog, opened.folder.Read());
  const Match& match = opened.worklog.match;
  for (size_t i = before; i < match.besides.size(); ++i)
    Print(fmt::format("taken in: {}\n", Printable(BesidesText(match, match.besides[i]), true)));
  for (const VersionFact& version : match.versions)
    if (!version.refuted.empty())
      Print(fmt::format("{} does not count: verdict {} found its source wrong\n",
                        version.said.version, version.refuted));
  return kExitGood;
}

}  // namespace

int RunWorklogDuel(const WorklogDuelOptions& options) { return Ended(RunDuel(options)); }
int RunWorklogAlso(const WorklogAlsoOptions& options) { return Ended(RunAlso(options)); }

}  // namespace assay
