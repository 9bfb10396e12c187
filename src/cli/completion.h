// Shell completions and the manual page, written from the same command tree as --help.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace CLI {
class App;
}

namespace assay {

// shell: bash, zsh or fish. Names of problems are asked of `assay problems --names` as they are
// needed. Errors (kUsage): another shell.
Result<std::string> CompletionScript(const CLI::App& app, std::string_view shell);

// assay.1 in man(7) macros.
std::string ManualPage(const CLI::App& app, std::string_view version);

}  // namespace assay
