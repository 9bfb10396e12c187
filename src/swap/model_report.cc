#include "swap/model_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/outcome.h"
#include "report/text.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

// The result against the baseline that decides; nullptr: it was not timed.
const BaselineResult* HeadlineOf(const Verdict& verdict) {
  if (!verdict.speed) return nullptr;
  const auto found = verdict.speed->baselines.find(verdict.speed->headline);
  return found == verdict.speed->baselines.end() || found->second.speedup <= 0 ? nullptr
                                                                               : &found->second;
}

// 0: it was not timed.
double SpeedupOf(const std::optional<Verdict>& verdict) {
  const BaselineResult* result = verdict ? HeadlineOf(*verdict) : nullptr;
  return result != nullptr ? result->speedup : 0;
}

std::string OutcomeOf(const std::optional<Verdict>& verdict) {
  return verdict ? std::string(OutcomeName(verdict->outcome)) : "not judged";
}

double TokensPerSecond(const ModelReport& report, double call_ns) {
  return call_ns > 0 ? static_cast<double>(report.tokens) * 1e9 / call_ns : 0;
}

Json OrNull(double value) { return value > 0 ? Json(value) : Json(nullptr); }

Json LineToJson(const SwapLine& line) {
  Json json = {{"place", line.place},
               {"title", line.title},
               {"kernel", line.kernel},
               {"outcome", line.verdict ? Json(OutcomeName(line.verdict->outcome)) : Json()},
               {"message", line.verdict ? Json(line.verdict->message) : Json()},
               {"verdict", line.verdict ? Json(line.verdict->id) : Json()},
               {"speedup", OrNull(SpeedupOf(line.verdict))}};
  json["part_before_ns"] = line.part ? Json(line.part->before_ns) : Json(nullptr);
  json["part_after_ns"] = line.part ? Json(line.part->after_ns) : Json(nullptr);
  json["share_before"] = OrNull(line.share_before);
  json["predicted"] = OrNull(line.predicted);
  json["measured"] = OrNull(line.measured);
  return json;
}

std::string Padded(const std::string& text, int width) {
  return text + std::string(static_cast<size_t>(std::max(0, width - DisplayWidth(text))), ' ');
}

std::string PadLeft(const std::string& text, int width) {
  return std::string(static_cast<size_t>(std::max(0, width - DisplayWidth(text))), ' ') + text;
}

std::string RatioOr(double ratio) { return ratio > 0 ? FormatRatio(ratio) : "-"; }

std::string LineText(const SwapLine& line, bool unicode) {
  std::string before = "-", after = "-", share = "-", part = "-";
  if (line.part) {
    before = FormatDuration(line.part->before_ns);
    after = FormatDuration(line.part->after_ns);
    if (line.part->before_ns > 0 && line.part->after_ns > 0)
      part = FormatRatio(line.part->before_ns / line.part->after_ns);
  }
  if (line.share_before > 0) share = FormatShare(line.share_before);
  return fmt::format("  {} {} {} {} {} {} {} {}  {}\n",
                     Padded(Shortened(line.place, 14, unicode), 14), PadLeft(share, 6),
                     PadLeft(before, 9), PadLeft(after, 9), PadLeft(part, 7),
                     PadLeft(RatioOr(line.predicted), 9), PadLeft(RatioOr(line.measured), 9),
                     PadLeft(RatioOr(SpeedupOf(line.verdict)), 8), OutcomeOf(line.verdict));
}

// Tokens a second of every baseline of the last line, and of the line itself.
std::string TokensText(const ModelReport& report) {
  const Verdict* last = report.Last();
  if (last == nullptr || !last->speed) return {};
  std::string text = "\n";
  double best = 0;
  for (const auto& [baseline, result] : last->speed->baselines) {
    best = result.candidate_time_ns;
    text += fmt::format("  {} {} a call, {} tokens/s; swapped {} as fast ({})\n",
                        Padded(baseline, 14), PadLeft(FormatDuration(result.time_ns), 8),
                        PadLeft(fmt::format("{:.0f}", TokensPerSecond(report, result.time_ns)), 7),
                        RatioOr(result.speedup), result.decision);
  }
  return text + fmt::format("  {} {} a call, {} tokens/s\n", Padded("swapped", 14),
                            PadLeft(FormatDuration(best), 8),
                            PadLeft(fmt::format("{:.0f}", TokensPerSecond(report, best)), 7));
}

std::string ErrorsText(const ModelReport& report) {
  const OutputError* worst = WorstError(report);
  if (worst == nullptr) return {};
  std::string text = "\n  errors against float64, of the norm: PyTorch's own, and with kernels\n";
  for (const OutputError& error : report.errors)
    text += fmt::format(
        "  {} {:>9.2e} {:>9.2e}  {}{}\n", Padded(NameOfSum(error.name), 14), error.reference,
        error.candidate,
        error.reference > 0 ? fmt::format("{:.2f} times", error.candidate / error.reference) : "",
        &error == worst ? "  <- the worst" : "");
  return text;
}

}  // namespace

