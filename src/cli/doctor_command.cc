#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/exit_code.h"
#include "cli/options.h"
#include "doctor/doctor.h"
#include "report/doctor_report.h"
#include "report/progress.h"
#include "report/terminal.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

const char* StateName(DoctorFinding::State state) {
  switch (state) {
    case DoctorFinding::State::kGood:
      return "good";
    case DoctorFinding::State::kLimited:
      return "limited";
    case DoctorFinding::State::kMissing:
      return "missing";
  }
  return "unknown";
}

std::string ToJson(const DoctorReport& report) {
  Json findings = Json::array();
  for (const DoctorFinding& finding : report.findings)
    findings.push_back({{"name", finding.name},
                        {"state", StateName(finding.state)},
                        {"found", finding.found},
                        {"mend", finding.mend.empty() ? Json() : Json(finding.mend)}});
  const Json document = {{"schema", "assay.doctor/1"},
                         {"findings", findings},
                         {"machine", Json::parse(MachineProfileToJson(report.profile))}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

int RunDoctor(const DoctorOptions& options) {
  DoctorRequest request;
  request.python = options.python;
  request.device = options.device;
  request.ceilings = !options.quick;
  request.noise = options.noise;
  request.stop = StopToken(InstallInterruptHandler());
  ProgressOptions progress_options;
  if (!options.quiet) progress_options.terminal = DetectTerminal(STDERR_FILENO);
  Progress progress(std::move(progress_options));
  const auto report = ExamineMachine(request, [&](const std::string& stage, double fraction) {
    progress.Update(stage, fraction);
  });
  progress.Clear();
  // Interrupted: nothing is kept, and what an earlier run kept stays.
  if (!report)
    return ReportError(report.error(), options.json ? JsonForm::kDocument : JsonForm::kNone);
  if (!options.quick)
    if (const auto saved = SaveMachineProfile(report->profile); !saved)
      std::fputs(
          fmt::format("assay: the measurements were not kept: {}\n", saved.error().message).c_str(),
          stderr);
  std::fputs((options.json ? ToJson(*report)
                           : RenderDoctor(*report, CardStyleFor(DetectTerminal(STDOUT_FILENO))))
                 .c_str(),
             stdout);
  const bool missing = std::any_of(
      report->findings.begin(), report->findings.end(),
      [](const DoctorFinding& finding) { return finding.state == DoctorFinding::State::kMissing; });
  return missing ? kExitEnvironment : kExitGood;
}

}  // namespace assay
