#include "session/asked_terms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/files.h"
#include "model/verdict.h"
#include "problem/gradients.h"
#include "sandbox/sandbox.h"
#include "toolchain/packed_folder.h"
#include "values/draw_kinds.h"

namespace assay {
namespace {

constexpr std::string_view kBaselines[] = {"eager", "compiled", "compiled-reduce-overhead",
                                           "compiled-max-autotune"};

std::vector<std::string> SplitCommas(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

// Where all of them run: as asked for, or as they need.
Result<std::string> DeviceFor(std::span<const CandidateSource> candidates,
                              const std::optional<CandidateSource>& against,
                              const std::string& asked) {
  std::vector<const CandidateSource*> sources;
  for (const CandidateSource& source : candidates) sources.push_back(&source);
  if (against) sources.push_back(&*against);
  const auto first = [&](bool (*fits)(const CandidateSource&)) {
    const auto found = std::find_if(sources.begin(), sources.end(),
                                    [&](const auto* source) { return fits(*source); });
    return found == sources.end() ? nullptr : *found;
  };
  const CandidateSource* on_device =
      first([](const CandidateSource& source) { return source.IsCuda(); });
  const CandidateSource* on_processor = first([](const CandidateSource& source) {
    return source.form == CandidateForm::kNative && !source.IsCuda();
  });
  const std::string device = !asked.empty() ? asked : on_device != nullptr ? "cuda" : "cpu";
  if (device != "cpu" && device != "cuda")
    return UsageError(fmt::format("unknown device '{}': use cpu or cuda", device));
  if (on_device != nullptr && device == "cpu")
    return UsageError(fmt::format("{} is CUDA: it cannot be judged on the CPU", on_device->path));
  if (on_processor != nullptr && device == "cuda")
    return UsageError(fmt::format("{} runs on the CPU: judge it apart from what runs on a GPU",
                                  on_processor->path));
  return device;
}

Result<void> AddBaselines(const std::string& asked, SessionTerms* terms) {
  terms->opponent.best_baseline = asked == kBestBaseline;
  terms->opponent.baselines =
      terms->opponent.best_baseline
          ? std::vector<std::string>(std::begin(kBaselines), std::end(kBaselines))
          : SplitCommas(asked);
  for (const std::string& baseline : terms->opponent.baselines)
    if (std::find(std::begin(kBaselines), std::end(kBaselines), baseline) == std::end(kBaselines))
      return UsageError(fmt::format(
          "unknown baseline '{}': use {}, several of them, as eager,compiled, or {} alone",
          baseline, fmt::join(kBaselines, ", "), kBestBaseline));
  if (terms->opponent.baselines.empty())
    return UsageError("--baseline needs a name: eager or compiled");
  return {};
}

}  // namespace

Result<std::pair<std::string, std::pair<int64_t, int64_t>>> ParseRange(const std::string& text) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const size_t equals = text.find('=');
  const size_t colon = text.find(':', equals == std::string::npos ? 0 : equals);
  const auto number = [&](size_t begin, size_t end) -> int64_t {
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, value);
    return error == std::errc() && stop == text.data() + end ? value : 0;
  };
  if (equals != 0 && equals != std::string::npos && colon != std::string::npos) {
    const int64_t least = number(equals + 1, colon), most = number(colon + 1, text.size());
    if (least >= 1 && most >= least && most <= kMost)
      return std::pair(text.substr(0, equals), std::pair(least, most));
  }
  return UsageError(fmt::format(
      "--ragged {}: give a constant of the problem's file and a range of sizes, such as N=1:67",
      text));
}

Result<uint64_t> ParseBytes(const std::string& text, const std::string& option) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  std::string unit(end);
  if (unit.ends_with("iB")) unit.resize(unit.size() - 2);
  const double scale = unit.empty()  ? 1
                       : unit == "K" ? 0x1p10
                       : unit == "M" ? 0x1p20
                       : unit == "G" ? 0x1p30
                                     : 0;
  if (end == text.c_str() || scale == 0 || !(number > 0) || number * scale > 0x1p50)
    return UsageError(fmt::format("{} {}: give a size such as 512M or 4G", option, text));
  return static_cast<uint64_t>(number * scale);
}

std::vector<std::string> SuiteFolders() {
  namespace fs = std::filesystem;
  std::vector<fs::path> choices{"problems"};
  if (const auto support = SupportFolder()) choices.push_back(fs::path(*support) / "problems");
  std::vector<std::string> folders;
  std::error_code code;
  for (const fs::path& choice : choices) {
    const bool known = std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) {
      return fs::equivalent(folder, choice, code);
    });
    if (!known && fs::is_regular_file(choice / "suite.toml", code))
      folders.push_back(choice.string());
  }
  return folders;
}

