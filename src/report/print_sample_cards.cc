// Prints the card of each sample verdict, or of the outcomes named: print_sample_cards [--colour]
// [--ascii] [OUTCOME...]. docs/images/card.svg is made from it (docs/images/ansi_to_svg.py).
#include <cstdio>
#include <string>
#include <vector>

#include "model/sample_verdicts.h"
#include "report/card.h"

int main(int count, char** arguments) {
  assay::CardStyle style;
  std::vector<std::string> wanted;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--colour")
      style.colour = true;
    else if (argument == "--ascii")
      style.unicode = false;
    else
      wanted.push_back(argument);
  }
  for (const assay::Verdict& verdict : assay::SampleVerdicts()) {
    bool show = wanted.empty();
    for (const std::string& name : wanted)
      show = show || name == assay::OutcomeName(verdict.outcome);
    if (show) std::printf("%s\n", assay::RenderCard(verdict, style).c_str());
  }
  return 0;
}
