#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "base/hash.h"
#include "base/version.h"
#include "cli/exit_code.h"
#include "cli/pilot_command.h"
#include "cli/places.h"
#include "cli/submit_command.h"
#include "doctor/doctor.h"
#include "report/terminal.h"
#include "report/text.h"
#include "runner/runner.h"

namespace assay {
namespace {

constexpr size_t kServerDigits = 16;

std::string DefaultName(const WorkerPlace& place) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return fmt::format("{}-{}", host[0] == '\0' ? "runner" : host.data(), place.Name());
}

Result<int> Serve(const WorkerCommandOptions& options, const std::atomic<bool>& interrupted) {
  ASSAY_ASSIGN_OR_RETURN(const std::string url, ParseServerUrl(options.server));
  ASSAY_ASSIGN_OR_RETURN(ApiKey token, ReadServerToken(options.token_file));
  std::vector<std::string> devices;
  if (!options.device.empty()) devices.push_back(options.device);
  ASSAY_ASSIGN_OR_RETURN(const std::vector<WorkerPlace> places, PlacesOf(devices));
  ASSAY_ASSIGN_OR_RETURN(JobFiles files, JobFiles::Create());
  std::error_code code;
  WorkerProcesses workers(std::filesystem::read_symlink("/proc/self/exe", code).string(), places,
                          WorkerArguments(options));
  RunnerTerms terms;
  terms.facts.name = options.name.empty() ? DefaultName(places.front()) : options.name;
  terms.facts.device = places.front().device;
  terms.facts.version = kAssayVersion;
  std::string notice;
  const MachineProfile machine = LoadMachineProfile(&notice);
  if (!notice.empty()) Notice(notice);
  if (!machine.created.empty()) terms.facts.machine = MachineProfileToJson(machine);
  terms.suites = SuiteFolders();
  const ServerLink server(url, std::move(token), MakeHttpClient());
  const RepeatSurroundings repeats = RealRepeats();
  JobWorker worker(workers, repeats.now_ns);
  KeptResults results(StateFolder() / "runner" / Sha256Hex(url).substr(0, kServerDigits));
  const bool unicode = DetectTerminal(STDERR_FILENO).unicode;
  Notice(fmt::format("runner {} asks {} for jobs; Ctrl-C ends it", terms.facts.name, url));
  Runner runner(std::move(terms),
                {server, worker, results, files, repeats,
                 [unicode](const std::string& text) { Notice(Printable(text, unicode)); }});
  return std::unexpected(runner.Run(StopToken(interrupted)));
}

}  // namespace

std::vector<std::string> WorkerArguments(const WorkerCommandOptions& options) {
  std::vector<std::string> words{"--sessions", fmt::format("{}", options.sessions)};
  if (!options.memory.empty()) words.insert(words.end(), {"--memory", options.memory});
  const auto add = [&](const char* name, const std::vector<int>& cores) {
    if (!cores.empty()) words.insert(words.end(), {name, fmt::format("{}", fmt::join(cores, ","))});
  };
  add("--cores", options.cores);
  add("--measuring-cores", options.measuring_cores);
  if (options.sharers > 1)
    words.insert(words.end(), {"--sharers", fmt::format("{}", options.sharers)});
  if (options.allow_weak_sandbox) words.push_back(fmt::format("--{}", kAllowWeakSandbox));
  return words;
}

int RunRunner(const WorkerCommandOptions& options) {
  const std::atomic<bool>& interrupted = InstallInterruptHandler();
  const auto code = Serve(options, interrupted);
  return code ? *code : ReportError(code.error());
}

}  // namespace assay
