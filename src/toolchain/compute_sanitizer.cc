#include "toolchain/compute_sanitizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "toolchain/lines.h"

namespace assay {
namespace {

constexpr std::string_view kMark = "=========";
constexpr size_t kFindingsMax = 5;
constexpr size_t kFindingBytesMax = 300;

// The first number of a line such as "ERROR SUMMARY: 3 errors" or "RACECHECK SUMMARY: 1 hazard
// displayed (1 error, 0 warnings)".
std::optional<int64_t> SummaryCount(std::string_view line) {
  constexpr std::string_view kSummary = " SUMMARY: ";
  const size_t at = line.find(kSummary);
  if (at == std::string_view::npos || line.find("not printed") != std::string_view::npos)
    return std::nullopt;
  const std::string_view rest = line.substr(at + kSummary.size());
  int64_t count = 0;
  const auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
  return status == std::errc() && count >= 0 ? std::optional(count) : std::nullopt;
}

bool IsBackground(std::string_view line) {
  return line.find("Host Frame") != std::string_view::npos ||
         line.find("host backtrace") != std::string_view::npos ||
         line.find("Device Frame") != std::string_view::npos;
}

// Findings that differ in the thread alone are one.
class Findings {
 public:
  void Begin(std::string_view line) {
    End();
    finding_ = line;
  }
  void Continue(std::string_view line) {
    if (finding_.empty() || IsBackground(line)) return;
    if (++details_ == 1) {
      key_ = finding_ + " " + std::string(line);
    }
    finding_ += " " + std::string(line);
  }
  void End() {
    if (key_.empty()) key_ = finding_;
    if (!finding_.empty() && seen_.insert(key_).second && kept_.size() < kFindingsMax)
      kept_.push_back(finding_.substr(0, kFindingBytesMax));
    finding_.clear();
    key_.clear();
    details_ = 0;
  }
  std::vector<std::string> Take() {
    End();
    return std::move(kept_);
  }

 private:
  std::string finding_, key_;
  int details_ = 0;
  std::set<std::string> seen_;
  std::vector<std::string> kept_;
};

}  // namespace

std::vector<std::string> SanitizerCommand(const std::string& sanitizer, const std::string& tool,
                                          const std::vector<std::string>& command) {
  std::vector<std::string> arguments{sanitizer,
                                     "--tool",
                                     tool,
                                     "--target-processes",
                                     "application-only",
                                     "--check-exit-code",
                                     "no",
                                     "--show-backtrace",
                                     "no",
                                     "--print-limit",
                                     "20",
                                     "--launch-timeout",
                                     "60"};
  if (tool == "memcheck") arguments.insert(arguments.end(), {"--report-api-errors", "no"});
  arguments.insert(arguments.end(), command.begin(), command.end());
  return arguments;
}

SanitizerRecord ReadSanitizerOutput(const std::string& tool, std::string_view output,
                                    bool* silent) {
  SanitizerRecord record;
  record.tool = tool;
  Findings findings;
  std::optional<int64_t> errors;
  std::string trouble;
  while (!output.empty()) {
    const std::string_view whole = TakeLine(output);
    if (!whole.starts_with(kMark)) continue;
    const std::string_view rest = whole.substr(kMark.size());
    const std::string_view line = TrimSpace(rest);
    const bool indented = rest.starts_with("  ");
    if (const auto count = SummaryCount(line)) errors = count;
    if (line.empty() || line == "COMPUTE-SANITIZER" || line.find(" SUMMARY: ") != line.npos)
      findings.End();
    else if (indented)
      findings.Continue(line);
    else
      findings.Begin(line);
    if (trouble.empty() && !indented && line.find("rror") != line.npos) trouble = line;
  }
  record.findings = findings.Take();
  if (errors) {
    record.errors = *errors;
    if (*errors == 0) record.findings.clear();  // remarks of the tool's own
    return record;
  }
  record.findings.clear();
  if (silent != nullptr) *silent = trouble.empty();
  record.failure = trouble.empty() ? "compute-sanitizer printed no summary"
                                   : fmt::format("compute-sanitizer says: {}",
                                                 trouble.substr(0, kFindingBytesMax));
  return record;
}

}  // namespace assay
