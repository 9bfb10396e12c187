#include "report/problem_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/text.h"
#include "rules/unseen_operators.h"

namespace assay {
namespace {

constexpr double kSmallShare = 0.005;
constexpr size_t kOperatorsShown = 16;

// Suites whose problems all have the same sizes say them once.
std::string SizesOf(const Suite& suite) {
  std::set<std::string> names;
  for (const SuiteProblem& problem : suite.problems)
    for (const auto& [size, constants] : problem.sizes) names.insert(size);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string ListRow(const SuiteProblem& problem, size_t name_width, size_t mechanism_width,
                    const CardStyle& style) {
  return fmt::format(
      "  {}  {}  {}\n",
      Painted({fmt::format("{:<{}}", problem.name, name_width), Tone::kStrong}, style),
      fmt::format("{:<{}}", problem.mechanism, mechanism_width),
      Painted({Printable(problem.lesson, style.unicode), Tone::kFaint}, style));
}

class ProblemWriter {
 public:
  ProblemWriter(const ProblemCard& card, const CardStyle& style) : card_(card), frame_(style) {}

  std::string Write() {
    Title();
    Arguments();
    OneCall();
    Operators();
    frame_.Bottom();
    return frame_.Take() + Next();
  }

 private:
  std::string Safe(std::string_view text) const { return Printable(text, frame_.style().unicode); }

  void Title() {
    const ProblemRequest& request = card_.request;
    std::vector<std::string> left{Safe(request.name)}, right;
    if (!request.size.empty()) left.push_back(Safe(request.size));
    if (request.size.empty())
      for (const auto& [name, value] : request.set) left.push_back(Safe(name + "=" + value));
    if (request.level > 0) right.push_back(fmt::format("level {}", request.level));
    if (!card_.mechanism.empty()) right.push_back(Safe(card_.mechanism));
    const std::string dot = fmt::format(" {} ", GlyphsOf(frame_.style()).dot);
    frame_.Top(fmt::format("{}", fmt::join(left, dot)), fmt::format("{}", fmt::join(right, dot)));
    if (!card_.lesson.empty()) frame_.Prose(Safe(card_.lesson), Tone::kPlain);
  }

  void Arguments() {
    const WorkAccount& account = card_.inspection.account;
    frame_.Section("arguments", {});
    for (const std::string& line : account.inputs) frame_.Labelled("input", Safe(line));
    constexpr size_t kShown = 12;
    for (size_t i = 0; i < std::min(kShown, account.parameters.size()); ++i)
      frame_.Labelled("parameter", Safe(account.parameters[i]));
    if (account.parameters.size() > kShown)
      frame_.Labelled("", fmt::format("and {} more", account.parameters.size() - kShown));
    for (const std::string& line : account.outputs) frame_.Labelled("output", Safe(line));
  }

  void OneCall() {
    const Inspection& inspection = card_.inspection;
    const Work& work = card_.work;
    frame_.Section("one call", {});
    frame_.Labelled("bytes",
                    fmt::format("{} at least: {} in, {} of parameters, {} out",
                                FormatBytes(work.bytes), Bytes(inspection.input_bytes),
                                Bytes(inspection.parameter_bytes), Bytes(inspection.output_bytes)));
    if (work.unfused_bytes > 0 && work.bytes > 0)
      frame_.Labelled("unfused", fmt::format("{}, operator by operator: {} as many",
                                             FormatBytes(work.unfused_bytes),
                                             FormatRatio(work.unfused_bytes / work.bytes)));
    if (work.peak_bytes > 0)
      frame_.Labelled("at once", fmt::format("{} in use inside the reference's forward, at most",
                                             FormatBytes(work.peak_bytes)));
    frame_.Labelled("to judge", fmt::format("{} of a GPU's memory at least, besides a reserve",
                                            Bytes(inspection.device_bytes)));
    if (work.operations_from == "unknown")
      frame_.Labelled("operations", "not known: forward cannot be followed without running it");
    else
      frame_.Labelled(
          "operations",
          fmt::format("{} ({}){}", FormatCount(work.operations),
                      work.operations_from == "suite" ? "by suite.toml" : "counted",
                      work.bytes > 0 ? fmt::format(", {:.3g} a byte", work.operations / work.bytes)
                                     : std::string()));
    if (!card_.bound) {
      frame_.Labelled("bound", "not known: run assay doctor once");
      return;
    }
    const Roofline& bound = *card_.bound;
    const std::string ceiling =
        bound.regime == "memory"
            ? fmt::format("memory, at {:.3g} GB/s", bound.bandwidth_bytes_s / 1e9)
        : bound.regime == "compute" ? fmt::format("arithmetic, at {:.3g} GFLOP/s ({})",
                                                  bound.rate_operations_s / 1e9, bound.instructions)
                                    : std::string("a call that does nothing");
    frame_.Labelled("bound",
                    fmt::format("{} on {}: {}", FormatDuration(bound.bound_ns),
                                Counted(card_.threads, "thread"), ceiling),
                    Tone::kStrong);
  }

  void Operators() {
    const auto lines = JoinOperators(card_.inspection.account, card_.inspection.profile);
    if (lines.empty()) return;
    const auto& profile = card_.inspection.profile;
    frame_.Section(
        "the reference, operator by operator",
        {profile ? FormatDuration(profile->wall_ns) + " a call" : std::string(), Tone::kFaint});
    frame_.Row({{Columns("operator", "calls", "operations", "bytes", profile ? "time" : "",
                         profile ? "if free" : ""),
                 Tone::kFaint}});
    for (size_t i = 0; i < std::min(kOperatorsShown, lines.size()); ++i) {
      const OperatorLine& line = lines[i];
      frame_.Row({{Columns(Shortened(Safe(line.name), kNameWidth, frame_.style().unicode),
                           fmt::format("{:.0f}", line.calls),
                           line.operations ? FormatCount(*line.operations) : "",
                           line.bytes ? FormatBytes(*line.bytes) : "",
                           line.time_share ? FormatShare(*line.time_share) : "",
                           line.headroom ? FormatRatio(*line.headroom) : ""),
                   Tone::kPlain}});
    }
    if (lines.size() > kOperatorsShown)
      frame_.Row({{fmt::format("and {} more", lines.size() - kOperatorsShown), Tone::kFaint}});
    if (card_.coverage) frame_.Labelled("seen", Safe(CoverageText(*card_.coverage)));
  }

  std::string Next() const {
    if (card_.inspection.profile) return {};
    return fmt::format(
        "   next: where the reference's time goes\n   {}\n",
        Painted({fmt::format(
                     "assay problems show {}{} --profile", ShellQuoted(card_.request.path),
                     card_.request.size.empty() ? std::string() : " --size " + card_.request.size),
                 Tone::kStrong},
                frame_.style()));
  }

  static constexpr int kNameWidth = 26;
  static std::string Columns(const std::string& name, const std::string& calls,
                             const std::string& operations, const std::string& bytes,
                             const std::string& time, const std::string& headroom) {
    return fmt::format("{:<{}} {:>6} {:>10} {:>9} {:>7} {:>8}", name, kNameWidth, calls, operations,
                       bytes, time, headroom);
  }
  static std::string Bytes(uint64_t bytes) { return FormatBytes(static_cast<double>(bytes)); }

  const ProblemCard& card_;
  Frame frame_;
};

}  // namespace

std::string RenderProblemList(const std::vector<Suite>& suites, const CardStyle& style) {
  std::string text;
  size_t name_width = 0, mechanism_width = 0;
  for (const Suite& suite : suites) {
    for (const SuiteProblem& problem : suite.problems) {
      name_width = std::max(name_width, problem.name.size());
      mechanism_width = std::max(mechanism_width, problem.mechanism.size());
    }
  }
  for (const Suite& suite : suites) {
    std::map<int, std::vector<const SuiteProblem*>> levels;
    for (const SuiteProblem& problem : suite.problems) levels[problem.level].push_back(&problem);
    text += fmt::format("{}{}: {}{}\n", text.empty() ? "" : "\n", suite.folder,
                        Counted(static_cast<long long>(suite.problems.size()), "problem"),
                        SizesOf(suite).empty() ? "" : "; sizes: " + SizesOf(suite));
    for (const auto& [level, problems] : levels) {
      text +=
          Painted({level > 0 ? fmt::format("level {}", level) : "no level", Tone::kFaint}, style) +
          "\n";
      for (const SuiteProblem* problem : problems)
        text += ListRow(*problem, name_width, mechanism_width, style);
    }
  }
  return text;
}

std::vector<OperatorLine> JoinOperators(const WorkAccount& account,
                                        const std::optional<Profile>& profile) {
  std::vector<OperatorLine> lines;
  for (const OperatorWork& work : account.operators)
    lines.push_back({work.name, work.calls, work.operations, work.read_bytes + work.written_bytes,
                     std::nullopt, std::nullopt});
  if (!profile) {
    std::stable_sort(lines.begin(), lines.end(), [](const OperatorLine& a, const OperatorLine& b) {
      return *a.bytes > *b.bytes;
    });
    return lines;
  }
  double total_ns = 0;
  for (const OperatorTime& time : profile->operators) total_ns += time.self_ns;
  for (const OperatorTime& time : profile->operators) {
    const double share = total_ns > 0 ? time.self_ns / total_ns : 0;
    auto line = std::find_if(lines.begin(), lines.end(),
                             [&](const OperatorLine& known) { return known.name == time.name; });
    if (line == lines.end()) {
      if (share < kSmallShare) continue;
      line = lines.insert(lines.end(), {time.name, time.calls, {}, {}, {}, {}});
    }
    line->time_share = line->time_share.value_or(0) + share;
    if (*line->time_share < 1) line->headroom = 1 / (1 - *line->time_share);
  }
  std::stable_sort(lines.begin(), lines.end(), [](const OperatorLine& a, const OperatorLine& b) {
    return a.time_share.value_or(0) > b.time_share.value_or(0);
  });
  return lines;
}

std::string RenderProblem(const ProblemCard& card, const CardStyle& style) {
  return ProblemWriter(card, style).Write();
}

}  // namespace assay
