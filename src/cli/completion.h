// Shell completions and the manual page, written from the same command tree as --help.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}

namespace assay {

// shell: bash, zsh or fish. Names of problems are asked of `assay problems --names` as they are
// needed. Errors (kUsage): another shell.
Result<std::string> CompletionScript(const CLI::App& app, std::string_view shell);

// assay.1 in man(7) macros: all commands.
std::string ManualPage(const CLI::App& app, std::string_view version);
// assay-COMMAND.1: one command, with its subcommands. Errors (kUsage): no such command.
Result<std::string> ManualPageOf(const CLI::App& app, std::string_view version,
                                 const std::string& command);
std::vector<std::string> CommandNames(const CLI::App& app);

struct ManOptions {
  std::string command;  // empty: all
  std::string folder;   // for all pages; empty: the page asked for, on stdout

  void AddTo(CLI::App& app);
};
int RunManual(const CLI::App& app, const ManOptions& options);

}  // namespace assay
