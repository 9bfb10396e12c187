#include "worklog/markdown.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/text.h"
#include "report/text_diff.h"
#include "worklog/facts_text.h"
#include "worklog/seal.h"

namespace assay {
namespace {

std::string LanguageOf(std::string_view file) {
  const size_t dot = file.rfind('.');
  const std::string_view suffix = dot == std::string_view::npos ? "" : file.substr(dot + 1);
  return suffix == "py" ? "python" : suffix == "cu" ? "cuda" : suffix == "c" ? "c" : "cpp";
}

class MarkdownWriter {
 public:
  explicit MarkdownWriter(const Worklog& worklog)
      : worklog_(worklog), match_(worklog.match), words_(worklog.words) {}

  std::string Write() {
    text_ = fmt::format("# You vs the machine: {}\n\n", MarkdownEscaped(words_.problem));
    if (!words_.author.empty()) Line(fmt::format("By {}.", MarkdownEscaped(words_.author)));
    const std::string machine = MachineLine(match_);
    Line(fmt::format("Worklog {}, {}{}{}.", MarkdownEscaped(words_.id), TierText(words_.tier),
                     words_.size.empty() ? "" : ", size " + MarkdownEscaped(words_.size),
                     machine.empty() ? "" : ". Judged on " + MarkdownEscaped(machine)));
    Plan();
    ByHand();
    Model();
    HeadToHead();
    Stuck();
    text_ += "\nFacts are from the archive; `assay worklog check` compares them.\n";
    return WithSeal(std::move(text_), "");
  }

 private:
  static std::string MarkdownItem(std::string_view text) { return "- " + MarkdownEscaped(text); }
  void Line(const std::string& line) { text_ += line + "\n\n"; }

  void Begin(Section section) {
    Line(fmt::format("## {}. {}", static_cast<int>(section) + 1, SectionTitle(section)));
  }
  void Prose(Section section) {
    if (!words_.Prose(section).empty()) Line(words_.Prose(section));
  }

  // The reference and the rules, as both sides were given them.
  void Problem() {
    if (!worklog_.reference.empty()) {
      Line("The reference, a PyTorch program that both sides got:");
      Line(MarkdownFence(worklog_.reference, "python"));
    }
    const std::string rules = RulesText(match_);
    if (rules.empty()) return;
    text_ += "<details><summary>The rules, as the model's prompt has them</summary>\n\n";
    Line(MarkdownFence(rules, "text"));
    Line("</details>");
  }

  void Plan() {
    Begin(Section::kPlan);
    Problem();
    for (const PredictionFact& prediction : match_.predictions)
      Line(fmt::format("Prediction, sealed as record {} at {}: {}-bound, {}. {}",
                       prediction.place.sequence, MarkdownEscaped(prediction.place.time),
                       MarkdownEscaped(prediction.said.regime), FormatRatio(prediction.said.ratio),
                       MarkdownEscaped(prediction.said.reason)));
    if (match_.predictions.empty()) Line("*Nothing is predicted yet.*");
    Prose(Section::kPlan);
  }

  void Table(Player player) {
    const auto versions = match_.Of(player);
    if (versions.empty()) return;
    text_ +=
        "| version | outcome | time | speedup | interval | of the bound | verdict |\n"
        "|---|---|---|---|---|---|---|\n";
    for (const VersionFact* version : versions) {
      const VersionRow row = RowOf(*version);
      text_ += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", row.name, row.outcome,
                           row.time, row.speedup, row.interval, row.peak,
                           version->verdict ? MarkdownEscaped(version->verdict->id) : "-");
    }
    text_ += "\n";
  }

  void Claims(const VersionFact& version) {
    for (const ClaimWords* claim : words_.ClaimsOf(version.said.version)) {
      std::string found = "no verdict";
      if (version.verdict)
        found = EvidenceFor(claim->mechanism, *version.verdict, worklog_.SourceOf(version)).text;
      Line(fmt::format("- **{}**: {} *The judge:* {}", FactsOf(claim->mechanism).name,
                       MarkdownEscaped(claim->text), MarkdownEscaped(found)));
    }
  }

  void Version(const VersionFact& version) {
    Line(fmt::format("### {}", version.said.version));
    const VersionWords* words = words_.Find(version.said.version);
    const std::string& why = words != nullptr ? words->why : version.said.why;
    if (!why.empty()) Line(MarkdownEscaped(why));
    Line(MarkdownEscaped(
        fmt::format("{}; {}.", GatesText(version), PredictionText(match_, version))));
    if (version.verdict && !version.verdict->bottleneck.empty())
      Line(MarkdownEscaped("Bottleneck: " + version.verdict->bottleneck));
    Claims(version);
    const VersionFact* before = Before(match_, version);
    const std::string_view source = worklog_.SourceOf(version);
    if (before == nullptr || version.said.player != Player::kHand) {
      Line(MarkdownFence(source, LanguageOf(version.said.file)));
      return;
    }
    const std::string diff =
        UnifiedDiff(worklog_.SourceOf(*before), source, before->said.file, version.said.file);
    Line(diff.empty() ? fmt::format("The same source as {}.", before->said.version)
                      : MarkdownFence(diff, "diff"));
  }

