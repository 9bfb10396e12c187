// Reads a verdict. The file may come from anywhere, so every access names its field.
#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "model/verdict_json.h"

namespace assay {
namespace {

// A place in a document, with its path. The first failure is kept in the shared error, and every
// later access gives a default: a reader asks once, at its end. Both must outlive it. Never throws.
class JsonNode {
 public:
  // `error` must be empty; `what` names the document's root in messages ("the verdict").
  JsonNode(const nlohmann::ordered_json& root, std::string* error) : value_(&root), error_(error) {}

  // A member that must be there.
  JsonNode At(std::string_view key) const {
    if (!IsObject()) return Missing(key);
    const auto member = value_->find(key);
    if (member == value_->end()) {
      SetError(Join(key), "is missing");
      return Missing(key);
    }
    return JsonNode(&*member, Join(key), error_);
  }

  // A member that older documents lack: null where it is absent.
  JsonNode Find(std::string_view key) const {
    if (!IsObject()) return Missing(key);
    const auto member = value_->find(key);
    if (member == value_->end()) return Missing(key);
    return JsonNode(&*member, Join(key), error_);
  }

  bool IsNull() const { return value_ == nullptr || value_->is_null(); }

  std::string Text() const {
    if (value_ == nullptr) return {};
    if (!value_->is_string()) return Expected("a string"), std::string();
    return value_->get<std::string>();
  }
  std::string TextOrNull() const { return IsNull() ? std::string() : Text(); }

  // A string that must be one of `known`; the same, or null for none.
  std::string OneOf(const std::vector<std::string_view>& known) const {
    std::string text = Text();
    if (value_ == nullptr || !value_->is_string()) return text;
    for (const std::string_view name : known)
      if (text == name) return text;
    Refuse(text, known);
    return {};
  }
  std::string OneOfOrNull(const std::vector<std::string_view>& known) const {
    return IsNull() ? std::string() : OneOf(known);
  }

  bool Boolean() const {
    if (value_ == nullptr) return false;
    if (!value_->is_boolean()) return Expected("true or false"), false;
    return value_->get<bool>();
  }

