#include "cli/env_command.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>

#include "base/version.h"
#include "builders/native_code.h"
#include "cli/env_http.h"
#include "cli/exit_code.h"
#include "cli/places.h"
#include "doctor/doctor.h"
#include "machine/machine.h"
#include "search/environment.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLineBytesMax = 64 << 20;
constexpr int kLookMs = 200;

// Hands each line of `fd` to `take` until it returns false, the input ends, or `interrupted`.
Result<void> ForEachLine(int fd, const std::atomic<bool>& interrupted,
                         const std::function<Result<bool>(const std::string&)>& take) {
  std::string text;
  char buffer[1 << 16];
  while (!interrupted) {
    pollfd ready{fd, POLLIN, 0};
    if (const int count = ::poll(&ready, 1, kLookMs); count == 0 || (count < 0 && errno == EINTR))
      continue;
    const ssize_t size = ::read(fd, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size > 0) text.append(buffer, static_cast<size_t>(size));
    if (size <= 0 && !text.empty()) text += '\n';
    size_t begin = 0;
    for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      if (end == begin) continue;
      ASSAY_ASSIGN_OR_RETURN(const bool more, take(text.substr(begin, end - begin)));
      if (!more) return {};
    }
    text.erase(0, begin);
    if (size <= 0) break;
    if (text.size() > kLineBytesMax) return UsageError("a request's line is over 64 MiB");
  }
  if (interrupted) return Fail(ErrorKind::kInterrupted, "interrupted");
  return {};
}

Result<bool> Say(const std::string& line, bool more) {
  std::fputs((line + "\n").c_str(), stdout);
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return EnvironmentError("cannot write to stdout");
  return more;
}

// All that verdicts of this process depend on, beside what they say themselves.
std::string Toolchain() {
  std::string text(kAssayVersion);
  for (const char* language : {"cpp", "c"})
    if (const auto compiler = FindCompiler("", language)) text += "; " + compiler->version;
  return text;
}

Result<std::vector<WorkerPlace>> Places(const EnvOptions& options) {
  if (options.devices.empty() && options.form == "native")
    return std::vector<WorkerPlace>{{"cpu", ""}};
  return PlacesOf(options.devices);
}

Result<EnvironmentTerms> TermsOf(const EnvOptions& options,
                                 const std::vector<WorkerPlace>& places) {
  EnvironmentTerms terms;
  for (const std::string& problem : options.problems) {
    ProblemChoice choice{problem, options.size, {}};
    ASSAY_RETURN_IF_ERROR(ResolveProblem(choice, SuiteFolders()));
    terms.problems.push_back(std::move(choice));
  }
  terms.judging = options.asked;
  terms.judging.device = places.front().device;
  terms.judging.threshold = options.formula == "fast" && options.p > 0 ? options.p : 1;
  terms.judging.effort.futility = options.formula == "fast";
  terms.form = options.form;
  terms.turns = options.turns;
  terms.prompt_tokens = options.prompt_tokens;
  ASSAY_ASSIGN_OR_RETURN(terms.rewards.formula, RewardFormulaFromName(options.formula));
  terms.rewards.p = options.p;
  terms.rewards.tie = options.tie;
  terms.rewards.foul = options.foul;
  std::string notice;
  terms.machine = LoadMachineProfile(&notice);
  if (!notice.empty()) Notice(notice);
  terms.toolchain = Toolchain();
  return terms;
}

Result<int> ServeHttp(const EnvOptions& options, Environment& environment,
                      const std::atomic<bool>& interrupted) {
  if (options.token_file.empty())
    return UsageError("--http needs --token-file: clients must send a token");
  EnvHttpTerms terms;
  terms.port = options.http;
  ASSAY_ASSIGN_OR_RETURN(terms.token, EnvToken(options.token_file));
  terms.ready = environment.Ready();
  std::atomic<bool> ended = false;
  terms.handle = [&](const std::string& request) {
    std::string event = environment.Handle(request, StopToken(interrupted));
    if (environment.ended()) ended = true;
    return event;
  };
  terms.ended = [&] { return ended.load(); };
  ASSAY_RETURN_IF_ERROR(ServeEnvHttp(terms, interrupted, [&](int port) {
    std::fputs(fmt::format("http://127.0.0.1:{}\n", port).c_str(), stdout);
    std::fflush(stdout);
    Notice(fmt::format("serves http://127.0.0.1:{}; the token is in {}", port, options.token_file));
  }));
  return kExitGood;
}

Result<int> ServeEpisodes(const EnvOptions& options, const std::atomic<bool>& interrupted) {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<WorkerPlace> places, Places(options));
  ASSAY_ASSIGN_OR_RETURN(EnvironmentTerms terms, TermsOf(options, places));
  ASSAY_ASSIGN_OR_RETURN(const std::string shipped, PromptTemplates::ShippedFolder());
  ASSAY_ASSIGN_OR_RETURN(const PromptTemplates templates,
                         PromptTemplates::Load(shipped, options.prompts));
  std::vector<std::string> more;
  if (options.allow_weak_sandbox) more.push_back(fmt::format("--{}", kAllowWeakSandbox));
  std::error_code code;
  WorkerProcesses workers(fs::read_symlink("/proc/self/exe", code).string(),
                          PlacesForWorkers(places, 1, UsableCpus()), more);
  FleetEnvJudge judge(workers);
  const StopToken stop(interrupted);
  EnvironmentParts parts{
      templates, judge,
      [](const ProblemChoice& choice) { return ResolveProblem(choice, SuiteFolders()); },
      [stop](const CandidateSource& source) {
        return ReadNativeCode(source, {}, stop).value_or(NativeCode());
      }};
  Environment environment(std::move(parts), std::move(terms));
  if (options.http >= 0) return ServeHttp(options, environment, interrupted);
  ASSAY_RETURN_IF_ERROR(Say(environment.Ready(), true));
  ASSAY_RETURN_IF_ERROR(
      ForEachLine(STDIN_FILENO, interrupted, [&](const std::string& line) -> Result<bool> {
        const std::string event = environment.Handle(line, stop);
        return Say(event, !environment.ended());
      }));
  return kExitGood;
}

}  // namespace

int RunEnv(const EnvOptions& options) {
  const std::atomic<bool>& interrupted = InstallInterruptHandler();
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  const auto code = ServeEpisodes(options, interrupted);
  return code ? *code : ReportError(code.error());
}

}  // namespace assay
