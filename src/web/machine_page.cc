#include "web/machine_page.h"

#include <algorithm>
#include <cmath>

#include "report/text.h"
#include "web/parts.h"

namespace assay {
namespace {

Html Runners(const std::vector<RunnerLine>& runners) {
  if (runners.empty())
    return Paragraph("No runner asks for work: jobs wait until one does.", "faint") +
           Command("assay worker --server URL --token-file FILE");
  PageTable table("runners", {{"runner", "name"},
                              {"device", ""},
                              {"takes jobs of", "name"},
                              {"at work on", ""},
                              {"last seen (UTC)", ""},
                              {"version", ""}});
  for (const RunnerLine& runner : runners)
    table.Row({Text(runner.name), Text(runner.device),
               runner.promoted || runner.owner.empty() ? Text("everybody") : Text(runner.owner),
               runner.job != 0 ? Markup("<a href=\"/jobs/{0}\">job {0}</a>", runner.job)
                               : Html::Trusted("<span class=\"faint\">idle</span>"),
               TimeText(runner.last_seen), Text(runner.version)});
  return table.End();
}

Html CacheText(const MachineProfile& profile) {
  std::string text;
  for (const CacheLevel& cache : profile.caches)
    text += fmt::format("{}L{} {} for {}", text.empty() ? "" : "; ", cache.level,
                        FormatBytes(static_cast<double>(cache.size_bytes)),
                        Counted(cache.cores, "core"));
  return Text(text);
}

std::string BestRateText(const std::map<std::string, double>& rates) {
  const auto best = std::max_element(
      rates.begin(), rates.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return best == rates.end()
             ? "-"
             : fmt::format("{} ({})", FormatRate(best->second, "FLOP/s"), best->first);
}

Html CeilingTable(const MachineProfile& profile) {
  PageTable table("ceilings of " + profile.cpu,
                  {{"threads", "n"},
                   {"read", "n"},
                   {"copy", "n"},
                   {"triad", "n"},
                   {"float32", "n"},
                   {"float64", "n"}},
                  true);
  for (const Ceilings& each : profile.ceilings)
    table.Row({Markup("{}", each.threads), Text(FormatRate(each.read_bytes_s, "B/s")),
               Text(FormatRate(each.copy_bytes_s, "B/s")),
               Text(FormatRate(each.triad_bytes_s, "B/s")),
               Text(BestRateText(each.float32_operations_s)),
               Text(BestRateText(each.float64_operations_s))});
  return table.End();
}

// "1.3%" of an ln-ratio.
std::string PercentOf(double log_ratio) {
  return fmt::format("{:.2f}%", 100 * (std::exp(log_ratio) - 1));
}

Html NoiseTable(const MachineProfile& profile) {
  PageTable table("noise of " + profile.cpu,
                  {{"a call lasts", "n"},
                   {"identical programs differ by", "n"},
                   {"no single pair differed by more than", "n"}},
                  true);
  for (const NoisePoint& point : profile.noise)
    table.Row({Text(FormatDuration(point.call_ns)), Text(PercentOf(point.delta)),
               Text(PercentOf(point.clear_margin))});
  return table.End();
}

Html GpuTable(const GpuCeilings& gpu) {
  PageTable table("ceilings of " + gpu.name,
                  {{"", "name"}, {"best", "n"}, {"median", "n"}, {"by", "why"}});
  const auto rows = [&](const std::map<std::string, GpuRate>& rates, std::string_view unit) {
    for (const auto& [name, rate] : rates)
      table.Row({Text(name), Text(FormatRate(rate.best, unit)), Text(FormatRate(rate.median, unit)),
                 Text(rate.how)});
  };
  rows(gpu.traffic, "B/s");
  rows(gpu.arithmetic, "FLOP/s");
  Html html = Markup("<h3>{}, {}</h3>\n", gpu.name, gpu.architecture) + table.End();
  html += Facts(FactRow("an empty kernel, in a row", Text(FormatDuration(gpu.launch_ns))) +
                FactRow("an empty kernel, and the wait for it",
                        Text(FormatDuration(gpu.launch_and_wait_ns))) +
                FactRow("L2 cache", Text(FormatBytes(static_cast<double>(gpu.l2_bytes)))));
  for (const std::string& note : gpu.notes) html += Paragraph(note, "faint");
  return html;
}

}  // namespace

std::string RenderMachinePage(const MachineView& view, PageFrame frame) {
  frame.place = Place::kMachine;
  frame.title = "Machine";
  Html main = Html::Trusted("<h1>Machine</h1>\n");
  main += Markup("<p class=\"lead\">{} in the queue, {} running{}.</p>\n",
                 Counted(view.queued, "job"), view.running,
                 view.minutes_a_job > 0
                     ? fmt::format("; a job takes {:.1f} minutes at the median", view.minutes_a_job)
                     : "");
  main += Heading("Runners") + Runners(view.runners);
  for (const MachineProfile& profile : view.profiles) {
    main += Heading(profile.cpu);
    main += Facts(
        FactRow("cores", Markup("{}", profile.cores)) + FactRow("caches", CacheText(profile)) +
        FactRow("a call that does nothing",
                profile.empty_call_ns > 0 ? Text(FormatDuration(profile.empty_call_ns)) : Html()) +
        FactRow("its reference in Python", profile.empty_python_call_ns > 0
                                               ? Text(FormatDuration(profile.empty_python_call_ns))
                                               : Html()) +
        FactRow("measured", TimeText(profile.created)));
    if (!profile.ceilings.empty())
      main += Html::Trusted("<h3>Ceilings</h3>\n") + CeilingTable(profile);
    if (!profile.noise.empty())
      main += Html::Trusted("<h3>Noise: programs against their own copies</h3>\n") +
              NoiseTable(profile);
    for (const GpuCeilings& gpu : profile.gpus) main += GpuTable(gpu);
  }
  if (view.profiles.empty())
    main += Paragraph("No ceilings were measured. assay doctor --noise measures them.", "faint");
  main += Html::Trusted("<p class=\"screen\"><a href=\"/api/machine\">This page as JSON</a></p>\n");
  return RenderPage(frame, main);
}

}  // namespace assay
