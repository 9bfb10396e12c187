#include "report/card.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "report/card_face.h"
#include "report/decision_text.h"
#include "report/error_text.h"
#include "report/kernel_facts.h"
#include "report/next_step.h"
#include "report/sustained_facts.h"
#include "report/text.h"
#include "report/wrong_element.h"
#include "rules/unseen_operators.h"

namespace assay {
namespace {

class CardWriter {
 public:
  CardWriter(const Verdict& verdict, const CardStyle& style)
      : verdict_(verdict), frame_(style), unicode_(style.unicode) {}

  std::string Write() {
    Title();
    Headline();
    Gate1();
    Gate2();
    Sustained();
    Kernels();
    Profile();
    Bottleneck();
    Sanitizer();
    Caught();
    Printed();
    Circumstances();
    frame_.Bottom();
    return frame_.Take();
  }

  std::string Next() const {
    const NextStep step = NextStepAfter(verdict_, frame_.style().saved, frame_.style().here);
    std::string text = fmt::format("   next: {}\n", Safe(step.advice));
    if (step.command.empty()) return step.advice.empty() ? std::string() : text;
    return text + "   " + Painted({Safe(step.command), Tone::kStrong}, frame_.style()) + "\n";
  }

 private:
  std::string Safe(std::string_view text) const { return Printable(text, unicode_); }
  std::string FileName() const {
    return Safe(std::filesystem::path(verdict_.candidate.path).filename().string());
  }
  std::string Joined(const std::vector<std::string>& parts) const {
    const std::string dot = fmt::format(" {} ", GlyphsOf(frame_.style()).dot);
    return fmt::format("{}", fmt::join(parts, dot));
  }
  TextSpan Passed(bool passed, const char* word_passed, const char* word_failed) const {
    const char* symbol = passed ? (unicode_ ? "✔ " : "+ ") : (unicode_ ? "✘ " : "x ");
    return {std::string(symbol) + (passed ? word_passed : word_failed),
            passed ? Tone::kGood : Tone::kBad};
  }
  const BaselineResult* HeadlineResult() const {
    if (!verdict_.speed) return nullptr;
    const auto found = verdict_.speed->baselines.find(verdict_.speed->headline);
    return found == verdict_.speed->baselines.end() ? nullptr : &found->second;
  }
  // Names the other side of a comparison, for people.
  static std::string SideName(const std::string& baseline) {
    return baseline == "against" ? "other" : baseline;
  }

  void Title() {
    const ProblemRecord& problem = verdict_.problem;
    std::vector<std::string> parts{Safe(problem.name)};
    if (!problem.size.empty()) parts.push_back(Safe(problem.size));
    if (problem.size.empty())
      for (const auto& [name, value] : problem.set) parts.push_back(Safe(name + "=" + value));
    if (!problem.dtype.empty()) parts.push_back(Safe(problem.dtype));
    frame_.Top(Joined(parts), FileName());
  }

  void Headline() {
    const Face face = FaceOf(verdict_.outcome);
    const std::string symbol = unicode_ ? face.symbol : face.ascii_symbol;
    Line line{{fmt::format(" {} {} ", symbol, face.word), face.badge}};
    const BaselineResult* result = HeadlineResult();
    if (result != nullptr && verdict_.outcome != Outcome::kFoul &&
        verdict_.outcome != Outcome::kWrong) {
      line.push_back({"   " + FormatRatio(result->speedup), Tone::kStrong});
      const bool best = verdict_.speed->headline == kBestBaseline;
      line.push_back(
          {fmt::format(" as fast as {}",
                       best ? "the best baseline" : SideName(Safe(verdict_.speed->headline))),
           Tone::kPlain});
    }
    frame_.Blank();
    frame_.Row(line);
    frame_.Blank();
    Message();
    frame_.Blank();
  }

  // Lines of the message stay lines: declarations are set below each other.
  void Message() {
    constexpr int kLinesMax = 16;
    std::string_view rest = verdict_.message;
    for (int line = 1; line < kLinesMax && rest.contains('\n'); ++line) {
      frame_.Prose(Safe(rest.substr(0, rest.find('\n'))), Tone::kPlain);
      rest.remove_prefix(rest.find('\n') + 1);
    }
    frame_.Prose(Safe(rest), Tone::kPlain);
  }

