// The whole command line as one tree: what `assay`, its help, its completions and its manual page
// are made of.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/config.h"

namespace CLI {
class App;
}

namespace assay {

class CommandLine {
 public:
  CommandLine();
  ~CommandLine();
  // Parses and runs; returns the exit code. Unknown words come with the nearest known one.
  int Run(int argument_count, char** arguments);

 private:
  struct Command {
    CLI::App* app;
    std::function<int()> run;
  };
  // Options has AddTo(CLI::App&). Returns the new command.
  template <typename Options>
  CLI::App* Add(CLI::App& parent, const std::string& name, const std::string& description,
                std::function<int(const Options&)> run);
  void AddAll();
  void AddArchive();
  void AddClass();
  void AddWorklog();

  std::unique_ptr<CLI::App> app_;
  Origins origins_;                // of defaults that a settings file changed
  std::vector<Command> commands_;  // a nested one after its parent
};

}  // namespace assay
