#include "worklog/page.h"

#include <fmt/format.h>

#include "model/outcome.h"
#include "report/roofline_chart.h"
#include "report/text.h"
#include "report/text_diff.h"
#include "worklog/climb_chart.h"
#include "worklog/facts_text.h"
#include "worklog/page_style.h"
#include "worklog/prose.h"
#include "worklog/seal.h"

namespace assay {
namespace {

std::string Paragraph(std::string_view text, std::string_view kind = "") {
  return fmt::format("<p{}>{}</p>\n", kind.empty() ? "" : fmt::format(" class=\"{}\"", kind),
                     HtmlText(text));
}

ChartSide SideOf(Player player) {
  return player == Player::kHand    ? ChartSide::kFirst
         : player == Player::kModel ? ChartSide::kSecond
                                    : ChartSide::kThird;
}

std::string_view Tone(const VersionFact& version) {
  if (!version.verdict) return "bad";
  if (version.verdict->outcome == Outcome::kFaster) return "good";
  return version.Correct() ? "plain" : "bad";
}

// The blocks of a verdict, a line a pair.
std::string SamplesText(const Verdict& verdict) {
  std::string text;
  for (const PairSamples& pair : verdict.samples) {
    text += fmt::format("{} {} ns:", pair.baseline, pair.order);
    for (const int64_t block : pair.block_ns) text += fmt::format(" {}", block);
    text += "\n";
  }
  return text;
}

class PageWriter {
 public:
  PageWriter(const Worklog& worklog, PageKind kind)
      : worklog_(worklog),
        match_(worklog.match),
        words_(worklog.words),
        presents_(kind == PageKind::kPresentation) {}

  std::string Write() {
    const std::string title =
        "You vs the machine: " + Shortened(Printable(words_.problem, true), 80, true);
    html_ = PageHead(title, presents_ ? "slides" : "");
    Header(title);
    Plan();
    ByHand();
    Model();
    HeadToHead();
    Stuck();
    if (!presents_)
      html_ += fmt::format(
          "<footer class=\"faint\"><p>Worklog <code>{}</code>; its last fact is "
          "<code>{}</code>.</p>\n<p>Facts are from the archive, words are the author's. "
          "<code>assay worklog check</code> compares them.</p></footer>\n",
          HtmlText(words_.id), HtmlText(match_.last));
    return std::move(html_) + "</main>\n</body>\n</html>\n";
  }

 private:
  void Begin(Section section) {
    const int number = static_cast<int>(section) + 1;
    html_ += fmt::format(
        "<section aria-labelledby=\"s{0}\">\n<h2 id=\"s{0}\"><span>{0}</span> {1}"
        "</h2>\n",
        number, HtmlText(SectionTitle(section)));
  }
  void Prose(Section section) { html_ += ProseHtml(words_.Prose(section)); }

  void Header(const std::string& title) {
    html_ += fmt::format("<header>\n<h1>{}</h1>\n", HtmlText(title));
    std::string line = words_.author.empty() ? "" : "By " + words_.author + ". ";
    std::string tier = TierText(words_.tier);
    tier.front() = 'T';
    line += tier + (words_.size.empty() ? "" : "; size " + words_.size) + ". ";
    const std::string machine = MachineLine(match_);
    if (!machine.empty()) line += "Judged on " + machine + ".";
    html_ += Paragraph(line, "faint");
    html_ += "<div class=\"tiles\">\n";
    for (const Player player : {Player::kHand, Player::kModel, Player::kTogether}) Tile(player);
    html_ += "</div>\n";
    if (!presents_) {
      html_ += "<nav aria-label=\"Sections\"><ul>\n";
      for (const Section section : kAllSections)
        html_ += fmt::format("<li><a href=\"#s{}\">{}</a></li>\n", static_cast<int>(section) + 1,
                             HtmlText(SectionTitle(section)));
      html_ += "</ul></nav>\n";
    }
    html_ += "</header>\n";
  }

  void Tile(Player player) {
    const auto versions = match_.Of(player);
    if (versions.empty() && player == Player::kTogether) return;
    const VersionFact* best = match_.Best(player);
    const VersionRow row = best != nullptr ? RowOf(*best) : VersionRow{};
    html_ += fmt::format(
        "<div class=\"tile {}\"><span>{}</span><b>{}</b><small>{}</small></div>\n",
        PlayerName(player), HtmlText(PlayerTitle(player)),
        best != nullptr ? HtmlText(row.speedup) : "none",
        HtmlText(best != nullptr
                     ? fmt::format("{}, {}; against the reference: {}", row.name, row.interval,
                                   row.outcome)
                     : fmt::format("{}, none correct with a speed",
                                   Counted(static_cast<long long>(versions.size()), "version"))));
  }

