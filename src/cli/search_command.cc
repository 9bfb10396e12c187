#include "cli/search_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "archive/judged.h"
#include "archive/open_store.h"
#include "archive/postgres.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/unique_fd.h"
#include "cli/exit_code.h"
#include "cli/print.h"
#include "cli/recorder.h"
#include "cli/search_judges.h"
#include "cli/search_parts.h"
#include "cli/search_ports.h"
#include "cli/search_replay.h"
#include "machine/seeds.h"
#include "report/progress.h"
#include "report/terminal.h"
#include "report/text.h"
#include "search/engine.h"
#include "search/known_verdicts.h"
#include "search/search_report.h"
#include "worker/protocol.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// Seconds of gate 2 of a first look: enough where the times differ.
constexpr double kScreeningBudgetS = 15;
constexpr size_t kIdDigits = 12;

// As given where the working folder is gone.
std::string Absolute(const std::string& path) {
  std::error_code code;
  const fs::path absolute = fs::absolute(path, code);
  return code ? path : absolute.string();
}

// For what a search needs besides its archive.
fs::path FolderOf(const std::string& id) { return StateFolder() / "searches" / id; }

// Held while a search is run: two processes do not go on with the same one.
Result<UniqueFd> LockSearch(const std::string& id) {
  const fs::path path = FolderOf(id).string() + ".lock";
  std::error_code code;
  fs::create_directories(path.parent_path(), code);
  UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock) return EnvironmentError(fmt::format("cannot make {}", path.string()));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return UsageError(fmt::format("search {} is being run by another process", id));
  return lock;
}

AskedTerms ScreeningTerms(AskedTerms terms) {
  terms.one_size = true;
  terms.effort.futility = true;
  terms.effort.speed_budget_s = std::min(terms.effort.speed_budget_s, kScreeningBudgetS);
  return terms;
}

// One call of assay search.
class SearchCall {
 public:
  SearchCall(const SearchOptions& options, const std::atomic<bool>& interrupted)
      : options_(options), interrupted_(interrupted), progress_(OptionsFor(options)) {}

  Result<int> Run() {
    ASSAY_RETURN_IF_ERROR(CheckVerdicts());
    if (options_.replays) return ReplayRecorded(options_, StopToken(interrupted_));
    std::optional<TemporaryFolder> folder;
    std::string path = options_.archive.empty() ? DefaultArchive() : options_.archive;
    if (!options_.verdicts.empty() && options_.archive.empty()) {
      ASSAY_ASSIGN_OR_RETURN(folder, TemporaryFolder::Create());
      path = (folder->path() / "archive.sqlite").string();
    }
    if (!options_.steer.empty()) return Steer(path);
    if (!options_.out.empty()) ASSAY_RETURN_IF_ERROR(CheckOut());
    std::vector<SearchSettings> begun;
    std::vector<StrategyParts> parts;
    if (options_.resumes) {
      if (!options_.problem.problem.empty())
        return UsageError("--resume goes on with what was asked for then: leave the problem out");
      // A mistyped name makes no archive.
      if (!StoreMayExist(path))
        return UsageError(fmt::format("there is no archive {}, so no search to go on with", path));
    } else {
      // Before an archive is made: what was asked for may be wrong.
      ASSAY_ASSIGN_OR_RETURN(begun, NewSettings());
      for (const SearchSettings& settings : begun) {
        ASSAY_ASSIGN_OR_RETURN(StrategyParts made, StrategyFor(settings));
        parts.push_back(std::move(made));
      }
    }
    ASSAY_ASSIGN_OR_RETURN(const auto store, OpenStore(path, StoreAccess::kWrite));
    if (options_.resumes) {
      begun.resize(1);
      ASSAY_ASSIGN_OR_RETURN(begun[0], ReadSearchSettings(*store, options_.resume));
      ASSAY_ASSIGN_OR_RETURN(StrategyParts made, StrategyFor(begun[0]));
      parts.push_back(std::move(made));
    }
    std::vector<Arm> arms;
    for (size_t i = 0; i < begun.size(); ++i) {
      ASSAY_ASSIGN_OR_RETURN(Arm arm, RunOne(*store, begun[i], parts[i]));
      arms.push_back(std::move(arm));
    }
    return Conclude(arms);
  }

 private:
  // A search that has ended.
  struct Arm {
    std::string strategy;
    int code = kExitGood;
    double best = 0;         // ratio of the first look
    Ratio confirmed;         // 0: nothing is
    std::string verdict_id;  // of the result
    std::string source;      // the result
    int64_t evaluations = 0;
  };