  void Gate1() {
    const auto& correctness = verdict_.correctness;
    if (!correctness) {
      const bool reached = verdict_.outcome != Outcome::kBuildFailed;
      frame_.Section("gate 1: correctness",
                     {reached ? "not finished" : "not reached", Tone::kFaint});
      return;
    }
    frame_.Section("gate 1: correctness", Passed(correctness->passed, "passed", "failed"));
    frame_.Labelled("checked", Checked(*correctness));
    if (correctness->passed) frame_.Labelled("sizes", Sizes(*correctness));
    if (correctness->tolerance.starts_with("allclose"))
      frame_.Labelled("tolerance", Safe(correctness->tolerance));
    frame_.Labelled("errors", ErrorText(*correctness));
    Precision(*correctness);
    Mismatched(*correctness);
    if (!correctness->differs_on_special_values.empty())
      frame_.Labelled("special", "differs on special values, which were not demanded: " +
                                     Safe(correctness->differs_on_special_values));
    if (verdict_.coverage && verdict_.coverage->operators > 0)
      frame_.Labelled("operators", Safe(CoverageText(*verdict_.coverage)));
    if (!correctness->note.empty()) frame_.Labelled("note", Safe(correctness->note));
    // Some messages are the hint already.
    if (!correctness->hint.empty() && verdict_.message.find(correctness->hint) == std::string::npos)
      frame_.Labelled("hint", Safe(correctness->hint), Tone::kStrong);
  }

  std::string Checked(const Correctness& correctness) const {
    size_t passed = 0;
    std::vector<std::string> failed;
    std::set<std::string> dropped;
    for (const DrawRecord& draw : correctness.draws) {
      if (draw.result == "passed") ++passed;
      if (draw.result == "dropped" && !draw.for_time) dropped.insert(Safe(draw.kind));
      if (draw.result == "failed") failed.push_back(Safe(draw.kind));
    }
    std::string text = Counted(correctness.calls_checked, "call");
    if (const auto judged = static_cast<long long>(passed + failed.size()); judged > 0)
      text += fmt::format("; {} of {} passed", passed, Counted(judged, "draw"));
    if (!failed.empty()) return text + fmt::format(", failed: {}", fmt::join(failed, ", "));
    if (!dropped.empty()) text += fmt::format("; not applicable: {}", fmt::join(dropped, ", "));
    return text;
  }

  // The sizes at which it was right.
  std::string Sizes(const Correctness& correctness) const {
    std::vector<std::string> others;
    for (const DrawRecord& draw : correctness.draws) {
      std::vector<std::string> constants;
      for (const auto& [name, value] : draw.set) {
        const auto asked = verdict_.problem.set.find(name);
        if (asked == verdict_.problem.set.end() || asked->second != value)
          constants.push_back(Safe(fmt::format("{}={}", name, value)));
      }
      std::string text = fmt::format("{}", fmt::join(constants, " "));
      if (!text.empty() && std::find(others.begin(), others.end(), text) == others.end())
        others.push_back(std::move(text));
    }
    if (others.empty()) return "right at this size alone; --ragged NAME=LO:HI checks others";
    return fmt::format("right at this one and at {}", fmt::join(others, "; "));
  }

  // tf32 and float16 are one class, which has the name of what the problem computes in.
  std::string ClassName(const std::string& name) const {
    return name == "tf32" && verdict_.problem.dtype == "float16" ? "float16" : Safe(name);
  }

  void Precision(const Correctness& correctness) {
    const std::string shown = ClassName(correctness.precision_class);
    const std::string required = ClassName(correctness.required_class);
    if (shown.empty() && required.empty()) return;
    if (shown == required)
      frame_.Labelled("precision", shown + ", as required");
    else if (required.empty())
      frame_.Labelled("precision", shown);
    else if (shown.empty())
      frame_.Labelled("precision", fmt::format("none; {} is required", required));
    else
      frame_.Labelled("precision", fmt::format("{}; {} is required", shown, required));
  }

  void Mismatched(const Correctness& correctness) {
    if (!correctness.first_mismatch) return;
    const Mismatch& mismatch = *correctness.first_mismatch;
    std::string first = Safe(mismatch.output);
    if (!mismatch.index.empty()) first += fmt::format("[{}]", fmt::join(mismatch.index, ", "));
    const auto [expected, got] = TextsOf(mismatch, 6);
    // An index that stands twice may equal the reference's.
    first += expected == got ? ": got " + got : fmt::format(": expected {}, got {}", expected, got);
    frame_.Labelled("first wrong", first);
    if (mismatch.share_wrong == 0) return;  // each is close enough: all together are not
    frame_.Labelled("share wrong",
                    fmt::format("{} of the elements of {}", FormatShare(mismatch.share_wrong),
                                Safe(mismatch.output)));
  }

