#include "run/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "report/text.h"

namespace assay {
namespace {

constexpr int kProblemWidth = 26, kSampleWidth = 4, kOutcomeWidth = 13;
constexpr size_t kTroublesShown = 20;

std::string Padded(const std::string& text, int width) {
  return text + std::string(static_cast<size_t>(std::max(0, width - DisplayWidth(text))), ' ');
}

Tone ToneOf(Outcome outcome) {
  if (outcome == Outcome::kFaster) return Tone::kGood;
  return IsCorrect(outcome) ? Tone::kPlain : Tone::kBad;
}

// "2.31x [2.28x, 2.35x], 40.6 us"; empty: it was not timed.
std::string FigureOf(const Verdict& verdict) {
  if (!verdict.speed) return "";
  const auto headline = verdict.speed->baselines.find(verdict.speed->headline);
  if (headline == verdict.speed->baselines.end()) return "";
  const BaselineResult& result = headline->second;
  std::string text = FormatRatio(result.speedup);
  if (result.ci_low > 0 && std::isfinite(result.ci_high))
    text += fmt::format(" [{}, {}]", FormatRatio(result.ci_low), FormatRatio(result.ci_high));
  return text + ", " + FormatDuration(result.candidate_time_ns);
}

// A message without the candidate's own name: the line has it already.
std::string WithoutName(std::string message, const std::string& candidate) {
  const std::string name = std::filesystem::path(candidate).filename().string();
  for (const std::string& part : {candidate + " is not judged: ", name + ": ", name + " "})
    for (size_t at; !name.empty() && (at = message.find(part)) != std::string::npos;)
      message.erase(at, part.size());
  return message;
}

std::string Minutes(double minutes) {
  return minutes < 1    ? fmt::format("{:.0f} s", 60 * minutes)
         : minutes < 90 ? fmt::format("{:.0f} min", minutes)
                        : fmt::format("{:.1f} h", minutes / 60);
}

std::string WhyOf(const RunRow& row) {
  if (row.error) return WithoutName(row.error->message, row.candidate);
  if (IsCorrect(row.verdict->outcome)) return FigureOf(*row.verdict);
  return WithoutName(row.verdict->message, row.candidate);
}

std::string LevelAndName(int level, const std::string& name) {
  return level > 0 ? fmt::format("{}/{}", level, name) : name;
}

std::string_view FormName(CandidateForm form) {
  return form == CandidateForm::kPython   ? "Python"
         : form == CandidateForm::kDevice ? "device"
                                          : "native";
}

}  // namespace

std::string RenderRunRow(const RunRow& row, const CardStyle& style) {
  const std::string outcome =
      row.verdict ? std::string(OutcomeName(row.verdict->outcome)) : "not judged";
  const std::string head =
      Padded(Shortened(LevelAndName(row.level, row.problem), kProblemWidth, style.unicode),
             kProblemWidth) +
      " " + Padded(fmt::format("#{}", row.sample), kSampleWidth) + " ";
  const int left = style.width - kProblemWidth - kSampleWidth - kOutcomeWidth - 4;
  const std::string figure = Printable(WhyOf(row), style.unicode);
  return Printable(head, style.unicode) +
         Painted({Padded(outcome, kOutcomeWidth),
                  row.verdict ? ToneOf(row.verdict->outcome) : Tone::kWarning},
                 style) +
         " " + Shortened(figure, std::max(20, left), style.unicode) + "\n";
}

std::string RenderPlan(const RunPlan& plan, const std::vector<bool>& judged,
                       const CardStyle& style) {
  std::map<std::string, size_t> forms;
  std::vector<size_t> of_problem(plan.problems.size());
  for (const RunItem& item : plan.items) {
    ++forms[std::string(FormName(item.source.form))];
    ++of_problem[item.problem];
  }
  const auto done = static_cast<size_t>(std::count(judged.begin(), judged.end(), true));
  std::string text =
      fmt::format("{} for {}", Counted(static_cast<long long>(plan.items.size()), "candidate"),
                  Counted(static_cast<long long>(plan.problems.size()), "problem"));
  std::string sorts;
  for (const auto& [form, count] : forms)
    sorts += fmt::format("{}{} {}", sorts.empty() ? "" : ", ", count, form);
  if (!sorts.empty()) text += fmt::format(" ({})", sorts);
  text += done == 0 ? "\n" : fmt::format("; {} judged before\n", done);
  for (size_t i = 0; i < plan.problems.size(); ++i) {
    const RunProblem& problem = plan.problems[i];
    std::string set;
    for (const auto& [name, value] : problem.choice.set)
      set += fmt::format("{}{}={}", set.empty() ? "" : " ", name, value);
    text +=
        fmt::format("  {} {}{}\n", Padded(LevelAndName(problem.level, problem.name), kProblemWidth),
                    Counted(static_cast<long long>(of_problem[i]), "candidate"),
                    set.empty() ? "" : "  " + Shortened(set, style.width - 50, style.unicode));
  }
  if (plan.troubles.empty()) return text;
  text += fmt::format("{} cannot be judged:\n", plan.troubles.size());
  for (size_t i = 0; i < plan.troubles.size() && i < kTroublesShown; ++i)
    text += fmt::format("  {}\n", Printable(plan.troubles[i], style.unicode));
  if (plan.troubles.size() > kTroublesShown)
    text += fmt::format("  and {} more\n", plan.troubles.size() - kTroublesShown);
  return text;
}

std::string RenderEstimate(const std::vector<RunRow>& rows, size_t left) {
  double seconds = 0;
  size_t count = 0;
  for (const RunRow& row : rows) {
    if (!row.verdict) continue;
    seconds += row.verdict->cost.total_s;
    ++count;
  }
  if (count == 0 || left == 0) return {};
  const double each_s = seconds / static_cast<double>(count);
  return fmt::format("{} left: about {}, at {:.3g} s each as those judged before\n",
                     Counted(static_cast<long long>(left), "candidate"),
                     Minutes(static_cast<double>(left) * each_s / 60), each_s);
}

std::string OutcomeCounts(const std::vector<const RunRow*>& rows) {
  std::map<Outcome, size_t> counts;
  size_t unjudged = 0;
  for (const RunRow* row : rows) {
    if (row != nullptr && row->verdict)
      ++counts[row->verdict->outcome];
    else
      ++unjudged;
  }
  std::string text;
  for (const OutcomeFacts& facts : AllOutcomes())
    if (const auto found = counts.find(facts.outcome); found != counts.end())
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", found->second, facts.name);
  if (unjudged > 0) text += fmt::format("{}{} not judged", text.empty() ? "" : ", ", unjudged);
  return text;
}

void RunPace::Add(const RunRow& row) {
  ++done_;
  if (row.verdict && row.verdict->outcome == Outcome::kFaster) ++faster_;
}

std::string RunPace::Text(int64_t now_ns) const {
  std::string text = fmt::format("{} of {}, {} faster", done_, all_, faster_);
  const double minutes = static_cast<double>(now_ns - begin_ns_) / 60e9;
  if (done_ == 0 || minutes <= 0) return text;
  const double rate = static_cast<double>(done_) / minutes;
  return text + fmt::format(", {:.3g} a minute, {} left", rate,
                            Minutes(static_cast<double>(all_ - done_) / rate));
}

}  // namespace assay
