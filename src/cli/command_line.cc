#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "base/defences.h"
#include "base/version.h"
#include "cli/completion.h"
#include "cli/options.h"
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

CommandLine::CommandLine(const std::function<void(CommandLine&)>& add_commands)
    : app_(std::make_unique<CLI::App>(
          "Assay judges compute kernels: is one correct, is it faster, by how much, how sure is "
          "that?",
          "assay")) {
  app_->set_version_flag("-V,--version", fmt::format("assay {}", kAssayVersion));
  app_->require_subcommand(1);
  app_->footer("Start with:  assay judge softmax kernels/softmax/fused.cpp --size small");
  add_commands(*this);
}

CommandLine::~CommandLine() = default;

CLI::App* CommandLine::AddCommand(CLI::App& parent, const std::string& name,
                                  const std::string& description,
                                  const std::function<void(CLI::App&)>& add_options,
                                  std::function<int()> run) {
  CLI::App* command = parent.add_subcommand(name, description);
  add_options(*command);
  commands_.push_back({command, std::move(run)});
  return command;
}

CLI::App* CommandLine::AddGroup(const std::string& name, const std::string& description) {
  CLI::App* group = app_->add_subcommand(name, description);
  group->require_subcommand(1);
  return group;
}

bool CommandLine::Has(const std::string& name) const {
  const auto commands = KnownWords(*app_, false);
  return std::find(commands.begin(), commands.end(), name) != commands.end();
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
