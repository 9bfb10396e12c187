#include "report/score_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "report/score_chart.h"
#include "report/text.h"

namespace assay {
namespace {

// The characters of the chart.
struct ChartGlyphs {
  const char* certified;
  const char* plain;
  const char* vertical;
  const char* mark;  // on the vertical axis, beside a percentage
  const char* corner;
  const char* horizontal;
  const char* tick;
};
constexpr ChartGlyphs kUnicodeChart{"█", "░", "│", "┤", "└", "─", "┬"};
constexpr ChartGlyphs kAsciiChart{"#", ".", "|", "+", "+", "-", "+"};

std::string Interval(const Share& share) {
  return fmt::format("{:>4} to {:>4}", FormatPercent(share.low), FormatPercent(share.high));
}

// As RenderFastP writes p: "0.5", "1".
std::string FormatP(double p) { return fmt::format("{:g}", p); }

class ScoreWriter {
 public:
  ScoreWriter(const Score& score, const CardStyle& style)
      : score_(score), frame_(style), unicode_(style.unicode) {}

  std::string Write() {
    Title();
    Table();
    Chart();
    Funnel();
    FailureTable();
    Draws();
    Circumstances();
    frame_.Bottom();
    return frame_.Take();
  }

 private:
  std::string Safe(std::string_view text) const { return Printable(text, unicode_); }
  // Left-aligned in `width` columns.
  std::string Padded(const std::string& text, int width) const {
    const std::string shown = Shortened(text, width, unicode_);
    return shown + std::string(static_cast<size_t>(width - DisplayWidth(shown)), ' ');
  }

  void Title() {
    const std::string baseline =
        score_.baseline.empty() ? "no speed measured" : "against " + Safe(score_.baseline);
    frame_.Top(
        fmt::format("score {} {}", GlyphsOf(frame_.style()).dot, Counted(score_.asked, "problem")),
        baseline);
    frame_.Labelled(
        "correct",
        fmt::format("{}: {} of {}, 95% interval {} to {}", FormatPercent(score_.correct.value()),
                    score_.correct.count, Counted(score_.asked, "problem"),
                    FormatPercent(score_.correct.low), FormatPercent(score_.correct.high)));
    if (score_.mean_correct > 0)
      frame_.Labelled(
          "mean speedup",
          fmt::format("{} over the {} solved; {} over all {}, where a problem without a faster "
                      "attempt counts as 1x (geometric means)",
                      FormatRatio(score_.mean_correct), score_.mean_correct_problems,
                      FormatRatio(score_.mean_clamped), score_.asked));
    if (score_.several_attempts())
      frame_.Labelled("attempts", fmt::format("{} at {}; the best attempt at a problem counts",
                                              score_.attempts, Counted(score_.judged, "problem")));
  }

  void Table() {
    frame_.Section("fast_p: correct, and more than p times as fast", {});
    const bool wide = frame_.inner_width() >= 67;
    frame_.Row({{wide ? fmt::format("{:>6}   {:<11}   {:<12}      {:<11}   {:<12}", "p", "plain",
                                    "95% interval", "certified", "95% interval")
                      : fmt::format("{:>6}   {:<11}      {:<11}", "p", "plain", "certified"),
                 Tone::kFaint}});
    for (const FastPRow& row : score_.fast_p) {
      const auto share = [](const Share& part) {
        return fmt::format("{:>4} {:>6}", FormatPercent(part.value()), part.count);
      };
      const std::string plain = share(row.plain), certified = share(row.certified);
      frame_.Row({{wide ? fmt::format("{:>6}   {}   {}      {}   {}", FormatP(row.p), plain,
                                      Interval(row.plain), certified, Interval(row.certified))
                        : fmt::format("{:>6}   {}      {}", FormatP(row.p), plain, certified),
                   row.p == 1 ? Tone::kStrong : Tone::kPlain}});
    }
    frame_.Prose(
        "plain: the median ratio is over p. certified: gate 2 decides that it is; by luck it does "
        "so in less than one of a hundred verdicts.",
        Tone::kFaint);
    for (const std::string& sentence : ApartSentences(score_)) frame_.Prose(sentence, Tone::kPlain);
  }

