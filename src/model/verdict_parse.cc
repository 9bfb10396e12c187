// Reads a verdict. The file may come from anywhere, so every access names its field.
#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "model/json_node.h"
#include "model/older_words.h"
#include "model/verdict_json.h"

namespace assay {
namespace {

std::optional<WeightsKind> ReadWeightsKind(const JsonNode& node) {
  if (node.IsNull()) return std::nullopt;
  return node.NamedBy(WeightsKindFromName, WeightsKind::kVaried);
}

ProblemRecord ReadProblem(const JsonNode& node) {
  ProblemRecord problem;
  problem.name = node.At("name").Text();
  problem.path = node.At("path").Text();
  problem.hash = node.At("hash").Text();
  problem.level = node.At("level").Whole<int>();
  problem.size = node.At("size").TextOrNull();
  node.At("set").ForEachMember(
      [&](const std::string& name, const JsonNode& value) { problem.set[name] = value.Text(); });
  problem.dtype = node.At("dtype").TextOrNull();
  node.At("signature").ForEach([&](const JsonNode& one) {
    problem.signature.push_back(one.Text());
  });
  problem.weights = ReadWeightsKind(node.Find("weights"));
  return problem;
}

CandidateRecord ReadCandidateRecord(const JsonNode& node) {
  return {node.At("path").Text(),
          node.At("hash").Text(),
          node.At("form").NamedBy(CandidateFormFromName, CandidateForm::kNative),
          node.At("language").NamedBy(LanguageFromName, Language::kCpp),
          node.At("trust").OneOf({"sandboxed", "device-only"}),
          node.At("flags").Text(),
          node.Find("artifact").TextOrNull()};
}

Mismatch ReadMismatch(const JsonNode& node) {
  Mismatch mismatch;
  mismatch.output = node.At("output").Text();
  node.At("index").ForEach(
      [&](const JsonNode& item) { mismatch.index.push_back(item.Whole<int64_t>()); });
  const JsonNode expected = node.At("expected"), got = node.At("got");
  mismatch.expected = expected.Number();
  mismatch.got = got.Number();
  if (expected.IsWhole() && got.IsWhole())
    mismatch.whole = WholeValues{expected.Whole<int64_t>(), got.Whole<int64_t>()};
  mismatch.share_wrong = node.At("share_wrong").Number();
  return mismatch;
}

DrawRecord ReadDraw(const JsonNode& node) {
  DrawRecord draw;
  draw.kind = node.At("kind").Text();
  draw.seed = node.At("seed").WholeText();
  draw.result = node.At("result").OneOf({"passed", "failed", "differs", "dropped"});
  draw.reason = node.At("reason").TextOrNull();
  draw.error_ratio = node.At("error_ratio").Number();
  if (const JsonNode set = node.Find("set"); !set.IsNull())
    set.ForEachMember(
        [&](const std::string& name, const JsonNode& value) { draw.set[name] = value.Text(); });
  const JsonNode for_time = node.Find("for_time");
  draw.for_time = for_time.IsNull() ? ForTimeByOlderWords(draw.reason) : for_time.Boolean();
  return draw;
}

Correctness ReadCorrectness(const JsonNode& node) {
  const auto precision = [](const JsonNode& item) {
    return item.OneOfOrNull({"float64", "float32", "tf32", "bfloat16", "float8", "exact"});
  };
  Correctness correctness;
  correctness.passed = node.At("passed").Boolean();
  correctness.calls_checked = node.At("calls_checked").Whole<int64_t>();
  correctness.error_ratio = node.At("error_ratio").Number();
  correctness.max_abs_error = node.At("max_abs_error").Number();
  correctness.precision_class = precision(node.At("precision_class"));
  correctness.required_class = precision(node.At("required_class"));
  correctness.tolerance = node.At("tolerance").Text();
  if (const JsonNode first = node.At("first_mismatch"); !first.IsNull())
    correctness.first_mismatch = ReadMismatch(first);
  correctness.hint = node.At("hint").TextOrNull();
  const JsonNode mistake = node.Find("mistake");
  if (mistake.IsAbsent())
    correctness.mistake = MistakeByOlderWords(correctness.hint);
  else if (!mistake.IsNull())
    correctness.mistake = mistake.NamedBy(MistakeFromName, Mistake::kNone);
  correctness.differs_on_special_values = node.Find("differs_on_special_values").TextOrNull();
  correctness.note = node.At("note").TextOrNull();
  correctness.right_with_weights = ReadWeightsKind(node.Find("right_with_weights"));
  node.At("draws").ForEach(
      [&](const JsonNode& draw) { correctness.draws.push_back(ReadDraw(draw)); });
  return correctness;
}

LibraryTime ReadLibraries(const JsonNode& node) {
  LibraryTime time;
  time.samples = node.At("samples").Whole<int64_t>();
  time.foreign_share = node.At("foreign_share").Number();
  node.At("shares").ForEachMember(
      [&](const std::string& name, const JsonNode& share) { time.shares[name] = share.Number(); });
  return time;
}

WhyUnsettled ReadWhyUnsettled(const JsonNode& node, const std::string& note) {
  WhyUnsettled why;
  why.cause = node.At("cause").NamedBy(UnsettledCauseFromName, UnsettledCause::kNoise);
  why.budget_s = node.At("budget_s").NumberOrZero();
  const JsonNode disturbed = node.Find("disturbed");
  why.disturbed = disturbed.IsAbsent() ? DisturbedByOlderWords(note) : disturbed.Boolean();
  return why;
}

BaselineResult ReadBaseline(const JsonNode& node) {
  BaselineResult result;
  result.time_ns = node.At("time_ns").Number();
  result.candidate_time_ns = node.At("candidate_time_ns").Number();
  result.speedup = node.At("speedup").Number();
  std::vector<double> interval;
  node.At("ci").ForEach([&](const JsonNode& item) { interval.push_back(item.Number()); }, 2);
  interval.resize(2);
  result.ci_low = interval[0], result.ci_high = interval[1];
  result.confidence = node.At("confidence").Number();
  result.decision =
      node.At("decision").OneOf({"faster", "slower", "tie", "not_faster", "unsettled"});
  result.smallest_visible = node.At("smallest_visible").Number();
  result.certified_speedup = node.Find("certified_speedup").NumberOrZero();
  result.delta = node.Find("delta").NumberOrZero();
  result.clear_margin = node.Find("clear_margin").NumberOrZero();
  result.disturbed_share = node.Find("disturbed_share").NumberOrZero();
  result.pairs = node.At("pairs").Whole<int>();
  result.rounds = node.At("rounds").Whole<int>();
  result.calls_per_block = node.At("calls_per_block").Whole<int>();
  if (const JsonNode times = node.Find("launched"); !times.IsNull())
    result.launched = {times.At("time_ns").Number(), times.At("candidate_time_ns").Number()};
  result.copies = node.Find("copies").OneOfOrNull({"nobody", "candidate", "opponent", "both"});
  result.note = node.At("note").TextOrNull();
  if (const JsonNode why = node.Find("why_unsettled"); !why.IsNull())
    result.why_unsettled = ReadWhyUnsettled(why, result.note);
  return result;
}

Speed ReadSpeed(const JsonNode& node) {
  Speed speed;
  speed.passed = node.At("passed").Boolean();
  speed.threshold = node.At("threshold").Number();
  speed.headline = node.At("headline").Text();
  if (const JsonNode against = node.At("against"); !against.IsNull())
    speed.against = {against.At("path").Text(), against.At("hash").Text()};
  node.At("baselines").ForEachMember([&](const std::string& name, const JsonNode& result) {
    speed.baselines[name] = ReadBaseline(result);
  });
  return speed;
}

Work ReadWork(const JsonNode& node) {
  return {node.At("operations").NumberOrZero(),
          node.At("operations_from").OneOf({"suite", "counted", "unknown"}),
          node.At("bytes").Number(),
          node.At("written_bytes").Number(),
          node.At("bytes_from").OneOf({"suite", "signature"}),
          node.At("unfused_bytes").NumberOrZero(),
          node.At("peak_bytes").NumberOrZero()};
}

Roofline ReadRoofline(const JsonNode& node) {
  Roofline roofline;
  roofline.bandwidth_bytes_s = node.At("bandwidth_bytes_s").Number();
  roofline.rate_operations_s = node.At("rate_operations_s").Number();
  roofline.instructions = node.At("instructions").Text();
  roofline.empty_call_ns = node.At("empty_call_ns").Number();
  roofline.bound_ns = node.At("bound_ns").Number();
  roofline.regime = node.At("regime").OneOf({"memory", "compute", "overhead"});
  roofline.percent_of_peak = node.At("percent_of_peak").Number();
  roofline.reference_percent_of_peak = node.At("reference_percent_of_peak").Number();
  roofline.note = node.At("note").TextOrNull();
  return roofline;
}

KernelRecord ReadKernel(const JsonNode& node) {
  KernelRecord kernel;
  kernel.name = node.At("name").Text();
  kernel.registers = node.At("registers").Whole<int>();
  kernel.stack_bytes = node.At("stack_bytes").Whole<int64_t>();
  kernel.shared_bytes = node.At("shared_bytes").Whole<int64_t>();
  if (const JsonNode launches = node.At("launches"); !launches.IsNull()) {
    kernel.launches = launches.Whole<int>();
    kernel.threads = node.At("threads").Whole<int64_t>();
    kernel.blocks = node.At("blocks").Whole<int64_t>();
    kernel.occupancy = node.At("occupancy").Number();
    kernel.limiter = node.At("limiter").TextOrNull();
    kernel.waves = node.At("waves").Number();
  }
  if (const JsonNode instructions = node.At("instructions"); !instructions.IsNull())
    instructions.ForEachMember([&](const std::string& kind, const JsonNode& count) {
      kernel.instructions[kind] = count.Whole<int64_t>();
    });
  if (const JsonNode widest = node.At("widest_load_bytes"); !widest.IsNull())
    kernel.widest_load_bytes = widest.Whole<int>();
  return kernel;
}

KernelProfile ReadKernelProfile(const JsonNode& node) {
  KernelProfile kernel;
  kernel.name = node.At("name").Text();
  kernel.launches = node.At("launches").Whole<int>();
  kernel.cycles_share = node.At("cycles_share").Number();
  for (const KernelFigure& figure : kKernelFigures)
    if (const JsonNode value = node.Find(figure.name); !value.IsNull())
      kernel.*figure.value = value.Number();
  node.At("stalls").ForEachMember([&](const std::string& reason, const JsonNode& percent) {
    kernel.stalls[reason] = percent.Number();
  });
  return kernel;
}

ProfileRecord ReadProfile(const JsonNode& node) {
  ProfileRecord profile;
  profile.failure = node.At("failure").TextOrNull();
  node.At("kernels").ForEach(
      [&](const JsonNode& item) { profile.kernels.push_back(ReadKernelProfile(item)); });
  return profile;
}

SanitizerRecord ReadSanitizer(const JsonNode& node) {
  SanitizerRecord record;
  record.tool = node.At("tool").OneOf({"memcheck", "racecheck", "initcheck", "synccheck"});
  record.failure = node.At("failure").TextOrNull();
  record.errors = node.At("errors").Whole<int64_t>();
  node.At("findings").ForEach([&](const JsonNode& one) { record.findings.push_back(one.Text()); });
  return record;
}

ProbeRecord ReadProbe(const JsonNode& node) {
  ProbeRecord probe;
  probe.failure = node.At("failure").TextOrNull();
  probe.threads = node.At("threads").Whole<int>();
  probe.time_ns = node.At("time_ns").NumberOrZero();
  probe.minor_faults = node.At("minor_faults").NumberOrZero();
  probe.major_faults = node.At("major_faults").NumberOrZero();
  if (const JsonNode counts = node.At("counts"); !counts.IsNull())
    probe.counts = CallCounts{counts.At("cycles").Number(), counts.At("instructions").Number(),
                              counts.At("cache_misses").Number()};
  probe.no_counts = node.At("no_counts").TextOrNull();
  if (const JsonNode smaller = node.At("smaller"); !smaller.IsNull())
    probe.smaller = SmallerProbe{smaller.At("size").Text(), smaller.At("bytes").Number(),
                                 smaller.At("share").Number(), smaller.At("time_ns").Number()};
  if (const JsonNode one = node.At("one_thread_ns"); !one.IsNull())
    probe.one_thread_ns = one.Number();
  return probe;
}

Cost ReadCost(const JsonNode& node) {
  const auto seconds = [&](std::string_view name) { return node.At(name).Number(); };
  return {seconds("build_s"),
          seconds("start_s"),
          seconds("fill_s"),
          seconds("timed_s"),
          seconds("overhead_s"),
          seconds("total_s"),
          node.At("build_cached").Boolean()};
}

Machine ReadMachine(const JsonNode& node) {
  Machine machine{node.At("cpu").Text(),           node.At("cores").Whole<int>(),
                  node.At("threads").Whole<int>(), node.Find("gpu").TextOrNull(),
                  node.At("kernel").Text(),        node.At("isolation").Text()};
  const JsonNode weak = node.Find("weak");
  machine.weak = weak.IsAbsent() ? WeakByOlderWords(machine.isolation) : weak.Boolean();
  return machine;
}

std::vector<int64_t> ReadTimes(const JsonNode& list) {
  std::vector<int64_t> values;
  if (!list.IsNull())
    list.ForEach([&](const JsonNode& item) { values.push_back(item.Whole<int64_t>()); });
  return values;
}

// What PairSamples and SustainedSide say of the clock.
template <class Blocks>
void ReadClock(const JsonNode& node, Blocks* blocks) {
  if (const JsonNode list = node.Find("sm_mhz"); !list.IsNull())
    list.ForEach([&](const JsonNode& item) { blocks->sm_mhz.push_back(item.Whole<int>()); });
  if (const JsonNode list = node.Find("clock_limits"); !list.IsNull())
    list.ForEach([&](const JsonNode& item) { blocks->clock_limits.push_back(item.Text()); });
}

SustainedSide ReadSustainedSide(const JsonNode& node) {
  SustainedSide side{node.At("calls_per_block").Whole<int>(), node.At("time_ns").Number(),
                     node.At("running_share").Number(), ReadTimes(node.At("block_ns"))};
  ReadClock(node, &side);
  return side;
}

SustainedRecord ReadSustained(const JsonNode& node) {
  return {node.At("baseline").Text(), node.At("seconds").Number(),
          ReadSustainedSide(node.At("reference")), ReadSustainedSide(node.At("candidate"))};
}

OperatorCoverage ReadCoverage(const JsonNode& node) {
  OperatorCoverage coverage{node.At("operators").Whole<int>(),
                            node.At("seen").Whole<int>(),
                            node.At("not_tried").Whole<int>(),
                            {}};
  node.At("unseen").ForEach([&](const JsonNode& one) {
    const JsonNode line = one.At("line");
    coverage.unseen.push_back({one.At("name").Text(), line.IsNull() ? 0 : line.Whole<int>(),
                               one.At("mutant").Text(), one.At("time_share").Number(),
                               one.At("only_on").TextOrNull()});
  });
  return coverage;
}

PairSamples ReadPair(const JsonNode& node) {
  PairSamples pair;
  pair.baseline = node.At("baseline").Text();
  pair.order = node.At("order").Text();
  pair.block_ns = ReadTimes(node.At("block_ns"));
  pair.settle_ns = ReadTimes(node.At("settle_ns"));
  pair.charged_ns = ReadTimes(node.Find("charged_ns"));
  ReadClock(node, &pair);
  if (const JsonNode alone = node.Find("alone"); !alone.IsNull())
    pair.alone = CallsAlone{alone.At("reference_ns").Whole<int64_t>(),
                            alone.At("candidate_ns").Whole<int64_t>(),
                            alone.At("reference_new_weights_ns").Whole<int64_t>(),
                            alone.At("candidate_new_weights_ns").Whole<int64_t>()};
  return pair;
}

// Asks the outcome, the message and the speed of an older one.
void ReadCause(const JsonNode& node, Verdict* verdict) {
  const JsonNode cause = node.Find("cause"), line = node.Find("line");
  if (cause.IsAbsent())
    verdict->cause = CauseByOlderWords(*verdict);
  else if (!cause.IsNull())
    verdict->cause = cause.NamedBy(CauseFromName, Cause::kNone);
  if (line.IsAbsent())
    verdict->line = LineByOlderWords(*verdict);
  else if (!line.IsNull())
    verdict->line = line.Whole<int>();
}

Verdict ReadVerdict(const JsonNode& node) {
  Verdict verdict;
  verdict.id = node.At("id").Text();
  verdict.created = node.At("created").Text();
  std::vector<std::string_view> outcomes;
  for (const OutcomeFacts& facts : AllOutcomes()) outcomes.push_back(facts.name);
  const std::string outcome = node.At("outcome").OneOf(outcomes);
  verdict.outcome = OutcomeFromName(outcome).value_or(Outcome::kUnsettled);
  verdict.message = node.At("message").Text();
  verdict.problem = ReadProblem(node.At("problem"));
  verdict.candidate = ReadCandidateRecord(node.At("candidate"));
  if (const JsonNode item = node.At("correctness"); !item.IsNull())
    verdict.correctness = ReadCorrectness(item);
  if (const JsonNode item = node.At("speed"); !item.IsNull()) verdict.speed = ReadSpeed(item);
  if (const JsonNode item = node.Find("work"); !item.IsNull()) verdict.work = ReadWork(item);
  if (const JsonNode item = node.Find("roofline"); !item.IsNull())
    verdict.roofline = ReadRoofline(item);
  if (const JsonNode item = node.Find("libraries"); !item.IsNull())
    verdict.libraries = ReadLibraries(item);
  if (const JsonNode list = node.Find("kernels"); !list.IsNull())
    list.ForEach([&](const JsonNode& item) { verdict.kernels.push_back(ReadKernel(item)); });
  verdict.bottleneck = node.Find("bottleneck").TextOrNull();
  if (const JsonNode item = node.Find("probe"); !item.IsNull()) verdict.probe = ReadProbe(item);
  if (const JsonNode item = node.Find("profile"); !item.IsNull())
    verdict.profile = ReadProfile(item);
  if (const JsonNode item = node.Find("sanitizer"); !item.IsNull())
    verdict.sanitizer = ReadSanitizer(item);
  if (const JsonNode item = node.Find("sustained"); !item.IsNull())
    verdict.sustained = ReadSustained(item);
  if (const JsonNode item = node.Find("coverage"); !item.IsNull())
    verdict.coverage = ReadCoverage(item);
  if (const JsonNode item = node.At("foul"); !item.IsNull())
    verdict.foul = Foul{item.At("rule").Text(), item.At("seen").Text()};
  verdict.cost = ReadCost(node.At("cost"));
  verdict.machine = ReadMachine(node.At("machine"));
  node.At("toolchain").ForEachMember([&](const std::string& name, const JsonNode& value) {
    verdict.toolchain[name] = value.Text();
  });
  verdict.seed = node.At("seed").WholeText();
  node.At("samples").ForEach(
      [&](const JsonNode& pair) { verdict.samples.push_back(ReadPair(pair)); });
  verdict.log = node.At("log").Text();
  ReadCause(node, &verdict);
  return verdict;
}

}  // namespace

Result<Verdict> VerdictFromJson(std::string_view text) {
  const auto document = JsonDocument::Parse(text);
  if (!document) return UsageError(fmt::format("not a verdict: {}", document.error().message));
  std::string error;
  const JsonNode root = document->Root(&error);
  const std::string schema = root.At("schema").Text();
  if (!error.empty()) return UsageError(fmt::format("not a verdict: {}", error));
  if (schema != kVerdictSchema)
    return UsageError(
        fmt::format("not a verdict that this version reads: schema is \"{}\", not \"{}\"",
                    schema.substr(0, 40), kVerdictSchema));
  Verdict verdict = ReadVerdict(root);
  if (!error.empty()) return UsageError(fmt::format("not a sound verdict: {}", error));
  return verdict;
}

std::optional<OperatorCoverage> CoverageFromJson(std::string_view text) {
  const auto document = JsonDocument::Parse(text);
  if (!document) return std::nullopt;
  std::string error;
  OperatorCoverage coverage = ReadCoverage(document->Root(&error));
  if (!error.empty()) return std::nullopt;
  return coverage;
}

}  // namespace assay
