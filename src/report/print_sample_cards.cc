// Prints the card of each sample verdict, or of the outcomes and verdict files named:
// print_sample_cards [--colour] [--ascii] [OUTCOME|FILE.json...]. docs/images/card.svg is made from
// a file's card (docs/images/ansi_to_svg.py).
#include <cstdio>
#include <string>
#include <vector>

#include "base/files.h"
#include "model/sample_verdicts.h"
#include "model/verdict_json.h"
#include "report/card.h"

namespace {

constexpr size_t kFileBytesMax = 64 << 20;

// Returns true if the file holds a verdict.
bool PrintFile(const std::string& path, const assay::CardStyle& style) {
  const auto text = assay::ReadFile(path, kFileBytesMax);
  const auto verdict = text ? assay::VerdictFromJson(*text) : std::unexpected(text.error());
  if (!verdict) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), verdict.error().message.c_str());
    return false;
  }
  std::printf("%s\n", assay::RenderCard(*verdict, style).c_str());
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  assay::CardStyle style;
  std::vector<std::string> wanted, files;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--colour")
      style.colour = true;
    else if (argument == "--ascii")
      style.unicode = false;
    else if (argument.ends_with(".json"))
      files.push_back(argument);
    else
      wanted.push_back(argument);
  }
  bool read = true;
  for (const std::string& path : files) read = PrintFile(path, style) && read;
  for (const assay::Verdict& verdict : assay::SampleVerdicts()) {
    bool show = wanted.empty() && files.empty();
    for (const std::string& name : wanted)
      show = show || name == assay::OutcomeName(verdict.outcome);
    if (show) std::printf("%s\n", assay::RenderCard(verdict, style).c_str());
  }
  return read ? 0 : 1;
}
