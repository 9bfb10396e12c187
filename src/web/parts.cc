#include "web/parts.h"

#include <algorithm>
#include <cmath>

#include "model/outcome.h"
#include "report/card_face.h"
#include "report/text.h"

namespace assay {
namespace {

constexpr double kBarWidth = 176, kBarHeight = 18;  // of intervals [pixels]

std::string_view ToneClass(Tone tone) {
  return tone == Tone::kGood ? "good" : tone == Tone::kBad ? "bad" : "warn";
}

}  // namespace

PageTable::PageTable(std::string_view label, std::vector<Column> columns, bool narrow)
    : label_(label), columns_(std::move(columns)), narrow_(narrow) {}

void PageTable::AddRow(std::span<const Html> cells) {
  Html row;
  for (size_t i = 0; i < cells.size() && i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    const Html kind = column.kind.empty() ? Html() : Markup(" class=\"{}\"", column.kind);
    if (i == 0)
      row += Markup("<th scope=\"row\"{}>{}</th>", kind, cells[i]);
    else if (column.name.empty())
      row += Markup("<td{}>{}</td>", kind, cells[i]);
    else
      row += Markup("<td{} data-is=\"{}\">{}</td>", kind, column.name, cells[i]);
  }
  rows_ += Markup("<tr>{}</tr>\n", row);
}

Html PageTable::End() const {
  Html head;
  for (const Column& column : columns_)
    if (column.name.empty())
      head += Html::Trusted("<td></td>");
    else
      head +=
          Markup("<th scope=\"col\"{}>{}</th>",
                 column.kind.empty() ? Html() : Markup(" class=\"{}\"", column.kind), column.name);
  return Markup(
      "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">\n"
      "<table class=\"stack{}\"><thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
      label_, narrow_ ? " narrow" : "", head, rows_);
}

Html OutcomeBadge(std::string_view outcome_name) {
  const auto outcome = OutcomeFromName(outcome_name);
  if (!outcome) return Markup("<span class=\"badge\">{}</span>", outcome_name);
  const Face face = FaceOf(*outcome);
  std::string word(OutcomeName(*outcome));
  std::replace(word.begin(), word.end(), '_', ' ');
  return Markup("<span class=\"badge {}\"><span aria-hidden=\"true\">{}</span> {}</span>",
                ToneClass(face.tone), face.symbol, word);
}

Html RoleTag(Role role) {
  return role == Role::kMachine ? Markup("<span class=\"tag machine\">machine</span>")
                                : Markup("<span class=\"tag\">human</span>");
}

Html RunnerText(std::string_view runner, bool is_own) {
  if (!is_own || runner.empty()) return Text(runner);
  return Markup("{} <span class=\"tag own\">own runner</span>", runner);
}

Html TimeText(std::string_view iso) {
  std::string text(iso.substr(0, 16));
  std::replace(text.begin(), text.end(), 'T', ' ');
  if (text.empty()) return {};
  return Markup("<time class=\"nowrap\" datetime=\"{}\">{}</time>", iso, text);
}

Html DayText(std::string_view iso) {
  if (iso.empty()) return {};
  return Markup("<time class=\"nowrap\" datetime=\"{}\">{}</time>", iso, iso.substr(0, 10));
}

Html Tile(std::string_view name, const Html& value, const Html& more) {
  return Markup("<div class=\"tile\"><span>{}</span><b>{}</b><small>{}</small></div>\n", name,
                value, more);
}

Html Tiles(const Html& tiles) { return Markup("<div class=\"tiles\">\n{}</div>\n", tiles); }

Html FactRow(std::string_view name, const Html& value) {
  return value.empty() ? Html() : Markup("<dt>{}</dt><dd>{}</dd>\n", name, value);
}

Html Facts(const Html& facts) { return Markup("<dl>\n{}</dl>\n", facts); }

Html FactsInTwo(const Html& facts) { return Markup("<dl class=\"two\">\n{}</dl>\n", facts); }

Html Heading(std::string_view text) { return Markup("<h2>{}</h2>\n", text); }

Html Paragraph(std::string_view text, std::string_view kind) {
  return kind.empty() ? Markup("<p>{}</p>\n", text)
                      : Markup("<p class=\"{}\">{}</p>\n", kind, text);
}

Html Fold(std::string_view summary, const Html& content, bool open) {
  return Markup("<details{}><summary>{}</summary>\n{}</details>\n",
                Html::Trusted(open ? " open" : ""), summary, content);
}

Html CodeBlock(std::string_view label, const Html& code, std::string_view kind) {
  return Markup("<pre{} tabindex=\"0\" role=\"region\" aria-label=\"{}\">{}</pre>\n",
                kind.empty() ? Html() : Markup(" class=\"{}\"", kind), label, code);
}

Html Command(std::string_view command) {
  return Markup("<div class=\"command\"><pre>{}</pre></div>\n", command);
}

Html Figure(std::string_view label, const std::string& svg) {
  return Markup(
      "<div class=\"figure\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">\n{}</div>\n", label,
      Html::Trusted(svg));
}

Html Refreshed(const Html& part, int seconds) {
  return Markup("<div id=\"live\" data-refresh=\"{}\">\n{}</div>\n", seconds, part);
}

Html ProblemLink(std::string_view problem) {
  return Markup("<a href=\"/problems/{}\">{}</a>", UrlPart(problem), problem);
}

std::string FormText(const CandidateRecord& candidate) {
  return fmt::format("{}, {}", CandidateFormName(candidate.form), LanguageName(candidate.language));
}

Html VerdictLink(std::string_view id, std::string_view text) {
  return Markup("<a href=\"/verdicts/{}\">{}</a>", UrlPart(id), text.empty() ? id : text);
}

double BarScale::At(double value, double width) const {
  const auto place = [&](double x) { return logarithmic ? std::log(std::max(x, 1e-9)) : x; };
  const double along = (place(value) - place(from)) / (place(to) - place(from));
  return std::clamp(along, 0.0, 1.0) * width;
}

BarScale RatioScale(std::span<const double> ratios) {
  BarScale scale{0.8, 1.25, 1, true};
  for (const double ratio : ratios) {
    if (!std::isfinite(ratio) || ratio <= 0) continue;
    scale.from = std::min(scale.from, std::max(ratio / 1.1, 1e-3));
    scale.to = std::max(scale.to, std::min(ratio * 1.1, 1e4));
  }
  return scale;
}

Html IntervalBar(double low, double value, double high, const BarScale& scale,
                 std::string_view text) {
  if (!std::isfinite(low) || !std::isfinite(high) || !std::isfinite(value) || high < low)
    return Text(text);
  constexpr double kInner = kBarWidth - 12;
  const auto x = [&](double at) { return 6 + scale.At(at, kInner); };
  const double middle = kBarHeight / 2;
  std::string svg = fmt::format(
      "<svg class=\"interval\" viewBox=\"0 0 {0} {1}\" aria-hidden=\"true\">"
      "<path class=\"c-grid\" d=\"M6 {2}H{3}\"/>",
      kBarWidth, kBarHeight, middle, kBarWidth - 6);
  if (scale.mark > scale.from && scale.mark < scale.to)
    svg +=
        fmt::format("<path class=\"c-axis\" d=\"M{:.1f} 1v{}\"/>", x(scale.mark), kBarHeight - 2);
  svg += fmt::format(
      "<path class=\"c-range\" d=\"M{:.1f} {}H{:.1f}\"/><circle class=\"c-bar\" cx=\"{:.1f}\" "
      "cy=\"{}\" r=\"3.6\"/></svg>",
      x(low), middle, std::max(x(high), x(low) + 1), x(value), middle);
  return Markup("<div class=\"range\">{}<span>{}</span></div>", Html::Trusted(std::move(svg)),
                text);
}

std::string RatioOrDash(double ratio) { return ratio > 0 ? FormatRatio(ratio) : "-"; }

std::string RangeText(double low, double high) {
  if (!(low > 0) || !(high >= low)) return {};
  return fmt::format("{} to {}", FormatRatio(low), FormatRatio(high));
}

const BaselineResult* HeadlineOf(const Verdict& verdict) {
  if (!verdict.speed) return nullptr;
  const auto found = verdict.speed->baselines.find(verdict.speed->headline);
  return found == verdict.speed->baselines.end() ? nullptr : &found->second;
}

}  // namespace assay
