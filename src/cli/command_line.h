// A command line as one tree: what its help, its completions and its manual page are made of.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/config.h"

namespace CLI {
class App;
}

namespace assay {

class CommandLine {
 public:
  // `add_commands` adds all commands to it.
  explicit CommandLine(const std::function<void(CommandLine&)>& add_commands);
  ~CommandLine();

  // Options has AddTo(CLI::App&). Returns the new command.
  template <typename Options>
  CLI::App* Add(CLI::App& parent, const std::string& name, const std::string& description,
                std::function<int(const Options&)> run) {
    const auto options = std::make_shared<Options>();
    return AddCommand(
        parent, name, description, [options](CLI::App& command) { options->AddTo(command); },
        [options, run = std::move(run)] { return run(*options); });
  }
  // Adds a command that has commands of its own, one of which must be named.
  CLI::App* AddGroup(const std::string& name, const std::string& description);
  CLI::App& app() { return *app_; }
  const Origins& origins() const { return origins_; }
  // Returns true if there is a command of this name, not within another.
  bool Has(const std::string& name) const;

  // Parses and runs; returns the exit code. Unknown words come with the nearest known one.
  int Run(int argument_count, char** arguments);

 private:
  struct Command {
    CLI::App* app;
    std::function<int()> run;
  };
  CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& description,
                       const std::function<void(CLI::App&)>& add_options, std::function<int()> run);

  std::unique_ptr<CLI::App> app_;
  Origins origins_;                // of defaults that a settings file changed
  std::vector<Command> commands_;  // a nested one after its parent
};

}  // namespace assay
