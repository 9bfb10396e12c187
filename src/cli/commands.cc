#include "cli/commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "base/defences.h"
#include "base/version.h"
#include "cli/archive_command.h"
#include "cli/class_command.h"
#include "cli/completion.h"
#include "cli/env_command.h"
#include "cli/formats_command.h"
#include "cli/mcp_command.h"
#include "cli/mine_command.h"
#include "cli/model_options.h"
#include "cli/options.h"
#include "cli/search_command.h"
#include "cli/serve_command.h"
#include "cli/submit_command.h"
#include "cli/workers_command.h"
#include "cli/worklog_command.h"
#include "problem/nearest.h"

namespace assay {
namespace {

// The subcommand that the words lead to, as far as they are known.
const CLI::App* Innermost(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? &app : Innermost(*parsed.back());
}

std::vector<std::string> KnownWords(const CLI::App& app, bool option) {
  std::vector<std::string> known;
  for (const CLI::Option* each : app.get_options())
    for (const std::string& name : each->get_lnames())
      if (option) known.push_back("--" + name);
  for (const CLI::App* command : app.get_subcommands({}))
    if (!option) known.push_back(command->get_name());
  return known;
}

// The first word that looks like a mistake, with what was probably meant.
std::string SuggestionFor(const CLI::App& app, int argument_count, char** arguments) {
  const CLI::App* innermost = Innermost(app);
  const auto options = KnownWords(*innermost, true);
  const auto commands = KnownWords(*innermost, false);
  for (int i = 1; i < argument_count; ++i) {
    const std::string word(arguments[i]);
    const bool option = word.starts_with("--");
    const std::string name = word.substr(0, word.find('='));
    const auto& known = option ? options : commands;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (const std::string text = Suggestion(name, known); !text.empty()) return text;
  }
  return {};
}

// What --json or --jsonl among the words asks for, before they are parsed.
JsonForm AskedForm(int argument_count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + argument_count);
  const auto has = [&](const char* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  return has("--json") ? JsonForm::kDocument : has("--jsonl") ? JsonForm::kLines : JsonForm::kNone;
}

}  // namespace

template <typename Options>
CLI::App* CommandLine::Add(CLI::App& parent, const std::string& name,
                           const std::string& description, std::function<int(const Options&)> run) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand(name, description);
  options->AddTo(*command);
  commands_.push_back({command, [options, run] { return run(*options); }});
  return command;
}

CommandLine::CommandLine()
    : app_(std::make_unique<CLI::App>(
          "Assay judges compute kernels: is one correct, is it faster, by how much, how sure is "
          "that?",
          "assay")) {
  app_->set_version_flag("-V,--version", fmt::format("assay {}", kAssayVersion));
  app_->require_subcommand(1);
  app_->footer("Start with:  assay judge softmax kernels/softmax/fused.cpp --size small");
  AddAll();
}

CommandLine::~CommandLine() = default;