  void ByHand() {
    Begin(Section::kByHand);
    if (match_.Of(Player::kHand).empty()) Line("*No version yet.*");
    Table(Player::kHand);
    Prose(Section::kByHand);
    for (const VersionFact* version : match_.Of(Player::kHand)) Version(*version);
    if (match_.besides.empty()) return;
    Line("### Judged besides");
    for (const BesidesFact& besides : match_.besides)
      Line(MarkdownItem(BesidesText(match_, besides) + ". " + besides.said.why));
  }

  void OneSeries(const SeriesFact& series) {
    Line(fmt::format("### Series {}: {}", series.said.number,
                     MarkdownEscaped(ProposerText(series.said.proposer))));
    if (!series.said.provenance.empty()) Line(MarkdownEscaped(series.said.provenance));
    Line(MarkdownEscaped(FirstTryText(match_, series)));
    text_ += "<details><summary>The exact prompt</summary>\n\n";
    Line(MarkdownFence(series.said.system.empty()
                           ? series.said.prompt
                           : series.said.system + "\n\n" + series.said.prompt,
                       "text"));
    Line("</details>");
    for (const AnswerFact& answer : match_.answers) {
      if (answer.said.series != series.said.number) continue;
      text_ += fmt::format("<details><summary>Answer {}{}{}</summary>\n\n", answer.said.number,
                           answer.said.trouble.empty() ? "" : ": ",
                           MarkdownEscaped(answer.said.trouble));
      if (!answer.said.prompt.empty()) Line(MarkdownFence(answer.said.prompt, "text"));
      Line(MarkdownFence(answer.said.text, "text"));
      Line("</details>");
    }
  }

  void Model() {
    Begin(Section::kModel);
    if (match_.Of(Player::kModel).empty()) Line("*No model has tried yet.*");
    Table(Player::kModel);
    Prose(Section::kModel);
    for (const SeriesFact& series : match_.series)
      if (series.said.player == Player::kModel) OneSeries(series);
    for (const VersionFact* version : match_.Of(Player::kModel)) Version(*version);
  }

  void HeadToHead() {
    Begin(Section::kHeadToHead);
    for (const Player other : {Player::kModel, Player::kTogether})
      if (const std::string race = RaceText(match_, Player::kHand, other);
          !race.empty() && (other == Player::kModel || !match_.Of(other).empty()))
        Line(MarkdownEscaped(race + "."));
    for (const DuelFact& duel : match_.duels)
      Line(MarkdownItem("Judged against each other: " + DuelText(match_, duel)));
    Prose(Section::kHeadToHead);
    if (match_.Of(Player::kTogether).empty()) return;
    Line("### Together");
    Table(Player::kTogether);
    for (const SeriesFact& series : match_.series)
      if (series.said.player == Player::kTogether) OneSeries(series);
    for (const VersionFact* version : match_.Of(Player::kTogether)) Version(*version);
  }

  void Stuck() {
    Begin(Section::kStuck);
    for (const Player player : {Player::kHand, Player::kModel, Player::kTogether})
      for (const StuckWords* stuck : words_.StuckOf(player))
        Line(fmt::format("- **{}**: {}", PlayerTitle(player), MarkdownEscaped(stuck->text)));
    Prose(Section::kStuck);
  }

  const Worklog& worklog_;
  const Match& match_;
  const Words& words_;
  std::string text_;
};

}  // namespace

std::string MarkdownEscaped(std::string_view text) {
  constexpr std::string_view kMarks = "\\`*_{}[]<>#|~&!$";
  std::string escaped;
  for (const char letter : Printable(text, true)) {
    if (kMarks.find(letter) != std::string_view::npos) escaped += '\\';
    escaped += letter;
  }
  // A line that begins as a list or a number would be one.
  if (!escaped.empty() && (escaped.front() == '-' || escaped.front() == '+'))
    escaped.insert(escaped.begin(), '\\');
  return escaped;
}

std::string MarkdownFence(std::string_view text, std::string_view language) {
  size_t longest = 0, run = 0;
  for (const char letter : text) {
    run = letter == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(std::max<size_t>(3, longest + 1), '`');
  return fmt::format("{}{}\n{}{}{}", fence, language, text,
                     text.empty() || text.ends_with('\n') ? "" : "\n", fence);
}

std::string RenderMarkdown(const Worklog& worklog) { return MarkdownWriter(worklog).Write(); }

}  // namespace assay