  // Null reads as NaN: that is how numbers that JSON cannot hold were written.
  double NumberOrZero() const { return IsNull() ? 0 : Number(); }
  double Number() const {
    if (value_ == nullptr) return 0;
    if (value_->is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (!value_->is_number()) return Expected("a number or null"), 0;
    return value_->get<double>();
  }

  template <typename Integer>
  Integer Whole() const {
    if (value_ == nullptr) return 0;
    if (value_->is_number_unsigned()) {
      const auto number = value_->get<uint64_t>();
      if (std::in_range<Integer>(number)) return static_cast<Integer>(number);
    } else if (value_->is_number_integer()) {
      const auto number = value_->get<int64_t>();
      if (std::in_range<Integer>(number)) return static_cast<Integer>(number);
    } else {
      return Expected("a whole number"), Integer{0};
    }
    SetError(path_, fmt::format("is out of range: {}", value_->dump()));
    return 0;
  }

  // A 64-bit number as decimal text.
  uint64_t WholeText() const {
    const std::string text = Text();
    if (value_ == nullptr || !value_->is_string()) return 0;
    uint64_t number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (status == std::errc() && end == text.data() + text.size() && !text.empty()) return number;
    Expected("a whole number below 2^64, as text");
    return 0;
  }

  // Calls visit(node) for each element, in order; an array of `count` elements where count is
  // given.
  template <typename Visit>
  void ForEach(Visit visit, size_t count = SIZE_MAX) const {
    if (value_ == nullptr) return;
    if (!value_->is_array()) return Expected("an array");
    if (count != SIZE_MAX && value_->size() != count)
      return Expected(fmt::format("an array of {}", count));
    for (size_t i = 0; i < value_->size() && error_->empty(); ++i)
      visit(JsonNode(&(*value_)[i], fmt::format("{}[{}]", path_, i), error_));
  }

  // Calls visit(key, node) for each member.
  template <typename Visit>
  void ForEachMember(Visit visit) const {
    if (!IsObject()) return;
    for (const auto& [key, member] : value_->items()) {
      if (!error_->empty()) return;
      visit(key, JsonNode(&member, Join(key), error_));
    }
  }

 private:
  JsonNode(const nlohmann::ordered_json* value, std::string path, std::string* error)
      : value_(value), path_(std::move(path)), error_(error) {}

  bool IsObject() const {
    if (value_ == nullptr) return false;
    if (!value_->is_object()) return Expected("an object"), false;
    return true;
  }
  JsonNode Missing(std::string_view key) const { return JsonNode(nullptr, Join(key), error_); }
  std::string Join(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }
  void SetError(std::string_view path, std::string_view problem) const {
    if (error_->empty())
      *error_ = fmt::format("{} {}", path.empty() ? "the document" : path, problem);
  }
  void Expected(std::string_view what) const {
    SetError(path_, fmt::format("must be {}, but is {}", what, Describe()));
  }
  std::string Describe() const {
    if (value_->is_array()) return fmt::format("an array of {}", value_->size());
    if (value_->is_object()) return "an object";
    if (value_->is_null()) return "null";
    constexpr size_t kShownMax = 40;
    std::string text =
        value_->dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    if (text.size() > kShownMax) text = "a long string";
    return text;
  }
  void Refuse(const std::string& text, const std::vector<std::string_view>& known) const {
    std::string names;
    for (const std::string_view name : known)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
    SetError(path_, fmt::format("is \"{}\", which is none of: {}", text.substr(0, 40), names));
  }

  const nlohmann::ordered_json* value_ = nullptr;  // null below a failure
  std::string path_;
  std::string* error_;
};

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
  problem.weights = node.Find("weights").OneOfOrNull({"varied", "constant", "constructed"});
  return problem;
}

CandidateRecord ReadCandidateRecord(const JsonNode& node) {
  return {node.At("path").Text(),
          node.At("hash").Text(),
          node.At("form").OneOf({"native", "device", "python"}),
          node.At("language").OneOf({"cpp", "c", "cuda", "python"}),
          node.At("trust").OneOf({"sandboxed", "device-only"}),
          node.At("flags").Text(),
          node.Find("artifact").TextOrNull()};
}

Mismatch ReadMismatch(const JsonNode& node) {
  Mismatch mismatch;
  mismatch.output = node.At("output").Text();
  node.At("index").ForEach(
      [&](const JsonNode& item) { mismatch.index.push_back(item.Whole<int64_t>()); });
  mismatch.expected = node.At("expected").Number();
  mismatch.got = node.At("got").Number();
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
  correctness.differs_on_special_values = node.Find("differs_on_special_values").TextOrNull();
  correctness.note = node.At("note").TextOrNull();
  correctness.right_with_weights = node.Find("right_with_weights").TextOrNull();
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
    result.why_unsettled = WhyUnsettled{why.At("cause").Text(), why.At("budget_s").NumberOrZero()};
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
  return {node.At("cpu").Text(),           node.At("cores").Whole<int>(),
          node.At("threads").Whole<int>(), node.Find("gpu").TextOrNull(),
          node.At("kernel").Text(),        node.At("isolation").Text()};
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
  if (const JsonNode item = node.Find("profile"); !item.IsNull())
    verdict.profile = ReadProfile(item);
  if (const JsonNode item = node.Find("sanitizer"); !item.IsNull())
    verdict.sanitizer = ReadSanitizer(item);
  if (const JsonNode item = node.Find("sustained"); !item.IsNull())
    verdict.sustained = ReadSustained(item);
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
  return verdict;
}

}  // namespace

Result<Verdict> VerdictFromJson(std::string_view text) {
  nlohmann::ordered_json document;
  try {
    document = nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::json::exception& exception) {
    return UsageError(fmt::format("not a verdict: {}", exception.what()));
  }
  std::string error;
  const JsonNode root(document, &error);
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

}  // namespace assay
