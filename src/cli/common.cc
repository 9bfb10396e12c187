#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/exit_code.h"
#include "cli/options.h"
#include "model/verdict_json.h"
#include "problem/suite.h"
#include "sandbox/sandbox.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

std::atomic<bool> interrupted{false};

void OnInterrupt(int) {
  if (interrupted.exchange(true)) ::_exit(130);  // sandboxes die with their parent
}

}  // namespace

const std::atomic<bool>& InstallInterruptHandler() {
  struct sigaction action {};
  action.sa_handler = OnInterrupt;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  // A terminal that is closed ends no search unsaved; under nohup it does not end it at all.
  struct sigaction hang_up {};
  ::sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return interrupted;
}

Error UnlessInterrupted(Error error) {
  if (interrupted) return {ErrorKind::kInterrupted, "interrupted"};
  return error;
}

void Notice(const std::string& text) {
  std::fputs(fmt::format("assay: {}\n", text).c_str(), stderr);
}

int ReportError(const Error& given, JsonForm form) {
  const Error error = UnlessInterrupted(given);
  Notice(error.message);
  if (form == JsonForm::kDocument) std::fputs((ErrorDocument(error) + "\n").c_str(), stdout);
  if (form == JsonForm::kLines) std::fputs(ErrorEvent(error).c_str(), stdout);
  return ExitCodeOf(error.kind);
}

std::string ErrorDocument(const Error& error) {
  const Json document = {{"schema", "assay.error/1"},
                         {"kind", ErrorKindName(error.kind)},
                         {"message", error.message},
                         {"exit_code", ExitCodeOf(error.kind)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string ErrorEvent(const Error& error) {
  const Json event = {{"schema", "assay.event/1"},
                      {"event", "error"},
                      {"kind", ErrorKindName(error.kind)},
                      {"message", error.message}};
  return event.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void HeedWeakSandboxFlag(bool allowed) {
  if (!allowed) return;
  AllowWeakSandbox();
  const SelfTestReport& self_test = ProbeSandbox().self_test;
  if (self_test.breaches.empty()) return;
  std::fputs(
      fmt::format(
          "assay: WARNING: THE SANDBOX DOES NOT HOLD HERE: {}.\n"
          "assay: WARNING: a candidate can change this machine and its own verdict; judge only "
          "code that you trust. Verdicts say WEAK\n",
          DescribeBreaches(self_test))
          .c_str(),
      stderr);
}

bool KeepVerdict(const Verdict& verdict) {
  const auto path = StateFolder() / "verdicts" / (verdict.id + ".json");
  auto saved = WriteFileAtomically(path, VerdictToJson(verdict, 1) + "\n");
  if (!saved) Notice("the verdict was not saved: " + saved.error().message);
  return saved.has_value();
}

Result<ProblemChoice> ProblemOptions::Choice() const {
  ProblemChoice choice{problem, size, {}, gradients};
  for (const std::string& text : set) {
    ASSAY_ASSIGN_OR_RETURN(auto setting, ParseSetting(text));
    choice.set[setting.first] = setting.second;
  }
  return choice;
}

Result<ProblemRequest> ProblemOptions::Resolve() const {
  ASSAY_ASSIGN_OR_RETURN(const ProblemChoice choice, Choice());
  return ResolveProblem(choice, SuiteFolders());
}

}  // namespace assay
