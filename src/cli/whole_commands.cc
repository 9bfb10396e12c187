// The whole program: every command. It stands in lib/assay, and the program `assay` starts it for
// the commands that it lacks (core_commands.cc).
#include "cli/archive_command.h"
#include "cli/class_command.h"
#include "cli/command_line.h"
#include "cli/completion.h"
#include "cli/env_command.h"
#include "cli/formats_command.h"
#include "cli/mcp_command.h"
#include "cli/mine_command.h"
#include "cli/model_options.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "cli/search_command.h"
#include "cli/serve_command.h"
#include "cli/submit_command.h"
#include "cli/workers_command.h"
#include "cli/worklog_command.h"

namespace assay {
namespace {

void AddWorklog(CommandLine& line) {
  CLI::App* worklog =
      line.AddGroup("worklog", "Keep the worklog of a match: you against a machine");
  line.Add<WorklogInitOptions>(*worklog, "init", "Begin a match on a problem", RunWorklogInit);
  line.Add<WorklogPredictOptions>(
      *worklog, "predict", "Seal a prediction, before anything is measured", RunWorklogPredict);
  line.Add<WorklogAttemptOptions>(*worklog, "attempt",
                                  "Measure a version of your own, with its why", RunWorklogAttempt);
  line.Add<WorklogModelOptions>(*worklog, "model", "Let a language model try the same reference",
                                RunWorklogModel);
  line.Add<WorklogTogetherOptions>(
      *worklog, "together", "Measure a version of a model that you steered", RunWorklogTogether);
  line.Add<WorklogDuelOptions>(*worklog, "duel", "Judge two versions against each other",
                               RunWorklogDuel);
  line.Add<WorklogAlsoOptions>(*worklog, "also",
                               "Take verdicts of assay judge into the match, beside its versions",
                               RunWorklogAlso);
  line.Add<WorklogStatusOptions>(*worklog, "status", "Show the versions, and what is missing next",
                                 RunWorklogStatus);
  line.Add<WorklogStuckOptions>(*worklog, "stuck", "Say what a player got stuck on",
                                RunWorklogStuck);
  line.Add<WorklogClaimOptions>(*worklog, "claim", "Name the mechanism that a version rests on",
                                RunWorklogClaim);
  line.Add<WorklogRenderOptions>(*worklog, "render", "Write the report", RunWorklogRender);
  line.Add<WorklogCheckOptions>(*worklog, "check", "Tell what is missing, and what was changed",
                                RunWorklogCheck);
  line.Add<WorklogGradeOptions>(
      *worklog, "grade", "Collect the evidence for a rubric, and keep marks", RunWorklogGrade);
  line.Add<WorklogCertificateOptions>(*worklog, "certificate",
                                      "Write the certificate of a complete worklog, as PDF",
                                      RunWorklogCertificate);
  line.Add<WorklogSubmitOptions>(*worklog, "submit", "Send the worklog to a server of your class",
                                 RunWorklogSubmit);
}

void AddClass(CommandLine& line) {
  CLI::App* of_class = line.AddGroup("class", "Hold a class on a server: assay serve");
  line.Add<ClassMakeOptions>(*of_class, "make", "Make a class, with its quotas and deadline",
                             RunClassMake);
  line.Add<ClassInviteOptions>(*of_class, "invite", "Make an invitation", RunClassInvite);
  line.Add<ClassShowOptions>(*of_class, "show", "Show a class, or list yours", RunClassShow);
  line.Add<ClassSheetOptions>(*of_class, "sheet", "Write the grading sheet, as CSV", RunClassSheet);
  line.Add<ClassExportOptions>(*of_class, "export", "Write all of a class into one file",
                               RunClassExport);
  line.Add<ClassImportOptions>(*of_class, "import", "Take a class from another server",
                               RunClassImport);
}

void AddArchive(CommandLine& line) {
  CLI::App* archive =
      line.AddGroup("archive", "Look at what assay judge and assay run have recorded");
  line.Add<ArchiveListOptions>(*archive, "list", "List records, newest first", RunArchiveList);
  line.Add<ArchiveShowOptions>(*archive, "show", "Show a record: a verdict with its source",
                               RunArchiveShow);
  line.Add<ArchiveDiffOptions>(*archive, "diff", "Show what two candidates differ in",
                               RunArchiveDiff);
  line.Add<ArchiveVerifyOptions>(*archive, "verify", "Check that nothing was changed or taken out",
                                 RunArchiveVerify);
  line.Add<ArchiveExportOptions>(*archive, "export", "Write all records as JSON lines",
                                 RunArchiveExport);
  line.Add<ArchiveCopyOptions>(*archive, "copy", "Copy an archive into another, such as a database",
                               RunArchiveCopy);
  line.Add<ArchiveGrantOptions>(*archive, "grant",
                                "Give a database's role the rights that it needs", RunArchiveGrant);
}

void AddCommands(CommandLine& line) {
  CLI::App& app = line.app();
  line.Add<JudgeOptions>(app, "judge", "Judge candidates against a PyTorch reference", RunJudge);
  line.Add<WorkerCommandOptions>(
      app, "worker", "Judge candidates that come as JSON lines, in warm sessions", RunWorker);
  line.Add<WorkersOptions>(app, "workers",
                           "Show the nodes of a queue, what each does, and its faults", RunWorkers);
  line.Add<ServeOptions>(app, "serve", "Serve a board, a queue of jobs and a class", RunServe);
  line.Add<SubmitOptions>(app, "submit", "Have a server judge a candidate, and show its verdict",
                          RunSubmit);
  line.Add<RejudgeOptions>(app, "rejudge", "Judge here again what a server's verdict is on",
                           RunRejudge);
  line.Add<RunOptions>(app, "run", "Judge many candidates over many problems, and keep all results",
                       RunRun);
  line.Add<ImportOptions>(app, "import",
                          "Read problems and candidates in other people's formats, for assay run",
                          RunImport);
  line.Add<ExportOptions>(app, "export", "Write results or evaluators in other people's formats",
                          RunExport);
  line.Add<MineOptions>(app, "mine",
                        "Judge the code that torch.compile generates, and keep pairs to train on",
                        RunMine);
  line.Add<SearchOptions>(app, "search",
                          "Search for faster kernels: propose candidates, judge them, keep all",
                          RunSearch);
  line.Add<EnvOptions>(
      app, "env", "Serve episodes for training a model: JSON lines on stdin and stdout", RunEnv);
  line.Add<McpOptions>(
      app, "mcp", "Serve tools to a language model: the Model Context Protocol on stdio", RunMcp);
  line.Add<LadderOptions>(app, "ladder",
                          "Judge the rungs of a ladder, and draw its table and chart", RunLadder);
  line.Add<ModelOptions>(
      app, "model", "Swap kernels into a whole model, one by one, and judge each model", RunModel);
  line.Add<RooflineOptions>(app, "roofline",
                            "Draw verdicts on a problem under the machine's measured ceilings",
                            RunRoofline);
  line.Add<SassOptions>(
      app, "sass", "Show the loop in which a GPU kernel spends its time, as machine code", RunSass);
  line.Add<NewOptions>(app, "new", "Write a stub of a candidate for a problem", RunNew);
  line.Add<ExplainOptions>(app, "explain", "Write a verdict's failing call as a standalone program",
                           RunExplain);
  line.Add<ScoreOptions>(app, "score", "Score a set of verdicts: fast_p, its curve, the funnel",
                         RunScore);
  AddWorklog(line);
  AddClass(line);
  AddArchive(line);
  CLI::App* problems = line.Add<ProblemListOptions>(
      app, "problems", "List the problems of the installed suites", RunProblemList);
  line.Add<ProblemShowOptions>(
      *problems, "show", "Show a problem: its arguments, bytes, operations, bound and hot spots",
      RunProblemShow);
  line.Add<AuditOptions>(
      app, "audit", "Find problems that let wrong candidates pass, by mutants of the reference",
      RunAudit);
  line.Add<DoctorOptions>(app, "doctor",
                          "Check that judging works here, and measure what this machine can do",
                          RunDoctor);
  line.Add<DemoOptions>(app, "demo", "Run a short demonstration on the real judge", RunDemo);
  line.Add<ConfigOptions>(app, "config",
                          "Show the defaults of all options, and where they come from",
                          [&line](const ConfigOptions& options) {
                            return RunConfig(line.app(), line.origins(), options);
                          });
  line.Add<CompletionOptions>(
      app, "completion", "Print the completions of a shell",
      [&line](const CompletionOptions& options) { return RunCompletion(line.app(), options); });
  line.Add<ManOptions>(
      app, "man", "Print the manual page, or that of one command",
      [&line](const ManOptions& options) { return RunManual(line.app(), options); });
}

}  // namespace

int RunWhole(int argument_count, char** arguments) {
  return CommandLine(AddCommands).Run(argument_count, arguments);
}

}  // namespace assay
