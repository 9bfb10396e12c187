#include "cli/worklog_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/hash.h"
#include "cli/exit_code.h"
#include "cli/print.h"
#include "cli/worklog_match.h"
#include "machine/seeds.h"
#include "problem/suite.h"
#include "report/text.h"
#include "worker/protocol.h"
#include "worklog/check.h"
#include "worklog/facts_text.h"
#include "worklog/markdown.h"
#include "worklog/page.h"
#include "worklog/page_style.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kIdDigits = 12;

int Ended(const Result<int>& code) { return code ? *code : ReportError(code.error()); }

Result<void> CheckText(const std::string& text, const std::string& name) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    return UsageError(fmt::format("{} is empty: say it in words", name));
  return CheckSource(text, name);
}

Result<int> Suggest(const WorklogInitOptions& options) {
  const int tier = options.tier != 0 ? options.tier : 2;
  std::string text = TierText(tier) + "\n";
  std::set<std::string> told;  // suites may hold the same problem: the nearest one counts
  for (const std::string& folder : SuiteFolders()) {
    ASSAY_ASSIGN_OR_RETURN(const Suite suite, LoadSuite(folder));
    for (const SuiteProblem& problem : suite.problems) {
      if (problem.level != tier) continue;
      if (!options.mechanism.empty() && problem.mechanism != options.mechanism) continue;
      if (!told.insert(problem.name).second) continue;
      text += fmt::format("  {:<26}  {:<12}  {}\n", Printable(problem.name, true),
                          Printable(problem.mechanism, true), Printable(problem.lesson, true));
    }
  }
  if (told.empty())
    return UsageError("no problem matches: leave out --mechanism, or name another --tier");
  Print(text + fmt::format("look at one: assay problems show NAME --size small\n"
                           "next: assay worklog init{} NAME --size small\n",
                           PlaceWords(options.place)));
  return kExitGood;
}

Result<int> Init(const WorklogInitOptions& options) {
  if (options.suggest) return Suggest(options);
  if (options.problem.problem.empty())
    return UsageError("name a problem, or add --suggest to see which ones fit");
  if (options.tier < 0 || options.tier > 3) return UsageError("--tier takes 1, 2 or 3");
  AskedTerms terms = options.asked;
  ASSAY_ASSIGN_OR_RETURN(terms.problem, options.problem.Choice());
  ASSAY_ASSIGN_OR_RETURN(const ProblemRequest problem, options.problem.Resolve());
  if (std::error_code code; fs::exists(terms.problem.problem, code))
    terms.problem.problem = fs::absolute(terms.problem.problem).string();
  const int tier = options.tier != 0 ? options.tier : problem.level != 0 ? problem.level : 2;
  Match match;
  match.begun.problem = problem.name;
  match.begun.reference_hash = Sha256Hex(problem.source);
  match.begun.terms = TermsText(terms);
  match.begun.tier = tier;
  match.begun.worklog =
      Sha256Hex(fmt::format("{} {}", FreshSeed(), match.begun.terms)).substr(0, kIdDigits);
  Words words;
  words.id = match.begun.worklog;
  words.author = options.author;
  words.problem = problem.name;
  words.size = problem.size;
  words.tier = tier;
  ASSAY_ASSIGN_OR_RETURN(WorklogFolder folder, WorklogFolder::Make(options.place.folder));
  ASSAY_ASSIGN_OR_RETURN(const auto store,
                         OpenStore(ArchiveOf(options.place), StoreAccess::kWrite));
  ASSAY_RETURN_IF_ERROR(MatchLog(*store, folder, match).Record(match.begun));
  for (const Section section : kAllSections)
    if (std::error_code code; !fs::exists(folder.PathOf(SectionFile(section)), code))
      ASSAY_RETURN_IF_ERROR(folder.Write(SectionFile(section), SectionStub(section)));
  ASSAY_RETURN_IF_ERROR(folder.AddWords(WordsHead(words)));
  if (std::error_code code; !fs::exists(folder.PathOf(kReferenceFile), code))
    ASSAY_RETURN_IF_ERROR(folder.Write(kReferenceFile, problem.source));
  Print(fmt::format("a match on {} begins, {}\n", problem.name, TierText(tier)));
  Print(fmt::format("{} is the PyTorch program that both sides get; a stub: assay new {}{}{}\n",
                    folder.PathOf(kReferenceFile), ShellQuoted(terms.problem.problem),
                    terms.problem.size.empty() ? "" : " --size " + terms.problem.size,
                    terms.problem.gradients ? " --grad" : ""));
  if (options.tier == 0 && problem.level != tier)
    Print("tier 2 is the default: fusing a chain of operators is a win that can be explained\n");
  Print(fmt::format("next: assay worklog predict{} --regime memory --ratio 2 --because \"...\"\n",
                    PlaceWords(options.place)));
  return kExitGood;
}