void CommandLine::AddAll() {
  CLI::App& app = *app_;
  Add<JudgeOptions>(app, "judge", "Judge candidates against a PyTorch reference", RunJudge);
  Add<WorkerCommandOptions>(
      app, "worker", "Judge candidates that come as JSON lines, in warm sessions", RunWorker);
  Add<WorkersOptions>(app, "workers", "Show the nodes of a queue, what each does, and its faults",
                      RunWorkers);
  Add<ServeOptions>(app, "serve", "Serve a board, a queue of jobs and a class", RunServe);
  Add<SubmitOptions>(app, "submit", "Have a server judge a candidate, and show its verdict",
                     RunSubmit);
  Add<RejudgeOptions>(app, "rejudge", "Judge here again what a server's verdict is on", RunRejudge);
  Add<RunOptions>(app, "run", "Judge many candidates over many problems, and keep all results",
                  RunRun);
  Add<ImportOptions>(app, "import",
                     "Read problems and candidates in other people's formats, for assay run",
                     RunImport);
  Add<ExportOptions>(app, "export", "Write results or evaluators in other people's formats",
                     RunExport);
  Add<MineOptions>(app, "mine",
                   "Judge the code that torch.compile generates, and keep pairs to train on",
                   RunMine);
  Add<SearchOptions>(app, "search",
                     "Search for faster kernels: propose candidates, judge them, keep all",
                     RunSearch);
  Add<EnvOptions>(app, "env", "Serve episodes for training a model: JSON lines on stdin and stdout",
                  RunEnv);
  Add<McpOptions>(app, "mcp",
                  "Serve tools to a language model: the Model Context Protocol on stdio", RunMcp);
  Add<LadderOptions>(app, "ladder", "Judge the rungs of a ladder, and draw its table and chart",
                     RunLadder);
  Add<ModelOptions>(app, "model",
                    "Swap kernels into a whole model, one by one, and judge each model", RunModel);
  Add<RooflineOptions>(app, "roofline",
                       "Draw verdicts on a problem under the machine's measured ceilings",
                       RunRoofline);
  Add<SassOptions>(app, "sass",
                   "Show the loop in which a GPU kernel spends its time, as machine code", RunSass);
  Add<NewOptions>(app, "new", "Write a stub of a candidate for a problem", RunNew);
  Add<ExplainOptions>(app, "explain", "Write a verdict's failing call as a standalone program",
                      RunExplain);
  Add<ScoreOptions>(app, "score", "Score a set of verdicts: fast_p, its curve, the funnel",
                    RunScore);
  AddWorklog();
  AddClass();
  AddArchive();
  CLI::App* problems = Add<ProblemListOptions>(
      app, "problems", "List the problems of the installed suites", RunProblemList);
  Add<ProblemShowOptions>(*problems, "show",
                          "Show a problem: its arguments, bytes, operations, bound and hot spots",
                          RunProblemShow);
  Add<AuditOptions>(app, "audit",
                    "Find problems that let wrong candidates pass, by mutants of the reference",
                    RunAudit);
  Add<DoctorOptions>(app, "doctor",
                     "Check that judging works here, and measure what this machine can do",
                     RunDoctor);
  Add<DemoOptions>(app, "demo", "Run a short demonstration on the real judge", RunDemo);
  Add<ConfigOptions>(
      app, "config", "Show the defaults of all options, and where they come from",
      [this](const ConfigOptions& options) { return RunConfig(*app_, origins_, options); });
  Add<CompletionOptions>(
      app, "completion", "Print the completions of a shell",
      [this](const CompletionOptions& options) { return RunCompletion(*app_, options); });
  Add<ManOptions>(app, "man", "Print the manual page, or that of one command",
                  [this](const ManOptions& options) { return RunManual(*app_, options); });
}

void CommandLine::AddWorklog() {
  CLI::App* worklog =
      app_->add_subcommand("worklog", "Keep the worklog of a match: you against a machine");
  worklog->require_subcommand(1);
  Add<WorklogInitOptions>(*worklog, "init", "Begin a match on a problem", RunWorklogInit);
  Add<WorklogPredictOptions>(*worklog, "predict", "Seal a prediction, before anything is measured",
                             RunWorklogPredict);
  Add<WorklogAttemptOptions>(*worklog, "attempt", "Measure a version of your own, with its why",
                             RunWorklogAttempt);
  Add<WorklogModelOptions>(*worklog, "model", "Let a language model try the same reference",
                           RunWorklogModel);
  Add<WorklogTogetherOptions>(*worklog, "together", "Measure a version of a model that you steered",
                              RunWorklogTogether);
  Add<WorklogDuelOptions>(*worklog, "duel", "Judge two versions against each other",
                          RunWorklogDuel);
  Add<WorklogAlsoOptions>(*worklog, "also",
                          "Take verdicts of assay judge into the match, beside its versions",
                          RunWorklogAlso);
  Add<WorklogStatusOptions>(*worklog, "status", "Show the versions, and what is missing next",
                            RunWorklogStatus);
  Add<WorklogStuckOptions>(*worklog, "stuck", "Say what a player got stuck on", RunWorklogStuck);
  Add<WorklogClaimOptions>(*worklog, "claim", "Name the mechanism that a version rests on",
                           RunWorklogClaim);
  Add<WorklogRenderOptions>(*worklog, "render", "Write the report", RunWorklogRender);
  Add<WorklogCheckOptions>(*worklog, "check", "Tell what is missing, and what was changed",
                           RunWorklogCheck);
  Add<WorklogGradeOptions>(*worklog, "grade", "Collect the evidence for a rubric, and keep marks",
                           RunWorklogGrade);
  Add<WorklogCertificateOptions>(*worklog, "certificate",
                                 "Write the certificate of a complete worklog, as PDF",
                                 RunWorklogCertificate);
  Add<WorklogSubmitOptions>(*worklog, "submit", "Send the worklog to a server of your class",
                            RunWorklogSubmit);
}

