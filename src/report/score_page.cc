#include "report/score_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/score_chart.h"
#include "report/score_report.h"
#include "report/svg.h"
#include "report/text.h"

namespace assay {
namespace {

constexpr std::string_view kGenerator = R"(<meta name="generator" content="assay score">)";
constexpr size_t kGeneratorWithin = 400;  // bytes from the start of a page
constexpr int kMessageColumnsMax = 300;

constexpr std::string_view kStyle = R"(<style>
:root{color-scheme:light dark;--page:#fff;--panel:#f6f8fa;--ink:#24292f;--faint:#57606a;
--grid:#e3e7eb;--mark:#8c959f;--certified:#14548c;--plain:#c4500b;--good:#1a7f37;--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--page:#0d1117;--panel:#161b22;--ink:#e6edf3;
--faint:#9198a1;--grid:#2d333d;--mark:#6e7681;--certified:#4c9be8;--plain:#ff9d5c;--good:#3fb950;
--bad:#ff7b72}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
main{max-width:1080px;margin:0 auto;padding:1.8rem 1.2rem 3rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .8rem;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:2.4rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--grid)}
p{margin:.4rem 0;max-width:46rem}.faint{color:var(--faint)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.2rem;margin:0}
dt{color:var(--faint)}dd{margin:0;overflow-wrap:anywhere}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));gap:.8rem;
margin:1.4rem 0 0}
.tile{background:var(--panel);border:1px solid var(--grid);border-radius:8px;padding:.7rem .9rem}
.tile b{display:block;font-size:1.7rem;line-height:1.25;font-variant-numeric:tabular-nums}
.tile span{display:block}.tile small{color:var(--faint)}
.scroll{overflow-x:auto}svg{display:block;width:100%;
min-width:29rem;max-width:760px;height:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{text-align:left;vertical-align:top;padding:.28rem .9rem .28rem 0;
border-bottom:1px solid var(--grid)}
th{font-weight:600;color:var(--faint);white-space:nowrap}
td:last-child,th:last-child{padding-right:0}
tbody th{color:var(--ink);font-weight:400}
.n{text-align:right;white-space:nowrap}.zero{color:var(--mark)}
.good{color:var(--good)}.bad{color:var(--bad)}
.meter{width:100%}.funnel{max-width:760px;margin-bottom:1rem}
.meter div{height:.75rem;margin-top:.35rem;border-radius:2px;
background:var(--certified);min-width:1px}
.wide{width:100%}.problems td{font-size:.93em}
.name{overflow-wrap:anywhere;min-width:17.5rem}
.why{overflow-wrap:anywhere;min-width:16rem;width:42%}
@media(max-width:700px){main{padding:1.1rem .9rem 2rem}
.tiles{grid-template-columns:1fr 1fr}.tile b{font-size:1.35rem}
table{font-size:.88em}th,td{padding-right:.5rem}.name,.why{min-width:0}
.problems thead{position:absolute;left:-99in}
.problems tr{display:block;padding:.55rem 0;border-bottom:1px solid var(--grid)}
.problems td{display:inline-block;border:0;padding:0 1rem 0 0;text-align:left}
.problems td:empty{display:none}.problems .name,.problems .why{display:block;width:auto}
.problems .name{font-weight:600}
.problems td[data-is]::before{content:attr(data-is) " ";color:var(--faint)}}
</style>)";

std::string Text(std::string_view text) { return XmlEscaped(std::string(text)); }

std::string Percent(const Share& share) { return Text(FormatPercent(share.value())); }
std::string Interval(double low, double high) {
  return Text(fmt::format("{} to {}", FormatPercent(low), FormatPercent(high)));
}

// A cell; `attributes` begins with a blank, or is empty.
std::string Cell(std::string_view attributes, std::string_view text) {
  return fmt::format("<td{}>{}</td>", attributes, Text(text));
}
std::string Number(int64_t count) {
  return fmt::format("<td class=\"n{}\">{}</td>", count == 0 ? " zero" : "", count);
}
std::string Head(std::string_view attributes, std::string_view text) {
  return fmt::format("<th{} scope=\"col\">{}</th>", attributes, Text(text));
}
std::string RowHead(std::string_view attributes, std::string_view text) {
  return fmt::format("<th{} scope=\"row\">{}</th>", attributes, Text(text));
}
constexpr std::string_view kRight = " class=\"n\"";

