#include "cli/archive_dataset.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "base/hash.h"
#include "cli/options.h"
#include "problem/gradients.h"
#include "report/text.h"
#include "search/dataset.h"
#include "session/asked_terms.h"

namespace assay {
namespace {

// Reads problem files, each once, where the record says or where the suites have one of its name.
class References {
 public:
  std::optional<std::string> Find(const ProblemRecord& problem) {
    const auto [place, fresh] = sources_.try_emplace(problem.hash);
    if (fresh) place->second = Read(problem);
    return place->second;
  }

 private:
  static std::optional<std::string> Read(const ProblemRecord& problem) {
    const bool gradients = HasGradients(problem);
    const std::string name = gradients ? NameWithoutGradients(problem.name) : problem.name;
    for (const std::string& asked : {problem.path, name}) {
      auto known = ResolveProblem({asked, "", {}, gradients}, SuiteFolders());
      if (known && Sha256Hex(known->source) == problem.hash) return std::move(known->source);
    }
    return std::nullopt;
  }

  std::map<std::string, std::optional<std::string>> sources_;  // by hash
};

}  // namespace

Result<Written> WriteDataset(Store& store, const ArchiveExportOptions& options, std::FILE* file) {
  ASSAY_ASSIGN_OR_RETURN(const DatasetKind kind, DatasetKindFromName(options.as));
  References references;
  DatasetTerms terms;
  ASSAY_ASSIGN_OR_RETURN(terms.rewards.formula, RewardFormulaFromName(options.formula));
  terms.rewards.p = options.p;
  terms.test_share = options.test_share;
  terms.licence = options.licence;
  terms.reference = [&](const ProblemRecord& problem) { return references.Find(problem); };
  Written written;
  ASSAY_ASSIGN_OR_RETURN(
      const std::vector<Sample> samples,
      ReadSamples(store, [&](const std::string& notice) { written.LeaveOut(notice); }));
  const Dataset dataset = MakeDataset(kind, samples, terms);
  for (const std::string& line : dataset.lines) std::fputs((line + "\n").c_str(), file);
  if (std::fflush(file) != 0 || std::ferror(file) != 0)
    return EnvironmentError(fmt::format("cannot write {}: {}", options.file, std::strerror(errno)));
  written.records = static_cast<int64_t>(dataset.lines.size());
  if (dataset.left_out > 0)
    Notice(fmt::format("left out {} for lack of {}", Counted(dataset.left_out, "sample"),
                       dataset.lacking));
  return written;
}

}  // namespace assay
