#include "worklog/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/hash.h"
#include "report/text.h"
#include "worklog/seal.h"

namespace assay {
namespace {

constexpr size_t kGapWordsMin = 20;
constexpr size_t kIdsShown = 5;

std::string Listed(const std::vector<std::string>& ids) {
  std::string text;
  for (size_t i = 0; i < std::min(ids.size(), kIdsShown); ++i)
    text += (text.empty() ? "" : ", ") + ids[i];
  return ids.size() > kIdsShown ? text + ", ..." : text;
}

// The first line in which two texts differ, from 1.
size_t FirstDifference(std::string_view a, std::string_view b) {
  size_t line = 1;
  for (size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i)
    if (a[i] == '\n') ++line;
  return line;
}

class Checker {
 public:
  Checker(const Worklog& worklog, const Witness& witness)
      : worklog_(worklog), match_(worklog.match), words_(worklog.words), witness_(witness) {}

  std::vector<Finding> Run(const std::string& rendered) {
    section_ = Section::kPlan;
    Plan();
    section_ = Section::kByHand;
    if (match_.Of(Player::kHand).empty())
      Missing("no version was written by hand",
              "assay worklog attempt FILE --why \"what it does, and why\"");
    Versions(Player::kHand);
    section_ = Section::kModel;
    Model();
    Versions(Player::kModel);
    Versions(Player::kTogether);
    section_ = Section::kHeadToHead;
    HeadToHead();
    section_ = Section::kStuck;
    Stuck();
    section_.reset();
    Whole(rendered);
    return std::move(findings_);
  }

 private:
  void Add(FindingKind kind, std::string text, std::string next = "") {
    findings_.push_back({kind, section_, std::move(text), std::move(next), {}});
  }
  void Missing(std::string text, std::string next) {
    Add(FindingKind::kMissing, std::move(text), std::move(next));
  }
  void Changed(std::string text, std::string next = "git restore worklog.toml, or mend it there") {
    Add(FindingKind::kChanged, std::move(text), std::move(next));
  }

  void Plan() {
    if (match_.predictions.empty()) {
      Missing("nothing is predicted",
              "assay worklog predict --regime memory --ratio 2 --because \"...\"");
      return;
    }
    for (const PredictionFact& prediction : match_.predictions) {
      const auto words = std::find_if(
          words_.predictions.begin(), words_.predictions.end(),
          [&](const PredictionWords& each) { return each.fact == prediction.place.hash; });
      if (words == words_.predictions.end()) {
        Changed(fmt::format("the prediction that is sealed as record {} is not in worklog.toml",
                            prediction.place.sequence));
        continue;
      }
      const Predicted& said = prediction.said;
      if (words->ratio != said.ratio)
        Changed(fmt::format("worklog.toml predicts {}; sealed was {}", FormatRatio(words->ratio),
                            FormatRatio(said.ratio)));
      if (words->regime != said.regime)
        Changed(fmt::format("worklog.toml predicts the regime {}; sealed was {}", words->regime,
                            said.regime));
      if (words->reason != said.reason)
        Changed("the reason of a prediction was changed after it was sealed");
    }
    for (const PredictionWords& words : words_.predictions)
      if (std::none_of(match_.predictions.begin(), match_.predictions.end(),
                       [&](const PredictionFact& each) { return each.place.hash == words.fact; }))
        Changed("a prediction in worklog.toml was never sealed");
    PredictedFirst();
  }

  void PredictedFirst() {
    const PredictionFact& first = match_.predictions.front();
    if (!match_.before.empty())
      Add(FindingKind::kSuspicious,
          fmt::format("{} on this reference stood in the archive before the prediction was sealed: "
                      "{}",
                      Counted(static_cast<long long>(match_.before.size()), "verdict"),
                      Listed(match_.before)));
    if (match_.versions.empty()) return;
    const VersionFact& measured = match_.versions.front();
    if (measured.place.sequence < first.place.sequence)
      Add(FindingKind::kSuspicious,
          fmt::format("{} was measured before the prediction was sealed", measured.said.version));
    else if (measured.place.time < first.place.time)
      Add(FindingKind::kNote,
          fmt::format("the clock went back between the prediction ({}) and {} ({}); the archive's "
                      "sequence counts: {} before {}",
                      first.place.time, measured.said.version, measured.place.time,
                      first.place.sequence, measured.place.sequence));
  }

