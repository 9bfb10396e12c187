// assay roofline.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "archive/open_store.h"
#include "base/files.h"
#include "base/hash.h"
#include "cli/exit_code.h"
#include "cli/options.h"
#include "cli/recorder.h"
#include "model/verdict_json.h"
#include "problem/suite.h"
#include "report/roofline_chart.h"
#include "report/terminal.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kVerdictBytesMax = 64 << 20;
constexpr size_t kDigitsMin = 4;

// A file, a saved verdict, or a record of the archive.
Result<Verdict> FindVerdict(const std::string& name, const std::string& archive) {
  std::error_code code;
  for (const fs::path& path : {fs::path(name), StateFolder() / "verdicts" / (name + ".json")}) {
    if (!fs::exists(path, code)) continue;
    ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kVerdictBytesMax));
    return VerdictFromJson(text);
  }
  const std::string path = archive.empty() ? DefaultArchive() : archive;
  const bool is_id =
      name.size() >= kDigitsMin && name.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (is_id && StoreMayExist(path)) {
    ASSAY_ASSIGN_OR_RETURN(const auto store, OpenStore(path, StoreAccess::kRead));
    RecordQuery query;
    query.kind = RecordKind::kVerdict;
    query.reference = name;
    query.limit = 1;
    ASSAY_ASSIGN_OR_RETURN(const auto found, store->Find(query));
    if (!found.empty()) {
      ASSAY_ASSIGN_OR_RETURN(const std::string text, store->Get(found.front().content));
      return VerdictFromJson(text);
    }
  }
  return UsageError(fmt::format(
      "there is no verdict {}: give a file, or an id that assay archive list shows", name));
}

Result<int> Draw(const RooflineOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(const ProblemRequest problem,
                         ResolveProblem({options.problem, "", {}}, SuiteFolders()));
  std::vector<Verdict> verdicts;
  for (const std::string& name : options.verdicts) {
    ASSAY_ASSIGN_OR_RETURN(Verdict verdict, FindVerdict(name, options.archive));
    if (verdict.problem.hash != Sha256Hex(problem.source))
      return UsageError(
          fmt::format("{} is a verdict on {}, or on another state of its file, not "
                      "on {}",
                      name, verdict.problem.name, problem.name));
    verdicts.push_back(std::move(verdict));
  }
  std::vector<RooflineVersion> versions;
  for (const Verdict& verdict : verdicts)
    versions.push_back(
        {fs::path(verdict.candidate.path).filename().string(), ChartSide::kFirst, &verdict});
  ASSAY_ASSIGN_OR_RETURN(const RooflineChart chart, MakeRooflineChart(versions));
  for (const RooflineVersion& version : versions)
    if (!version.verdict->roofline || !version.verdict->work || !version.verdict->speed)
      Notice(fmt::format("{} is left out: its verdict has no settled speed", version.label));
  std::fputs(RenderRooflineText(chart, CardStyleFor(DetectTerminal(STDOUT_FILENO))).c_str(),
             stdout);
  if (options.svg.empty()) return kExitGood;
  ASSAY_RETURN_IF_ERROR(
      WriteFileAtomically(options.svg, RenderRooflineSvg(chart, true, "roofline")));
  std::fputs(fmt::format("wrote {}\n", options.svg).c_str(), stdout);
  return kExitGood;
}

}  // namespace

int RunRoofline(const RooflineOptions& options) {
  const auto code = Draw(options);
  return code ? *code : ReportError(code.error());
}

}  // namespace assay
