#include "cli/search_ports.h"

#include <fmt/format.h>

#include "archive/judged.h"
#include "archive/open_store.h"
#include "model/outcome.h"
#include "model/verdict_json.h"
#include "search/prompt.h"

namespace assay {
namespace {

constexpr size_t kDigitsMin = 4;
constexpr size_t kPortsMax = 8;

Result<PortedKernel> Read(Store& store, const std::string& reference, const std::string& archive) {
  RecordQuery query;
  query.kind = RecordKind::kVerdict;
  query.reference = reference;
  query.limit = 2;
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> found, store.Find(query));
  if (found.size() != 1)
    return UsageError(fmt::format(
        "--port {}: {} has {} verdict of this hash or id; assay archive list shows those it has",
        reference, archive, found.empty() ? "no" : "more than one"));
  const Record& record = found.front();
  if (record.source.empty())
    return UsageError(fmt::format("--port {}: its candidate's source is not known", reference));
  PortedKernel kernel{record.facts.name, "", ""};
  ASSAY_ASSIGN_OR_RETURN(kernel.source, store.Get(record.source));
  ASSAY_ASSIGN_OR_RETURN(kernel.verdict, store.Get(record.content));
  return kernel;
}

Result<void> Check(const PortedKernel& kernel, const std::string& reference,
                   const std::string& problem, const std::string& form) {
  ASSAY_ASSIGN_OR_RETURN(const Verdict verdict, VerdictFromJson(kernel.verdict));
  if (verdict.problem.name != problem)
    return UsageError(fmt::format("--port {}: it is a verdict on {}, and the search is for {}",
                                  reference, verdict.problem.name, problem));
  const std::string_view found = CandidateFormName(verdict.candidate.form);
  if (found != form)
    return UsageError(fmt::format("--port {}: its candidate has the form {}: give --form {}",
                                  reference, found, found));
  if (!IsCorrect(verdict.outcome))
    return UsageError(fmt::format("--port {}: its candidate was {}: name a correct one", reference,
                                  OutcomeName(verdict.outcome)));
  return {};
}

}  // namespace

Result<std::vector<PortedKernel>> ReadPortedKernels(const std::vector<std::string>& given,
                                                    const std::string& archive,
                                                    const std::string& problem,
                                                    const std::string& form) {
  if (given.size() > kPortsMax)
    return UsageError(fmt::format("--port: at most {} can be given", kPortsMax));
  std::vector<PortedKernel> kernels;
  for (const std::string& each : given) {
    const size_t at = each.find('@');
    const std::string reference = each.substr(0, at);
    const std::string path = at == std::string::npos ? archive : each.substr(at + 1);
    if (reference.size() < kDigitsMin)
      return UsageError(
          fmt::format("--port {}: give VERDICT or VERDICT@ARCHIVE, with at least {} "
                      "digits of the verdict's hash or id",
                      each, kDigitsMin));
    ASSAY_ASSIGN_OR_RETURN(const auto store, OpenStore(path, StoreAccess::kRead));
    ASSAY_ASSIGN_OR_RETURN(PortedKernel kernel, Read(*store, reference, StoreName(path)));
    ASSAY_RETURN_IF_ERROR(Check(kernel, each, problem, form));
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

Result<std::vector<NewRecord>> RecordsOfPorts(const SearchSettings& settings) {
  std::vector<NewRecord> records;
  for (const PortedKernel& port : settings.ports) {
    ASSAY_ASSIGN_OR_RETURN(const Verdict verdict, VerdictFromJson(port.verdict));
    records.push_back(RecordOfFile(RecordKind::kCandidate, port.name, "", port.source));
    NewRecord judged =
        RecordOfFile(RecordKind::kVerdict, port.name, settings.problem, port.verdict);
    judged.facts.id = verdict.id;
    judged.facts.outcome = OutcomeName(verdict.outcome);
    judged.source = port.source;
    records.push_back(std::move(judged));
  }
  return records;
}

Result<std::vector<Tried>> TriedElsewhere(const std::vector<PortedKernel>& ports) {
  std::vector<Tried> tried;
  for (const PortedKernel& port : ports) {
    ASSAY_ASSIGN_OR_RETURN(Verdict verdict, VerdictFromJson(port.verdict));
    Tried each;
    each.key = verdict.id;
    each.source = port.source;
    const Ratio ratio = RatioOf(verdict);
    each.idea = fmt::format("{} as it stands, {} {}", verdict.id,
                            ratio.value > 0 ? fmt::format("{:.2f}x", ratio.value) : "judged",
                            OriginText(verdict));
    each.verdict = std::move(verdict);
    tried.push_back(std::move(each));
  }
  return tried;
}

}  // namespace assay