void CommandLine::AddClass() {
  CLI::App* of_class = app_->add_subcommand("class", "Hold a class on a server: assay serve");
  of_class->require_subcommand(1);
  Add<ClassMakeOptions>(*of_class, "make", "Make a class, with its quotas and deadline",
                        RunClassMake);
  Add<ClassInviteOptions>(*of_class, "invite", "Make an invitation", RunClassInvite);
  Add<ClassShowOptions>(*of_class, "show", "Show a class, or list yours", RunClassShow);
  Add<ClassSheetOptions>(*of_class, "sheet", "Write the grading sheet, as CSV", RunClassSheet);
  Add<ClassExportOptions>(*of_class, "export", "Write all of a class into one file",
                          RunClassExport);
  Add<ClassImportOptions>(*of_class, "import", "Take a class from another server", RunClassImport);
}

void CommandLine::AddArchive() {
  CLI::App* archive =
      app_->add_subcommand("archive", "Look at what assay judge and assay run have recorded");
  archive->require_subcommand(1);
  Add<ArchiveListOptions>(*archive, "list", "List records, newest first", RunArchiveList);
  Add<ArchiveShowOptions>(*archive, "show", "Show a record: a verdict with its source",
                          RunArchiveShow);
  Add<ArchiveDiffOptions>(*archive, "diff", "Show what two candidates differ in", RunArchiveDiff);
  Add<ArchiveVerifyOptions>(*archive, "verify", "Check that nothing was changed or taken out",
                            RunArchiveVerify);
  Add<ArchiveExportOptions>(*archive, "export", "Write all records as JSON lines",
                            RunArchiveExport);
  Add<ArchiveCopyOptions>(*archive, "copy", "Copy an archive into another, such as a database",
                          RunArchiveCopy);
  Add<ArchiveGrantOptions>(*archive, "grant", "Give a database's role the rights that it needs",
                           RunArchiveGrant);
}

int CommandLine::Run(int argument_count, char** arguments) {
  const JsonForm form = AskedForm(argument_count, arguments);
  if (const auto refusal = RefusalToWeaken())
    return ReportError({ErrorKind::kUsage, *refusal}, form);
  auto origins = ApplyConfigFiles(*app_);
  if (!origins) return ReportError(origins.error(), form);
  origins_ = std::move(*origins);
  try {
    app_->parse(argument_count, arguments);
  } catch (const CLI::Success& success) {
    return app_->exit(success);
  } catch (const CLI::ParseError& error) {
    const std::string suggestion = SuggestionFor(*app_, argument_count, arguments);
    std::string command;  // "assay archive show"
    for (const CLI::App* app = Innermost(*app_); app != nullptr; app = app->get_parent())
      command = app == app_.get() ? "assay" + command : " " + app->get_name() + command;
    return ReportError(
        {ErrorKind::kUsage, fmt::format("{}{}; see {} --help", error.what(), suggestion, command)},
        form);
  }
  for (auto command = commands_.rbegin(); command != commands_.rend(); ++command)
    if (command->app->parsed()) return command->run();
  return 2;
}

}  // namespace assay
