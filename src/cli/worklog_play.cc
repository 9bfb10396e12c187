// The commands of a match that measure: attempt, model and together.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "answer/code_of_answer.h"
#include "base/files.h"
#include "base/hash.h"
#include "cli/exit_code.h"
#include "cli/places.h"
#include "cli/print.h"
#include "cli/search_parts.h"
#include "cli/worklog_command.h"
#include "cli/worklog_judge.h"
#include "cli/worklog_match.h"
#include "machine/machine.h"
#include "propose/transcript.h"
#include "report/card.h"
#include "report/terminal.h"
#include "report/text.h"
#include "report/text_diff.h"
#include "search/env_judge.h"
#include "worker_client/fleet.h"
#include "worklog/facts_text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTranscriptBytesMax = 256 << 20;

int Ended(const Result<int>& code) { return code ? *code : ReportError(code.error()); }

// A version that is to be measured.
struct NewVersion {
  Player player = Player::kHand;
  std::string suffix;  // ".cpp"
  std::string source, why;
  int answer = 0;
  std::vector<Mechanism> mechanisms;
};

// An answer, and what was asked.
struct NewAnswer {
  Player player = Player::kModel;
  std::string proposer, system, prompt, provenance;
  bool later_turn = false;  // the prompt was written from a verdict: it begins no series
  Answer answer;
};

// Adds versions and answers to a match.
class Play {
 public:
  // `budget_s`: for gate 2; 0: as when the match began.
  Play(OpenedMatch opened, bool quiet, double budget_s)
      : opened_(std::move(opened)),
        quiet_(quiet),
        budget_s_(budget_s),
        interrupted_(InstallInterruptHandler()),
        style_(CardStyleFor(DetectTerminal(STDOUT_FILENO))),
        log_(*opened_.store, opened_.folder, opened_.worklog.match) {}

  const Match& match() const { return opened_.worklog.match; }
  const std::atomic<bool>& interrupted() const { return interrupted_; }

  // Nothing is measured before something is predicted.
  Result<void> RequirePrediction(const WorklogPlace& place) const {
    if (!match().predictions.empty()) return {};
    return UsageError(
        fmt::format("predict first, then measure: assay worklog predict{} --regime memory --ratio "
                    "2 --because \"...\"",
                    PlaceWords(place)));
  }

  // Records the attempt, judges it, and records that. A version without a decision is measured
  // again under its own name; all its verdicts stay.
  Result<void> Measure(NewVersion version) {
    // The worklog keeps what is judged: with gradients, the source with the lines that add them.
    ASSAY_ASSIGN_OR_RETURN(version.source, AsJudged(version));
    const std::string hash = Sha256Hex(version.source);
    const VersionFact* undecided = match().Undecided(version.player, hash);
    const std::string name =
        undecided != nullptr ? undecided->said.version : match().NextVersion(version.player);
    ASSAY_ASSIGN_OR_RETURN(const CandidateSource source,
                           CandidateFromText(name + version.suffix, version.source));
    if (undecided != nullptr)
      Notice(fmt::format("{} has this source and no decision yet: it is measured again", name));
    else
      ASSAY_RETURN_IF_ERROR(Announce(name, hash, version));
    MatchBegun terms = match().begun;
    if (budget_s_ > 0) {
      ASSAY_ASSIGN_OR_RETURN(terms.terms, WithBudget(terms.terms, budget_s_));
    }
    const auto verdict = JudgeVersion(terms, source, quiet_, interrupted_);
    if (!verdict) {
      if (verdict.error().kind != ErrorKind::kInterrupted)
        ASSAY_RETURN_IF_ERROR(log_.Record(Measured{name, "", verdict.error().message}));
      return std::unexpected(verdict.error());
    }
    ASSAY_RETURN_IF_ERROR(log_.RecordVerdict(
        name, {source.path, version.source, terms.problem, terms.terms}, *verdict));
    style_.saved = KeepVerdict(*verdict);
    Print(RenderCardAlone(*verdict, style_));  // its next command would lead out of the worklog
    ASSAY_ASSIGN_OR_RETURN(opened_.worklog, opened_.folder.Read());
    Tell(name);
    return {};
  }

  // Records that a version will be measured, and the author's words about it.
  Result<void> Announce(const std::string& name, const std::string& hash,
                        const NewVersion& version) {
    const std::string file = fmt::format("versions/{}{}", name, version.suffix);
    ASSAY_RETURN_IF_ERROR(opened_.folder.Write(file, version.source));
    ASSAY_ASSIGN_OR_RETURN(
        const FactPlace place,
        log_.Record(Attempted{name, version.player, file, hash, version.why, version.answer}));
    std::string words = WordsOf(VersionWords{name, file, place.hash, version.why});
    for (const Mechanism mechanism : version.mechanisms)
      words += WordsOf(ClaimWords{name, mechanism, version.why});
    return opened_.folder.AddWords(words);
  }