  // The reference and the rules, as both sides were given them.
  void Problem() {
    if (presents_) return;
    if (!worklog_.reference.empty())
      html_ += FoldedHtml("The reference: the PyTorch program that both sides got",
                          ScrollingPre(HtmlLines(worklog_.reference), "reference"), true);
    if (const std::string rules = RulesText(match_); !rules.empty())
      html_ += FoldedHtml("The rules, as the model's prompt has them",
                          ScrollingPre(HtmlLines(rules), "rules"), true);
  }

  void Plan() {
    Begin(Section::kPlan);
    Problem();
    for (const PredictionFact& prediction : match_.predictions) {
      html_ += "<div class=\"quote\">\n";
      html_ +=
          Paragraph(fmt::format("Limit: {}. Expected in the end: {}. {}", prediction.said.regime,
                                FormatRatio(prediction.said.ratio), prediction.said.reason));
      html_ += Paragraph(
          fmt::format("Sealed as record {} of the archive at {}, {}.", prediction.place.sequence,
                      prediction.place.time, prediction.place.hash.substr(0, 12)),
          "faint");
      html_ += "</div>\n";
    }
    if (match_.predictions.empty()) html_ += Paragraph("Nothing is predicted yet.", "faint");
    Prose(Section::kPlan);
    html_ += "</section>\n";
  }

  void Table(Player player) {
    const auto versions = match_.Of(player);
    if (versions.empty()) return;
    html_ += fmt::format(
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"versions, {}\">\n",
        PlayerTitle(player));
    html_ +=
        "<table class=\"versions\"><thead><tr><th scope=\"col\">version</th>"
        "<th scope=\"col\">outcome</th><th scope=\"col\" class=\"n\">time</th>"
        "<th scope=\"col\" class=\"n\">speedup</th><th scope=\"col\">interval</th>"
        "<th scope=\"col\" class=\"n\">of the bound</th><th scope=\"col\">verdict</th></tr>"
        "</thead>\n<tbody>\n";
    for (const VersionFact* version : versions) {
      const VersionRow row = RowOf(*version);
      html_ += fmt::format(
          "<tr><th scope=\"row\">{}</th><td class=\"{}\">{}</td>"
          "<td class=\"n\" data-is=\"time\">{}</td><td class=\"n\" data-is=\"speedup\">{}</td>"
          "<td data-is=\"interval\">{}</td><td class=\"n\" data-is=\"of the bound\">{}</td>"
          "<td><code>{}</code></td></tr>\n",
          HtmlText(row.name), Tone(*version), HtmlText(row.outcome), row.time, row.speedup,
          row.interval, row.peak, version->verdict ? HtmlText(version->verdict->id) : "-");
    }
    html_ += "</tbody></table></div>\n";
  }

  void Charts() {
    if (const std::string climb = RenderClimbSvg(match_, false, "climb"); !climb.empty())
      html_ += "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"climb chart\">" +
               climb + "</div>\n";
    std::vector<RooflineVersion> versions;
    for (const VersionFact& version : match_.versions)
      if (version.verdict)
        versions.push_back({version.said.version, SideOf(version.said.player), &*version.verdict});
    auto chart = MakeRooflineChart(versions);
    if (!chart) {
      if (!versions.empty() && !presents_)
        html_ += Paragraph("No roofline: " + chart.error().message + ".", "faint");
      return;
    }
    chart->first_name = "by hand";
    html_ += "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"roofline\">" +
             RenderRooflineSvg(*chart, false, "roofline") + "</div>\n";
    if (!presents_) html_ += FoldedHtml("The roofline as a table", RooflineTable(*chart), false);
  }

  static std::string RooflineTable(const RooflineChart& chart) {
    std::string html =
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"roofline, as a table\">"
        "<table><thead><tr><th scope=\"col\">version</th><th scope=\"col\" "
        "class=\"n\">time</th><th scope=\"col\" class=\"n\">operations a byte</th><th "
        "scope=\"col\" class=\"n\">rate</th><th scope=\"col\" class=\"n\">of the bound</th></tr>"
        "</thead><tbody>\n";
    html += fmt::format(
        "<tr><th scope=\"row\">the bound, by {}</th><td class=\"n\">{}</td><td class=\"n\">{:.3g}"
        "</td><td class=\"n\">{}</td><td class=\"n\">100%</td></tr>\n",
        HtmlText(chart.regime), FormatDuration(chart.bound_ns), chart.Intensity(),
        FormatRate(chart.BoundRate(), "FLOP/s"));
    for (const RooflinePoint& point : chart.points)
      html += fmt::format(
          "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{:.3g}</td>"
          "<td class=\"n\">{}</td><td class=\"n\">{:.1f}%</td></tr>\n",
          HtmlText(point.label), FormatDuration(point.time_ns), point.intensity,
          FormatRate(point.rate, "FLOP/s"), point.percent);
    return html + "</tbody></table></div>\n";
  }

