#include "worklog/mechanism.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "report/text.h"

namespace assay {
namespace {

constexpr std::array<MechanismFacts, 9> kMechanisms = {{
    {Mechanism::kMemoryMovement, "memory-movement", "fewer bytes to and from memory"},
    {Mechanism::kFusion, "fusion", "intermediate results never leave the chip"},
    {Mechanism::kTiling, "tiling", "data is used again while it is in a cache or in registers"},
    {Mechanism::kVectorising, "vectorising", "one instruction for several elements"},
    {Mechanism::kParallelism, "parallelism", "more threads or blocks work at a time"},
    {Mechanism::kTensorCores, "tensor-cores", "the GPU's matrix units do the arithmetic"},
    {Mechanism::kAsynchronousCopies, "asynchronous-copies", "copies overlap with arithmetic"},
    {Mechanism::kLatencyHiding, "latency-hiding",
     "one thread waits less: prefetches, or chains of operations that do not wait for each other"},
    {Mechanism::kLessWork, "less-work", "fewer operations for the same result"},
}};

// Lines of the source that hold one of the marks.
int64_t LinesWith(std::string_view source, std::initializer_list<std::string_view> marks) {
  int64_t count = 0;
  for (size_t at = 0; at < source.size();) {
    const size_t end = std::min(source.find('\n', at), source.size());
    const std::string_view line = source.substr(at, end - at);
    if (std::any_of(marks.begin(), marks.end(), [&](std::string_view mark) {
          return line.find(mark) != std::string_view::npos;
        }))
      ++count;
    at = end + 1;
  }
  return count;
}

int64_t Instructions(const Verdict& verdict, const std::string& kind) {
  int64_t count = 0;
  for (const KernelRecord& kernel : verdict.kernels)
    if (const auto found = kernel.instructions.find(kind); found != kernel.instructions.end())
      count += found->second;
  return count;
}

bool HasCode(const Verdict& verdict) {
  return std::any_of(verdict.kernels.begin(), verdict.kernels.end(),
                     [](const KernelRecord& kernel) { return !kernel.instructions.empty(); });
}

const BaselineResult* Headline(const Verdict& verdict) {
  if (!verdict.speed) return nullptr;
  const auto found = verdict.speed->baselines.find(verdict.speed->headline);
  return found == verdict.speed->baselines.end() ? nullptr : &found->second;
}

Evidence Traffic(const Verdict& verdict) {
  const BaselineResult* speed = Headline(verdict);
  if (!verdict.work || verdict.work->bytes <= 0 || speed == nullptr) return {};
  const double bytes = verdict.work->bytes;
  const double rate = bytes / speed->candidate_time_ns * 1e9;
  Evidence evidence{Evidence::Kind::kUnknown,
                    fmt::format("The compulsory {} in {}: {}", FormatBytes(bytes),
                                FormatDuration(speed->candidate_time_ns), FormatRate(rate, "B/s"))};
  if (!verdict.roofline || verdict.roofline->percent_of_peak <= 0) {
    evidence.text += "; without ceilings (assay doctor) there is no percentage.";
    return evidence;
  }
  const Roofline& roofline = *verdict.roofline;
  evidence.text += fmt::format(", {:.0f}% of the bound; the baseline reaches {:.0f}%.",
                               roofline.percent_of_peak, roofline.reference_percent_of_peak);
  evidence.kind = roofline.percent_of_peak > 1.1 * roofline.reference_percent_of_peak
                      ? Evidence::Kind::kFound
                      : Evidence::Kind::kAgainst;
  return evidence;
}

Evidence Fusion(const Verdict& verdict) {
  const BaselineResult* speed = Headline(verdict);
  if (!verdict.work || verdict.work->unfused_bytes <= 0 || verdict.work->bytes <= 0) return {};
  const Work& work = *verdict.work;
  const double share = work.unfused_bytes / work.bytes;
  Evidence evidence{
      Evidence::Kind::kUnknown,
      fmt::format("One by one, the reference's operators move {}: {:.1f} times the compulsory {}.",
                  FormatBytes(work.unfused_bytes), share, FormatBytes(work.bytes))};
  if (share < 1.1) {
    evidence.kind = Evidence::Kind::kAgainst;
    evidence.text += " There is nothing to fuse.";
    return evidence;
  }
  if (speed == nullptr) return evidence;
  if (verdict.roofline && verdict.roofline->bandwidth_bytes_s > 0) {
    const double least_ns = work.unfused_bytes / verdict.roofline->bandwidth_bytes_s * 1e9;
    if (speed->candidate_time_ns < least_ns) {
      evidence.kind = Evidence::Kind::kFound;
      evidence.text +=
          fmt::format(" A call takes {}, less than the {} that so many bytes take.",
                      FormatDuration(speed->candidate_time_ns), FormatDuration(least_ns));
      return evidence;
    }
  }
  if (speed->ci_low > 1) {
    evidence.kind = Evidence::Kind::kFound;
    evidence.text +=
        fmt::format(" The kernel is {} as fast, in one pass.", FormatRatio(speed->speedup));
  } else {
    evidence.kind = Evidence::Kind::kAgainst;
    evidence.text += " The time does not show that they were saved.";
  }
  return evidence;
}

Evidence OfInstructions(const Verdict& verdict, const std::string& kind, const char* what) {
  if (verdict.machine.gpu.empty())
    return {Evidence::Kind::kAgainst, "It was judged on a CPU, which has none."};
  if (!HasCode(verdict)) return {Evidence::Kind::kUnknown, "Its machine code could not be read."};
  const int64_t count = Instructions(verdict, kind);
  return {count > 0 ? Evidence::Kind::kFound : Evidence::Kind::kAgainst,
          fmt::format("Its machine code has {} {}.", count, what)};
}

Evidence Vectors(const Verdict& verdict, std::string_view source) {
  if (HasCode(verdict)) {
    int widest = 0;
    for (const KernelRecord& kernel : verdict.kernels)
      widest = std::max(widest, kernel.widest_load_bytes);
    return {widest >= 8 ? Evidence::Kind::kFound : Evidence::Kind::kAgainst,
            fmt::format("The widest load of a thread takes {} bytes.", widest)};
  }
  const int64_t lines =
      LinesWith(source, {"_mm", "__m128", "__m256", "__m512", "omp simd", "vector_size", "float4",
                         "svfloat", "vld1q", "std::experimental::simd"});
  if (lines > 0)
    return {Evidence::Kind::kFound,
            fmt::format("{} of the source {} vectors.", Counted(lines, "line"),
                        lines == 1 ? "names" : "name")};
  return {Evidence::Kind::kUnknown,
          "The source names no vectors; what the compiler made of it is not looked at."};
}

Evidence Threads(const Verdict& verdict, std::string_view source) {
  if (!verdict.kernels.empty() && verdict.kernels.front().blocks > 0) {
    const KernelRecord& kernel = verdict.kernels.front();
    return {Evidence::Kind::kUnknown,
            fmt::format("{} blocks of {} threads; {:.0f}% of the warps that fit.", kernel.blocks,
                        kernel.threads, 100 * kernel.occupancy)};
  }
  if (!verdict.machine.gpu.empty()) return {};
  if (verdict.machine.threads < 2) return {Evidence::Kind::kAgainst, "Each side had one thread."};
  const int64_t lines = LinesWith(source, {"omp parallel", "std::thread", "pthread_create"});
  return {
      lines > 0 ? Evidence::Kind::kFound : Evidence::Kind::kAgainst,
      fmt::format("{} of the source {} threads, of which each side had {}.", Counted(lines, "line"),
                  lines == 1 ? "starts" : "start", verdict.machine.threads)};
}

}  // namespace

std::span<const MechanismFacts> AllMechanisms() { return kMechanisms; }

const MechanismFacts& FactsOf(Mechanism mechanism) {
  return *std::find_if(kMechanisms.begin(), kMechanisms.end(),
                       [&](const MechanismFacts& facts) { return facts.mechanism == mechanism; });
}

std::optional<Mechanism> MechanismFromName(std::string_view name) {
  for (const MechanismFacts& facts : kMechanisms)
    if (facts.name == name) return facts.mechanism;
  return std::nullopt;
}

std::string MechanismNames() {
  std::string names;
  for (const MechanismFacts& facts : kMechanisms)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", facts.name);
  return names;
}

std::string MechanismMeanings() {
  std::string lines;
  for (const MechanismFacts& facts : kMechanisms)
    lines += fmt::format("  {:<20} {}\n", facts.name, facts.meaning);
  return lines;
}

Evidence EvidenceFor(Mechanism mechanism, const Verdict& verdict, std::string_view source) {
  Evidence evidence;
  switch (mechanism) {
    case Mechanism::kMemoryMovement:
      evidence = Traffic(verdict);
      break;
    case Mechanism::kFusion:
      evidence = Fusion(verdict);
      break;
    case Mechanism::kVectorising:
      evidence = Vectors(verdict, source);
      break;
    case Mechanism::kParallelism:
      evidence = Threads(verdict, source);
      break;
    case Mechanism::kTensorCores:
      evidence = OfInstructions(verdict, "matrix", "matrix instructions");
      break;
    case Mechanism::kAsynchronousCopies:
      evidence = OfInstructions(verdict, "async_copy", "asynchronous copies");
      break;
    case Mechanism::kLatencyHiding:
    case Mechanism::kTiling:
    case Mechanism::kLessWork:
      break;
  }
  if (evidence.text.empty()) evidence.text = "The judge has no measurement of this.";
  if (mechanism == Mechanism::kTiling && verdict.roofline)
    evidence.text = fmt::format(
        "The judge does not see caches; the version reaches {:.0f}% of its bound, the baseline "
        "{:.0f}%.",
        verdict.roofline->percent_of_peak, verdict.roofline->reference_percent_of_peak);
  return evidence;
}

}  // namespace assay