  // Records an answer, after its series where that is new; returns its number.
  Result<int> RecordAnswer(const NewAnswer& given, const std::string& trouble) {
    const SeriesFact* series = nullptr;
    for (const SeriesFact& each : match().series)
      if (each.said.player == given.player) series = &each;
    const bool same = series != nullptr && series->said.proposer == given.proposer &&
                      series->said.system == given.system && series->said.prompt == given.prompt;
    int number = series != nullptr ? series->said.number : 0;
    if (series == nullptr || (!same && !given.later_turn)) {
      if (series != nullptr && given.player == Player::kModel)
        Notice("the prompt or the proposer is another one: a new series begins");
      number = static_cast<int>(match().series.size()) + 1;
      ASSAY_RETURN_IF_ERROR(log_.Record(SeriesBegun{number, given.player, given.proposer,
                                                    given.system, given.prompt, given.provenance}));
    }
    const int answer = static_cast<int>(match().answers.size()) + 1;
    ASSAY_RETURN_IF_ERROR(
        log_.Record(Answered{number, answer, given.later_turn ? given.prompt : "",
                             given.answer.model, given.answer.finish, given.answer.text, trouble,
                             given.answer.usage.tokens_in, given.answer.usage.tokens_out}));
    ASSAY_ASSIGN_OR_RETURN(opened_.worklog, opened_.folder.Read());
    return answer;
  }

  // Records an answer, and measures the candidate in it.
  Result<void> Take(const NewAnswer& given, CodeForm form) {
    const auto code = CodeOfAnswer(given.answer.text, form);
    ASSAY_ASSIGN_OR_RETURN(const int answer, RecordAnswer(given, code ? "" : code.error()));
    if (!code) {
      Print(fmt::format("answer {} has no candidate: {}\n", answer,
                        Printable(code.error(), style_.unicode)));
      return {};
    }
    const bool python = code->form == CodeForm::kPython || form == CodeForm::kPython;
    const bool device = code->form == CodeForm::kDevice || form == CodeForm::kDevice;
    return Measure({given.player,
                    python   ? ".py"
                    : device ? ".cu"
                             : ".cpp",
                    code->source,
                    fmt::format("Answer {}, as it came.", answer),
                    answer,
                    {}});
  }

 private:
  Result<std::string> AsJudged(const NewVersion& version) const {
    ASSAY_ASSIGN_OR_RETURN(const AskedTerms asked, RecordedTerms(match().begun.terms));
    if (!asked.problem.gradients) return version.source;
    ASSAY_ASSIGN_OR_RETURN(CandidateSource source,
                           CandidateFromText("version" + version.suffix, version.source));
    ASSAY_ASSIGN_OR_RETURN(source, AsAsked(std::move(source), asked));
    return source.content;
  }

  void Tell(const std::string& name) const {
    const VersionFact* version = match().Find(name);
    if (version == nullptr) return;
    // The prediction is about versions by hand.
    const std::string predicted =
        version->said.player == Player::kModel ? "" : "; " + PredictionText(match(), *version);
    Print(fmt::format("{}: {}{}\n", name, Printable(GatesText(*version), style_.unicode),
                      Printable(predicted, style_.unicode)));
    const VersionFact* before = Before(match(), *version);
    if (version->verdict && version->verdict->outcome == Outcome::kWrong)
      Print(fmt::format("the failing call as a program: assay explain {}\n", version->verdict->id));
    if (before == nullptr || version->said.player != Player::kHand) return;
    if (version->Speed() != nullptr && before->Speed() != nullptr)
      Print(fmt::format("which of the two is faster: assay worklog duel {} {}\n", name,
                        before->said.version));
    const std::string diff =
        UnifiedDiff(opened_.worklog.SourceOf(*before), opened_.worklog.SourceOf(*version),
                    before->said.file, version->said.file);
    for (size_t at = 0; at < diff.size();) {
      const size_t end = std::min(diff.find('\n', at), diff.size());
      Print(Printable(std::string_view(diff).substr(at, end - at), style_.unicode) + "\n");
      at = end + 1;
    }
  }

  OpenedMatch opened_;
  const bool quiet_;
  const double budget_s_;
  const std::atomic<bool>& interrupted_;
  CardStyle style_;
  MatchLog log_;
};

