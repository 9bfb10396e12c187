#include "web/run_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/outcome.h"
#include "report/chart_style.h"
#include "report/text.h"

namespace assay {
namespace {

constexpr int kWidth = 760, kHeight = 380;
constexpr double kLeft = 60, kRight = 744, kTop = 40, kBottom = 300, kFailed = 322;
constexpr size_t kLinesMax = 2000;  // to parents

struct Dot {
  const RunNode* node = nullptr;
  double x = 0, y = 0;
};

class RunDrawing {
 public:
  explicit RunDrawing(const RunView& view) {
    for (const RunNode& node : view.nodes)
      if (node.kind == StepKind::kJudge && node.duplicate_of.empty())
        dots_.push_back({&node, 0, 0});
    double least = 1, most = 1;
    for (const Dot& dot : dots_)
      if (dot.node->ratio.value > 0) {
        least = std::min(least, dot.node->ratio.value);
        most = std::max(most, dot.node->ratio.value);
      }
    from_ = std::max(least / 1.15, 1e-3);
    to_ = std::max(most * 1.15, from_ * 1.5);
    for (size_t i = 0; i < dots_.size(); ++i) {
      Dot& dot = dots_[i];
      dot.x =
          kLeft + 8 +
          (kRight - kLeft - 16) *
              (dots_.size() < 2 ? 0.5
                                : static_cast<double>(i) / static_cast<double>(dots_.size() - 1));
      dot.y = dot.node->ratio.value > 0 ? Y(dot.node->ratio.value) : kFailed;
    }
  }

  bool empty() const { return dots_.empty(); }

  std::string Draw() const {
    std::string svg = ChartOpening(kWidth, kHeight, "run", "The search", Described(), false);
    svg += Grid() + Parents() + BestSoFar();
    for (const Dot& dot : dots_) svg += Mark(dot);
    svg += ChartText(
        kLeft, 20, "start", 12, "c-faint",
        "● faster   ○ other correct   × none: wrong, failed or not timed   — best so far");
    return svg +
           ChartText((kLeft + kRight) / 2, kHeight - 8, "middle", 12, "c-faint",
                     "judgements in their order; lines go to the parent") +
           "</svg>\n";
  }

 private:
  double Y(double ratio) const {
    const double along = std::log(ratio / from_) / std::log(to_ / from_);
    return kBottom - std::clamp(along, 0.0, 1.0) * (kBottom - kTop);
  }

  std::string Described() const {
    double best = 0;
    for (const Dot& dot : dots_) best = std::max(best, dot.node->ratio.value);
    return fmt::format("{} in their order, by speedup; the best is {}.",
                       Counted(static_cast<long long>(dots_.size()), "judgement"),
                       best > 0 ? FormatRatio(best) : "none");
  }

  std::string Grid() const {
    std::string svg;
    double before = 1e9;
    for (const double ratio :
         {0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0}) {
      if (ratio < from_ || ratio > to_ || (before - Y(ratio) < 18 && ratio != 1)) continue;
      before = Y(ratio);
      svg += ChartLine(fmt::format("M{} {:.1f}H{}", kLeft, before, kRight),
                       ratio == 1 ? "c-axis" : "c-grid");
      svg += ChartText(kLeft - 8, before + 4, "end", 12, "c-faint", fmt::format("{:g}×", ratio));
    }
    svg += ChartLine(fmt::format("M{} {}H{}", kLeft, kFailed, kRight), "c-grid");
    svg += ChartText(kLeft - 8, kFailed + 4, "end", 12, "c-faint", "none");
    for (const size_t i : {size_t{0}, dots_.size() / 2, dots_.size() - 1})
      svg += ChartText(dots_[i].x, kFailed + 24, "middle", 12, "c-faint", fmt::format("{}", i + 1));
    return svg;
  }

  std::string Parents() const {
    std::map<std::string_view, const Dot*> by_key;
    for (const Dot& dot : dots_) by_key[dot.node->key] = &dot;
    std::string path;
    size_t lines = 0;
    for (const Dot& dot : dots_)
      for (const std::string& parent : dot.node->lineage.parents)
        if (const auto found = by_key.find(parent); found != by_key.end() && ++lines <= kLinesMax)
          path += fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", found->second->x, found->second->y,
                              dot.x, dot.y);
    return path.empty() ? "" : ChartLine(path, "c-thin");
  }

  std::string BestSoFar() const {
    std::string path;
    double best = 0;
    for (const Dot& dot : dots_) {
      if (dot.node->ratio.value <= best) continue;
      best = dot.node->ratio.value;
      path += path.empty() ? fmt::format("M{:.1f} {:.1f}", dot.x, dot.y)
                           : fmt::format("H{:.1f}V{:.1f}", dot.x, dot.y);
    }
    return path.empty() ? "" : ChartLine(path + fmt::format("H{}", kRight), "c-first-line");
  }

  static std::string Mark(const Dot& dot) {
    const std::string title = fmt::format(
        "<title>{}: {}</title>", HtmlEscaped(dot.node->key),
        HtmlEscaped(dot.node->outcome +
                    (dot.node->ratio.value > 0 ? " " + FormatRatio(dot.node->ratio.value) : "")));
    if (dot.node->ratio.value <= 0)
      return fmt::format("<path class=\"c-bad\" d=\"M{:.1f} {:.1f}l7 7m0 -7l-7 7\">{}</path>\n",
                         dot.x - 3.5, dot.y - 3.5, title);
    return fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\">{}</circle>\n",
                       dot.node->outcome == OutcomeName(Outcome::kFaster) ? "c-first" : "c-open",
                       dot.x, dot.y, dot.node->outcome == OutcomeName(Outcome::kFaster) ? 5 : 4,
                       title);
  }

  std::vector<Dot> dots_;
  double from_ = 0.5, to_ = 2;
};

}  // namespace

std::string RenderRunSvg(const RunView& view) {
  const RunDrawing drawing(view);
  return drawing.empty() ? "" : drawing.Draw();
}

}  // namespace assay