std::string_view ToneOf(Outcome outcome) {
  if (outcome == Outcome::kFaster) return "good";
  return IsCorrect(outcome) ? "plain" : "bad";
}

// "2026-11-27T12:30:05Z" is "2026-11-27 12:30".
std::string Minute(std::string_view time) {
  std::string text(time.substr(0, 16));
  std::replace(text.begin(), text.end(), 'T', ' ');
  return text;
}

std::string When(const Score& score) {
  const std::string from = Minute(score.from), to = Minute(score.to);
  if (from == to) return from + " UTC";
  const bool one_day = from.substr(0, 10) == to.substr(0, 10) && to.size() > 11;
  return fmt::format("{} to {} UTC", from, one_day ? to.substr(11) : to);
}

class PageWriter {
 public:
  explicit PageWriter(const Score& score) : score_(score) {}

  std::string Write(const std::string& subject) {
    const std::string title = "Score of " + Shortened(Printable(subject, true), 120, true);
    html_ = fmt::format(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{}\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\">\n<title>{}</title>\n{}\n</head>\n<body>\n<main>\n<h1>{}</h1>\n",
        kGenerator, Text(title), kStyle, Text(title));
    Facts();
    Tiles();
    Curve();
    Draws();
    Funnel();
    Outcomes();
    Problems();
    html_ +=
        "<p class=\"faint\">Written by <code>assay score</code>; its page docs/score.md has the "
        "formulas.</p>\n</main>\n</body>\n</html>\n";
    return std::move(html_);
  }

 private:
  void Section(std::string_view title) { html_ += fmt::format("<h2>{}</h2>\n", Text(title)); }

  void Fact(std::string_view name, const std::string& value) {
    html_ += fmt::format("<dt>{}</dt><dd>{}</dd>\n", Text(name), Text(value));
  }

  void Facts() {
    html_ += "<dl>\n";
    Fact("judged", When(score_));
    for (const MachineCount& machine : score_.machines)
      Fact("machine", fmt::format("{}; {}, {} a side; PyTorch {}{}", machine.cpu,
                                  Counted(machine.cores, "core"),
                                  Counted(machine.threads, "thread"), machine.pytorch,
                                  score_.machines.size() > 1
                                      ? fmt::format(" ({})", Counted(machine.verdicts, "verdict"))
                                      : ""));
    Fact("baseline", score_.baseline.empty() ? "none: no speed was measured" : score_.baseline);
    Fact("problems", fmt::format("{} asked for, {} with a verdict", score_.asked, score_.judged));
    Fact("candidates",
         fmt::format("{}{}", score_.attempts,
                     score_.several_attempts() ? "; the best of a problem counts" : ""));
    html_ += "</dl>\n";
  }

  void Tile(std::string_view name, const std::string& value, const std::string& more) {
    html_ += fmt::format("<div class=\"tile\"><span>{}</span><b>{}</b><small>{}</small></div>\n",
                         Text(name), Text(value), Text(more));
  }

  void Tiles() {
    const auto fast = [&](const assay::Curve& curve) {
      return ShareOf(CountAt(curve, 1), score_.asked);
    };
    const auto of = [&](const Share& share) {
      return fmt::format("{} of {}; 95% interval {} to {}", share.count, share.asked,
                         FormatPercent(share.low), FormatPercent(share.high));
    };
    const auto tile = [&](std::string_view name, const Share& share) {
      Tile(name, FormatPercent(share.value()), of(share));
    };
    html_ += "<div class=\"tiles\">\n";
    tile("correct", score_.correct);
    if (!score_.baseline.empty()) {
      tile("faster, certified", fast(score_.certified));
      tile("faster, plain", fast(score_.plain));
    }
    if (score_.mean_correct > 0)
      Tile("mean speedup", FormatRatio(score_.mean_correct),
           fmt::format("over {} solved; {} over all, the others as 1x",
                       score_.mean_correct_problems, FormatRatio(score_.mean_clamped)));
    html_ += "</div>\n";
  }

