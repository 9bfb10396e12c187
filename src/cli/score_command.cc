#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/files.h"
#include "cli/exit_code.h"
#include "cli/options.h"
#include "cli/verdict_files.h"
#include "problem/suite.h"
#include "report/learning_chart.h"
#include "report/score_chart.h"
#include "report/score_page.h"
#include "report/score_report.h"
#include "report/terminal.h"
#include "report/text.h"
#include "run/run_record.h"
#include "score/score.h"
#include "score/score_json.h"

namespace assay {
namespace {

// Names in messages come from files that anybody may have written.
std::string PrintableLines(const std::string& text) {
  std::string shown;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (at > 0) shown += '\n';
    shown += Printable(std::string_view(text).substr(at, end - at), true);
    at = end + 1;
  }
  return shown;
}

int Refuse(const Error& error, JsonForm form) {
  return ReportError({error.kind, PrintableLines(error.message)}, form);
}

// Ascending, each once.
template <typename Number>
std::vector<Number> Sorted(std::vector<Number> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

// The problems of a suite, of one level where `level` is not 0.
Result<std::vector<AskedProblem>> AskedBy(const std::string& path, int level) {
  std::filesystem::path folder(path);
  if (folder.filename() == "suite.toml")
    folder = folder.has_parent_path() ? folder.parent_path() : std::filesystem::path(".");
  ASSAY_ASSIGN_OR_RETURN(const Suite suite, LoadSuite(folder.string()));
  std::vector<AskedProblem> asked;
  for (const SuiteProblem& problem : suite.problems)
    if (level == 0 || problem.level == level)
      asked.push_back({problem.name, problem.level, problem.mechanism});
  if (asked.empty()) return UsageError(fmt::format("{} has no problem of level {}", path, level));
  return asked;
}

Result<ScoreRules> RulesOf(const ScoreOptions& options) {
  ScoreRules rules;
  for (const double p : options.thresholds)
    if (!std::isfinite(p) || p < 0) return UsageError("--p takes numbers from 0 on, as in --p 1,2");
  for (const int64_t k : options.draws)
    if (k < 1) return UsageError("--k takes whole numbers from 1 on, as in --k 1,5");
  if (!options.thresholds.empty()) rules.thresholds = Sorted(options.thresholds);
  rules.draws = Sorted(options.draws);
  return rules;
}

void TellSetAside(const SetAside& set_aside) {
  if (set_aside.judged_again > 0)
    Notice(
        fmt::format("{} set aside: a later one is of the same candidate, or the file was read "
                    "twice",
                    Counted(set_aside.judged_again, "verdict")));
  if (set_aside.not_asked > 0)
    Notice(PrintableLines(fmt::format("{} set aside, of problems that are not asked for: {}",
                                      Counted(set_aside.not_asked, "verdict"),
                                      fmt::join(set_aside.problems_not_asked, ", "))));
  if (set_aside.against > 0)
    Notice(fmt::format("{} set aside, measured against another candidate (--against)",
                       Counted(set_aside.against, "verdict")));
}

struct Scored {
  Score score;
  std::vector<std::string> skipped;
};

Result<Scored> ScoreFiles(const ScoreOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(const ScoreRules rules, RulesOf(options));
  SelectionRules selection_rules;
  selection_rules.asked_count = options.problems;
  selection_rules.baseline = options.baseline;
  selection_rules.any_machine = options.any_machine;
  selection_rules.any_size = options.any_size;
  if (!options.suite.empty()) {
    ASSAY_ASSIGN_OR_RETURN(selection_rules.asked, AskedBy(options.suite, options.level));
  }
  std::vector<std::string> paths = options.paths;
  if (paths.empty()) {
    const std::filesystem::path saved = StateFolder() / "verdicts";
    if (!std::filesystem::exists(saved))
      return UsageError(
          "no verdict was saved yet: judge a candidate first, with assay judge, or give files");
    paths.push_back(saved.string());
  }
  // A run's folder says what was asked for.
  if (paths.size() == 1 && options.suite.empty() && options.problems == 0) {
    ASSAY_ASSIGN_OR_RETURN(selection_rules.asked, ReadRunRecord(paths.front()));
  }
  ASSAY_ASSIGN_OR_RETURN(VerdictFiles files, ReadVerdictFiles(paths, options.skip_broken));
  for (const std::string& line : files.skipped) Notice(PrintableLines("skipped " + line));
  if (files.verdicts.empty())
    return UsageError(fmt::format("no verdict in {}: judge a candidate first, with assay judge",
                                  fmt::join(paths, ", ")));
  ASSAY_ASSIGN_OR_RETURN(const Selection selection,
                         SelectVerdicts(files.verdicts, selection_rules));
  TellSetAside(selection.set_aside);
  return Scored{ComputeScore(selection, rules), std::move(files.skipped)};
}

// Writes the files that --svg and --html name.
Result<void> WritePictures(const ScoreOptions& options, const Score& score) {
  const auto write = [](const std::string& path, const std::string& text) -> Result<void> {
    ASSAY_RETURN_IF_ERROR(WriteFileAtomically(path, text));
    Notice(PrintableLines("wrote " + path));
    return {};
  };
  if (!options.svg.empty()) ASSAY_RETURN_IF_ERROR(write(options.svg, RenderCurveSvg(score)));
  if (!options.learning_svg.empty()) {
    if (score.learning.empty())
      return UsageError(
          "--learning-svg: no problem has several attempts, so there are no rounds to show");
    ASSAY_RETURN_IF_ERROR(write(options.learning_svg, RenderLearningSvg(score.learning)));
  }
  if (options.html.empty()) return {};
  const std::string subject = options.paths.empty()
                                  ? std::string("all saved verdicts")
                                  : fmt::format("{}", fmt::join(options.paths, ", "));
  return write(options.html, RenderScorePage(score, subject));
}

}  // namespace

int RunScore(const ScoreOptions& options) {
  const auto scored = ScoreFiles(options);
  const JsonForm form = options.json ? JsonForm::kDocument : JsonForm::kNone;
  if (!scored) return Refuse(scored.error(), form);
  if (const auto written = WritePictures(options, scored->score); !written)
    return ReportError(written.error(), form);
  const CardStyle style = CardStyleFor(DetectTerminal(STDOUT_FILENO));
  const std::string text = options.json ? ScoreToJson(scored->score, scored->skipped) + "\n"
                                        : RenderScore(scored->score, style);
  std::fputs(text.c_str(), stdout);
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return ReportError({ErrorKind::kEnvironment, "cannot write the scores to stdout"});
  return kExitGood;
}

}  // namespace assay
