// The whole command line as one tree: what `assay`, its help, its completions and its manual page
// are made of.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay {

class CommandLine {
 public:
  CommandLine();
  // Parses and runs; returns the exit code. Unknown words come with the nearest known one.
  int Run(int argument_count, char** arguments);
  CLI::App& app() { return app_; }

 private:
  struct Command {
    CLI::App* app;
    std::function<int()> run;
  };
  // Options has AddTo(CLI::App&).
  template <typename Options>
  CLI::App* Add(CLI::App& parent, const std::string& name, const std::string& description,
                int (*run)(const Options&)) {
    const auto options = std::make_shared<Options>();
    CLI::App* command = parent.add_subcommand(name, description);
    options->AddTo(*command);
    commands_.push_back({command, [options, run] { return run(*options); }});
    return command;
  }

  CLI::App app_;
  std::vector<Command> commands_;  // a nested one after its parent
};

}  // namespace assay
