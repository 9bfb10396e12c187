#include "cli/env_command.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/version.h"
#include "builders/native_code.h"
#include "cli/exit_code.h"
#include "cli/places.h"
#include "cli/recorder.h"
#include "doctor/doctor.h"
#include "http/server.h"
#include "http/token.h"
#include "machine/machine.h"
#include "machine/seeds.h"
#include "search/environment.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLineBytesMax = 64 << 20;
constexpr int kLookMs = 200;
constexpr size_t kIdDigits = 12;

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
    ProblemChoice choice{problem, options.size, {}, options.gradients};
    ASSAY_RETURN_IF_ERROR(ResolveProblem(choice, SuiteFolders()));
    terms.problems.push_back(std::move(choice));
  }
  terms.gradients = options.gradients;
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
  terms.id = Sha256Hex(fmt::format("environment {}", FreshSeed())).substr(0, kIdDigits);
  return terms;
}

ServedReply Refusal(int status, const std::string& why) {
  ServedReply reply{
      status,
      nlohmann::ordered_json{{"id", ""}, {"event", "error"}, {"kind", "usage"}, {"message", why}}
          .dump()};
  if (status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

// An event; its status is 200, or that of its error.
ServedReply ReplyOf(const std::string& event) {
  const auto json = nlohmann::json::parse(event, nullptr, false);
  if (!json.is_object() || json.value("event", "") != "error") return {200, event};
  return {json.value("kind", "") == "usage" ? 400 : 503, event};
}

Result<int> ServeHttp(const EnvOptions& options, Environment& environment,
                      const std::atomic<bool>& interrupted) {
  if (options.token_file.empty())
    return UsageError("--http needs --token-file: clients must send a token");
  ASSAY_ASSIGN_OR_RETURN(const std::string token, ReadOrMakeToken(options.token_file));
  ASSAY_ASSIGN_OR_RETURN(const auto server, HttpServer::Listen(options.http, {}));
  const TokenGuard guard(token, server->port());
  std::mutex one_at_a_time;
  std::atomic<bool> ended = false;
  ServerHandlers handlers;
  handlers.fault = Refusal;
  handlers.refuse = [&](const ServedRequest& request) -> std::optional<ServedReply> {
    const auto refusal = guard.Refuse(request);
    if (!refusal) return std::nullopt;
    return Refusal(refusal->status, refusal->why);
  };
  handlers.answer = [&](const ServedRequest& request) {
    if (request.method == "GET" && request.target == "/ready")
      return ServedReply{200, environment.Ready()};
    if (request.method != "POST" || request.target != "/")
      return Refusal(404, "POST requests to /, and GET /ready");
    const std::scoped_lock lock(one_at_a_time);
    ServedReply reply = ReplyOf(environment.Handle(request.body, StopToken(interrupted)));
    if (environment.ended()) ended = true;
    return reply;
  };
  handlers.over = [&] { return ended || interrupted; };
  std::fputs(fmt::format("http://127.0.0.1:{}\n", server->port()).c_str(), stdout);
  std::fflush(stdout);
  Notice(fmt::format("serves http://127.0.0.1:{}; the token is in {}", server->port(),
                     options.token_file));
  server->Serve(handlers);
  if (interrupted) return Fail(ErrorKind::kInterrupted, "interrupted");
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
  Recorder recorder(options.archive, options.no_save);
  parts.judged = [&](const JudgedSource& judged, const Verdict& verdict) {
    recorder.Judged(judged, verdict);
  };
  parts.record = [&](NewRecord record) { recorder.Add(std::move(record)); };
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
