// Templates of prompts: text with {{name}}, and with {{#name}} ... {{/name}} around what is shown
// only if that part is there. docs/prompts.md has their language. Pure but for Load().
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

// The parts of a prompt that templates may name.
inline constexpr std::array<std::string_view, 23> kPromptParts{
    "answer",   "arguments",       "budget",        "conditions", "entry",    "example",
    "feedback", "flags",           "form",          "idea",       "ideas",    "language",
    "machine",  "origin",          "parent",        "precision",  "problem",  "reference",
    "rules",    "second_feedback", "second_parent", "target",     "tolerance"};

using PromptParts = std::map<std::string, std::string, std::less<>>;

// Errors (kUsage) name `file`, the line and the fault: an unknown name with the nearest known one,
// a section that is not closed, or is closed without being open.
Result<void> CheckTemplate(std::string_view text, const std::string& file);

// Fills in a checked template. A part that is not there is empty.
std::string FillTemplate(std::string_view text, const PromptParts& parts);

// The text of all templates, by their files' names without the suffix .md.
class PromptTemplates {
 public:
  // Reads FOLDER/NAME.md of each; a file in `replacing` takes its place. `replacing` may be empty.
  // Errors: kUsage: a folder or file that is not there, a file in `replacing` that replaces none,
  // or as above.
  static Result<PromptTemplates> Load(const std::string& shipped, const std::string& replacing);
  // The folder beside the program, or prompts/ in the working folder. Errors: kEnvironment.
  static Result<std::string> ShippedFolder();

  const std::string& Text(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> texts_;
};

}  // namespace assay