  Result<void> CheckVerdicts() const {
    if (options_.verdicts.empty()) return {};
    if (options_.cluster.asked())
      return UsageError("--verdicts judges nothing: leave the cluster's options out");
    std::error_code code;
    if (options_.resumes || options_.replays)
      return UsageError("--verdicts is of a new search: leave --resume and --replay out");
    if (IsPostgresUrl(options_.verdicts))
      return UsageError(
          "--verdicts takes an archive's file: assay archive copy makes one of a database");
    if (!fs::exists(options_.verdicts, code))
      return UsageError(
          fmt::format("there is no archive {} to take verdicts from", options_.verdicts));
    if (fs::equivalent(options_.verdicts,
                       options_.archive.empty() ? "/" : fs::path(options_.archive), code))
      return UsageError(
          "--verdicts and --archive are one file: its verdicts would be recorded "
          "twice; name another --archive, or none");
    return {};
  }

  Result<Arm> RunOne(Store& store, const SearchSettings& settings, const StrategyParts& parts) {
    ASSAY_ASSIGN_OR_RETURN(const UniqueFd lock, LockSearch(settings.id));
    std::vector<NewRecord> files;
    if (!options_.resumes) {
      ASSAY_ASSIGN_OR_RETURN(files, FilesOf(settings));
    }
    ASSAY_ASSIGN_OR_RETURN(Journal journal, options_.resumes
                                                ? Journal::Open(store, settings.id)
                                                : Journal::Begin(store, settings, files));
    Tell(options_.resumes ? "goes on" : "begins", settings);
    return Search(store, journal, parts);
  }

  // The problem's reference, and what was judged elsewhere.
  static Result<std::vector<NewRecord>> FilesOf(const SearchSettings& settings) {
    ASSAY_ASSIGN_OR_RETURN(const AskedTerms terms, RecordedTerms(settings.terms));
    ASSAY_ASSIGN_OR_RETURN(const ProblemRequest problem,
                           ResolveProblem(terms.problem, SuiteFolders()));
    ASSAY_ASSIGN_OR_RETURN(std::vector<NewRecord> files, RecordsOfPorts(settings));
    files.insert(files.begin(), RecordOfFile(RecordKind::kReference, problem.path, settings.problem,
                                             problem.source));
    return files;
  }

  static ProgressOptions OptionsFor(const SearchOptions& options) {
    ProgressOptions progress;
    if (!options.quiet) progress.terminal = DetectTerminal(STDERR_FILENO);
    progress.verbose = options.verbose && !options.quiet;
    return progress;
  }

  Result<int> Steer(const std::string& path) const {
    const std::string& action = options_.steer[0];
    if (action != "inject" && action != "prune" && action != "pin")
      return UsageError(fmt::format("--steer {}: give inject IDEA, prune KEY or pin KEY", action));
    if (!StoreMayExist(path))
      return UsageError(fmt::format("there is no archive {}, so no search to steer", path));
    ASSAY_ASSIGN_OR_RETURN(const auto store, OpenStore(path, StoreAccess::kWrite));
    ASSAY_RETURN_IF_ERROR(CheckWish(*store, action, options_.steer[1]));
    ASSAY_RETURN_IF_ERROR(RecordWish(*store, options_.resume, action, options_.steer[1]));
    return kExitGood;
  }

  // Before anything is spent.
  Result<void> CheckOut() const {
    const fs::path given = fs::path(options_.out).parent_path();
    const fs::path folder = given.empty() ? "." : given;
    if (::access(folder.c_str(), W_OK) == 0) return {};
    return UsageError(fmt::format("--out {}: cannot write in {}: {}", options_.out, folder.string(),
                                  std::strerror(errno)));
  }

  // A wish that nobody would heed is an error of the one who wishes.
  Result<void> CheckWish(Store& store, const std::string& action, const std::string& text) const {
    ASSAY_ASSIGN_OR_RETURN(const Journal journal, Journal::Open(store, options_.resume));
    if (journal.settings().proposer == kTunerName)
      return UsageError(
          fmt::format("search {} is the tuner's, which heeds no wishes", journal.settings().id));
    const bool is_number = text.find_first_not_of("0123456789") == std::string::npos;
    if (action == "inject" || (action == "prune" && !text.empty() && is_number)) return {};
    for (const JournalEvent& event : journal.events())
      if (event.key == text) return {};
    return UsageError(
        fmt::format("search {} has no step {}: assay archive show {} --tree has those",
                    journal.settings().id, text, journal.settings().id));
  }

  void Tell(const char* what, const SearchSettings& settings) const {
    if (options_.jsonl) Print(BeginEvent(settings, options_.resumes));
    if (options_.jsonl || options_.quiet) return;
    Notice(fmt::format("search {} {}: {}, {} by {}, seed {}", settings.id, what, settings.problem,
                       settings.strategy, settings.proposer, settings.seed));
  }

