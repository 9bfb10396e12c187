#include "report/doctor_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/text.h"

namespace assay {
namespace {

using State = DoctorFinding::State;

class DoctorWriter {
 public:
  DoctorWriter(const DoctorReport& report, const CardStyle& style)
      : report_(report), frame_(style) {}

  std::string Write() {
    const auto count = [&](State state) {
      return std::count_if(report_.findings.begin(), report_.findings.end(),
                           [=](const DoctorFinding& finding) { return finding.state == state; });
    };
    const auto missing = count(State::kMissing), limited = count(State::kLimited);
    frame_.Top("assay doctor", missing > 0   ? fmt::format("{} missing", missing)
                               : limited > 0 ? "ready, with limits"
                                             : "ready");
    for (const DoctorFinding& finding : report_.findings) Row(finding);
    Cores();
    for (const Ceilings& ceilings : report_.profile.ceilings) Rates(ceilings);
    for (const GpuCeilings& gpu : report_.profile.gpus) GpuRates(gpu);
    Noise();
    frame_.Bottom();
    return frame_.Take() + Mending();
  }

 private:
  std::string Safe(std::string_view text) const { return Printable(text, frame_.style().unicode); }

  void Row(const DoctorFinding& finding) {
    const bool unicode = frame_.style().unicode;
    const char* mark = finding.state == State::kGood      ? (unicode ? "✔" : "+")
                       : finding.state == State::kLimited ? "~"
                                                          : (unicode ? "✘" : "x");
    const Tone tone = finding.state == State::kGood      ? Tone::kGood
                      : finding.state == State::kLimited ? Tone::kWarning
                                                         : Tone::kBad;
    const auto lines = Wrapped(Safe(finding.found), frame_.inner_width() - kNameWidth - 2);
    for (size_t i = 0; i < lines.size(); ++i)
      frame_.Row({{i == 0 ? std::string(mark) + " " : "  ", tone},
                  {fmt::format("{:<{}}", i == 0 ? finding.name : "", kNameWidth), Tone::kFaint},
                  {lines[i], finding.state == State::kGood ? Tone::kPlain : tone}});
  }

  void Cores() {
    const Topology& topology = report_.topology;
    frame_.Section("this machine", {});
    frame_.Labelled("processor", Safe(report_.profile.cpu));
    frame_.Labelled(
        "cores", fmt::format("{}, {}; {} usable here", Counted(topology.cores, "core"),
                             Counted(topology.threads, "hardware thread"), report_.profile.cores));
    std::vector<std::string> caches;
    for (const CacheLevel& cache : topology.caches)
      caches.push_back(
          fmt::format("L{} {}{}", cache.level, BinarySize(cache.size_bytes),
                      cache.cores > 1 ? fmt::format(" for {} cores", cache.cores) : std::string()));
    if (!caches.empty()) frame_.Labelled("caches", fmt::format("{}", fmt::join(caches, ", ")));
  }

  void Rates(const Ceilings& ceilings) {
    frame_.Section(fmt::format("ceilings of {}", Counted(ceilings.threads, "core")), {});
    frame_.Labelled("memory",
                    fmt::format("read {}, copy {}, triad {} GB/s", Giga(ceilings.read_bytes_s),
                                Giga(ceilings.copy_bytes_s), Giga(ceilings.triad_bytes_s)));
    Arithmetic("float32", ceilings.float32_operations_s);
    Arithmetic("float64", ceilings.float64_operations_s);
  }

  void Arithmetic(const char* label, const std::map<std::string, double>& rates) {
    if (rates.empty()) return;
    std::vector<std::pair<double, std::string>> rising;
    for (const auto& [name, rate] : rates) rising.push_back({rate, name});
    std::sort(rising.begin(), rising.end());
    std::vector<std::string> parts;
    for (const auto& [rate, name] : rising) parts.push_back(fmt::format("{} {}", name, Giga(rate)));
    frame_.Labelled(label, fmt::format("{} GFLOP/s", fmt::join(parts, ", ")));
  }