  void Gate2() {
    const auto& speed = verdict_.speed;
    const std::string title =
        speed && speed->threshold != 1
            ? fmt::format("gate 2: speed above {}", FormatRatio(speed->threshold))
            : std::string("gate 2: speed");
    if (!speed) {
      const bool reached = verdict_.correctness && verdict_.correctness->passed;
      const bool wanted =
          verdict_.outcome != Outcome::kCorrect && verdict_.outcome != Outcome::kUnsettled;
      frame_.Section(title, {!reached ? "not reached"
                             : wanted ? "not finished"
                                      : "not run",
                             Tone::kFaint});
      return;
    }
    frame_.Section(title, Passed(speed->passed, "passed", "not passed"));
    Baseline(speed->headline);
    for (const auto& [name, result] : speed->baselines) {
      if (name == speed->headline) continue;
      frame_.Blank();
      Baseline(name);
    }
    Peak();
    LibrariesLine();
  }

  // The candidate's share of what this machine can do, or how to learn it.
  void Peak() {
    if (verdict_.speed->against) return;
    if (!verdict_.roofline) {
      frame_.Labelled("peak", "not known: run assay doctor once", Tone::kFaint);
      return;
    }
    const Roofline& roofline = *verdict_.roofline;
    const std::string bound =
        roofline.regime == "memory" ? "memory at " + FormatRate(roofline.bandwidth_bytes_s, "B/s")
        : roofline.regime == "compute"
            ? fmt::format("{} of {}", FormatRate(roofline.rate_operations_s, "FLOP/s"),
                          Safe(roofline.instructions))
        : verdict_.machine.gpu.empty() ? std::string("a call that does nothing")
                                       : std::string("a launch that does nothing");
    frame_.Labelled(
        "peak",
        fmt::format("{:.3g}% of this {}'s, {} {:.3g}%; the peak is {} a call, by {}",
                    roofline.percent_of_peak, verdict_.machine.gpu.empty() ? "machine" : "GPU",
                    Safe(verdict_.speed->headline), roofline.reference_percent_of_peak,
                    FormatDuration(roofline.bound_ns), bound));
    if (!roofline.note.empty()) frame_.Labelled("", Safe(roofline.note), Tone::kFaint);
  }

  // Silent about a candidate that does its own work.
  void LibrariesLine() {
    constexpr double kWorthALine = 0.05;
    if (!verdict_.libraries || verdict_.libraries->foreign_share < kWorthALine) return;
    std::string names;
    for (const auto& [name, share] : verdict_.libraries->shares)
      if (share >= kWorthALine / 2) names += (names.empty() ? "" : ", ") + Safe(name);
    frame_.Labelled("libraries",
                    fmt::format("{:.0f}% of its time is spent in {}, not in its own code",
                                100 * verdict_.libraries->foreign_share, names));
  }

  void Baseline(const std::string& name) {
    const auto found = verdict_.speed->baselines.find(name);
    if (found == verdict_.speed->baselines.end()) return;
    const BaselineResult& result = found->second;
    const Face face = FaceOf(OutcomeFromName(result.decision).value_or(Outcome::kUnsettled));
    const double longest = std::max(result.time_ns, result.candidate_time_ns);
    TimeBar(SideName(Safe(name)), result.time_ns, longest, Tone::kPlain);
    TimeBar("candidate", result.candidate_time_ns, longest, face.tone);
    frame_.Row({{Padded("speedup"), Tone::kFaint},
                {FormatRatio(result.speedup), Tone::kStrong},
                {", " + IntervalText(result), Tone::kPlain}});
    if (TimesDisagree(result))
      frame_.Labelled("",
                      "the median of pairs, whose sides ran beside each other; the times are "
                      "medians of all blocks",
                      Tone::kFaint);
    frame_.Labelled(
        "decision",
        fmt::format("{} {}: {}", unicode_ ? face.symbol : face.ascii_symbol, Safe(result.decision),
                    DecisionText(result, verdict_.speed->threshold)),
        face.tone);
    const char* times = unicode_ ? "×" : "x";
    std::string rests_on = fmt::format(
        "{} of processes {} {} {} {} a block", Counted(result.pairs, "pair"), times,
        Counted(result.rounds, "round"), times, Counted(result.calls_per_block, "call"));
    if (result.decision == "faster" || result.decision == "slower")
      rests_on += fmt::format("; the smallest gain that could have been seen is {}",
                              FormatGain(result.smallest_visible));
    frame_.Labelled("rests on", rests_on);
    if (!result.note.empty()) frame_.Labelled("note", Safe(result.note));
  }