  // One for each strategy, with the same seed and budget.
  Result<std::vector<SearchSettings>> NewSettings() const {
    if (options_.problem.problem.empty())
      return UsageError("name a problem, or go on with a search by --resume");
    SearchSettings settings;
    settings.proposer = options_.proposer;
    ASSAY_ASSIGN_OR_RETURN(settings.budget, ParseBudget(options_.budget));
    settings.seed = options_.seed != 0 ? options_.seed : FreshSeed();
    settings.finalists = options_.finalists;
    settings.width = options_.width;
    if (!options_.verdicts.empty()) settings.verdicts = fs::absolute(options_.verdicts).string();
    const bool tunes = options_.proposer == kTunerName;
    ASSAY_RETURN_IF_ERROR(tunes ? BeginTuning(&settings) : BeginAsking(&settings));
    AskedTerms terms = options_.asked;
    ASSAY_ASSIGN_OR_RETURN(terms.problem, options_.problem.Choice());
    std::vector<CandidateSource> from;
    if (tunes) {
      ASSAY_ASSIGN_OR_RETURN(CandidateSource source,
                             CandidateFromText(settings.from_name, settings.from_source));
      from.push_back(std::move(source));
    }
    const bool on_cpu = tunes ? from[0].form == CandidateForm::kNative && !from[0].IsCuda()
                              : options_.form == "native";
    ASSAY_ASSIGN_OR_RETURN(terms.device, DeviceOfSearch(options_, on_cpu));
    ASSAY_ASSIGN_OR_RETURN(const SessionTerms resolved, ResolveTerms(terms, from));
    // The archive may be read from another folder.
    if (std::error_code code; fs::exists(terms.problem.problem, code))
      terms.problem.problem = Absolute(terms.problem.problem);
    settings.problem = resolved.problem.name;
    ASSAY_ASSIGN_OR_RETURN(settings.ports, Ports(settings));
    settings.terms = TermsText(terms);
    AskedTerms screening = ScreeningTerms(terms);
    screening.probe = !tunes && on_cpu;  // for the next prompts
    settings.screening_terms = TermsText(screening);
    if (!tunes) {
      ASSAY_ASSIGN_OR_RETURN(settings.signature,
                             DescribeProblem(options_, terms, StopToken(interrupted_)));
    }
    std::vector<SearchSettings> all;
    for (const std::string& strategy : options_.strategies) {
      settings.strategy = strategy;
      // Draws and chains are there to be compared with each other and with others.
      const bool explores = tunes || strategy == "evolve";
      settings.ablates = !tunes && (strategy == "evolve" || strategy == "no-archive");
      settings.races = !options_.no_race && explores;
      settings.knows = !options_.judge_again && explores && options_.strategies.size() == 1 &&
                       settings.verdicts.empty();
      settings.id =
          Sha256Hex(fmt::format("{} {}", FreshSeed(), settings.terms)).substr(0, kIdDigits);
      all.push_back(settings);
    }
    return all;
  }

  Result<std::vector<PortedKernel>> Ports(const SearchSettings& settings) const {
    const bool evolves = std::ranges::all_of(options_.strategies, [](const std::string& strategy) {
      return strategy == "evolve" || strategy == "no-archive";
    });
    if (!options_.ports.empty() && (settings.proposer == kTunerName || !evolves))
      return UsageError("--port is of --strategy evolve with a proposer, which is asked to fit it");
    return ReadPortedKernels(options_.ports,
                             options_.archive.empty() ? DefaultArchive() : options_.archive,
                             settings.problem, settings.form);
  }

  Result<void> BeginTuning(SearchSettings* settings) const {
    if (options_.from.empty())
      return UsageError(
          "--from is missing: a candidate with //! tune lines, which the tuner varies");
    ASSAY_ASSIGN_OR_RETURN(const CandidateSource from, ReadCandidate(options_.from));
    settings->from_name = fs::path(options_.from).filename().string();
    settings->from_source = from.content;
    return {};
  }

  Result<void> BeginAsking(SearchSettings* settings) const {
    if (!options_.from.empty())
      return UsageError("--from is of the tuner: another proposer begins from nothing");
    // Before a worker starts: the proposer may be wrong.
    ASSAY_RETURN_IF_ERROR(MakeProposer(options_.proposer, options_.proposing));
    settings->chains = options_.chains;
    settings->turns = options_.turns;
    settings->askers = options_.askers;
    settings->form = options_.form;
    if (!options_.prompts.empty()) settings->prompts = Absolute(options_.prompts);
    settings->prompt_tokens = options_.prompt_tokens;
    settings->answer_tokens = options_.answer_tokens;
    settings->temperature = options_.temperature;
    return {};
  }

  Result<StrategyParts> StrategyFor(const SearchSettings& settings) const {
    return MakeStrategy(settings, options_.proposing, StopToken(interrupted_));
  }

