#include "worklog/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "report/text.h"
#include "worklog/facts_text.h"

namespace assay {
namespace {

constexpr size_t kWhyWordsMin = 5, kGapWordsMin = 20;
constexpr int kPairsMin = 3;

bool HasDigit(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

bool Has(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

std::vector<std::string> IdsOf(const std::vector<const VersionFact*>& versions) {
  std::vector<std::string> ids;
  for (const VersionFact* version : versions)
    if (version->verdict) ids.push_back(version->verdict->id);
  return ids;
}

// "2 of 3 versions ..."
std::string Share(size_t part, size_t whole, const char* what) {
  return fmt::format("{} of {} {}", part, Counted(static_cast<long long>(whole), "version"), what);
}

bool AnyPassed(const Worklog& worklog) {
  return std::ranges::any_of(worklog.match.versions, &VersionFact::Correct);
}

// Versions by hand that passed gate 1.
std::vector<const VersionFact*> PassedByHand(const Worklog& worklog) {
  std::vector<const VersionFact*> versions = worklog.match.Of(Player::kHand);
  std::erase_if(versions, [](const VersionFact* version) { return !version->Correct(); });
  return versions;
}

// A line on the attempt by hand, whose words are there: met only if a version passed.
LineEvidence IfPassedByHand(const Worklog& worklog, LineEvidence evidence) {
  if (!evidence.met || !PassedByHand(worklog).empty()) return evidence;
  evidence.met = false;
  evidence.found += "; no version by hand passed gate 1";
  return evidence;
}

LineEvidence Correct(const Worklog& worklog, Player player) {
  std::vector<const VersionFact*> versions = worklog.match.Of(player);
  const size_t all = versions.size();
  std::erase_if(versions, [](const VersionFact* version) { return !version->Correct(); });
  return {!versions.empty(), Share(versions.size(), all, "passed gate 1"), IdsOf(versions)};
}

LineEvidence HandGates(const Worklog& worklog, const std::vector<Finding>&) {
  return Correct(worklog, Player::kHand);
}

// A model that never gets it right is a result, if the worklog says so.
LineEvidence ModelGates(const Worklog& worklog, const std::vector<Finding>&) {
  LineEvidence evidence = Correct(worklog, Player::kModel);
  const Match& match = worklog.match;
  if (evidence.met || match.answers.empty()) return evidence;
  evidence.met = !worklog.words.StuckOf(Player::kModel).empty();
  evidence.found += evidence.met ? "; the worklog says where it got stuck"
                                 : "; the worklog does not say where it got stuck";
  evidence.verdicts = IdsOf(match.Of(Player::kModel));
  return evidence;
}

LineEvidence MeasuredWell(const Worklog& worklog, const std::vector<Finding>&) {
  std::vector<const VersionFact*> well;
  size_t correct = 0;
  for (const VersionFact& version : worklog.match.versions) {
    if (!version.Correct()) continue;
    ++correct;
    const BaselineResult* speed = version.Speed();
    if (speed != nullptr && speed->pairs >= kPairsMin && speed->ci_high > 0)
      well.push_back(&version);
  }
  return {correct > 0 && well.size() == correct,
          Share(well.size(), correct,
                "that are correct have a ratio with an interval, over pairs of warm processes"),
          IdsOf(well)};
}

LineEvidence Sealed(const Worklog& worklog, const std::vector<Finding>&) {
  const Match& match = worklog.match;
  if (match.predictions.empty()) return {false, "nothing was predicted"};
  const FactPlace& sealed = match.predictions.front().place;
  if (match.versions.empty())
    return {true, fmt::format("sealed as record {}; nothing is measured yet", sealed.sequence)};
  const FactPlace& first = match.versions.front().place;
  return {sealed.sequence < first.sequence && match.before.empty(),
          fmt::format("sealed as record {}, the first measurement is record {}; {} on the "
                      "reference stood before",
                      sealed.sequence, first.sequence,
                      Counted(static_cast<long long>(match.before.size()), "verdict"))};
}

LineEvidence ThreeVersions(const Worklog& worklog, const std::vector<Finding>&) {
  const std::vector<const VersionFact*> passed = PassedByHand(worklog);
  return {passed.size() >= 3,
          fmt::format("{} by hand passed gate 1",
                      Counted(static_cast<long long>(passed.size()), "version")),
          IdsOf(passed)};
}

LineEvidence WhysTied(const Worklog& worklog, const std::vector<Finding>&) {
  const auto versions = worklog.match.Of(Player::kHand);
  std::string untied;
  size_t tied = 0;
  for (size_t i = 0; i < versions.size(); ++i) {
    const VersionWords* words = worklog.words.Find(versions[i]->said.version);
    const std::string& why = words != nullptr ? words->why : versions[i]->said.why;
    bool names_fact = HasDigit(why);
    for (const MechanismFacts& facts : AllMechanisms())
      names_fact = names_fact || Has(why, facts.name);
    if (WordCount(why) >= kWhyWordsMin && names_fact)
      ++tied;
    else
      untied += (untied.empty() ? "" : ", ") + versions[i]->said.version;
  }
  return IfPassedByHand(
      worklog,
      {!versions.empty() && untied.empty(),
       untied.empty()
           ? Share(tied, versions.size(), "have a reason with a number or another version")
           : fmt::format("without a reason that names a number or another version: {}", untied),
       IdsOf(versions)});
}

LineEvidence Stuck(const Worklog& worklog, Player player) {
  const auto stuck = worklog.words.StuckOf(player);
  if (stuck.empty())
    return {false, fmt::format("nothing is said of where {} got stuck", PlayerTitle(player))};
  return {true, fmt::format("\"{}\"", Shortened(Printable(stuck.front()->text, true), 80, true))};
}

LineEvidence HandStuck(const Worklog& worklog, const std::vector<Finding>&) {
  LineEvidence evidence = Stuck(worklog, Player::kHand);
  if (!evidence.met) evidence.found = "nothing is said of where the author got stuck";
  return IfPassedByHand(worklog, std::move(evidence));
}
LineEvidence ModelStuck(const Worklog& worklog, const std::vector<Finding>&) {
  return Stuck(worklog, Player::kModel);
}

LineEvidence BothMeasured(const Worklog& worklog, const std::vector<Finding>&) {
  const Match& match = worklog.match;
  const bool hand = match.Best(Player::kHand) != nullptr;
  const std::string race = RaceText(match, Player::kHand, Player::kModel);
  // A model without a correct answer has lost; that is measured, too.
  const bool model = match.Best(Player::kModel) != nullptr || !match.answers.empty();
  std::vector<std::string> ids;
  for (const Player player : {Player::kHand, Player::kModel})
    if (const VersionFact* best = match.Best(player)) ids.push_back(best->verdict->id);
  if (hand && match.Best(Player::kModel) != nullptr)
    if (const DuelFact* duel = match.Duel(*match.Best(Player::kHand), *match.Best(Player::kModel)))
      ids.push_back(duel->verdict->id);
  return {hand && model, race.empty() ? "neither side has a correct version with a speed" : race,
          ids};
}

LineEvidence GapExplained(const Worklog& worklog, const std::vector<Finding>&) {
  const std::string& prose = worklog.words.Prose(Section::kHeadToHead);
  const size_t words = WordCount(prose);
  return IfPassedByHand(worklog, {words >= kGapWordsMin && HasDigit(prose),
                                  fmt::format("head-to-head.md has {} {} a number",
                                              Counted(static_cast<long long>(words), "word"),
                                              HasDigit(prose) ? "and" : "without")});
}

LineEvidence MechanismNumbered(const Worklog& worklog, const std::vector<Finding>&) {
  std::string named;
  std::vector<std::string> ids;
  bool numbered = false;
  for (const ClaimWords& claim : worklog.words.claims) {
    const VersionFact* version = worklog.match.Find(claim.version);
    if (version == nullptr || !version->Correct()) continue;
    const auto counting = worklog.words.ClaimsOf(claim.version);
    if (std::find(counting.begin(), counting.end(), &claim) == counting.end()) continue;
    const Evidence evidence =
        EvidenceFor(claim.mechanism, *version->verdict, worklog.SourceOf(*version));
    const bool against = evidence.kind == Evidence::Kind::kAgainst;
    numbered =
        numbered || (HasDigit(claim.text) && !against) || evidence.kind == Evidence::Kind::kFound;
    named += fmt::format("{}{} for {} ({})", named.empty() ? "" : "; ",
                         FactsOf(claim.mechanism).name, claim.version,
                         against                                   ? "the judge sees it not"
                         : evidence.kind == Evidence::Kind::kFound ? "the judge sees it"
                                                                   : "the judge cannot tell");
    ids.push_back(version->verdict->id);
  }
  return {numbered, named.empty() ? "no mechanism is named" : named, ids};
}

LineEvidence NothingLeftOut(const Worklog&, const std::vector<Finding>& findings) {
  size_t count = 0;
  std::string first;
  for (const Finding& finding : findings) {
    if (finding.kind != FindingKind::kSuspicious && finding.kind != FindingKind::kChanged) continue;
    if (++count == 1) first = finding.text;
  }
  return {count == 0, count == 0 ? "the words agree with all facts" : first};
}

// The races that the author lost: against the model, and against the reference.
LineEvidence LossesStated(const Worklog& worklog, const std::vector<Finding>&) {
  const Match& match = worklog.match;
  const VersionFact* hand = match.Best(Player::kHand);
  const VersionFact* model = match.Best(Player::kModel);
  const std::string& prose = worklog.words.Prose(Section::kHeadToHead);
  const bool lost_to_model =
      model != nullptr && (hand == nullptr || Between(match, *hand, *model).value < 1);
  const bool lost_to_reference = hand == nullptr || hand->Speed()->ci_high < 1;
  if (!lost_to_model && !lost_to_reference) return {true, "no race was lost"};
  constexpr std::array<std::string_view, 10> kWords = {
      "slower", "lost", "lose", "beat", "behind", "worse", "faster than m", "wins", "won", "fail"};
  bool stated = lost_to_model && Has(prose, model->said.version);
  for (const std::string_view word : kWords) stated = stated || Has(prose, word);
  std::string which = lost_to_model ? "the model" : "";
  if (lost_to_reference) which += which.empty() ? "the reference" : " and the reference";
  return {stated, fmt::format("lost against {}; head-to-head.md {}", which,
                              stated ? "says so" : "does not say so")};
}

LineEvidence PromptFrozen(const Worklog& worklog, const std::vector<Finding>& findings) {
  int64_t series = 0;
  for (const SeriesFact& each : worklog.match.series) series += each.said.player == Player::kModel;
  bool until_lost = false;
  for (const Finding& finding : findings)
    until_lost = until_lost || (finding.kind == FindingKind::kSuspicious &&
                                Has(finding.text, "the prompt was changed until"));
  return {series > 0 && !until_lost, series == 0   ? "no model was asked"
                                     : series == 1 ? "one prompt for all answers"
                                                   : fmt::format("{} with a prompt each, all shown",
                                                                 Counted(series, "series"))};
}

constexpr std::array<EvidenceRule, 14> kRules = {{
    {"hand-correct", HandGates},
    {"model-gates", ModelGates},
    {"measured-well", MeasuredWell},
    {"prediction-sealed", Sealed},
    {"three-versions", ThreeVersions},
    {"whys-tied", WhysTied},
    {"hand-stuck", HandStuck},
    {"both-measured", BothMeasured},
    {"gap-explained", GapExplained},
    {"mechanism-numbered", MechanismNumbered},
    {"model-stuck", ModelStuck},
    {"losses-stated", LossesStated},
    {"prompt-frozen", PromptFrozen},
    {"nothing-left-out", NothingLeftOut},
}};

}  // namespace

LineEvidence EvidenceRule::look(const Worklog& worklog,
                                const std::vector<Finding>& findings) const {
  LineEvidence evidence = find(worklog, findings);
  if (!evidence.met || AnyPassed(worklog)) return evidence;
  evidence.met = false;
  evidence.found += "; no version passed gate 1";
  return evidence;
}

std::span<const EvidenceRule> AllEvidence() { return kRules; }

const EvidenceRule* FindEvidence(std::string_view name) {
  for (const EvidenceRule& rule : AllEvidence())
    if (rule.name == name) return &rule;
  return nullptr;
}

}  // namespace assay