  void Curve() {
    Section("fast_p: correct, and more than p times as fast");
    if (score_.plain.front().count > 0)
      html_ += "<div class=\"scroll\">" + RenderCurveSvg(score_, CurveTheme::kOfPage) + "</div>\n";
    html_ += "<div class=\"scroll\"><table><thead><tr>" + Head(kRight, "p") +
             Head(kRight, "plain") + Head(kRight, "problems") + Head("", "95% interval") +
             Head(kRight, "certified") + Head(kRight, "problems") + Head("", "95% interval") +
             "</tr></thead>\n<tbody>\n";
    for (const FastPRow& row : score_.fast_p) {
      html_ += "<tr>" + RowHead(kRight, fmt::format("{:g}", row.p));
      for (const Share* share : {&row.plain, &row.certified})
        html_ += fmt::format("<td class=\"n\">{}</td>{}<td>{}</td>", Percent(*share),
                             Number(share->count), Interval(share->low, share->high));
      html_ += "</tr>\n";
    }
    html_ += "</tbody></table></div>\n";
    Paragraph(
        "Plain: the median ratio is over p. Certified: gate 2 decides that it is; by luck it does "
        "so in less than one of a hundred verdicts.",
        " class=\"faint\"");
    for (const std::string& sentence : ApartSentences(score_)) Paragraph(sentence, "");
  }

  void Paragraph(const std::string& text, std::string_view attributes) {
    html_ += fmt::format("<p{}>{}</p>\n", attributes, Text(text));
  }

  void Draws() {
    if (score_.at_k.empty()) return;
    Section("k independent attempts a problem");
    html_ += "<div class=\"scroll\"><table><thead><tr>" + Head(kRight, "k") +
             Head(kRight, "pass@k") + Head(kRight, "best@k");
    for (const FastPRow& row : score_.fast_p)
      if (row.p > 0) html_ += Head(kRight, fmt::format("fast_{:g}@k", row.p));
    html_ += "</tr></thead>\n<tbody>\n";
    for (const AtK& at : score_.at_k) {
      html_ += "<tr>" + RowHead(kRight, std::to_string(at.k)) +
               Cell(kRight, FormatPercent(at.pass)) + Cell(kRight, FormatRatio(at.best_speedup));
      for (const FastPAtK& fast : at.fast_p)
        if (fast.p > 0)
          html_ += Cell(kRight, fmt::format("{} / {}", FormatPercent(fast.plain),
                                            FormatPercent(fast.certified)));
      html_ += "</tr>\n";
    }
    html_ += "</tbody></table></div>\n";
    Paragraph("fast_p@k: plain / certified.", " class=\"faint\"");
  }

  void Funnel() {
    Section("Funnel: problems by how far their best attempt came");
    html_ += "<table class=\"wide funnel\"><tbody>\n";
    for (const Stage stage : kAllStages) {
      const Share share{score_.funnel.at(stage), score_.asked};
      html_ += fmt::format(
          "<tr>{}<td class=\"meter\"><div style=\"width:{:.1f}%\"></div></td>{}"
          "<td class=\"n\">{}</td></tr>\n",
          RowHead("", StageName(stage)), 100 * share.value(), Number(share.count), Percent(share));
    }
    html_ += "</tbody></table>\n";
    const bool by_level = score_.by_level.size() > 1;
    if (!by_level && score_.by_mechanism.empty()) return;
    html_ += "<div class=\"scroll\"><table><thead><tr><td></td>";
    for (const Stage stage : kAllStages) html_ += Head(kRight, StageName(stage));
    html_ += "</tr></thead>\n<tbody>\n";
    if (by_level)
      for (const FunnelRow& row : score_.by_level) FunnelLine(LevelLabel(row.level), row);
    for (const FunnelRow& row : score_.by_mechanism) FunnelLine(MechanismLabel(row.mechanism), row);
    html_ += "</tbody></table></div>\n";
  }