Result<NewVersion> ReadVersion(const WorklogAttemptOptions& options, Player player) {
  if (options.why.find_first_not_of(" \t\r\n") == std::string::npos)
    return UsageError("--why is missing: a version without a reason is refused");
  ASSAY_RETURN_IF_ERROR(CheckSource(options.why, "--why"));
  ASSAY_ASSIGN_OR_RETURN(const CandidateSource source, ReadCandidate(options.file));
  ASSAY_RETURN_IF_ERROR(CheckSource(source.content, options.file));
  NewVersion version{
      player, fs::path(options.file).extension().string(), source.content, options.why, 0, {}};
  for (const std::string& name : options.mechanisms) {
    const auto mechanism = MechanismFromName(name);
    if (!mechanism)
      return UsageError(fmt::format("no such mechanism: {}; there are {}", name, MechanismNames()));
    version.mechanisms.push_back(*mechanism);
  }
  return version;
}

Result<int> Attempt(const WorklogAttemptOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(const NewVersion version, ReadVersion(options, Player::kHand));
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  ASSAY_ASSIGN_OR_RETURN(OpenedMatch opened, OpenToRecord(options.place));
  Play play(std::move(opened), options.quiet, options.budget_s);
  ASSAY_RETURN_IF_ERROR(play.RequirePrediction(options.place));
  ASSAY_RETURN_IF_ERROR(play.Measure(version));
  return kExitGood;
}

CodeForm FormOf(const std::string& form) {
  return form == "device"   ? CodeForm::kDevice
         : form == "python" ? CodeForm::kPython
                            : CodeForm::kNative;
}

Result<std::string> ReadWords(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kWorklogSourceBytesMax));
  ASSAY_RETURN_IF_ERROR(CheckSource(text, path));
  return text;
}

// "0/2" of "propose/0/2" as numbers, so that keys sort as they were asked.
std::pair<int64_t, int64_t> KeyOrder(const std::string& key) {
  const size_t last = key.rfind('/');
  if (last == std::string::npos || last == 0) return {0, 0};
  const size_t before = key.rfind('/', last - 1);
  const auto number = [&](size_t begin, size_t end) {
    return static_cast<int64_t>(std::atoll(key.substr(begin, end - begin).c_str()));
  };
  return {before == std::string::npos ? 0 : number(before + 1, last), number(last + 1, key.size())};
}

// The answers of a transcript with the prompts that they are answers to.
Result<std::vector<NewAnswer>> ReadTranscript(const std::string& path, int64_t attempts) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kTranscriptBytesMax));
  std::vector<TranscriptEntry> entries;
  size_t number = 1;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (line.empty()) continue;
    auto entry = ParseTranscriptLine(line);
    if (!entry)
      return UsageError(fmt::format("{} line {}: {}", path, number, entry.error().message));
    entries.push_back(std::move(*entry));
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const TranscriptEntry& a, const TranscriptEntry& b) {
                     return KeyOrder(a.key) < KeyOrder(b.key);
                   });
  if (entries.size() > static_cast<size_t>(attempts)) entries.resize(static_cast<size_t>(attempts));
  std::vector<NewAnswer> answers;
  for (const TranscriptEntry& entry : entries)
    answers.push_back({Player::kModel, "replay:" + entry.proposer, entry.system, entry.prompt,
                       entry.provenance, KeyOrder(entry.key).second > 0, entry.answer});
  return answers;
}

// Asks a proposer, one prompt after the other.
Result<void> AskProposer(const WorklogModelOptions& options, Play* play) {
  const Match& match = play->match();
  ASSAY_ASSIGN_OR_RETURN(const AskedTerms terms, RecordedTerms(match.begun.terms));
  SearchSettings settings;
  settings.strategy = "sample";
  settings.proposer = options.proposer;
  settings.terms = match.begun.terms;
  settings.form = options.form;
  settings.chains = options.attempts;
  if (!options.prompts.empty()) settings.prompts = fs::absolute(options.prompts).string();
  settings.prompt_tokens = options.prompt_tokens;
  settings.answer_tokens = options.answer_tokens;
  settings.temperature = options.temperature;
  // Before a worker starts: the proposer may be wrong.
  ASSAY_RETURN_IF_ERROR(MakeProposer(options.proposer, options.proposing));
  {
    std::vector<WorkerPlace> places{{"cpu", ""}};
    if (options.form != "native") {
      ASSAY_ASSIGN_OR_RETURN(places, PlacesOf({}));
    }
    std::vector<std::string> more;
    if (options.allow_weak_sandbox) more.push_back(fmt::format("--{}", kAllowWeakSandbox));
    std::error_code code;
    WorkerProcesses workers(fs::read_symlink("/proc/self/exe", code).string(),
                            PlacesForWorkers(places, 1, UsableCpus()), more);
    ASSAY_ASSIGN_OR_RETURN(settings.signature,
                           FleetEnvJudge(workers).Describe(terms, StopToken(play->interrupted())));
  }
  ASSAY_ASSIGN_OR_RETURN(const StrategyParts parts,
                         MakeStrategy(settings, options.proposing, StopToken(play->interrupted())));
  Prompt prompt = parts.writer->Ask(Question{"draft", {}, {}, ""});
  for (int64_t i = 0; i < options.attempts; ++i) {
    prompt.key = fmt::format("{}/{}/0", match.begun.worklog, match.answers.size());
    prompt.seed = match.answers.size() + 1;
    ASSAY_ASSIGN_OR_RETURN(const Answer answer,
                           parts.proposer->Propose(prompt, StopToken(play->interrupted())));
    ASSAY_RETURN_IF_ERROR(play->Take({Player::kModel, options.proposer, prompt.system, prompt.text,
                                      options.proposing.provenance, false, answer},
                                     FormOf(options.form)));
  }
  return {};
}