const Verdict* ModelReport::Last() const {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line)
    if (line->verdict) return &*line->verdict;
  return nullptr;
}

void AddGains(ModelReport* report) {
  // PyTorch itself is the line before the first one, unless a model of plain kernels was judged.
  const double first = report->plain ? SpeedupOf(report->plain) : 1;
  double before = first;
  double time_ns = report->base_ns;  // of the line before, on the scale of the parts
  for (SwapLine& line : report->lines) {
    const double now = SpeedupOf(line.verdict);
    if (now > 0 && before > 0) line.measured = now / before;
    double predicted_ns = time_ns;
    if (line.part && time_ns > 0) {
      line.share_before = std::clamp(line.part->before_ns / time_ns, 0.0, 1.0);
      predicted_ns = time_ns - line.part->before_ns + line.part->after_ns;
      if (predicted_ns > 0) line.predicted = time_ns / predicted_ns;
    }
    // If the line was not judged, the next one builds on its prediction.
    time_ns = now > 0 && first > 0 ? report->base_ns * first / now : std::max(0.0, predicted_ns);
    before = now;
  }
}

const OutputError* WorstError(const ModelReport& report) {
  const auto ratio = [](const OutputError& error) {
    return error.reference > 0 ? error.candidate / error.reference : error.candidate;
  };
  const auto worst = std::max_element(
      report.errors.begin(), report.errors.end(),
      [&](const OutputError& a, const OutputError& b) { return ratio(a) < ratio(b); });
  return worst == report.errors.end() ? nullptr : &*worst;
}

std::string NameOfSum(const std::string& output) {
  return output == "out" ? "logits" : "layer " + output.substr(std::min<size_t>(3, output.size()));
}

std::string ReportToJson(const ModelReport& report) {
  Json json = {{"schema", "assay.model/1"},        {"title", report.title},
               {"problem", report.problem},        {"size", report.size},
               {"settings", report.settings},      {"device", report.device},
               {"machine", report.machine},        {"tokens", report.tokens},
               {"base_ns", OrNull(report.base_ns)}};
  Json baselines = Json::object();
  double swapped_ns = 0;
  if (const Verdict* last = report.Last(); last != nullptr && last->speed)
    for (const auto& [name, result] : last->speed->baselines) {
      swapped_ns = result.candidate_time_ns;
      baselines[name] = {{"time_ns", result.time_ns},
                         {"tokens_per_s", TokensPerSecond(report, result.time_ns)},
                         {"swapped_time_ns", result.candidate_time_ns},
                         {"speedup", result.speedup},
                         {"ci_low", result.ci_low},
                         {"ci_high", result.ci_high},
                         {"decision", result.decision}};
    }
  json["baselines"] = std::move(baselines);
  json["swapped_tokens_per_s"] = OrNull(TokensPerSecond(report, swapped_ns));
  json["plain_speedup"] = report.plain ? OrNull(SpeedupOf(report.plain)) : Json(nullptr);
  json["swaps"] = Json::array();
  for (const SwapLine& line : report.lines) json["swaps"].push_back(LineToJson(line));
  json["errors"] = Json::array();
  for (const OutputError& error : report.errors)
    json["errors"].push_back({{"at", NameOfSum(error.name)},
                              {"reference", error.reference},
                              {"swapped", error.candidate}});
  const OutputError* worst = WorstError(report);
  json["worst"] = worst != nullptr ? Json(NameOfSum(worst->name)) : Json(nullptr);
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string SettingsOf(const ModelReport& report) {
  if (!report.settings.empty()) return report.settings;
  return report.size.empty() ? report.problem : report.size;
}

std::string RenderModelReport(const ModelReport& report, bool unicode) {
  std::string text =
      fmt::format("{}\n{}, {}\n\n", report.title, SettingsOf(report), report.machine);
  text += fmt::format("  {} {} {} {} {} {} {} {}  outcome\n", Padded("swapped", 14),
                      PadLeft("share", 6), PadLeft("before", 9), PadLeft("after", 9),
                      PadLeft("part", 7), PadLeft("predicted", 9), PadLeft("measured", 9),
                      PadLeft("in all", 8));
  if (report.plain)
    text += fmt::format("  {} {}  {}\n", Padded("nothing", 14),
                        PadLeft(RatioOr(SpeedupOf(report.plain)), 62), OutcomeOf(report.plain));
  for (const SwapLine& line : report.lines) text += LineText(line, unicode);
  return text + TokensText(report) + ErrorsText(report);
}

}  // namespace assay
