#include "problem/gradients.h"

#include <fmt/format.h>

namespace assay {
namespace {

std::string LinesOf(const char* function) {
  return fmt::format(
      "\n\n\nfrom assay_host import gradients  # added by --grad\n\n"
      "gradients.{}(globals())\n",
      function);
}

std::string With(const std::string& text, const char* function) {
  const std::string lines = LinesOf(function);
  return text.ends_with(lines) ? text : text + lines;
}

std::string WithoutEnd(const std::string& text, const std::string& end) {
  return text.ends_with(end) ? text.substr(0, text.size() - end.size()) : text;
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

bool HasGradients(const ProblemRequest& problem) {
  return problem.source.ends_with(LinesOf("of_problem"));
}

std::string NameWithoutGradients(const std::string& name) {
  return WithoutEnd(name, kGradientsSuffix);
}

std::string SourceWithoutGradients(const std::string& source) {
  return WithoutEnd(source, LinesOf("of_problem"));
}

}  // namespace assay