  void Versions(Player player) {
    std::map<std::string, std::string> first_of;  // source -> version
    for (const VersionFact* version : match_.Of(player)) {
      OneVersion(*version);
      const auto [found, fresh] =
          first_of.emplace(version->said.source_hash, version->said.version);
      if (!fresh)
        Add(FindingKind::kNote, fmt::format("{} has the source of {}: a second run, which does not "
                                            "count as the best",
                                            version->said.version, found->second));
    }
    if (player != Player::kHand) return;
    std::set<std::string> names;
    for (const VersionWords& words : words_.versions) {
      if (!names.insert(words.name).second)
        Changed(fmt::format("worklog.toml has {} twice", words.name));
      if (match_.Find(words.name) == nullptr)
        Changed(fmt::format("worklog.toml has {}, which was never measured", words.name));
    }
  }

  void OneVersion(const VersionFact& version) {
    const Attempted& said = version.said;
    const VersionWords* words = words_.Find(said.version);
    if (words == nullptr) {
      Add(FindingKind::kSuspicious,
          fmt::format("{} was attempted (record {}{}), and worklog.toml leaves it out",
                      said.version, version.place.sequence,
                      version.verdict ? ", verdict " + version.verdict->id : ""),
          "git restore worklog.toml");
    } else {
      if (words->fact != version.place.hash)
        Changed(fmt::format("worklog.toml names another fact for {}", said.version));
      if (words->why.find_first_not_of(" \t\r\n") == std::string::npos)
        Missing(fmt::format("{} has no why", said.version),
                fmt::format("give {} a why in worklog.toml", said.version));
      else if (words->why != said.why)
        Add(FindingKind::kNote,
            fmt::format("the why of {} was reworded after it was measured", said.version));
    }
    const auto source = worklog_.sources.find(said.file);
    if (source == worklog_.sources.end())
      Changed(fmt::format("{}, the source of {}, is not there", said.file, said.version),
              fmt::format("git restore {}", said.file));
    else if (Sha256Hex(source->second) != said.source_hash)
      Changed(fmt::format("{} is not what was measured as {}", said.file, said.version),
              fmt::format("git restore {}; a change is a new version", said.file));
    if (!version.refuted.empty())
      Add(FindingKind::kNote, fmt::format("{} does not count: verdict {} found its source wrong",
                                          said.version, version.refuted));
    if (!version.verdict && version.trouble.empty())
      Add(FindingKind::kNote,
          fmt::format("{} was begun, and its measurement did not end", said.version));
    else if (!version.verdict)
      Add(FindingKind::kNote, fmt::format("{} has no verdict: {}", said.version, version.trouble));
  }

  // The best version from a series; null: none.
  const VersionFact* BestOf(const SeriesFact& series) const {
    const VersionFact* best = nullptr;
    for (const VersionFact* version : match_.Of(series.said.player)) {
      const AnswerFact* answer = match_.FindAnswer(version->said.answer);
      if (answer == nullptr || answer->said.series != series.said.number) continue;
      if (version->Speed() != nullptr && (best == nullptr || IsBetter(*version, *best)))
        best = version;
    }
    return best;
  }

  void Model() {
    std::vector<const SeriesFact*> series;
    for (const SeriesFact& each : match_.series)
      if (each.said.player == Player::kModel) series.push_back(&each);
    if (series.empty()) {
      Missing("no model has tried", "assay worklog model --proposer openai:MODEL@URL");
      return;
    }
    if (match_.answers.empty())
      Missing("the model was asked, and no answer is recorded", "assay worklog model");
    const VersionFact* before = nullptr;
    for (size_t i = 0; i < series.size(); ++i) {
      const VersionFact* best = BestOf(*series[i]);
      if (i > 0)
        Add(FindingKind::kNote, fmt::format("the prompt was changed: series {} began with another "
                                            "prompt or proposer than series {}",
                                            series[i]->said.number, series[i - 1]->said.number));
      if (i + 1 == series.size() && before != nullptr) Worse(best, *before);
      if (best != nullptr && (before == nullptr || IsBetter(*best, *before))) before = best;
    }
  }

  // Whether the last series' best did worse than the best before. Noise is not told.
  void Worse(const VersionFact* last, const VersionFact& before) {
    if (last != nullptr) {
      const SpeedRatio ratio = Between(match_, *last, before);
      if (!ratio.Apart() || ratio.value >= 1) return;
    }
    Add(FindingKind::kSuspicious,
        fmt::format("the prompt was changed until the model did worse: {} before, {} in the last "
                    "series",
                    FormatRatio(before.Speed()->speedup),
                    last != nullptr ? FormatRatio(last->Speed()->speedup) : "nothing correct"));
  }