  // A card a mechanism.
  std::string Claims(const VersionFact& version) const {
    std::string html;
    for (const ClaimWords* claim : words_.ClaimsOf(version.said.version)) {
      Evidence evidence{Evidence::Kind::kUnknown, "It has no verdict."};
      if (version.verdict)
        evidence = EvidenceFor(claim->mechanism, *version.verdict, worklog_.SourceOf(version));
      const MechanismFacts& facts = FactsOf(claim->mechanism);
      html +=
          fmt::format("<div class=\"card\"><p class=\"mechanism\">{}</p>\n", HtmlText(facts.name)) +
          Paragraph(facts.meaning, "faint") + Paragraph(version.said.version + ": " + claim->text) +
          Paragraph(evidence.text, EvidenceWord(evidence.kind)) + "</div>\n";
    }
    return html;
  }

  void Cards(const std::string& cards) {
    if (!cards.empty()) html_ += "<div class=\"cards\">\n" + cards + "</div>\n";
  }

  std::string SourceHtml(const VersionFact& version) const {
    const std::string_view source = worklog_.SourceOf(version);
    const std::string& name = version.said.version;
    const VersionFact* before = Before(match_, version);
    std::string html;
    if (before != nullptr && version.said.player == Player::kHand) {
      const std::string diff =
          UnifiedDiff(worklog_.SourceOf(*before), source, before->said.file, version.said.file);
      html += diff.empty() ? Paragraph("The same source as " + before->said.version + ".", "faint")
                           : FoldedHtml(fmt::format("Changes from {}", before->said.version),
                                        ScrollingPre(DiffHtml(diff), "changes of " + name), true);
    }
    return html + FoldedHtml("The source of " + name,
                             ScrollingPre(HtmlLines(source), "source of " + name),
                             before == nullptr || version.said.player != Player::kHand);
  }

  void Version(const VersionFact& version) {
    const VersionWords* words = words_.Find(version.said.version);
    html_ += fmt::format("<article class=\"version {}\"><h3>{}<small>{}</small></h3>\n",
                         PlayerName(version.said.player), HtmlText(version.said.version),
                         HtmlText(RowOf(version).outcome));
    html_ += Paragraph(words != nullptr ? words->why : version.said.why);
    html_ += Paragraph(GatesText(version) + "; " + PredictionText(match_, version) + ".", "faint");
    if (version.verdict && !version.verdict->bottleneck.empty())
      html_ += Paragraph("Bottleneck: " + version.verdict->bottleneck);
    Cards(Claims(version));
    html_ += SourceHtml(version);
    if (version.verdict && !version.verdict->log.empty())
      html_ += FoldedHtml(
          "What the compiler and the candidate printed",
          ScrollingPre(HtmlLines(version.verdict->log), "output of " + version.said.version),
          false);
    if (version.verdict && !version.verdict->samples.empty())
      html_ += FoldedHtml("Raw samples",
                          ScrollingPre(HtmlLines(SamplesText(*version.verdict)),
                                       "samples of " + version.said.version),
                          false);
    html_ += "</article>\n";
  }

  void ByHand() {
    Begin(Section::kByHand);
    if (match_.Of(Player::kHand).empty()) html_ += Paragraph("No version yet.", "faint");
    Table(Player::kHand);
    Charts();
    Prose(Section::kByHand);
    if (!presents_)
      for (const VersionFact* version : match_.Of(Player::kHand)) Version(*version);
    BesidesVerdicts();
    html_ += "</section>\n";
  }

