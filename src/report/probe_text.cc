#include "report/probe_text.h"

#include <fmt/format.h>

#include "report/text.h"

namespace assay {
namespace {

// A half that takes this share of the time or more: the time hardly goes with the work.
constexpr double kMostlyOverhead = 0.8;
// Times are rough: a share within this factor of the work's goes with it.
constexpr double kAlike = 1.25;
// Threads that do their part of the work: at least this share of what they could gain.
constexpr double kThreadsWork = 0.7;
constexpr double kThreadsNothing = 0.25;
// Page faults of a call, below which they are not worth a word.
constexpr double kFewFaults = 0.5;
// Below so many instructions a cycle, and with so many misses a thousand instructions, a core waits
// for memory.
constexpr double kSlowCore = 1, kManyMisses = 5;

std::string Percent(double share) { return fmt::format("{:.0f}%", 100 * share); }

std::string SmallerText(const ProbeRecord& probe) {
  const SmallerProbe& smaller = *probe.smaller;
  const double time = smaller.time_ns / probe.time_ns;
  if (time > kAlike) return {};  // no time that means anything
  // The time, if it is a fixed part and one that goes with the bytes.
  const double fixed = smaller.share < 1 ? (time - smaller.share) / (1 - smaller.share) : 0;
  std::string reading;
  if (time >= kMostlyOverhead)
    reading = "overhead that does not depend on the size";
  else if (time > smaller.share * kAlike)
    reading = fmt::format("about {} of the time does not depend on the size", Percent(fixed));
  else if (time * kAlike >= smaller.share)
    reading = "the time goes with the work";
  else
    reading =
        "the time grows faster than the data: more work for each element, or data that a cache "
        "holds at the smaller size alone";
  return fmt::format("{} of the data ({}) take {} of the time: {}.", Percent(smaller.share),
                     Printable(smaller.size, true), Percent(time), reading);
}

std::string ThreadsText(const ProbeRecord& probe) {
  const double gain = *probe.one_thread_ns / probe.time_ns;
  const double most = probe.threads - 1;
  std::string reading;
  if (gain - 1 >= kThreadsWork * most)
    reading = "threads share the work: it is bound by what each core does";
  else if (gain - 1 > kThreadsNothing * most)
    reading =
        "threads help in part: some of the work is on one, or they share the bandwidth of memory";
  else
    reading = "threads gain next to nothing: one does the work, or all wait for one memory";
  return fmt::format("One thread takes {:.2g} times as long as {}: {}.", gain, probe.threads,
                     reading);
}

std::string FaultsText(const ProbeRecord& probe) {
  const double faults = probe.minor_faults + probe.major_faults;
  if (faults < kFewFaults) return "Page faults of a warm call: none.";
  return fmt::format(
      "Page faults of a warm call: {:.3g} ({:.3g} of them wait for a disk): it gets memory from "
      "the "
      "system in each call, and gives it back: keep it from call to call.",
      faults, probe.major_faults);
}

std::string CountsText(const ProbeRecord& probe) {
  if (!probe.counts) return "Counters of the processor: " + Printable(probe.no_counts, true) + ".";
  const CallCounts& counts = *probe.counts;
  if (counts.cycles <= 0 || counts.instructions <= 0) return {};
  const double rate = counts.instructions / counts.cycles;
  const double misses = 1000 * counts.cache_misses / counts.instructions;
  const char* reading = rate < kSlowCore && misses > kManyMisses ? "it waits for memory"
                        : rate < kSlowCore
                            ? "it waits, and not for memory: long chains of operations "
                              "that depend on each other, divisions, or branches"
                            : "the cores are at work";
  return fmt::format(
      "Counters of the processor: {:.2g} instructions a cycle, {:.2g} misses of the last cache in "
      "1000 instructions: {}.",
      rate, misses, reading);
}

}  // namespace

std::string ProbeText(const Verdict& verdict) {
  if (!verdict.probe || !verdict.probe->failure.empty() || verdict.probe->time_ns <= 0) return {};
  const ProbeRecord& probe = *verdict.probe;
  std::string text = "Looked at after the verdict, roughly:";
  const auto add = [&](const std::string& line) {
    if (!line.empty()) text += "\n- " + line;
  };
  if (probe.smaller) add(SmallerText(probe));
  if (probe.one_thread_ns) add(ThreadsText(probe));
  add(FaultsText(probe));
  add(CountsText(probe));
  return text;
}

}  // namespace assay
