#include "web/machine_page.h"

#include <algorithm>
#include <cmath>

#include "report/text.h"
#include "web/parts.h"

namespace assay {
namespace {

Html WorkText(const RunnerLine& runner) {
  if (!runner.is_there)
    return Markup("<span class=\"warn\">away since {}</span>", TimeText(runner.last_seen));
  if (runner.job != 0) return Markup("<a href=\"/jobs/{0}\">job {0}</a>", runner.job);
  return Html::Trusted("<span class=\"faint\">idle</span>");
}

Html ChecksText(const RunnerLine& runner) {
  if (runner.checked == 0) return Html::Trusted("<span class=\"zero\">–</span>");
  const std::string undecided =
      runner.undecided > 0 ? fmt::format("{} undecided", runner.undecided) : "";
  if (runner.differing > 0)
    return Markup("<strong class=\"bad\">{} of {} disagree</strong>{}{}", runner.differing,
                  runner.checked, undecided.empty() ? "" : ", ", undecided);
  const int64_t agreeing = runner.checked - runner.undecided;
  if (agreeing == 0) return Text(undecided);
  return Markup("{} agree{}{}", agreeing, undecided.empty() ? "" : ", ", undecided);
}

Html PromotionForm(const RunnerLine& runner, const Viewer& viewer) {
  if (runner.owner.empty()) return {};
  return Markup(
      "<form method=\"post\" action=\"/runners/{0}/promotion\">{1}<input type=\"hidden\" "
      "name=\"promoted\" value=\"{2}\"><button{3}>{4}<span class=\"hidden-text\"> the runner "
      "{5}</span></button></form>",
      runner.id, CsrfField(viewer), runner.promoted ? "no" : "yes",
      Html::Trusted(runner.promoted ? "" : " class=\"first\""),
      runner.promoted ? "Demote" : "Promote", runner.name);
}

Html TakesJobsOf(const RunnerLine& runner) {
  if (runner.owner.empty() || (runner.promoted && runner.is_mentors)) return Text("everybody");
  if (runner.promoted) return Markup("everybody but {}", runner.owner);
  return Markup("{} <span class=\"tag own\">own runner</span>", runner.owner);
}

Html Runners(const MachineView& view, const Viewer& viewer) {
  if (view.runners.empty()) return Paragraph("No runner has asked for work yet.", "faint");
  std::vector<Column> columns{{"runner", "name"}, {"device", ""},      {"takes jobs of", "name"},
                              {"at work on", ""}, {"spot checks", ""}, {"version", ""}};
  if (view.may_promote) columns.push_back({"", ""});
  PageTable table("runners", columns);
  for (const RunnerLine& runner : view.runners) {
    std::vector<Html> cells{Text(runner.name), Text(runner.device), TakesJobsOf(runner),
                            WorkText(runner),  ChecksText(runner),  Text(runner.version)};
    if (view.may_promote) cells.push_back(PromotionForm(runner, viewer));
    table.AddRow(cells);
  }
  return table.End();
}

// The way from here to a judged job.
Html NobodyTakes(const MachineView& view) {
  const bool anybody = std::ranges::any_of(view.runners, [](const RunnerLine& runner) {
    return runner.is_there && (runner.promoted || runner.owner.empty());
  });
  if (anybody && view.for_nobody == 0) return {};
  Html html = Markup("<div class=\"notice bad\" role=\"status\"><p><strong>{}</strong></p>",
                     view.for_nobody > 0 ? fmt::format("No runner takes {} of the queue.",
                                                       Counted(view.for_nobody, "job"))
                                         : "No runner here takes everybody's jobs.");
  html += Markup("<p>Start one on any machine, {}:</p>{}</div>\n",
                 view.may_promote ? "and promote it below once it is there"
                                  : "and a mentor promotes it on this page",
                 Command(fmt::format("assay worker --server {} --token-file FILE",
                                     view.server.empty() ? "URL" : ShellQuoted(view.server))));
  return html;
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
                 view.minutes_a_job > 0 ? fmt::format("; a job takes {} at the median",
                                                      FormatDuration(view.minutes_a_job * 60e9))
                                        : "");
  main += NobodyTakes(view) + Heading("Runners") + Runners(view, frame.viewer);
  if (view.may_promote && !view.runners.empty())
    main += Paragraph(
        "A promoted runner takes everybody's jobs but its owner's, and its verdicts have ranks. "
        "Any other one takes its owner's jobs alone, and what it says is marked.",
        "faint");
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
