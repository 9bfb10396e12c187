#include "cli/search_setup.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "builders/native_code.h"
#include "cli/places.h"
#include "doctor/doctor.h"
#include "machine/machine.h"
#include "machine/seeds.h"
#include "search/chains.h"
#include "search/tuner.h"
#include "session/judge.h"
#include "values/oracle.h"
#include "worker/protocol.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kIdDigits = 12;
constexpr std::string_view kTuner = "tuner";

// The lines that say what a candidate is called with: PyTorch runs the reference once.
Result<std::vector<std::string>> SignatureOf(const SessionTerms& terms) {
  ASSAY_RETURN_IF_ERROR(RequireSandbox());
  OracleOptions options;
  options.problem = terms.problem;
  ASSAY_ASSIGN_OR_RETURN(options.python, FindPython(terms.python));
  options.memory_bytes = AvailableMemoryBytes() / 4 * 3;
  ASSAY_ASSIGN_OR_RETURN(const auto oracle, Oracle::Open(std::move(options)));
  std::vector<std::string> signature;
  for (const wire::ArgumentSpec& argument : oracle.description().arguments)
    signature.push_back(DescribeArgument(argument));
  return signature;
}

Result<void> CheckOptions(const SearchOptions& options) {
  if (options.problem.problem.empty())
    return UsageError("name a problem, or go on with a search by --resume");
  const bool tunes = options.proposer == kTuner;
  if (tunes && options.from.empty())
    return UsageError("--from is missing: a candidate with //! tune lines, which the tuner varies");
  if (!tunes && !options.from.empty())
    return UsageError("--from is for the tuner: leave it out, or name --proposer tuner");
  if (!tunes && options.strategy != "sample" && options.strategy != "refine")
    return UsageError(
        fmt::format("--strategy {}: by prompts there are sample and refine", options.strategy));
  return {};
}

}  // namespace

Result<SearchSettings> NewSearchSettings(const SearchOptions& options) {
  ASSAY_RETURN_IF_ERROR(CheckOptions(options));
  SearchSettings settings;
  settings.strategy = options.strategy;
  settings.proposer = options.proposer;
  ASSAY_ASSIGN_OR_RETURN(settings.budget, ParseBudget(options.budget));
  settings.seed = options.seed != 0 ? options.seed : FreshSeed();
  settings.finalists = options.finalists;
  settings.width = options.width;
  settings.chains = options.chains;
  settings.turns = options.strategy == "sample" ? 1 : options.turns;
  std::vector<CandidateSource> candidates;
  if (options.proposer == kTuner) {
    ASSAY_ASSIGN_OR_RETURN(candidates.emplace_back(), ReadCandidate(options.from));
    settings.from_name = fs::path(options.from).filename().string();
    settings.from_source = candidates.front().content;
  } else {
    settings.form = options.form;
  }
  AskedTerms terms = options.asked;
  ASSAY_ASSIGN_OR_RETURN(terms.problem, options.problem.Choice());
  ASSAY_ASSIGN_OR_RETURN(const auto places, PlacesForSearch(settings, options));
  terms.device = places.front().device;
  ASSAY_ASSIGN_OR_RETURN(const SessionTerms resolved, ResolveTerms(terms, candidates));
  // The archive may be read from another folder.
  if (std::error_code code; fs::exists(terms.problem.problem, code))
    terms.problem.problem = fs::absolute(terms.problem.problem).string();
  settings.problem = resolved.problem.name;
  settings.terms = TermsText(terms);
  settings.id = Sha256Hex(fmt::format("{} {}", FreshSeed(), settings.terms)).substr(0, kIdDigits);
  if (!settings.form.empty()) {
    ASSAY_ASSIGN_OR_RETURN(settings.signature, SignatureOf(resolved));
    std::string notice;
    Machine machine = DescribeMachine();
    const bool on_device = resolved.problem.device != "cpu";
    machine.threads = resolved.threads > 0 ? resolved.threads : DefaultThreads(on_device);
    settings.machine = MachineText(machine, LoadMachineProfile(&notice));
  }
  return settings;
}

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

Result<std::vector<WorkerPlace>> PlacesForSearch(const SearchSettings& settings,
                                                 const SearchOptions& options) {
  const std::vector<WorkerPlace> cpu{{"cpu", ""}};
  if (!options.devices.empty()) return PlacesOf(options.devices);
  if (!settings.form.empty()) {
    if (settings.form != "device") return cpu;
    return PlacesOf({"cuda:0"});
  }
  ASSAY_ASSIGN_OR_RETURN(const CandidateSource from,
                         CandidateFromText(settings.from_name, settings.from_source));
  if (from.form == CandidateForm::kNative && !from.IsCuda()) return cpu;
  return PlacesOf({});
}

Result<SearchMeans> MakeSearchMeans(const SearchSettings& settings, const SearchOptions& options) {
  SearchMeans means;
  if (settings.form.empty()) {
    ASSAY_ASSIGN_OR_RETURN(const CandidateSource from,
                           CandidateFromText(settings.from_name, settings.from_source));
    ASSAY_ASSIGN_OR_RETURN(
        means.strategy,
        Tuner::Make(settings.strategy, settings.from_name, settings.from_source, from.language,
                    settings.seed, static_cast<size_t>(settings.width)));
    return means;
  }
  ASSAY_ASSIGN_OR_RETURN(const AskedTerms terms, RecordedTerms(settings.terms));
  ASSAY_ASSIGN_OR_RETURN(const SessionTerms resolved, ResolveTerms(terms, {}));
  ASSAY_ASSIGN_OR_RETURN(const std::string folder, PromptTemplates::ShippedFolder());
  ASSAY_ASSIGN_OR_RETURN(PromptTemplates templates, PromptTemplates::Load(folder, options.prompts));
  ASSAY_ASSIGN_OR_RETURN(means.proposer, MakeProposer(settings.proposer, options.proposing));
  WriterTerms words;
  words.problem = resolved.problem;
  words.form = settings.form;
  words.signature = settings.signature;
  words.machine = settings.machine;
  std::string notice;
  words.profile = LoadMachineProfile(&notice);
  words.temperature = options.temperature;
  ASSAY_ASSIGN_OR_RETURN(const std::string suffix, SuffixOfForm(settings.form));
  if (settings.form == "native")
    words.read_code = [limits = resolved.limits, name = "candidate" + suffix](
                          const std::string& text) -> std::optional<NativeCode> {
      const auto source = CandidateFromText(name, text);
      if (!source) return std::nullopt;
      auto code = ReadNativeCode(*source, limits, StopToken());
      return code ? std::optional(std::move(*code)) : std::nullopt;
    };
  ASSAY_ASSIGN_OR_RETURN(PromptWriter writer,
                         PromptWriter::Make(std::move(templates), std::move(words)));
  means.writer = std::make_unique<PromptWriter>(std::move(writer));
  means.strategy = std::make_unique<Chains>(
      *means.writer, ChainTerms{settings.chains, settings.turns, settings.width, settings.seed});
  means.proposals =
      std::make_unique<Proposals>(*means.proposer, static_cast<size_t>(options.asked_at_once));
  return means;
}

}  // namespace assay