  void Chart() {
    if (score_.plain.front().count == 0) return;
    frame_.Section("fast_p over p", {});
    const ChartGlyphs& glyphs = unicode_ ? kUnicodeChart : kAsciiChart;
    const CurveAxis axis = AxisOf(score_);
    const int octaves = axis.high - axis.low;
    const int columns_per_octave = std::max(1, (frame_.inner_width() - 10) / octaves);
    const int columns = columns_per_octave * octaves;
    constexpr int kRows = 10;
    for (int row = kRows - 1; row >= 0; --row) {
      const bool marked = row % 2 == 1;
      Line line{{fmt::format("{:>5} {}", marked ? fmt::format("{}%", 10 * (row + 1)) : "",
                             marked ? glyphs.mark : glyphs.vertical),
                 Tone::kFaint}};
      for (int column = 0; column < columns; ++column) {
        const double p = std::exp2(axis.low + static_cast<double>(column) / columns_per_octave);
        const auto reaches = [&](const Curve& curve) {
          const double share = Share{CountAt(curve, p), score_.asked}.value();
          return share >= (row + 0.5) / kRows;
        };
        if (reaches(score_.certified))
          Append(&line, glyphs.certified, Tone::kGood);
        else
          Append(&line, reaches(score_.plain) ? glyphs.plain : " ", Tone::kPlain);
      }
      frame_.Row(line);
    }
    constexpr int kFirstColumn = 7;  // after the percentages and the axis
    std::string ruler = fmt::format("{:>5} {}", "0%", glyphs.corner);
    std::string labels(static_cast<size_t>(kFirstColumn + columns + 4), ' ');
    for (int column = 0; column <= columns; ++column) {
      const bool tick = column % columns_per_octave == 0;
      ruler += tick ? glyphs.tick : glyphs.horizontal;
      if (!tick) continue;
      const std::string label = FormatP(std::exp2(axis.low + column / columns_per_octave));
      labels.replace(static_cast<size_t>(kFirstColumn + column) - label.size() / 2, label.size(),
                     label);
    }
    frame_.Row({{ruler + " p", Tone::kFaint}});
    labels.erase(labels.find_last_not_of(' ') + 1);
    frame_.Row({{labels, Tone::kFaint}});
    frame_.Row({{std::string(kFirstColumn, ' '), Tone::kPlain},
                {glyphs.certified, Tone::kGood},
                {" certified   ", Tone::kPlain},
                {glyphs.plain, Tone::kPlain},
                {" plain alone", Tone::kPlain}});
  }

  // Adds a character to the line; neighbours of one tone share a span.
  static void Append(Line* line, const char* glyph, Tone tone) {
    if (line->size() > 1 && line->back().tone == tone)
      line->back().text += glyph;
    else
      line->push_back({glyph, tone});
  }

  void Funnel() {
    frame_.Section("funnel: problems by how far their best attempt came", {});
    const int label_width = std::min(24, frame_.inner_width() - 48);
    std::string head(static_cast<size_t>(label_width), ' ');
    for (const Stage stage : kAllStages) head += fmt::format("{:>8}", StageName(stage));
    frame_.Row({{head, Tone::kFaint}});
    FunnelLine("all", score_.funnel, label_width, Tone::kStrong);
    if (score_.by_level.size() > 1)
      for (const FunnelRow& row : score_.by_level)
        FunnelLine(LevelLabel(row.level), row, label_width, Tone::kPlain);
    for (const FunnelRow& row : score_.by_mechanism)
      FunnelLine(Safe(MechanismLabel(row.mechanism)), row, label_width, Tone::kPlain);
  }

  void FunnelLine(const std::string& label, const FunnelRow& row, int label_width, Tone tone) {
    std::string text = Padded(label, label_width);
    for (const Stage stage : kAllStages) text += fmt::format("{:>8}", row.at(stage));
    frame_.Row({{text, tone}});
  }