  // Their ratio is another than the speedup's median, by more than a reader would round away.
  static bool TimesDisagree(const BaselineResult& result) {
    constexpr double kApart = 0.02;
    if (!(result.time_ns > 0 && result.candidate_time_ns > 0 && result.speedup > 0)) return false;
    return std::abs(std::log(result.time_ns / result.candidate_time_ns / result.speedup)) > kApart;
  }

  static std::string Padded(std::string_view label) {
    std::string text(label);
    text.resize(Frame::kLabelWidth, ' ');
    return text;
  }

  void TimeBar(const std::string& name, double time_ns, double longest_ns, Tone tone) {
    constexpr int kTimeWidth = 9;
    const Glyphs& glyphs = GlyphsOf(frame_.style());
    const int room = frame_.inner_width() - Frame::kLabelWidth - kTimeWidth;
    std::string bar;
    if (std::isfinite(time_ns) && longest_ns > 0 && time_ns > 0) {
      const int halves = std::max(
          1, static_cast<int>(std::lround(2 * room * std::min(1.0, time_ns / longest_ns))));
      bar = Repeated(glyphs.bar, halves / 2);
      if (halves % 2 == 1)
        bar += halves == 1 && *glyphs.half_bar == 0 ? glyphs.bar : glyphs.half_bar;
    }
    const std::string label = Shortened(name, Frame::kLabelWidth - 1, unicode_);
    const std::string gap(static_cast<size_t>(Frame::kLabelWidth - DisplayWidth(label)), ' ');
    frame_.Row({{label + gap, Tone::kFaint},
                {fmt::format("{:<{}}", FormatDuration(time_ns), kTimeWidth), Tone::kStrong},
                {bar, tone}});
  }

  void Sustained() {
    const auto facts = SustainedFacts(verdict_);
    if (!facts.empty()) frame_.Section("without pauses", {});
    for (const auto& [label, text] : facts)
      frame_.Labelled(Shortened(Safe(label), Frame::kLabelWidth - 1, unicode_), Safe(text));
  }

  // Describes the first few kernels that a candidate for a GPU was compiled to.
  void Kernels() {
    constexpr size_t kShownMax = 3;
    const auto& kernels = verdict_.kernels;
    if (kernels.empty() || !verdict_.speed) return;
    frame_.Section(kernels.size() == 1 ? "kernel" : "kernels", {});
    for (size_t i = 0; i < std::min(kernels.size(), kShownMax); ++i) {
      frame_.Row({{Safe(kernels[i].name), Tone::kStrong}});
      for (const auto& [label, text] : KernelFacts(kernels[i])) frame_.Labelled(label, Safe(text));
    }
    AndMore(kernels.size(), kShownMax);
  }

  void AndMore(size_t count, size_t shown) {
    if (count > shown) frame_.Row({{fmt::format("and {} more", count - shown), Tone::kFaint}});
  }

  // Describes the counters of one call.
  void Profile() {
    constexpr size_t kShownMax = 2;
    if (!verdict_.profile) return;
    const ProfileRecord& profile = *verdict_.profile;
    frame_.Section("counters of one call", {});
    if (!profile.failure.empty()) frame_.Labelled("none", Safe(profile.failure), Tone::kWarning);
    for (size_t i = 0; i < std::min(profile.kernels.size(), kShownMax); ++i) {
      frame_.Row({{Safe(profile.kernels[i].name), Tone::kStrong}});
      for (const auto& [label, text] : ProfileFacts(profile.kernels[i]))
        frame_.Labelled(label, Safe(text));
    }
    AndMore(profile.kernels.size(), kShownMax);
  }

  void Bottleneck() {
    const bool shown = (!verdict_.kernels.empty() && verdict_.speed) || verdict_.profile;
    if (shown && !verdict_.bottleneck.empty())
      frame_.Labelled("bottleneck", Safe(verdict_.bottleneck), Tone::kStrong);
  }

