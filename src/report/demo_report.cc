#include "report/demo_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/median.h"
#include "report/online_softmax.h"
#include "report/text.h"

namespace assay {
namespace {

constexpr int kLabelWidth = 18, kTimeWidth = 10;

// A bar whose length is the share of the longest time.
Line TimeRow(const Frame& frame, const std::string& label, double time_ns, double longest_ns,
             int room, Tone tone, const std::string& after) {
  const Glyphs& glyphs = GlyphsOf(frame.style());
  const int length =
      std::max(1, static_cast<int>(std::lround(room * std::min(1.0, time_ns / longest_ns))));
  return {{fmt::format("{:<{}}", label, kLabelWidth), Tone::kFaint},
          {fmt::format("{:<{}}", FormatDuration(time_ns), kTimeWidth), Tone::kStrong},
          {Repeated(glyphs.bar, length), tone},
          {after.empty() ? "" : " " + after, Tone::kPlain}};
}

double LastMedian(const std::vector<double>& values) {
  constexpr size_t kLast = 10;
  const size_t from = values.size() > kLast ? values.size() - kLast : 0;
  return Median({values.begin() + static_cast<long>(from), values.end()});
}

}  // namespace

std::string RenderGap(const Verdict& verdict, const CardStyle& style) {
  Frame frame(style);
  const BaselineResult& eager = verdict.speed->baselines.at(verdict.speed->headline);
  const Roofline& roofline = *verdict.roofline;
  const double longest = std::max(eager.candidate_time_ns, eager.time_ns);
  const auto rate = [&](double time_ns) {
    return fmt::format("{:.3g} GFLOP/s", verdict.work->operations / time_ns);
  };
  frame.Top("the gap: one matrix product, two programs",
            verdict.problem.set.empty() ? "" : verdict.problem.signature.front());
  frame.Blank();
  const int room = frame.inner_width() - kLabelWidth - kTimeWidth - 2;
  frame.Row(TimeRow(frame, "naive loops", eager.candidate_time_ns, longest, room, Tone::kBad, ""));
  frame.Row(TimeRow(frame, "PyTorch's library", eager.time_ns, longest, room, Tone::kGood, ""));
  const bool on_gpu = !verdict.machine.gpu.empty();
  frame.Row(TimeRow(frame, on_gpu ? "this GPU" : "this machine", roofline.bound_ns, longest, room,
                    Tone::kPlain, ""));
  frame.Blank();
  const auto share = [&](const char* label, double percent, double time_ns) {
    frame.Labelled(label, fmt::format("{:.3g}% of the peak, {}", percent, rate(time_ns)));
  };
  share("naive", roofline.percent_of_peak, eager.candidate_time_ns);
  share("library", roofline.reference_percent_of_peak, eager.time_ns);
  frame.Labelled("peak", fmt::format("{:.3g} GFLOP/s of {}, {}", roofline.rate_operations_s / 1e9,
                                     roofline.instructions,
                                     on_gpu ? verdict.machine.gpu
                                            : Counted(verdict.machine.threads, "thread")));
  frame.Labelled("between them",
                 fmt::format("{}: the kernels under `kernels/` close this gap step by step",
                             FormatRatio(eager.candidate_time_ns / eager.time_ns)),
                 Tone::kStrong);
  frame.Bottom();
  return frame.Take();
}

std::string RenderFirstCalls(const FirstCalls& calls, const CardStyle& style) {
  constexpr size_t kShown = 12;
  Frame frame(style);
  const auto longest_of = [](const std::vector<double>& times) {
    return *std::max_element(times.begin(), times.end());
  };
  const double longest = std::max(longest_of(calls.reference_ns), longest_of(calls.candidate_ns));
  const int room = frame.inner_width() - kLabelWidth - kTimeWidth - 2;
  frame.Top("the first calls of a fresh process", "softmax");
  const auto series = [&](const char* name, const std::vector<double>& times, Tone tone) {
    frame.Section(name,
                  {fmt::format("warmed up: {}", FormatDuration(LastMedian(times))), Tone::kFaint});
    for (size_t i = 0; i < std::min(kShown, times.size()); ++i)
      frame.Row(TimeRow(frame, fmt::format("call {}", i + 1), times[i], longest, room, tone, ""));
  };
  series("eager PyTorch", calls.reference_ns, Tone::kWarning);
  series(calls.candidate.c_str(), calls.candidate_ns, Tone::kGood);
  const double cold = calls.reference_ns.front() / calls.candidate_ns.front();
  const double warm = LastMedian(calls.reference_ns) / LastMedian(calls.candidate_ns);
  frame.Section("what a speedup would have been", {});
  frame.Labelled("first call", FormatRatio(cold), Tone::kStrong);
  frame.Labelled("warmed up", FormatRatio(warm), Tone::kStrong);
  frame.Labelled("", "Gate 2 starts its clock once three calls agree and take no new memory.");
  frame.Bottom();
  return frame.Take();
}

std::string RenderOnlineSoftmax(const std::vector<std::vector<double>>& tiles,
                                const CardStyle& style) {
  Frame frame(style);
  const auto list = [](const std::vector<double>& values, const char* form) {
    std::string text;
    for (const double value : values)
      text += (text.empty() ? "" : ", ") + fmt::format(fmt::runtime(form), value);
    return text;
  };
  std::string cut;
  for (const auto& tile : tiles) cut += (cut.empty() ? "" : " | ") + list(tile, "{:g}");
  frame.Top("online softmax", cut);
  frame.Section("one pass, tile by tile", {"sum of exp(x - maximum)", Tone::kFaint});
  const auto steps = OnlineSoftmaxSteps(tiles);
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string rescaled =
        i == 0 ? std::string("the first tile")
               : fmt::format("the sum before is scaled by exp({:g} - {:g}) = {:.6f}",
                             steps[i - 1].maximum, steps[i].maximum, steps[i].factor);
    frame.Labelled(list(tiles[i], "{:g}"), fmt::format("maximum {:g}, sum {:.6f}; {}",
                                                       steps[i].maximum, steps[i].sum, rescaled));
  }
  const auto online = OnlineSoftmax(tiles), twice = TwoPassSoftmax(tiles);
  double apart = 0;
  for (size_t i = 0; i < online.size(); ++i)
    apart = std::max(apart, std::abs(online[i] - twice[i]));
  frame.Section("the weights", {});
  frame.Labelled("one pass", list(online, "{:.6f}"));
  frame.Labelled("two passes", list(twice, "{:.6f}"));
  frame.Labelled(
      "apart", fmt::format("{:.1e} at most: they {}", apart, apart < 1e-12 ? "agree" : "disagree"),
      apart < 1e-12 ? Tone::kGood : Tone::kBad);
  frame.Bottom();
  return frame.Take();
}

}  // namespace assay
