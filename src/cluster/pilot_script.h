// The shell script that starts a pilot on a node, and checks that it is the controller's program.
// Pure.
#pragma once

#include <string>
#include <vector>

namespace assay {

struct PilotProgram {
  std::string path, hash;   // of the program; SHA-256
  std::string bundle;       // archive that nodes unpack in place of `path`; empty: none
  std::string bundle_hash;  // SHA-256
  std::vector<std::string> arguments;
};

// The script replaces itself by the pilot, so that signals reach it. It ends with exit code 8 and a
// line on stderr where the node's program is another one.
std::string PilotScript(const PilotProgram& program);
// One word of a shell.
std::string ShellWord(const std::string& text);

}  // namespace assay