// An answer that a person brings, with the prompt that was used. Errors (kUsage): one of the files
// is missing.
Result<NewAnswer> ReadPasted(const std::string& prompt, const std::string& answer, Player player) {
  if (prompt.empty() || answer.empty())
    return UsageError(
        "--prompt and --answer go together: the prompt that was used, and its answer");
  NewAnswer pasted;
  pasted.player = player;
  pasted.proposer = "pasted";
  ASSAY_ASSIGN_OR_RETURN(pasted.prompt, ReadWords(prompt));
  ASSAY_ASSIGN_OR_RETURN(pasted.answer.text, ReadWords(answer));
  return pasted;
}

Result<int> Model(const WorklogModelOptions& options) {
  constexpr std::string_view kReplay = "replay:";
  const bool pasted = !options.prompt.empty() || !options.answer.empty();
  if (options.proposer.empty() && !pasted)
    return UsageError(
        fmt::format("name a model by --proposer, or bring its answer by --prompt "
                    "FILE --answer FILE. Proposers are\n{}",
                    ProposerForms()));
  std::vector<NewAnswer> answers;
  if (pasted) {
    ASSAY_ASSIGN_OR_RETURN(NewAnswer answer,
                           ReadPasted(options.prompt, options.answer, Player::kModel));
    answer.provenance = options.proposing.provenance;
    answers.push_back(std::move(answer));
  } else if (options.proposer.starts_with(kReplay)) {
    ASSAY_ASSIGN_OR_RETURN(
        answers, ReadTranscript(options.proposer.substr(kReplay.size()), options.attempts));
  }
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  ASSAY_ASSIGN_OR_RETURN(OpenedMatch opened, OpenToRecord(options.place));
  Play play(std::move(opened), options.quiet, options.budget_s);
  ASSAY_RETURN_IF_ERROR(play.RequirePrediction(options.place));
  for (const NewAnswer& answer : answers)
    ASSAY_RETURN_IF_ERROR(play.Take(answer, FormOf(options.form)));
  if (answers.empty()) ASSAY_RETURN_IF_ERROR(AskProposer(options, &play));
  for (const SeriesFact& series : play.match().series)
    if (series.said.player == Player::kModel)
      Print(fmt::format("series {}: {}\n", series.said.number,
                        Printable(FirstTryText(play.match(), series), true)));
  return kExitGood;
}

Result<int> Together(const WorklogTogetherOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(NewVersion version, ReadVersion(options.attempt, Player::kTogether));
  std::optional<NewAnswer> pasted;
  if (!options.prompt.empty() || !options.answer.empty()) {
    ASSAY_ASSIGN_OR_RETURN(pasted, ReadPasted(options.prompt, options.answer, Player::kTogether));
  }
  HeedWeakSandboxFlag(options.attempt.allow_weak_sandbox);
  ASSAY_ASSIGN_OR_RETURN(OpenedMatch opened, OpenToRecord(options.attempt.place));
  Play play(std::move(opened), options.attempt.quiet, options.attempt.budget_s);
  ASSAY_RETURN_IF_ERROR(play.RequirePrediction(options.attempt.place));
  if (pasted) {
    ASSAY_ASSIGN_OR_RETURN(version.answer, play.RecordAnswer(*pasted, ""));
  }
  ASSAY_RETURN_IF_ERROR(play.Measure(version));
  return kExitGood;
}

}  // namespace

int RunWorklogAttempt(const WorklogAttemptOptions& options) { return Ended(Attempt(options)); }
int RunWorklogModel(const WorklogModelOptions& options) { return Ended(Model(options)); }
int RunWorklogTogether(const WorklogTogetherOptions& options) { return Ended(Together(options)); }

}  // namespace assay