  // A column a group, in several blocks where they are many; the first block has all.
  void FailureTable() {
    const Fingerprint& table = score_.fingerprint;
    if (table.rows.empty()) return;
    frame_.Section(
        table.by.empty() ? "outcomes of candidates" : "outcomes of candidates, by " + table.by, {});
    int width = 6;  // of a column
    for (const std::string& group : table.groups)
      width = std::clamp(DisplayWidth(Safe(group)) + 2, width, 13);
    const int label_width = std::min(34, frame_.inner_width() - 2 * width);
    const auto columns_max = static_cast<size_t>((frame_.inner_width() - label_width) / width);
    const size_t columns = 1 + table.groups.size();  // the first: all
    for (size_t first = 0; first < columns; first += columns_max) {
      const size_t last = std::min(first + columns_max, columns);
      const auto line = [&](const std::string& label, Tone tone, auto value_of) {
        std::string text = Padded(label, label_width);
        for (size_t i = first; i < last; ++i) {
          const std::string value = Shortened(value_of(i), width - 1, unicode_);
          text += std::string(static_cast<size_t>(width - DisplayWidth(value)), ' ') + value;
        }
        frame_.Row({{text, tone}});
      };
      line("", Tone::kFaint,
           [&](size_t i) { return i == 0 ? std::string("all") : Safe(table.groups[i - 1]); });
      for (const FingerprintRow& row : table.rows)
        line(Safe(FingerprintLabel(row)), Tone::kPlain,
             [&](size_t i) { return std::to_string(i == 0 ? row.count : row.by_group[i - 1]); });
    }
  }

  // The worth of k attempts a problem: a column a k.
  void Draws() {
    if (score_.at_k.empty() && score_.at_k_left_out.empty()) return;
    frame_.Section("k independent attempts a problem: plain / certified", {});
    constexpr size_t kColumnWidth = 14;
    const size_t columns_max =
        static_cast<size_t>(frame_.inner_width() - Frame::kLabelWidth) / kColumnWidth;
    for (size_t first = 0; first < score_.at_k.size(); first += columns_max) {
      const size_t last = std::min(first + columns_max, score_.at_k.size());
      const auto row = [&](const std::string& label, Tone tone, auto value_of) {
        std::string text;
        for (size_t i = first; i < last; ++i)
          text += fmt::format("{:>{}}", value_of(score_.at_k[i]), kColumnWidth);
        frame_.Row({{Padded(label, Frame::kLabelWidth), Tone::kFaint}, {text, tone}});
      };
      row("", Tone::kFaint, [](const AtK& at) { return fmt::format("k = {}", at.k); });
      row("pass@k", Tone::kPlain, [](const AtK& at) { return FormatPercent(at.pass); });
      row("best@k", Tone::kPlain, [](const AtK& at) { return FormatRatio(at.best_speedup); });
      for (size_t p = 0; p < score_.fast_p.size(); ++p) {
        if (score_.fast_p[p].p == 0) continue;  // pass@k again
        row(fmt::format("fast_{}@k", FormatP(score_.fast_p[p].p)), Tone::kPlain,
            [p](const AtK& at) {
              return fmt::format("{} / {}", FormatPercent(at.fast_p[p].plain),
                                 FormatPercent(at.fast_p[p].certified));
            });
      }
    }
    CoverageText();
    if (score_.at_k_left_out.empty()) return;
    std::vector<int64_t> left_out;
    for (const AtKLeftOut& row : score_.at_k_left_out) left_out.push_back(row.k);
    const AtKLeftOut& first = score_.at_k_left_out.front();
    frame_.Prose(fmt::format("left out: k = {}; {} has {}", fmt::join(left_out, ", "),
                             Safe(first.problem), Counted(first.attempts, "attempt")),
                 Tone::kFaint);
  }