Result<int> Predict(const WorklogPredictOptions& options) {
  ASSAY_RETURN_IF_ERROR(CheckText(options.because, "--because"));
  if (!std::isfinite(options.ratio) || options.ratio <= 0)
    return UsageError("--ratio takes the speedup that you expect, such as 1.5 or 0.9");
  ASSAY_ASSIGN_OR_RETURN(OpenedMatch opened, OpenToRecord(options.place));
  const Predicted said{options.regime, options.ratio, options.because};
  MatchLog log(*opened.store, opened.folder, opened.worklog.match);
  ASSAY_ASSIGN_OR_RETURN(const FactPlace place, log.Record(said));
  ASSAY_RETURN_IF_ERROR(opened.folder.AddWords(
      WordsOf(PredictionWords{place.hash, said.regime, said.reason, said.ratio})));
  Print(fmt::format("sealed as record {}: {}\n", place.sequence, place.hash));
  if (opened.worklog.match.predictions.empty())
    Print(
        "commit worklog.toml and facts.jsonl to git now: that proves the prediction even to those "
        "who "
        "do not trust your archive\n");
  else
    Print("it counts for the versions that are measured from now on\n");
  Print(
      fmt::format("next: assay worklog attempt{} FILE --why \"...\"\n", PlaceWords(options.place)));
  return kExitGood;
}

Result<int> Stuck(const WorklogStuckOptions& options) {
  ASSAY_RETURN_IF_ERROR(CheckText(options.text, "TEXT"));
  const auto player = PlayerFromName(options.player);
  if (!player) return UsageError("name the player: hand, model or together");
  ASSAY_ASSIGN_OR_RETURN(OpenedMatch opened, OpenToLook(options.place));
  ASSAY_RETURN_IF_ERROR(opened.folder.AddWords(WordsOf(StuckWords{*player, options.text})));
  return kExitGood;
}

Result<int> Claim(const WorklogClaimOptions& options) {
  ASSAY_RETURN_IF_ERROR(CheckText(options.text, "TEXT"));
  const auto mechanism = MechanismFromName(options.mechanism);
  if (!mechanism)
    return UsageError(
        fmt::format("no such mechanism: {}; there are {}", options.mechanism, MechanismNames()));
  ASSAY_ASSIGN_OR_RETURN(OpenedMatch opened, OpenToLook(options.place));
  const VersionFact* version = opened.worklog.match.Find(options.version);
  if (version == nullptr)
    return UsageError(fmt::format("{} was never measured: assay worklog check lists the versions",
                                  options.version));
  ASSAY_RETURN_IF_ERROR(
      opened.folder.AddWords(WordsOf(ClaimWords{options.version, *mechanism, options.text})));
  for (const ClaimWords* before : opened.worklog.words.ClaimsOf(options.version))
    if (before->mechanism == *mechanism)
      Print(fmt::format("it takes the place of the claim before: {}\n",
                        Printable(before->text, true)));
  if (version->verdict) {
    const Evidence evidence =
        EvidenceFor(*mechanism, *version->verdict, opened.worklog.SourceOf(*version));
    Print(fmt::format("{} for {}, says the judge: {}: {}\n", options.mechanism, options.version,
                      EvidenceWord(evidence.kind), evidence.text));
  }
  return kExitGood;
}

Result<int> Render(const WorklogRenderOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(OpenedMatch opened, OpenToLook(options.place));
  const auto write = [&](const char* file, const std::string& content) -> Result<void> {
    ASSAY_RETURN_IF_ERROR(opened.folder.Write(file, content));
    Print(fmt::format("wrote {}\n", opened.folder.PathOf(file)));
    return {};
  };
  const std::string markdown = RenderMarkdown(opened.worklog);
  const std::string hash = Sha256Hex(markdown);
  const auto page = [&](PageKind kind) { return RenderWorklogPage(opened.worklog, kind, hash); };
  if (options.present) {
    ASSAY_RETURN_IF_ERROR(write(kPresentFile, page(PageKind::kPresentation)));
    return kExitGood;
  }
  ASSAY_RETURN_IF_ERROR(write(kMarkdownFile, markdown));
  ASSAY_RETURN_IF_ERROR(write(kPageFile, page(PageKind::kReport)));
  return kExitGood;
}

std::string_view Heading(FindingKind kind) {
  return kind == FindingKind::kMissing      ? "missing"
         : kind == FindingKind::kChanged    ? "changed"
         : kind == FindingKind::kSuspicious ? "suspicious"
         : kind == FindingKind::kLifted     ? "lifted"
                                            : "note";
}

