#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "cli/command_line.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "sandbox/sandbox.h"

namespace assay {
namespace {

void AddCommands(CommandLine& line) {
  CLI::App& app = line.app();
  line.Add<JudgeOptions>(app, "judge", "Judge candidates against a PyTorch reference", RunJudge);
  line.Add<NewOptions>(app, "new", "Write a stub of a candidate for a problem", RunNew);
  line.Add<ExplainOptions>(app, "explain", "Write a verdict's failing call as a standalone program",
                           RunExplain);
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
}

// Whether the words are for this program: its version, or one of its commands.
bool IsOwn(const CommandLine& line, int argument_count, char** arguments) {
  if (argument_count < 2) return false;
  const std::string first(arguments[1]);
  if (first == "-V" || first == "--version") return true;
  return line.Has(first);
}

}  // namespace

int RunCore(int argument_count, char** arguments) {
  CommandLine line(AddCommands);
  if (IsOwn(line, argument_count, arguments)) return line.Run(argument_count, arguments);
  const auto folder = SupportFolder();
  if (!folder) return ReportError(folder.error());
  const std::string whole = *folder + "/assay";
  ::execv(whole.c_str(), arguments);
  if (errno != ENOENT)
    return ReportError(
        EnvironmentError(fmt::format("{} does not start: {}", whole, std::strerror(errno)))
            .error());
  if (argument_count < 2 || arguments[1][0] == '-') return line.Run(argument_count, arguments);
  return ReportError(EnvironmentError(fmt::format("'{}' is not among the commands that were built: "
                                                  "scripts/build builds the others",
                                                  arguments[1]))
                         .error());
}

}  // namespace assay
