// NativeBottleneck: the first of a list of findings, the dearest first.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/text.h"
#include "search/feedback.h"

namespace assay {
namespace {

constexpr double kNearPeakPercent = 85;
constexpr double kMostlyEmpty = 0.5;      // share of the time that an empty call takes
constexpr double kThreadsPayNs = 50'000;  // shorter calls gain little by threads
constexpr double kManySpills = 0.2;       // share of the loop's instructions
constexpr double kManyScalars = 0.5;      // share of the loop's arithmetic

const BaselineResult* Headline(const Verdict& verdict) {
  if (!verdict.speed) return nullptr;
  const auto found = verdict.speed->baselines.find(verdict.speed->headline);
  return found == verdict.speed->baselines.end() ? nullptr : &found->second;
}

std::string Place(const NativeLoop& loop) {
  if (loop.first_line == loop.last_line)
    return fmt::format("the hot loop (line {})", loop.first_line);
  return fmt::format("the hot loop (lines {} to {})", loop.first_line, loop.last_line);
}

std::string OneThread(const Verdict& verdict, const NativeCode& code, double time_ns) {
  if (verdict.machine.threads < 2 || code.starts_threads || time_ns < kThreadsPayNs) return {};
  return fmt::format("it runs on one thread, and may use {} (OpenMP: #pragma omp parallel for)",
                     verdict.machine.threads);
}

std::string InLoop(const NativeLoop& loop, int machine_bits) {
  const int64_t arithmetic = loop.on_vectors + loop.on_scalars;
  const auto share = [](int64_t part, int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
  };
  if (!loop.calls.empty())
    return fmt::format(
        "{} calls {}: a call handles one element at a time and keeps the loop from being "
        "vectorised; inline it, or compute it by a polynomial on whole vectors",
        Place(loop), fmt::join(loop.calls, ", "));
  if (share(loop.on_scalars, arithmetic) > kManyScalars)
    return fmt::format(
        "{} works on one element at a time: {} of its {} instructions of arithmetic are scalar, "
        "while a vector of this processor has {} bits. Sums in the order of the source, branches "
        "and possible aliases keep a compiler from vectorising",
        Place(loop), loop.on_scalars, arithmetic, machine_bits);
  if (loop.gathers > 0)
    return fmt::format(
        "{} has {}, which loads each element of a vector from an address of its own: let "
        "neighbouring lanes read neighbouring elements",
        Place(loop), Counted(loop.gathers, "gather"));
  if (share(loop.spills, loop.instructions) > kManySpills)
    return fmt::format(
        "{} reads or writes the stack in {} of its {} instructions: more values are alive than "
        "registers; make the register tile smaller",
        Place(loop), loop.spills, loop.instructions);
  if (loop.vector_bits < machine_bits && loop.on_vectors > 0)
    return fmt::format("{} works on vectors of {} bits; this processor has {} bits{}", Place(loop),
                       loop.vector_bits, machine_bits,
                       machine_bits == 512 ? " (-mprefer-vector-width=512)" : "");
  if (loop.divisions > 0)
    return fmt::format(
        "{} has {} on vectors: each takes several times a multiplication; multiply by a "
        "reciprocal that is computed once",
        Place(loop), Counted(loop.divisions, "division or root"));
  return {};
}

// The case that arithmetic bounds the problem, and the loop does little of it.
std::string LittleArithmetic(const Verdict& verdict, const NativeLoop& loop) {
  constexpr double kLittle = 0.5;  // share of the loop's instructions
  const int64_t arithmetic = loop.on_vectors + loop.on_scalars;
  if (!verdict.roofline || verdict.roofline->regime != "compute" || loop.instructions == 0 ||
      static_cast<double>(arithmetic) / static_cast<double>(loop.instructions) >= kLittle)
    return {};
  return fmt::format(
      "{} does arithmetic in {} of its {} instructions, the others load, store and count: keep "
      "several results in registers (a register tile), so that each loaded value is used often",
      Place(loop), arithmetic, loop.instructions);
}

std::string Traffic(const Verdict& verdict, double time_ns) {
  if (!verdict.work || verdict.work->bytes <= 0) return {};
  const bool memory = verdict.roofline && verdict.roofline->regime == "memory";
  if (!memory) return {};
  return fmt::format(
      "memory: it moves at most {} of the {} that this machine can, if each byte "
      "moves once; passes over data that no cache holds cost the difference",
      FormatRate(verdict.work->bytes / time_ns * 1e9, "B/s"),
      FormatRate(verdict.roofline->bandwidth_bytes_s, "B/s"));
}

}  // namespace

std::string NativeBottleneck(const Verdict& verdict, const NativeCode& code) {
  const BaselineResult* result = Headline(verdict);
  if (result == nullptr || result->candidate_time_ns <= 0) return {};
  const double time_ns = result->candidate_time_ns;
  const double peak = verdict.roofline ? verdict.roofline->percent_of_peak : 0;
  if (peak >= kNearPeakPercent) return {};
  if (verdict.roofline && verdict.roofline->empty_call_ns > kMostlyEmpty * time_ns)
    return fmt::format("an empty call takes {} of its {}: little is left to gain at this size",
                       FormatDuration(verdict.roofline->empty_call_ns), FormatDuration(time_ns));
  std::string found = OneThread(verdict, code, time_ns);
  if (found.empty() && code.loop) found = InLoop(*code.loop, code.machine_vector_bits);
  if (found.empty() && code.loop) found = LittleArithmetic(verdict, *code.loop);
  if (found.empty()) found = Traffic(verdict, time_ns);
  return found;
}

}  // namespace assay