  void HeadToHead() {
    const VersionFact* hand = match_.Best(Player::kHand);
    const VersionFact* model = match_.Best(Player::kModel);
    if (WordCount(words_.Prose(Section::kHeadToHead)) < kGapWordsMin)
      Missing(fmt::format("the gap is not explained: head-to-head.md has less than {} words",
                          kGapWordsMin),
              "write in head-to-head.md what makes the faster one faster");
    for (const ClaimWords& claim : words_.claims)
      if (match_.Find(claim.version) == nullptr)
        Changed(
            fmt::format("a mechanism is claimed for {}, which was never measured", claim.version));
    const VersionFact* winner = hand;
    if (hand != nullptr && model != nullptr && Between(match_, *hand, *model).value < 1)
      winner = model;
    if (winner == nullptr) winner = model;
    if (winner == nullptr || !words_.ClaimsOf(winner->said.version).empty()) return;
    const bool hand_won = winner == hand && winner->Speed()->ci_low > 1;
    const std::string next =
        fmt::format("assay worklog claim {} fusion \"...\"", winner->said.version);
    if (hand_won)
      Add(FindingKind::kSuspicious,
          fmt::format("{} wins, and no mechanism is named for it", winner->said.version), next);
    else
      Missing(fmt::format("no mechanism is named for {}, the fastest", winner->said.version), next);
  }

  void Stuck() {
    if (words_.StuckOf(Player::kHand).empty())
      Missing("it is not said what you got stuck on", "assay worklog stuck hand \"...\"");
    if (words_.StuckOf(Player::kModel).empty())
      Missing("it is not said what the model got stuck on", "assay worklog stuck model \"...\"");
  }

  // Verdicts that the author declared.
  void Besides() {
    std::vector<std::string> ids;
    for (const BesidesFact& each : match_.besides)
      if (each.verdict) ids.push_back(each.verdict->id);
    if (!ids.empty())
      Add(FindingKind::kNote,
          fmt::format("{} judged besides, with its why: {}",
                      Counted(static_cast<long long>(ids.size()), "verdict"), Listed(ids)));
  }

  void Whole(const std::string& rendered) {
    Besides();
    for (const std::string& text : match_.breaks) Changed(text, "git restore facts.jsonl");
    if (!match_.outside.empty() || !witness_.outside.empty()) {
      std::vector<std::string> ids = match_.outside;
      for (const std::string& id : witness_.outside)
        if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
      std::erase_if(ids, [&](const std::string& id) {
        return std::find(match_.before.begin(), match_.before.end(), id) != match_.before.end();
      });
      if (!ids.empty())
        Add(FindingKind::kSuspicious,
            fmt::format("{} on this reference in the archive that the worklog leaves out: {}",
                        Counted(static_cast<long long>(ids.size()), "verdict"),
                        fmt::format("{}", fmt::join(ids, ", "))),
            fmt::format("assay worklog also {} --why \"...\"", fmt::join(ids, " ")));
    }
    if (!witness_.unknown.empty())
      Changed(fmt::format("the archive {} has not {} of the facts, such as record {}: it was "
                          "truncated, or is another one",
                          witness_.archive, witness_.unknown.size(), witness_.unknown.front()),
              "name the archive of the match by --archive FILE");
    if (!witness_.asked) {
      Add(FindingKind::kNote,
          fmt::format("there is no archive {}: facts.jsonl proves itself alone", witness_.archive));
      findings_.back().code = FindingCode::kNoArchive;
    }
    if (!rendered.empty()) Reports(rendered);
  }

  void Reports(const std::string& rendered) {
    const std::string next = "assay worklog render";
    const Seal markdown = ReadSeal(worklog_.markdown), page = ReadSeal(worklog_.page);
    if (worklog_.markdown.empty())
      Missing("worklog.md is not rendered", next);
    else if (!markdown.whole)
      Changed(fmt::format("worklog.md was edited: line {} is not what facts and words say",
                          FirstDifference(worklog_.markdown, rendered)),
              next);
    else if (worklog_.markdown != rendered)
      Missing("worklog.md is older than the facts and words", next);
    if (worklog_.page.empty()) return;
    if (!page.whole) {
      Changed("worklog.html was edited after it was rendered", next);
    } else if (page.subject != Sha256Hex(rendered)) {
      Missing("worklog.html is older than the facts and words", next);
    }
  }

  const Worklog& worklog_;
  const Match& match_;
  const Words& words_;
  const Witness& witness_;
  std::optional<Section> section_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> CheckWorklog(const Worklog& worklog, const Witness& witness,
                                  const std::string& rendered) {
  return Checker(worklog, witness).Run(rendered);
}

bool Any(const std::vector<Finding>& findings, FindingKind kind) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& finding) { return finding.kind == kind; });
}

}  // namespace assay
