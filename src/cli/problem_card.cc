#include "cli/problem_card.h"

#include "cli/options.h"
#include "doctor/doctor.h"
#include "problem/suite.h"
#include "rules/roofline.h"
#include "session/problem_coverage.h"
#include "values/work_account.h"

namespace assay {
namespace {

// The dtype that most of the arithmetic is in: the first output's.
bool IsFloat64(const WorkAccount& account) {
  return !account.outputs.empty() && account.outputs.front().find(" float64[") != std::string::npos;
}

}  // namespace

Result<void> WithProblemCard(const InspectRequest& request,
                             const std::function<void(const ProblemCard&)>& show) {
  ASSAY_ASSIGN_OR_RETURN(const Inspection inspection, InspectProblem(request));
  ProblemCard card{request.problem, "", "", inspection, {}, std::nullopt, request.threads};
  if (const auto described = FindInSuite(request.problem.path)) {
    card.mechanism = described->mechanism;
    card.lesson = described->lesson;
  }
  card.work = WorkOf(inspection.input_bytes + inspection.parameter_bytes, inspection.output_bytes,
                     inspection.account);
  std::string notice;
  const MachineProfile machine = LoadMachineProfile(&notice);
  if (!notice.empty()) Notice(notice);
  card.coverage = KeptCoverage(request.problem, inspection.torch_version, "");
  card.bound = MakeBound(card.work, IsFloat64(inspection.account), machine, card.threads, false);
  show(card);
  return {};
}

}  // namespace assay
