#include "cli/search_parts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "builders/native_code.h"
#include "cli/options.h"
#include "cli/search_ports.h"
#include "doctor/doctor.h"
#include "problem/suite.h"
#include "search/chains.h"
#include "search/evolution.h"
#include "search/prompt_writer.h"
#include "search/tuner.h"
#include "worker/protocol.h"

namespace assay {
namespace {

// Questions for each evaluation of the budget: answers without code end a search, too.
constexpr int64_t kQuestionsAnEvaluation = 4;
constexpr int64_t kQuestionsMax = 100'000;

Result<std::unique_ptr<Writer>> WriterFor(const SearchSettings& settings, StopToken stop) {
  ASSAY_ASSIGN_OR_RETURN(const std::string shipped, PromptTemplates::ShippedFolder());
  ASSAY_ASSIGN_OR_RETURN(PromptTemplates templates,
                         PromptTemplates::Load(shipped, settings.prompts));
  ASSAY_ASSIGN_OR_RETURN(const AskedTerms asked, RecordedTerms(settings.terms));
  PromptWriterTerms terms;
  ASSAY_ASSIGN_OR_RETURN(terms.problem, ResolveProblem(asked.problem, SuiteFolders()));
  terms.signature = settings.signature;
  terms.form = settings.form;
  terms.prompt_tokens = settings.prompt_tokens;
  terms.answer_tokens = settings.answer_tokens;
  terms.temperature = settings.temperature;
  std::string notice;
  terms.machine = LoadMachineProfile(&notice);
  if (notice.empty() && terms.machine.ceilings.empty() && terms.machine.gpus.empty())
    notice =
        "this machine's ceilings are not known, so that no prompt tells them: run assay doctor "
        "once";
  if (!notice.empty()) Notice(notice);
  terms.read_code = [stop](const CandidateSource& source) {
    return ReadNativeCode(source, {}, stop).value_or(NativeCode());
  };
  ASSAY_ASSIGN_OR_RETURN(PromptWriter writer,
                         PromptWriter::Make(std::move(templates), std::move(terms)));
  return std::make_unique<PromptWriter>(std::move(writer));
}

Result<std::unique_ptr<Strategy>> AskingStrategy(const SearchSettings& settings,
                                                 const Writer& writer) {
  if (settings.strategy == "sample" || settings.strategy == "refine") {
    const int64_t turns = settings.strategy == "sample" ? 1 : settings.turns;
    return std::make_unique<Chains>(
        writer, ChainTerms{settings.chains, turns, settings.width, settings.seed});
  }
  EvolutionTerms terms;
  terms.greedy = settings.strategy == "greedy";
  if (settings.strategy == "no-archive" || terms.greedy) {
    terms.islands = 1;
    terms.cells = false;
  } else if (settings.strategy != "evolve") {
    return UsageError(
        fmt::format("--strategy {}: with a proposer there are sample, refine, evolve, greedy and "
                    "no-archive",
                    settings.strategy));
  }
  terms.ablates = settings.ablates;
  ASSAY_ASSIGN_OR_RETURN(terms.ports, TriedElsewhere(settings.ports));
  terms.seed = settings.seed;
  terms.width = settings.width;
  terms.lines_max = settings.budget.evaluations > 0
                        ? kQuestionsAnEvaluation * settings.budget.evaluations
                        : kQuestionsMax;
  return std::make_unique<Evolution>(writer, terms);
}

}  // namespace

Result<AskedTerms> RecordedTerms(const std::string& terms) {
  std::string id;
  ASSAY_ASSIGN_OR_RETURN(WorkerRequest request,
                         ParseWorkerRequest(nlohmann::json{{"id", "terms"},
                                                           {"request", "describe"},
                                                           {"terms", nlohmann::json::parse(terms)}}
                                                .dump(),
                                            &id));
  return request.terms;
}

Result<StrategyParts> MakeStrategy(const SearchSettings& settings, const ProposerOptions& options,
                                   StopToken stop) {
  // Before the writer: the proposer may be wrong.
  std::unique_ptr<Proposer> proposer;
  if (settings.proposer != kTunerName) {
    ASSAY_ASSIGN_OR_RETURN(proposer, MakeProposer(settings.proposer, options));
  }
  ASSAY_ASSIGN_OR_RETURN(StrategyParts parts, MakeRecordedStrategy(settings, stop));
  if (!proposer) return parts;
  parts.proposer = std::move(proposer);
  parts.proposals =
      std::make_unique<Proposals>(*parts.proposer, static_cast<size_t>(settings.askers));
  return parts;
}

Result<StrategyParts> MakeRecordedStrategy(const SearchSettings& settings, StopToken stop) {
  StrategyParts parts;
  if (settings.proposer == kTunerName) {
    ASSAY_ASSIGN_OR_RETURN(const CandidateSource from,
                           CandidateFromText(settings.from_name, settings.from_source));
    ASSAY_ASSIGN_OR_RETURN(
        parts.strategy,
        Tuner::Make(settings.strategy, settings.from_name, settings.from_source, from.language,
                    settings.seed, static_cast<size_t>(settings.width)));
    return parts;
  }
  ASSAY_ASSIGN_OR_RETURN(parts.writer, WriterFor(settings, stop));
  ASSAY_ASSIGN_OR_RETURN(parts.strategy, AskingStrategy(settings, *parts.writer));
  return parts;
}

}  // namespace assay
