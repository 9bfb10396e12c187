// Writes a verdict, its members in the order of docs/verdict.md. verdict_parse.cc reads it.
#include "model/verdict_json.h"

#include <nlohmann/json.hpp>

namespace assay {
namespace {

using Json = nlohmann::ordered_json;  // keeps `schema` first

Json TextOrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json NameOrNull(std::string_view name) { return name.empty() ? Json() : Json(name); }

// Seeds use all 64 bits, of which many readers of JSON numbers keep 53: text keeps them all.
Json SeedText(uint64_t seed) { return std::to_string(seed); }

Json ToJson(const ProblemRecord& problem) {
  Json set = Json::object();
  for (const auto& [name, value] : problem.set) set[name] = value;
  Json signature = Json::array();
  for (const std::string& line : problem.signature) signature.push_back(line);
  return {{"name", problem.name},
          {"path", problem.path},
          {"hash", problem.hash},
          {"level", problem.level},
          {"size", TextOrNull(problem.size)},
          {"set", set},
          {"dtype", TextOrNull(problem.dtype)},
          {"signature", signature},
          {"weights", problem.weights ? Json(WeightsKindName(*problem.weights)) : Json()}};
}

Json ToJson(const CandidateRecord& candidate) {
  return {{"path", candidate.path},
          {"hash", candidate.hash},
          {"form", CandidateFormName(candidate.form)},
          {"language", LanguageName(candidate.language)},
          {"trust", candidate.trust},
          {"flags", candidate.flags},
          {"artifact", TextOrNull(candidate.artifact)}};
}

Json ToJson(const Correctness& correctness) {
  Json first = nullptr;
  if (const auto& mismatch = correctness.first_mismatch) {
    const auto& whole = mismatch->whole;
    first = {{"output", mismatch->output},
             {"index", mismatch->index},
             {"expected", whole ? Json(whole->expected) : Json(mismatch->expected)},
             {"got", whole ? Json(whole->got) : Json(mismatch->got)},
             {"share_wrong", mismatch->share_wrong}};
  }
  Json draws = Json::array();
  for (const DrawRecord& draw : correctness.draws) {
    draws.push_back({{"kind", draw.kind},
                     {"seed", SeedText(draw.seed)},
                     {"result", draw.result},
                     {"reason", TextOrNull(draw.reason)},
                     {"error_ratio", draw.error_ratio}});
    if (!draw.set.empty()) draws.back()["set"] = draw.set;
    if (draw.for_time) draws.back()["for_time"] = true;
  }
  return {{"passed", correctness.passed},
          {"calls_checked", correctness.calls_checked},
          {"error_ratio", correctness.error_ratio},
          {"max_abs_error", correctness.max_abs_error},
          {"precision_class", TextOrNull(correctness.precision_class)},
          {"required_class", TextOrNull(correctness.required_class)},
          {"tolerance", correctness.tolerance},
          {"first_mismatch", first},
          {"hint", TextOrNull(correctness.hint)},
          {"mistake", NameOrNull(MistakeName(correctness.mistake))},
          {"differs_on_special_values", TextOrNull(correctness.differs_on_special_values)},
          {"note", TextOrNull(correctness.note)},
          {"right_with_weights", correctness.right_with_weights
                                     ? Json(WeightsKindName(*correctness.right_with_weights))
                                     : Json()},
          {"draws", draws}};
}

// A figure that is 0 where there is none.
Json FigureOrNull(double value) { return value > 0 ? Json(value) : Json(); }

Json ToJson(const LaunchedTimes& times) {
  return {{"time_ns", times.reference_ns}, {"candidate_time_ns", times.candidate_ns}};
}

Json ToJson(const SustainedSide& side) {
  return {{"time_ns", side.time_ns},
          {"running_share", side.running_share},
          {"calls_per_block", side.calls_per_block},
          {"block_ns", side.block_ns},
          {"sm_mhz", side.sm_mhz},
          {"clock_limits", side.clock_limits}};
}

Json ToJson(const SustainedRecord& record) {
  return {{"baseline", record.baseline},
          {"seconds", record.seconds},
          {"reference", ToJson(record.reference)},
          {"candidate", ToJson(record.candidate)}};
}

Json ToJson(const OperatorCoverage& coverage) {
  Json unseen = Json::array();
  for (const UnseenOperator& one : coverage.unseen)
    unseen.push_back({{"name", one.name},
                      {"line", one.line > 0 ? Json(one.line) : Json()},
                      {"mutant", one.mutant},
                      {"time_share", one.time_share},
                      {"only_on", one.only_on.empty() ? Json() : Json(one.only_on)}});
  return {{"operators", coverage.operators},
          {"seen", coverage.seen},
          {"not_tried", coverage.not_tried},
          {"unseen", unseen}};
}

Json ToJson(const WhyUnsettled& why_unsettled) {
  return {{"cause", UnsettledCauseName(why_unsettled.cause)},
          {"budget_s", FigureOrNull(why_unsettled.budget_s)},
          {"disturbed", why_unsettled.disturbed}};
}

Json ToJson(const BaselineResult& result) {
  return {{"time_ns", result.time_ns},
          {"candidate_time_ns", result.candidate_time_ns},
          {"speedup", result.speedup},
          {"ci", Json::array({result.ci_low, result.ci_high})},
          {"confidence", result.confidence},
          {"decision", result.decision},
          {"smallest_visible", result.smallest_visible},
          {"certified_speedup", FigureOrNull(result.certified_speedup)},
          {"delta", result.delta},
          {"clear_margin", result.clear_margin},
          {"disturbed_share", result.disturbed_share},
          {"pairs", result.pairs},
          {"rounds", result.rounds},
          {"calls_per_block", result.calls_per_block},
          {"launched", result.launched ? ToJson(*result.launched) : Json()},
          {"copies", TextOrNull(result.copies)},
          {"note", TextOrNull(result.note)},
          {"why_unsettled", result.why_unsettled ? ToJson(*result.why_unsettled) : Json()}};
}

Json ToJson(const Speed& speed) {
  Json baselines = Json::object();
  for (const auto& [name, result] : speed.baselines) baselines[name] = ToJson(result);
  Json against = nullptr;
  if (speed.against) against = {{"path", speed.against->path}, {"hash", speed.against->hash}};
  return {{"passed", speed.passed},
          {"threshold", speed.threshold},
          {"headline", speed.headline},
          {"against", against},
          {"baselines", baselines}};
}

Json ToJson(const Work& work) {
  const bool counted = work.operations_from != "unknown";
  return {{"operations", counted ? Json(work.operations) : Json()},
          {"operations_from", work.operations_from},
          {"bytes", work.bytes},
          {"written_bytes", work.written_bytes},
          {"bytes_from", work.bytes_from},
          {"unfused_bytes", FigureOrNull(work.unfused_bytes)},
          {"peak_bytes", FigureOrNull(work.peak_bytes)}};
}

Json ToJson(const Roofline& roofline) {
  return {{"bandwidth_bytes_s", roofline.bandwidth_bytes_s},
          {"rate_operations_s", roofline.rate_operations_s},
          {"instructions", roofline.instructions},
          {"empty_call_ns", roofline.empty_call_ns},
          {"bound_ns", roofline.bound_ns},
          {"regime", roofline.regime},
          {"percent_of_peak", roofline.percent_of_peak},
          {"reference_percent_of_peak", roofline.reference_percent_of_peak},
          {"note", TextOrNull(roofline.note)}};
}

Json ToJson(const ProbeRecord& probe) {
  Json counts = nullptr, smaller = nullptr;
  if (probe.counts)
    counts = {{"cycles", probe.counts->cycles},
              {"instructions", probe.counts->instructions},
              {"cache_misses", probe.counts->cache_misses}};
  if (probe.smaller)
    smaller = {{"size", probe.smaller->size},
               {"bytes", probe.smaller->bytes},
               {"share", probe.smaller->share},
               {"time_ns", probe.smaller->time_ns}};
  const auto known = [&](double value) { return probe.failure.empty() ? Json(value) : Json(); };
  return {{"failure", TextOrNull(probe.failure)},
          {"threads", probe.threads},
          {"time_ns", known(probe.time_ns)},
          {"minor_faults", known(probe.minor_faults)},
          {"major_faults", known(probe.major_faults)},
          {"counts", counts},
          {"no_counts", TextOrNull(probe.no_counts)},
          {"smaller", smaller},
          {"one_thread_ns", probe.one_thread_ns ? Json(*probe.one_thread_ns) : Json()}};
}

Json ToJson(const KernelRecord& kernel) {
  Json instructions = nullptr;
  if (!kernel.instructions.empty()) instructions = kernel.instructions;
  const bool launched = kernel.launches > 0;
  const auto known = [&](const Json& value) { return launched ? value : Json(); };
  return {{"name", kernel.name},
          {"registers", kernel.registers},
          {"stack_bytes", kernel.stack_bytes},
          {"shared_bytes", kernel.shared_bytes},
          {"launches", known(kernel.launches)},
          {"threads", known(kernel.threads)},
          {"blocks", known(kernel.blocks)},
          {"occupancy", known(kernel.occupancy)},
          {"limiter", TextOrNull(kernel.limiter)},
          {"waves", known(kernel.waves)},
          {"instructions", instructions},
          {"widest_load_bytes",
           kernel.widest_load_bytes > 0 ? Json(kernel.widest_load_bytes) : Json()}};
}

Json ToJson(const KernelProfile& kernel) {
  Json json = {
      {"name", kernel.name}, {"launches", kernel.launches}, {"cycles_share", kernel.cycles_share}};
  for (const KernelFigure& figure : kKernelFigures) {
    const std::optional<double>& value = kernel.*figure.value;
    json[figure.name] = value ? Json(*value) : Json();
  }
  json["stalls"] = kernel.stalls;
  return json;
}

Json ToJson(const ProfileRecord& profile) {
  Json kernels = Json::array();
  for (const KernelProfile& kernel : profile.kernels) kernels.push_back(ToJson(kernel));
  return {{"failure", TextOrNull(profile.failure)}, {"kernels", kernels}};
}

Json ToJson(const SanitizerRecord& record) {
  return {{"tool", record.tool},
          {"failure", TextOrNull(record.failure)},
          {"errors", record.errors},
          {"findings", record.findings}};
}

Json ToJson(const Cost& cost) {
  return {{"build_s", cost.build_s},
          {"start_s", cost.start_s},
          {"fill_s", cost.fill_s},
          {"timed_s", cost.timed_s},
          {"overhead_s", cost.overhead_s},
          {"total_s", cost.total_s},
          {"build_cached", cost.build_cached}};
}

Json ToJson(const Machine& machine) {
  return {{"cpu", machine.cpu},         {"cores", machine.cores},
          {"threads", machine.threads}, {"gpu", TextOrNull(machine.gpu)},
          {"kernel", machine.kernel},   {"isolation", machine.isolation},
          {"weak", machine.weak}};
}

Json ToJson(const CallsAlone& alone) {
  return {{"reference_ns", alone.reference_ns},
          {"candidate_ns", alone.candidate_ns},
          {"reference_new_weights_ns", alone.reference_new_weights_ns},
          {"candidate_new_weights_ns", alone.candidate_new_weights_ns}};
}

Json ToJson(const PairSamples& pair) {
  return {
      {"baseline", pair.baseline},         {"order", pair.order},
      {"block_ns", pair.block_ns},         {"settle_ns", pair.settle_ns},
      {"charged_ns", pair.charged_ns},     {"sm_mhz", pair.sm_mhz},
      {"clock_limits", pair.clock_limits}, {"alone", pair.alone ? ToJson(*pair.alone) : Json()}};
}

std::string OnOneLine(const Json& json) {
  // Compilers and candidates print what they like: bytes that are not UTF-8 become U+FFFD.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Indented like dump(indent), but arrays of plain values stay on one line: hundreds of samples
// would fill the screen.
void WriteIndented(const Json& json, size_t step, size_t depth, std::string& text) {
  bool plain = json.empty() || !json.is_structured();
  if (json.is_array() && !plain) {
    plain = true;
    for (const Json& item : json) plain = plain && !item.is_structured();
  }
  if (plain) {
    text += OnOneLine(json);
    return;
  }
  const bool object = json.is_object();
  bool first = true;
  text += object ? '{' : '[';
  for (const auto& [key, item] : json.items()) {
    text += first ? "\n" : ",\n";
    first = false;
    text.append((depth + 1) * step, ' ');
    if (object) text += OnOneLine(key) + ": ";
    WriteIndented(item, step, depth + 1, text);
  }
  text += '\n';
  text.append(depth * step, ' ');
  text += object ? '}' : ']';
}

}  // namespace

std::string VerdictToJson(const Verdict& verdict, int indent) {
  Json toolchain = Json::object();
  for (const auto& [name, value] : verdict.toolchain) toolchain[name] = value;
  Json samples = Json::array();
  for (const PairSamples& pair : verdict.samples) samples.push_back(ToJson(pair));
  Json kernels = Json::array();
  for (const KernelRecord& kernel : verdict.kernels) kernels.push_back(ToJson(kernel));
  Json foul = nullptr;
  Json libraries = nullptr;
  if (verdict.libraries) {
    libraries = {{"samples", verdict.libraries->samples},
                 {"foreign_share", verdict.libraries->foreign_share},
                 {"shares", Json::object()}};
    for (const auto& [name, share] : verdict.libraries->shares) libraries["shares"][name] = share;
  }
  if (verdict.foul) foul = {{"rule", verdict.foul->rule}, {"seen", verdict.foul->seen}};
  const Json document = {
      {"schema", kVerdictSchema},
      {"id", verdict.id},
      {"created", verdict.created},
      {"outcome", OutcomeName(verdict.outcome)},
      {"message", verdict.message},
      {"cause", NameOrNull(CauseName(verdict.cause))},
      {"line", verdict.line > 0 ? Json(verdict.line) : Json()},
      {"problem", ToJson(verdict.problem)},
      {"candidate", ToJson(verdict.candidate)},
      {"correctness", verdict.correctness ? ToJson(*verdict.correctness) : Json()},
      {"speed", verdict.speed ? ToJson(*verdict.speed) : Json()},
      {"work", verdict.work ? ToJson(*verdict.work) : Json()},
      {"roofline", verdict.roofline ? ToJson(*verdict.roofline) : Json()},
      {"libraries", libraries},
      {"kernels", kernels},
      {"bottleneck", TextOrNull(verdict.bottleneck)},
      {"profile", verdict.profile ? ToJson(*verdict.profile) : Json()},
      {"sanitizer", verdict.sanitizer ? ToJson(*verdict.sanitizer) : Json()},
      {"sustained", verdict.sustained ? ToJson(*verdict.sustained) : Json()},
      {"probe", verdict.probe ? ToJson(*verdict.probe) : Json()},
      {"coverage", verdict.coverage ? ToJson(*verdict.coverage) : Json()},
      {"foul", foul},
      {"cost", ToJson(verdict.cost)},
      {"machine", ToJson(verdict.machine)},
      {"toolchain", toolchain},
      {"seed", SeedText(verdict.seed)},
      {"samples", samples},
      {"log", verdict.log},
  };
  if (indent < 0) return OnOneLine(document);
  std::string text;
  WriteIndented(document, static_cast<size_t>(indent), 0, text);
  return text;
}

std::string CoverageToJson(const OperatorCoverage& coverage) { return OnOneLine(ToJson(coverage)); }

}  // namespace assay
