#include "worklog/facts_text.h"

#include <fmt/format.h>

#include "model/outcome.h"
#include "report/text.h"

namespace assay {
namespace {

// Few pairs give no interval.
std::string Interval(const BaselineResult& result) {
  if (result.ci_low <= 0 || result.ci_high <= 0) return "no interval";
  return fmt::format("{} to {}", FormatRatio(result.ci_low), FormatRatio(result.ci_high));
}

std::string OutcomeWords(Outcome outcome) {
  std::string words(OutcomeName(outcome));
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

// The version with this source, or the file's name.
std::string SourceName(const Match& match, const std::string& hash, const std::string& path) {
  for (const VersionFact& version : match.versions)
    if (version.said.source_hash == hash) return version.said.version;
  return path.substr(path.rfind('/') + 1);
}

std::string OtherVerdictText(const Match& match, const Verdict& verdict) {
  std::string text = fmt::format("{}: {}", verdict.id,
                                 SourceName(match, verdict.candidate.hash, verdict.candidate.path));
  if (verdict.speed && verdict.speed->against)
    text += fmt::format(" against {}", SourceName(match, verdict.speed->against->hash,
                                                  verdict.speed->against->path));
  text += fmt::format(": {}", OutcomeWords(verdict.outcome));
  if (!verdict.speed) return text;
  const auto speed = verdict.speed->baselines.find(verdict.speed->headline);
  if (speed == verdict.speed->baselines.end() || speed->second.speedup <= 0) return text;
  return text +
         fmt::format(", {} ({})", FormatRatio(speed->second.speedup), Interval(speed->second));
}

}  // namespace

std::string BesidesText(const Match& match, const BesidesFact& besides) {
  return besides.verdict ? OtherVerdictText(match, *besides.verdict) : std::string();
}

std::string DuelText(const Match& match, const DuelFact& duel) {
  if (duel.verdict) return OtherVerdictText(match, *duel.verdict);
  return fmt::format("{} against {}: no verdict: {}", duel.said.version, duel.said.other,
                     duel.said.trouble);
}

VersionRow RowOf(const VersionFact& version) {
  VersionRow row{version.said.version, "no end", "-", "-", "-", "-"};
  if (!version.trouble.empty()) row.outcome = "not judged";
  if (!version.verdict) return row;
  row.outcome =
      version.refuted.empty() ? OutcomeWords(version.verdict->outcome) : "wrong elsewhere";
  const BaselineResult* speed = version.Speed();
  if (speed == nullptr) return row;
  row.time = FormatDuration(speed->candidate_time_ns);
  row.speedup = FormatRatio(speed->speedup);
  row.interval = Interval(*speed);
  if (version.verdict->roofline && version.verdict->roofline->percent_of_peak > 0)
    row.peak = fmt::format("{:.0f}%", version.verdict->roofline->percent_of_peak);
  return row;
}

std::string GatesText(const VersionFact& version) {
  if (!version.verdict)
    return version.trouble.empty() ? "its measurement did not end" : version.trouble;
  const Verdict& verdict = *version.verdict;
  if (!version.refuted.empty())
    return fmt::format("compiled, and passed here; verdict {} found this source wrong",
                       version.refuted);
  const Reached reached = FactsOf(verdict.outcome).reached;
  if (reached == Reached::kNothing) return "did not compile";
  std::string text = "compiled";
  if (!version.Correct()) {
    std::string_view message = verdict.message;
    const std::string outcome = fmt::format("{}: ", OutcomeName(verdict.outcome));
    if (message.starts_with(outcome)) message.remove_prefix(outcome.size());
    return fmt::format("{}, not correct: {}", text, message);
  }
  text += ", correct";
  const BaselineResult* speed = version.Speed();
  if (speed == nullptr) return text + ", no speed measured";
  if (verdict.outcome == Outcome::kFaster) return text + ", faster";
  return fmt::format("{}, {}", text,
                     speed->decision == "tie"         ? "as fast as the reference"
                     : speed->decision == "slower"    ? "slower"
                     : speed->decision == "unsettled" ? "whether it is faster is not settled"
                                                      : "not faster");
}

std::string PredictionText(const Match& match, const VersionFact& version) {
  if (version.prediction < 0) return "nothing was predicted";
  const Predicted& said = match.predictions[static_cast<size_t>(version.prediction)].said;
  const BaselineResult* speed = version.Speed();
  if (speed == nullptr)
    return fmt::format("predicted {}, no speed measured", FormatRatio(said.ratio));
  const char* where = speed->decision == "unsettled" ? "too noisy to compare"
                      : speed->ci_low > said.ratio   ? "it is faster than predicted"
                      : speed->ci_high < said.ratio  ? "it is slower than predicted"
                                                     : "as predicted";
  std::string text = fmt::format("predicted {}, measured {} ({}): {}", FormatRatio(said.ratio),
                                 FormatRatio(speed->speedup), Interval(*speed), where);
  if (version.verdict->roofline && !version.verdict->roofline->regime.empty() &&
      !said.regime.empty() && version.verdict->roofline->regime != said.regime)
    text += fmt::format("; predicted {}-bound, its bound is {}", said.regime,
                        version.verdict->roofline->regime);
  return text;
}

std::string_view PlayerTitle(Player player) {
  return player == Player::kHand ? "by hand" : player == Player::kModel ? "the model" : "together";
}

std::string RaceText(const Match& match, Player one, Player other) {
  const VersionFact* a = match.Best(one);
  const VersionFact* b = match.Best(other);
  if (a == nullptr && b == nullptr) return {};
  if (a == nullptr || b == nullptr)
    return fmt::format("{} has no correct version with a speed; {} ({}) has {}",
                       PlayerTitle(a == nullptr ? one : other),
                       (a == nullptr ? b : a)->said.version,
                       PlayerTitle(a == nullptr ? other : one),
                       FormatRatio((a == nullptr ? b : a)->Speed()->speedup));
  const SpeedRatio ratio = Between(match, *a, *b);
  if (ratio.low <= 0)
    return fmt::format("{} ({}, {}) against {} ({}, {}): too few pairs to compare them",
                       a->said.version, PlayerTitle(one), FormatRatio(a->Speed()->speedup),
                       b->said.version, PlayerTitle(other), FormatRatio(b->Speed()->speedup));
  return fmt::format("{} ({}, {}) against {} ({}, {}): {}, {} to {}, {}: {}", a->said.version,
                     PlayerTitle(one), FormatRatio(a->Speed()->speedup), b->said.version,
                     PlayerTitle(other), FormatRatio(b->Speed()->speedup), FormatRatio(ratio.value),
                     FormatRatio(ratio.low), FormatRatio(ratio.high),
                     ratio.direct ? "judged against each other" : "by way of the reference",
                     !ratio.settled    ? "too noisy to tell them apart"
                     : !ratio.Apart()  ? "their intervals do not tell them apart"
                     : ratio.value > 1 ? fmt::format("{} is faster", a->said.version)
                                       : fmt::format("{} is faster", b->said.version));
}

std::string FirstTryText(const Match& match, const SeriesFact& series) {
  int64_t answers = 0, faster = 0, correct = 0;
  std::string first;
  for (const AnswerFact& answer : match.answers) {
    if (answer.said.series != series.said.number) continue;
    const VersionFact* version = nullptr;
    for (const VersionFact& each : match.versions)
      if (each.said.answer == answer.said.number) version = &each;
    if (++answers == 1) first = version != nullptr ? GatesText(*version) : answer.said.trouble;
    if (version == nullptr) continue;
    correct += version->Correct();
    faster += version->verdict && version->verdict->outcome == Outcome::kFaster;
  }
  if (answers == 0) return "no answer yet";
  return fmt::format("{} of {} correct, {} faster. First try: {}", correct,
                     Counted(answers, "answer"), faster, first);
}

std::string ProposerText(const std::string& proposer) {
  for (const std::string_view kind : {"inbox:", "replay:", "command:"}) {
    if (!proposer.starts_with(kind)) continue;
    const size_t last = proposer.find_last_not_of('/');
    const size_t slash = proposer.rfind('/', last);
    if (slash == std::string::npos || last == std::string::npos || slash < kind.size())
      return proposer;
    return std::string(kind) + proposer.substr(slash + 1, last - slash);
  }
  return proposer;
}

std::string RulesText(const Match& match) {
  constexpr std::string_view kHeading = "\n# Rules\n";
  for (const SeriesFact& series : match.series) {
    if (series.said.player != Player::kModel) continue;
    const std::string& prompt = series.said.prompt;
    const size_t found = prompt.find(kHeading);
    if (found == std::string::npos) return {};
    const size_t begin = prompt.find_first_not_of('\n', found + kHeading.size());
    if (begin == std::string::npos) return {};
    return prompt.substr(begin, prompt.find("\n# ", begin) - begin);
  }
  return {};
}

std::string TierText(int tier) {
  return tier == 1   ? "tier 1: a single operator, against a tuned library"
         : tier == 3 ? "tier 3: a block of a network, where the time must be found first"
                     : "tier 2: a chain of operators, where the win is fusion";
}

std::string MachineLine(const Match& match) {
  for (const VersionFact& version : match.versions) {
    if (!version.verdict) continue;
    const Machine& machine = version.verdict->machine;
    std::string text = machine.gpu.empty() ? machine.cpu : machine.gpu;
    return fmt::format("{}; {} a side", text, Counted(machine.threads, "thread"));
  }
  return {};
}

const VersionFact* Before(const Match& match, const VersionFact& version) {
  const VersionFact* before = nullptr;
  for (const VersionFact* each : match.Of(version.said.player)) {
    if (each == &version) return before;
    before = each;
  }
  return nullptr;
}

}  // namespace assay