  // Best and median of several blocks, and by what.
  void GpuRates(const GpuCeilings& gpu) {
    frame_.Section("ceilings of the GPU", {Safe(gpu.name), Tone::kFaint});
    RateColumns("", "best", "median", "of blocks of at least 20 ms", Tone::kFaint);
    for (const auto& [key, label] :
         {std::pair{"read", "memory reads"}, {"copy", "memory copy"}, {"l2_read", "L2 reads"}})
      GpuRateRow(gpu.traffic, key, label, "B/s");
    for (const char* name : {"float64", "float32", "bfloat16", "float16"})
      GpuRateRow(gpu.arithmetic, name, name, "FLOP/s");
    frame_.Labelled("matrix units", "on random data", Tone::kFaint);
    for (const char* name : {"float64", "tf32", "bfloat16", "float16", "float8"})
      GpuRateRow(gpu.arithmetic, fmt::format("tensor_{}", name), name, "FLOP/s");
    frame_.Labelled("empty launch",
                    fmt::format("{} in a row, {} waited for", FormatDuration(gpu.launch_ns),
                                FormatDuration(gpu.launch_and_wait_ns)));
    for (const std::string& note : gpu.notes) frame_.Labelled("", Safe(note), Tone::kFaint);
  }

  void RateColumns(std::string_view label, std::string_view best, std::string_view median,
                   std::string_view how, Tone tone) {
    constexpr int kWidth = 13;
    const int room = frame_.inner_width() - Frame::kLabelWidth - 2 * kWidth;
    frame_.Row({{fmt::format("{:<{}}", label, Frame::kLabelWidth), Tone::kFaint},
                {fmt::format("{:<{}}{:<{}}{}", best, kWidth, median, kWidth,
                             Shortened(how, room, frame_.style().unicode)),
                 tone}});
  }

  void GpuRateRow(const std::map<std::string, GpuRate>& rates, const std::string& key,
                  const char* label, const char* unit) {
    const auto found = rates.find(key);
    if (found == rates.end()) return;
    const GpuRate& rate = found->second;
    RateColumns(label, FormatRate(rate.best, unit), FormatRate(rate.median, unit), Safe(rate.how),
                Tone::kPlain);
  }

  void Noise() {
    const MachineProfile& profile = report_.profile;
    if (profile.noise.empty()) return;
    frame_.Section("noise floor", {"against its own copy", Tone::kFaint});
    for (const NoisePoint& point : profile.noise)
      frame_.Labelled(
          FormatDuration(point.call_ns),
          fmt::format("verdicts within {:.2f}%, widest pair {:.1f}%", 100 * std::expm1(point.delta),
                      100 * std::expm1(point.clear_margin / kNoiseMarginFactor)));
    frame_.Labelled("empty call",
                    fmt::format("{} native, {} in PyTorch", FormatDuration(profile.empty_call_ns),
                                FormatDuration(profile.empty_python_call_ns)));
  }

  std::string Mending() const {
    std::string text;
    for (const DoctorFinding& finding : report_.findings)
      if (!finding.mend.empty())
        text += fmt::format("   {:<{}} {}\n", finding.name + ":", kNameWidth + 1,
                            Painted({finding.mend, Tone::kStrong}, frame_.style()));
    return text.empty() ? text : "   to mend:\n" + text;
  }

  static constexpr int kNameWidth = 16;
  // Caches come in powers of two.
  static std::string BinarySize(uint64_t bytes) {
    return bytes < (1 << 20) ? fmt::format("{:.4g} KiB", static_cast<double>(bytes) / 0x1p10)
                             : fmt::format("{:.4g} MiB", static_cast<double>(bytes) / 0x1p20);
  }
  static std::string Giga(double rate) { return fmt::format("{:.3g}", rate / 1e9); }

  const DoctorReport& report_;
  Frame frame_;
};

}  // namespace

std::string RenderDoctor(const DoctorReport& report, const CardStyle& style) {
  return DoctorWriter(report, style).Write();
}

}  // namespace assay