  Result<Arm> Search(Store& store, Journal& journal, const StrategyParts& parts) {
    const SearchSettings& settings = journal.settings();
    std::string doing;
    JudgesEvents judging;
    judging.progress = [&](const std::string& text) { doing = text; };
    judging.notice = [&](const std::string& text) { Say(text); };
    ASSAY_ASSIGN_OR_RETURN(
        const SearchJudges judges,
        MakeSearchJudges(options_, settings, FolderOf(settings.id).string(), judging));
    SearchEvents events;
    events.notice = [&](const std::string& text) { Say(text); };
    events.progress = [&](const SearchView& view) {
      const double most = static_cast<double>(settings.budget.evaluations);
      progress_.Update(ProgressText(view) + (doing.empty() ? "" : " | " + doing),
                       most > 0 ? static_cast<double>(view.ledger.spent().evaluations) / most : -1);
    };
    events.result = [&](const Step& step, const StepResult& result, const SearchView& view) {
      if (result.verdict && result.duplicate_of.empty() && result.known.empty() &&
          settings.verdicts.empty())
        KeepVerdict(*result.verdict);
      if (options_.jsonl) Print(ResultEvent(step, result, view));
    };
    KnownVerdicts known(store, settings.problem, settings.screening_terms);
    SearchEngine engine({journal, *parts.strategy, *judges.source, parts.proposals.get(),
                         settings.knows ? &known : nullptr},
                        events);
    const auto ended = engine.Run(StopToken(interrupted_));
    progress_.Clear();
    if (!ended) {
      if (!settings.verdicts.empty() && options_.archive.empty())
        return std::unexpected(ended.error());
      Notice(fmt::format("{} recorded; to go on: assay search --resume {}{}{}",
                         Counted(engine.ledger().spent().evaluations, "evaluation"), settings.id,
                         ArchiveWords(),
                         options_.cluster.asked() ? ", with the same options of the cluster" : ""));
      return std::unexpected(ended.error());
    }
    return End(engine, settings.strategy);
  }

  void Say(const std::string& text) {
    progress_.Clear();
    Notice(text);
  }

  std::string ArchiveWords() const {
    const std::string& archive = options_.archive.empty() ? options_.verdicts : options_.archive;
    return archive.empty() ? "" : " --archive " + ShellQuoted(archive);
  }

  Arm End(const SearchEngine& engine, const std::string& strategy) const {
    const OutcomeTable& table = engine.table();
    Print(options_.jsonl ? EndEvent(table, engine.ledger(), engine.budget_ended())
                         : RenderEnd(table, engine.ledger()));
    Arm arm;
    arm.strategy = strategy;
    arm.code = engine.budget_ended() ? kExitBudget : kExitNotFaster;
    arm.evaluations = engine.ledger().spent().evaluations;
    if (table.best() != nullptr) arm.best = table.best()->ratio.value;
    const SearchNode* result = table.confirmed();
    if (result == nullptr) return arm;
    arm.code = kExitGood;
    arm.confirmed = result->ratio;
    arm.verdict_id = result->verdict_id;
    arm.source = engine.FindStep(result->key)->source;
    return arm;
  }

  // The best result of all arms.
  Result<int> Conclude(const std::vector<Arm>& arms) const {
    if (arms.size() > 1 && !options_.jsonl) {
      Print("\nstrategy    evaluations  first look  confirmed\n");
      for (const Arm& arm : arms)
        Print(fmt::format("{:<10}  {:>11}  {:>10}  {}\n", arm.strategy, arm.evaluations,
                          arm.best > 0 ? FormatRatio(arm.best) : "-",
                          arm.confirmed.value > 0 ? RatioText(arm.confirmed) : "-"));
    }
    const auto best = std::max_element(arms.begin(), arms.end(), [](const Arm& a, const Arm& b) {
      return a.confirmed.value < b.confirmed.value;
    });
    if (best->source.empty()) return best->code;
    if (!options_.out.empty()) {
      ASSAY_RETURN_IF_ERROR(WriteFileAtomically(options_.out, best->source));
      Notice("wrote " + options_.out);
    } else if (!options_.jsonl) {
      Print(fmt::format("source:    assay archive show {}{}\n", best->verdict_id, ArchiveWords()));
    }
    return kExitGood;
  }

  const SearchOptions& options_;
  const std::atomic<bool>& interrupted_;
  Progress progress_;
};

}  // namespace

int RunSearch(const SearchOptions& options) {
  const std::atomic<bool>& interrupted = InstallInterruptHandler();
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  const auto code = SearchCall(options, interrupted).Run();
  if (!code) return ReportError(code.error(), options.jsonl ? JsonForm::kLines : JsonForm::kNone);
  return *code;
}

}  // namespace assay