  void Sanitizer() {
    if (!verdict_.sanitizer) return;
    const SanitizerRecord& record = *verdict_.sanitizer;
    frame_.Section("compute-sanitizer", {});
    const bool clean = record.failure.empty() && record.errors == 0;
    frame_.Labelled(Safe(record.tool),
                    !record.failure.empty() ? "no answer: " + Safe(record.failure)
                    : clean                 ? std::string("no errors in one call")
                                            : Counted(record.errors, "error") + " in one call",
                    clean ? Tone::kGood : Tone::kWarning);
    for (const std::string& finding : record.findings) frame_.Labelled("", Safe(finding));
  }

  void Caught() {
    if (!verdict_.foul) return;
    frame_.Section("foul", {});
    frame_.Labelled("rule", Safe(verdict_.foul->rule), Tone::kStrong);
    if (verdict_.foul->seen != verdict_.message) frame_.Labelled("seen", Safe(verdict_.foul->seen));
  }

  // The last lines of what a candidate printed, where it failed. A compiler's first error is the
  // message itself.
  void Printed() {
    constexpr size_t kLinesMax = 5;
    const std::vector<std::string> lines = PrintedLines();
    if (lines.empty() || !Failed()) return;
    frame_.Section("its last lines of output", {});
    for (size_t i = lines.size() > kLinesMax ? lines.size() - kLinesMax : 0; i < lines.size(); ++i)
      frame_.Row({{Safe(lines[i]), Tone::kFaint}});
  }

  bool Died() const {
    return verdict_.outcome == Outcome::kCrashed || verdict_.outcome == Outcome::kTimedOut ||
           verdict_.outcome == Outcome::kOutOfMemory;
  }
  bool Failed() const {
    return Died() || verdict_.outcome == Outcome::kWrong || verdict_.outcome == Outcome::kFoul;
  }

  std::vector<std::string> PrintedLines() const {
    const size_t heading = verdict_.log.rfind(kPrintedHeading);
    std::vector<std::string> lines;
    if (heading == std::string::npos && !Died()) return lines;
    const size_t begin = heading == std::string::npos ? 0 : heading + kPrintedHeading.size();
    for (size_t at = begin; at < verdict_.log.size();) {
      const size_t end = std::min(verdict_.log.find('\n', at), verdict_.log.size());
      lines.push_back(verdict_.log.substr(at, end - at));
      at = end + 1;
    }
    return lines;
  }

  void Circumstances() {
    const Cost& cost = verdict_.cost;
    const Machine& machine = verdict_.machine;
    frame_.Section("", {});
    if (const auto source = verdict_.toolchain.find("source"); source != verdict_.toolchain.end())
      frame_.Labelled("source", Safe(source->second));
    frame_.Labelled(
        "cost",
        fmt::format(
            "{:.2f} s: compile {:.2f}{}, start {:.2f}, fill {:.2f}, timed {:.2f}, overhead {:.2f}",
            cost.total_s, cost.build_s, cost.build_cached ? " (cached)" : "", cost.start_s,
            cost.fill_s, cost.timed_s, cost.overhead_s));
    std::vector<std::string> parts;
    for (const std::string* name : {&machine.gpu, &machine.cpu})
      if (!name->empty()) parts.push_back(Safe(*name));
    parts.push_back(Counted(machine.cores, "core"));
    parts.push_back(Counted(machine.threads, "thread") + " a side");
    if (const auto pytorch = verdict_.toolchain.find("pytorch");
        pytorch != verdict_.toolchain.end())
      parts.push_back("PyTorch " + Safe(pytorch->second));
    frame_.Labelled("machine", fmt::format("{}", fmt::join(parts, ", ")));
    if (!machine.isolation.empty())
      frame_.Labelled("isolation", Safe(machine.isolation),
                      machine.weak ? Tone::kBad : Tone::kPlain);
    if (const size_t lines = PrintedLines().size(); lines > 0 && !Failed())
      frame_.Labelled("printed", fmt::format("{}: \"log\" in the verdict's JSON",
                                             Counted(static_cast<int64_t>(lines), "line")));
    frame_.Labelled("verdict", fmt::format("{}, seed {}", Safe(verdict_.id), verdict_.seed),
                    Tone::kFaint);
  }

  const Verdict& verdict_;
  Frame frame_;
  bool unicode_;
};

}  // namespace

std::string RenderCard(const Verdict& verdict, const CardStyle& style) {
  CardWriter writer(verdict, style);
  return writer.Write() + writer.Next();
}

std::string RenderCardAlone(const Verdict& verdict, const CardStyle& style) {
  return CardWriter(verdict, style).Write();
}

}  // namespace assay
