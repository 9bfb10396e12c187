#include "problem/gradients.h"

#include <fmt/format.h>

namespace assay {
namespace {

std::string With(const std::string& text, const char* function) {
  const std::string lines = fmt::format(
      "\n\n\nfrom assay_host import gradients  # added by --grad\n\n"
      "gradients.{}(globals())\n",
      function);
  return text.ends_with(lines) ? text : text + lines;
}

}  // namespace

void AddGradients(ProblemRequest* problem) {
  problem->source = With(problem->source, "of_problem");
  if (!problem->name.ends_with(kGradientsSuffix)) problem->name += kGradientsSuffix;
  problem->flops.clear();
  problem->bytes.clear();
}

std::string CandidateWithGradients(const std::string& content) {
  return With(content, "of_candidate");
}

}  // namespace assay