  // Whether more attempts would solve the rest.
  void CoverageText() {
    if (!score_.coverage) return;
    const CoverageFit& fit = score_.coverage->fit;
    frame_.Prose(
        fmt::format("out of reach of any number of attempts, fitted: {} of problems, between {} "
                    "and {}; {} of attempts are correct",
                    FormatPercent(fit.out_of_reach), FormatPercent(fit.low),
                    FormatPercent(fit.high), FormatPercent(score_.coverage->correct)),
        Tone::kFaint);
  }

  void Circumstances() {
    frame_.Section("", {});
    if (score_.judged < score_.asked) {
      std::vector<std::string> names = score_.NotJudged();
      for (std::string& name : names) name = Safe(name);
      const int64_t unnamed = score_.asked - score_.judged - static_cast<int64_t>(names.size());
      if (unnamed > 0 && names.empty())
        names.push_back(fmt::format("{}", unnamed));
      else if (unnamed > 0)
        names.push_back(fmt::format("and {} more", unnamed));
      frame_.Labelled("not judged",
                      fmt::format("{}; counted as not correct", fmt::join(names, ", ")));
    }
    if (score_.repeats.pairs > 0)
      frame_.Labelled("judged again",
                      fmt::format("{} of the same source; {} would pass for a gain",
                                  Counted(score_.repeats.pairs, "pair"), score_.repeats.improved));
    for (const MachineCount& machine : score_.machines)
      frame_.Labelled(
          "machine", fmt::format("{}, {}, {} a side, PyTorch {}: {}", Safe(machine.cpu),
                                 Counted(machine.cores, "core"), Counted(machine.threads, "thread"),
                                 Safe(machine.pytorch), Counted(machine.verdicts, "verdict")));
  }

  const Score& score_;
  Frame frame_;
  bool unicode_;
};

}  // namespace

std::vector<std::string> ApartSentences(const Score& score) {
  const Apart& apart = score.apart;
  std::vector<std::string> sentences;
  if (apart.prepared_problems > 0) {
    std::string text = fmt::format(
        "{} of these {} right only with weights prepared once: plain counts {}, as KernelBench "
        "does, certified never.",
        apart.prepared_problems, apart.prepared_problems == 1 ? "is" : "are",
        apart.prepared_problems == 1 ? "it" : "them");
    if (apart.prepared_untimed > 0)
      text += fmt::format(" {} never timed, so that p = 0 alone counts {}.",
                          apart.prepared_untimed == apart.prepared_problems
                              ? (apart.prepared_problems == 1 ? "It was" : "They were")
                              : fmt::format("{} of them {}", apart.prepared_untimed,
                                            apart.prepared_untimed == 1 ? "was" : "were"),
                          apart.prepared_untimed == 1 ? "it" : "them");
    sentences.push_back(std::move(text));
  } else if (apart.prepared > 0) {
    sentences.push_back(fmt::format(
        "{} right only with weights prepared once, for problems that others solve: pass@k counts "
        "{}.",
        apart.prepared == 1 ? std::string("1 candidate is")
                            : fmt::format("{} candidates are", apart.prepared),
        apart.prepared == 1 ? "it" : "them"));
  }
  if (apart.right_on_ordinary > 0)
    sentences.push_back(fmt::format(
        "Not correct: {} right on ordinary values, and wrong on unusual ones alone.",
        apart.right_on_ordinary == 1 ? std::string("1 candidate is")
                                     : fmt::format("{} candidates are", apart.right_on_ordinary)));
  if (apart.differ_on_special > 0)
    sentences.push_back(
        fmt::format("Correct all the same: {} from the reference where inputs are NaN or infinite.",
                    apart.differ_on_special == 1
                        ? std::string("1 candidate differs")
                        : fmt::format("{} candidates differ", apart.differ_on_special)));
  return sentences;
}

std::string FingerprintLabel(const FingerprintRow& row) {
  const std::string name(OutcomeName(row.outcome));
  return row.kind.empty() ? name : name + ": " + row.kind;
}

std::string RenderScore(const Score& score, const CardStyle& style) {
  return ScoreWriter(score, style).Write();
}

}  // namespace assay