Result<int> Check(const WorklogCheckOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(OpenedMatch opened, OpenToLook(options.place));
  ASSAY_ASSIGN_OR_RETURN(const Marks marks, ReadMarks(opened));
  const std::vector<Finding> findings = LiftFindings(CheckOpened(opened), marks);
  std::string heading;
  for (const Finding& finding : findings) {
    const std::string section = finding.section
                                    ? fmt::format("{}. {}", static_cast<int>(*finding.section) + 1,
                                                  SectionTitle(*finding.section))
                                    : "The whole";
    if (section != heading) Print(section + "\n");
    heading = section;
    Print(fmt::format("  {:<10} {}\n", Heading(finding.kind), Printable(finding.text, true)));
    if (finding.kind == FindingKind::kLifted)
      Print(fmt::format("             {}\n", Printable(LiftText(marks), true)));
    if (!finding.next.empty())
      Print(fmt::format("             {}{}\n", Printable(finding.next, true),
                        finding.next.starts_with("assay") ? PlaceWords(options.place) : ""));
  }
  const auto& facts = opened.folder.facts();
  const bool changed = Any(findings, FindingKind::kChanged);
  const bool suspicious = Any(findings, FindingKind::kSuspicious);
  const bool missing = Any(findings, FindingKind::kMissing);
  if (!changed && !suspicious && !missing)
    Print(fmt::format(
        "complete: {}, {}\n",
        Counted(static_cast<long long>(opened.worklog.match.versions.size()), "version"),
        Counted(static_cast<long long>(facts.size()), "fact")));
  return changed || suspicious ? kExitWrong : missing ? kExitNotFaster : kExitGood;
}

// The versions with their numbers, a line each.
std::string VersionLines(const Match& match) {
  std::string text;
  std::set<const VersionFact*> best;
  for (const Player player : {Player::kHand, Player::kModel, Player::kTogether})
    best.insert(match.Best(player));
  for (const VersionFact& version : match.versions) {
    const VersionRow row = RowOf(version);
    text += fmt::format("  {:<4} {} {:<15} {:>8}  {:<18}  {}\n", row.name,
                        best.contains(&version) ? "*" : " ", row.outcome, row.speedup, row.interval,
                        version.verdict ? version.verdict->id : "-");
  }
  return text;
}

Result<int> Status(const WorklogStatusOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(OpenedMatch opened, OpenToLook(options.place));
  const Match& match = opened.worklog.match;
  Print(fmt::format("{}, {}\n", Printable(match.begun.problem, true), TierText(match.begun.tier)));
  if (match.versions.empty())
    Print("no version yet\n");
  else
    Print("version  outcome          speedup  interval            verdict    (*: a side's best)\n" +
          VersionLines(match));
  if (const std::string race = RaceText(match, Player::kHand, Player::kModel); !race.empty())
    Print(Printable(race, true) + "\n");
  if (!match.besides.empty())
    Print(fmt::format("judged besides: {}\n",
                      Counted(static_cast<long long>(match.besides.size()), "verdict")));
  const std::vector<Finding> findings = CheckOpened(opened);
  const auto is_open = [](const Finding& finding) { return finding.kind != FindingKind::kNote; };
  const auto open = std::count_if(findings.begin(), findings.end(), is_open);
  if (open == 0) {
    Print("nothing is missing\n");
    return kExitGood;
  }
  const Finding& first = *std::find_if(findings.begin(), findings.end(), is_open);
  Print(fmt::format("{} open (assay worklog check{}), first: {}\n",
                    Counted(static_cast<long long>(open), "thing"), PlaceWords(options.place),
                    Printable(first.text, true)));
  if (!first.next.empty())
    Print(fmt::format("next: {}{}\n", Printable(first.next, true),
                      first.next.starts_with("assay") ? PlaceWords(options.place) : ""));
  return kExitGood;
}

}  // namespace

int RunWorklogStatus(const WorklogStatusOptions& options) { return Ended(Status(options)); }
int RunWorklogInit(const WorklogInitOptions& options) { return Ended(Init(options)); }
int RunWorklogPredict(const WorklogPredictOptions& options) { return Ended(Predict(options)); }
int RunWorklogStuck(const WorklogStuckOptions& options) { return Ended(Stuck(options)); }
int RunWorklogClaim(const WorklogClaimOptions& options) { return Ended(Claim(options)); }
int RunWorklogRender(const WorklogRenderOptions& options) { return Ended(Render(options)); }
int RunWorklogCheck(const WorklogCheckOptions& options) { return Ended(Check(options)); }

}  // namespace assay
