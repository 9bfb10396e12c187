#include "cluster/slurm.h"

#include <fmt/format.h>

#include <charconv>
#include <ranges>

#include "base/trimmed.h"

namespace assay {
namespace {

constexpr size_t kQuotedMax = 400;

std::vector<std::string> Split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (const auto part : std::views::split(text, at)) parts.emplace_back(part.begin(), part.end());
  return parts;
}

std::optional<double> Number(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

// Errors of a request, which stay whatever the cluster does.
bool IsRefusal(const std::string& words) {
  for (const char* part : {"nvalid", "nrecognized", "equested node configuration", "not permitted",
                           "ore processors requested", "exceeds"})
    if (words.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

bool SlurmJob::IsAlive() const {
  for (const char* over : {"COMPLETED", "COMPLETING", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL",
                           "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"})
    if (state == over) return false;
  return true;
}

Result<std::string> Slurm::Run(const std::vector<std::string>& words, const std::string& input) {
  ASSAY_ASSIGN_OR_RETURN(const CommandAnswer answer,
                         commands_.Run(words, input, terms_.seconds_max));
  if (answer.exit_code == 0) return answer.output;
  const std::string said(Trimmed(answer.errors.empty() ? answer.output : answer.errors));
  const std::string message = fmt::format("{} ended with exit code {}: {}", words[0],
                                          answer.exit_code, said.substr(0, kQuotedMax));
  return Fail(IsRefusal(said) ? ErrorKind::kUsage : ErrorKind::kEnvironment, message);
}

Result<std::string> Slurm::Submit(int count, const std::string& script) {
  std::vector<std::string> words{"sbatch",
                                 "--parsable",
                                 "--requeue",
                                 "--ntasks=1",
                                 "--open-mode=append",
                                 "--job-name=" + terms_.name,
                                 fmt::format("--array=0-{}", count - 1),
                                 fmt::format("--output={}/%A_%a.log", terms_.logs)};
  if (!terms_.partition.empty()) words.push_back("--partition=" + terms_.partition);
  if (!terms_.gres.empty()) words.push_back("--gres=" + terms_.gres);
  if (!terms_.time.empty()) words.push_back("--time=" + terms_.time);
  ASSAY_ASSIGN_OR_RETURN(const std::string output, Run(words, script));
  // "12", or "12;cluster".
  const std::string id = Split(std::string(Trimmed(output)), ';').front();
  if (id.empty() || id.find_first_not_of("0123456789") != std::string::npos)
    return EnvironmentError(fmt::format("sbatch named no job: {}", output.substr(0, kQuotedMax)));
  return id;
}

Result<std::vector<SlurmJob>> Slurm::Jobs() {
  ASSAY_ASSIGN_OR_RETURN(const std::string output,
                         Run({"squeue", "--noheader", "--array", "--me", "--name=" + terms_.name,
                              "--format=%i|%T|%N|%r"}));
  return ParseJobs(output);
}

Result<void> Slurm::Cancel(const std::vector<std::string>& ids) {
  std::vector<std::string> words{"scancel"};
  words.insert(words.end(), ids.begin(), ids.end());
  ASSAY_RETURN_IF_ERROR(Run(words));
  return {};
}

Result<void> Slurm::CancelAll() {
  ASSAY_RETURN_IF_ERROR(Run({"scancel", "--me", "--name=" + terms_.name}));
  return {};
}

std::vector<SlurmJob> ParseJobs(const std::string& text) {
  std::vector<SlurmJob> jobs;
  for (const std::string& line : Split(text, '\n')) {
    const std::vector<std::string> parts = Split(std::string(Trimmed(line)), '|');
    if (parts.size() < 4 || parts[0].empty() || parts[1].empty()) continue;
    jobs.push_back({parts[0], parts[1], parts[2], parts[3]});
  }
  return jobs;
}

Result<double> ParseSlurmTime(const std::string& text) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  const auto wrong = [&] {
    return UsageError(fmt::format("--time {}: give minutes, H:MM:SS, D-HH or D-HH:MM:SS", text));
  };
  std::string rest = text;
  double seconds = 0;
  const size_t dash = text.find('-');
  if (dash != std::string::npos) {
    const auto days = Number(text.substr(0, dash));
    if (!days) return wrong();
    seconds = *days * kDay;
    rest = text.substr(dash + 1);
  }
  std::vector<double> numbers;
  for (const std::string& part : Split(rest, ':')) {
    const auto number = Number(part);
    if (!number || numbers.size() == 3) return wrong();
    numbers.push_back(*number);
  }
  if (numbers.empty()) return wrong();
  // The first number: hours after days or before two others, else minutes.
  const bool begins_with_hours = dash != std::string::npos || numbers.size() == 3;
  double unit = begins_with_hours ? kHour : kMinute;
  for (const double number : numbers) {
    seconds += number * unit;
    unit /= kMinute;
  }
  return seconds > 0 ? Result<double>(seconds) : wrong();
}

}  // namespace assay
