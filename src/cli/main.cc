// assay: one program, one file a subcommand.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/options.h"
#include "pipeline/version.h"

int main(int argument_count, char** arguments) {
  using namespace assay;
  CLI::App app("Assay judges compute kernels: correct? faster, by how much, how sure?", "assay");
  app.set_version_flag("-V,--version", fmt::format("assay {}", kAssayVersion));
  app.require_subcommand(1);
  app.footer("Start with:  assay judge softmax kernels/softmax/fused.cpp --size small");

  JudgeOptions judge;
  CLI::App* judge_command =
      app.add_subcommand("judge", "Judge candidates against a PyTorch reference");
  judge.AddTo(*judge_command);
  NewOptions fresh;
  CLI::App* new_command = app.add_subcommand("new", "Write a stub of a candidate for a problem");
  fresh.AddTo(*new_command);
  ExplainOptions explain;
  CLI::App* explain_command =
      app.add_subcommand("explain", "Write a verdict's failing call as a standalone program");
  explain.AddTo(*explain_command);

  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::fputs(fmt::format("assay: {}; see assay --help\n", error.what()).c_str(), stderr);
    return 2;
  }
  if (judge_command->parsed()) return RunJudge(judge);
  if (new_command->parsed()) return RunNew(fresh);
  return RunExplain(explain);
}