  void Series(const SeriesFact& series) {
    html_ += fmt::format("<h3>Series {}: {}</h3>\n", series.said.number,
                         HtmlText(ProposerText(series.said.proposer)));
    if (!series.said.provenance.empty()) html_ += Paragraph(series.said.provenance, "faint");
    html_ += Paragraph(FirstTryText(match_, series));
    if (presents_) return;
    const auto pre = [](std::string_view text, const std::string& label) {
      std::string html = ScrollingPre(HtmlLines(text), label);
      html.insert(4, " class=\"wrap\"");
      return html;
    };
    const std::string number = fmt::format("{}", series.said.number);
    std::string asked = series.said.system;
    if (!asked.empty()) asked += "\n\n";
    html_ += FoldedHtml("The exact prompt",
                        pre(asked + series.said.prompt, "prompt of series " + number), true);
    for (const AnswerFact& answer : match_.answers) {
      if (answer.said.series != series.said.number) continue;
      const std::string name = fmt::format("answer {}", answer.said.number);
      std::string content;
      if (!answer.said.prompt.empty())
        content += Paragraph("Asked after the verdict before:", "faint") +
                   pre(answer.said.prompt, "prompt of " + name);
      content += pre(answer.said.text, name);
      html_ += FoldedHtml(fmt::format("Answer {}{}{}", answer.said.number,
                                      answer.said.trouble.empty() ? "" : ": ", answer.said.trouble),
                          content, false);
    }
  }

  void Model() {
    Begin(Section::kModel);
    if (match_.answers.empty()) html_ += Paragraph("No model has tried yet.", "faint");
    Table(Player::kModel);
    Prose(Section::kModel);
    for (const SeriesFact& series : match_.series)
      if (series.said.player == Player::kModel) Series(series);
    if (!presents_)
      for (const VersionFact* version : match_.Of(Player::kModel)) Version(*version);
    html_ += "</section>\n";
  }

  // A list item a verdict.
  void OtherVerdicts(const std::string& title, const std::vector<std::string>& texts) {
    if (texts.empty() || presents_) return;
    html_ += fmt::format("<h3>{}</h3>\n<ul>\n", HtmlText(title));
    for (const std::string& text : texts) html_ += fmt::format("<li>{}</li>\n", HtmlText(text));
    html_ += "</ul>\n";
  }
  void BesidesVerdicts() {
    std::vector<std::string> texts;
    for (const BesidesFact& besides : match_.besides)
      texts.push_back(BesidesText(match_, besides) + ". " + besides.said.why);
    OtherVerdicts("Judged besides", texts);
  }
  void Duels() {
    std::vector<std::string> texts;
    for (const DuelFact& duel : match_.duels) texts.push_back(DuelText(match_, duel));
    OtherVerdicts("Judged against each other", texts);
  }

  void HeadToHead() {
    Begin(Section::kHeadToHead);
    const std::string race = RaceText(match_, Player::kHand, Player::kModel);
    html_ +=
        Paragraph(race.empty() ? "Neither side has a correct version with a speed." : race, "race");
    std::string cards;
    for (const Player player : {Player::kHand, Player::kModel, Player::kTogether})
      if (const VersionFact* best = match_.Best(player)) cards += Claims(*best);
    Cards(cards);
    Duels();
    Prose(Section::kHeadToHead);
    if (!match_.Of(Player::kTogether).empty()) {
      html_ += "<h3>Together: the author steered the model</h3>\n";
      if (const std::string with = RaceText(match_, Player::kTogether, Player::kHand);
          !with.empty())
        html_ += Paragraph(with);
      Table(Player::kTogether);
      for (const SeriesFact& series : match_.series)
        if (series.said.player == Player::kTogether) Series(series);
      if (!presents_)
        for (const VersionFact* version : match_.Of(Player::kTogether)) Version(*version);
    }
    html_ += "</section>\n";
  }

  void Stuck() {
    Begin(Section::kStuck);
    html_ += "<div class=\"cards\">\n";
    for (const Player player : {Player::kHand, Player::kModel, Player::kTogether}) {
      const auto stuck = words_.StuckOf(player);
      if (stuck.empty() && player == Player::kTogether) continue;
      html_ += fmt::format("<div class=\"card {}\"><h3>{}</h3>\n<ul>\n", PlayerName(player),
                           HtmlText(PlayerTitle(player)));
      for (const StuckWords* each : stuck)
        html_ += fmt::format("<li>{}</li>\n", HtmlText(each->text));
      html_ += fmt::format("{}</ul></div>\n", stuck.empty() ? "<li>Nothing is said.</li>" : "");
    }
    html_ += "</div>\n";
    Prose(Section::kStuck);
    html_ += "</section>\n";
  }

  const Worklog& worklog_;
  const Match& match_;
  const Words& words_;
  const bool presents_;
  std::string html_;
};

}  // namespace

std::string RenderWorklogPage(const Worklog& worklog, PageKind kind,
                              std::string_view markdown_hash) {
  return WithSeal(PageWriter(worklog, kind).Write(), markdown_hash);
}

}  // namespace assay