Result<void> AddSkippedDraws(const std::string& kinds, ProblemRequest* problem) {
  for (const std::string& kind : SplitCommas(kinds)) {
    const auto known = DrawKindFromName(kind);
    if (!known || *known == wire::DrawKind::kOrdinary)
      return UsageError(fmt::format("--skip-draws {}: give kinds of draws, with commas: {}", kind,
                                    fmt::join(UnusualDrawNames(), ", ")));
    problem->skip_draws.push_back(kind);
  }
  return {};
}

Result<CandidateSource> WithGradients(CandidateSource candidate) {
  if (candidate.form != CandidateForm::kPython) return candidate;
  const std::string entry(EntryText(candidate.content));
  std::string note = std::move(candidate.note);
  ASSAY_ASSIGN_OR_RETURN(
      candidate, CandidateFromText(candidate.path, WithEntryText(candidate.content,
                                                                 CandidateWithGradients(entry))));
  candidate.note = std::move(note);
  return candidate;
}

Result<CandidateSource> AsAsked(CandidateSource candidate, const AskedTerms& asked) {
  if (!asked.problem.gradients) return candidate;
  return WithGradients(std::move(candidate));
}

std::string NeedsGpu(std::string_view option) {
  return fmt::format(
      "{} needs a candidate that runs on a GPU: add --device cuda, or judge a .cu file", option);
}

Result<SessionTerms> ResolveTerms(const AskedTerms& asked,
                                  std::span<const CandidateSource> candidates) {
  SessionTerms terms;
  ASSAY_ASSIGN_OR_RETURN(terms.problem, ResolveProblem(asked.problem, SuiteFolders()));
  if (!asked.against.empty()) {
    ASSAY_ASSIGN_OR_RETURN(CandidateSource against, ReadCandidate(asked.against));
    ASSAY_ASSIGN_OR_RETURN(terms.opponent.against, AsAsked(std::move(against), asked));
  }
  ASSAY_ASSIGN_OR_RETURN(terms.problem.device,
                         DeviceFor(candidates, terms.opponent.against, asked.device));
  ASSAY_RETURN_IF_ERROR(AddBaselines(asked.baselines, &terms));
  if (!std::isfinite(asked.threshold) || asked.threshold <= 0)
    return UsageError("--p takes a speedup above 0, such as 1 or 2");
  if (!std::isfinite(asked.bound) || asked.bound < 0)
    return UsageError("bound takes a speedup, or 0 for none");
  terms.threads = asked.threads;
  terms.python = asked.python;
  terms.precision = asked.precision;
  if (!asked.precision.empty()) terms.problem.precision = asked.precision;
  terms.tolerance = asked.tolerance;
  if (!asked.weights.empty()) {
    const auto weights = WeightsKindFromName(asked.weights);
    if (!weights) return UsageError("--weights takes varied, constant or constructed");
    terms.problem.weights = *weights;
  }
  if (!asked.state.empty() && asked.state != "compared" && asked.state != "ignored")
    return UsageError("--state takes compared or ignored");
  terms.problem.ignores_state = asked.state == "ignored";
  if (!asked.special_values.empty()) {
    if (asked.special_values != "noted" && asked.special_values != "required")
      return UsageError("--special-values takes noted or required");
    terms.problem.special_values = asked.special_values;
  }
  ASSAY_RETURN_IF_ERROR(AddSkippedDraws(asked.skip_draws, &terms.problem));

  terms.ragged_asked = !asked.ragged.empty();
  if (terms.ragged_asked) terms.problem.ragged.clear();
  for (const std::string& text : asked.ragged) {
    ASSAY_ASSIGN_OR_RETURN(auto range, ParseRange(text));
    terms.problem.ragged.insert_or_assign(std::move(range.first), range.second);
  }
  if (asked.one_size) terms.problem.ragged.clear();
  terms.effort = asked.effort;
  terms.effort.replay = !asked.no_replay;
  terms.tools.probes = asked.probe;
  if (asked.profile) {
    if (terms.problem.device != "cuda") return UsageError(NeedsGpu("--profile"));
    ASSAY_ASSIGN_OR_RETURN(terms.tools.profiler, FindNcu());
  }
  terms.seed = asked.seed;
  terms.limits.call_timeout_s = asked.limits.timeout_s;
  terms.limits.build_timeout_s = asked.limits.build_timeout_s;
  ASSAY_ASSIGN_OR_RETURN(terms.limits.memory_bytes, ParseBytes(asked.limits.memory, "--memory"));
  return terms;
}

}  // namespace assay