  void FunnelLine(const std::string& label, const FunnelRow& row) {
    html_ += "<tr>" + RowHead("", label);
    for (const Stage stage : kAllStages) html_ += Number(row.at(stage));
    html_ += "</tr>\n";
  }

  void Outcomes() {
    const Fingerprint& table = score_.fingerprint;
    if (table.rows.empty()) return;
    Section(table.by.empty() ? "Outcomes of candidates"
                             : fmt::format("Outcomes of candidates, by {}", table.by));
    html_ += "<div class=\"scroll\"><table><thead><tr><td></td>" + Head(kRight, "all");
    for (const std::string& group : table.groups) html_ += Head(kRight, group);
    html_ += "</tr></thead>\n<tbody>\n";
    for (const FingerprintRow& row : table.rows) {
      html_ += "<tr>" +
               RowHead(fmt::format(" class=\"{}\"", ToneOf(row.outcome)), FingerprintLabel(row)) +
               Number(row.count);
      for (const int64_t count : row.by_group) html_ += Number(count);
      html_ += "</tr>\n";
    }
    html_ += "</tbody></table></div>\n";
  }

  void Problems() {
    Section("Problems");
    html_ += "<table class=\"wide problems\"><thead><tr>" + Head("", "problem") +
             Head(kRight, "level") + Head(kRight, "samples") + Head("", "reached") +
             Head(kRight, "best ratio") + Head(kRight, "time") + Head("", "outcome of the best") +
             "</tr></thead>\n<tbody>\n";
    for (const ProblemScore& problem : score_.problems) Problem(problem);
    html_ += "</tbody></table>\n";
    const int64_t unnamed = score_.asked - static_cast<int64_t>(score_.problems.size());
    if (unnamed > 0)
      Paragraph(fmt::format("And {} without a verdict, whose names are not known.",
                            Counted(unnamed, "problem")),
                "");
  }

  void Problem(const ProblemScore& problem) {
    const Attempt& best = problem.best;
    std::string ratio, time;
    if (best.speedup > 0) {
      ratio = FormatRatio(best.speedup);
      if (best.ci_low > 0 && best.ci_high > 0)
        ratio += fmt::format(" [{}, {}]", FormatRatio(best.ci_low), FormatRatio(best.ci_high));
      time = FormatDuration(best.time_ns);
    }
    html_ += "<tr>" + Cell(" class=\"name\"", problem.problem.name) +
             Cell(" class=\"n\" data-is=\"level\"",
                  problem.problem.level == 0 ? "" : std::to_string(problem.problem.level)) +
             Cell(" class=\"n\" data-is=\"samples\"", std::to_string(problem.attempts)) +
             Cell(" data-is=\"reached\"", StageName(problem.stage)) +
             Cell(" class=\"n\" data-is=\"ratio\"", ratio) +
             Cell(" class=\"n\" data-is=\"time\"", time) + "<td class=\"why\">";
    if (problem.attempts == 0) {
      html_ += "<span class=\"faint\">not judged</span>";
    } else {
      const std::string label = FingerprintLabel({best.outcome, best.kind, 0, {}});
      html_ += fmt::format("<span class=\"{}\">{}</span>", ToneOf(best.outcome), Text(label));
      if (!best.message.empty())
        html_ += fmt::format(
            "<br>{}", Text(Shortened(Printable(best.message, true), kMessageColumnsMax, true)));
    }
    html_ += "</td></tr>\n";
  }

  const Score& score_;
  std::string html_;
};

}  // namespace

std::string RenderScorePage(const Score& score, const std::string& subject) {
  return PageWriter(score).Write(subject);
}

bool IsScorePage(std::string_view text) {
  return text.substr(0, kGeneratorWithin).find(kGenerator) != std::string_view::npos;
}

}  // namespace assay
